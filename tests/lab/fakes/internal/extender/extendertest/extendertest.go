// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

// Package extendertest is kube-scheduler's half of the extender protocol, for tests.
package extendertest

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

const patience = 60 * time.Second

// Post sends JSON; the status and the answer without white space around it.
func Post(t *testing.T, url string, body []byte) (int, string) {
	t.Helper()
	response, err := http.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, strings.TrimSpace(read(t, response))
}

// Get is the answer, which has to be a success.
func Get(t *testing.T, url string) string {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	content := read(t, response)
	if response.StatusCode != http.StatusOK {
		t.Fatalf("HTTP %d: %s", response.StatusCode, content)
	}
	return content
}

func read(t *testing.T, response *http.Response) string {
	t.Helper()
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// Output is what a program writes, which a test may read meanwhile.
type Output struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

// Write takes in what the program writes.
func (o *Output) Write(content []byte) (int, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.text.Write(content)
}

// String is all of it so far.
func (o *Output) String() string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.text.String()
}

// Await waits until a text was written.
func (o *Output) Await(t *testing.T, text string) {
	t.Helper()
	for limit := time.Now().Add(patience); !strings.Contains(o.String(), text); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("%q was not said:\n%s", text, o.String())
		}
	}
}

// FreePort is one at which nobody listens.
func FreePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return port
}

// Run has a program begin, answer with its version, and end well when it is told to; each line has to say that it is a
// fake for the program of this name.
func Run(t *testing.T, name, version string, program func(ctx context.Context, port string, output io.Writer) int) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	port, output, ended := FreePort(t), &Output{}, make(chan int, 1)
	go func() { ended <- program(ctx, port, output) }()
	output.Await(t, "listening at port "+port)
	if got := Get(t, "http://127.0.0.1:"+port+"/version"); got != version {
		t.Errorf("version %q", got)
	}
	stop()
	select {
	case status := <-ended:
		if status != 0 {
			t.Errorf("exit status %d", status)
		}
	case <-time.After(patience):
		t.Fatal("the program did not stop")
	}
	for _, line := range strings.Split(strings.TrimSpace(output.String()), "\n") {
		if !strings.HasPrefix(line, "FAKE "+name+": ") {
			t.Errorf("line %q does not say that this is a fake", line)
		}
	}
}
