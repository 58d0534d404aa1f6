// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package kube_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gpu.kubernetes.lab/fakes/internal/kube"
	"gpu.kubernetes.lab/fakes/internal/kube/kubetest"
)

const patience = 60 * time.Second

func TestQuantities(t *testing.T) {
	cases := map[string]int64{
		`"3"`: 3, `16`: 16, `"80k"`: 80000, `"250m"`: 1, `"1001m"`: 2, `"1Ki"`: 1024, `"1.5Gi"`: 3 << 29, `"8e4"`: 80000,
		`"1E"`: 1e18, `"0"`: 0, `"-1500m"`: -1, `"100n"`: 1, `"16Ei"`: math.MaxInt64,
	}
	for text, want := range cases {
		var got kube.Quantity
		if err := json.Unmarshal([]byte(text), &got); err != nil || int64(got) != want {
			t.Errorf("%s: got %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{`""`, `"GiB"`, `"3 GiB"`, `true`, `{}`} {
		var got kube.Quantity
		if err := json.Unmarshal([]byte(text), &got); err == nil {
			t.Errorf("%s was read as %d", text, got)
		}
	}
}

func getenv(env map[string]string) func(string) string {
	return func(key string) string { return env[key] }
}

func TestConnect(t *testing.T) {
	server := kubetest.Start(t)
	server.Node("node-1", nil)
	account, inPod := server.Account(t)
	folder := t.TempDir()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	write := func(name, content string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("ca.pem", string(authority))
	write("the-token", kubetest.Token)
	file := func(name, cluster, user string) map[string]string {
		text := fmt.Sprintf(`{current-context: here, contexts: [{name: other, context: {}}, {name: here, context: {cluster: c, user: u}}],
clusters: [{name: other, cluster: {server: "https://127.0.0.1:1"}}, {name: c, cluster: {server: "%s", %s}}],
users: [{name: u, user: {%s}}]}`, server.URL, cluster, user)
		return map[string]string{"KUBECONFIG": write(name, text)}
	}
	data := "certificate-authority-data: " + base64.StdEncoding.EncodeToString(authority)
	token := "token: " + kubetest.Token
	missing := map[string]string{"KUBECONFIG": filepath.Join(folder, "not-mounted")}
	for key, value := range inPod {
		missing[key] = value
	}
	cases := map[string]struct {
		env  map[string]string
		want string // part of the error; "" = it works
	}{
		"service account":                    {inPod, ""},
		"a kubeconfig that is not there":     {missing, ""},
		"data and token":                     {file("data", data, token), ""},
		"files beside the kubeconfig":        {file("files", "certificate-authority: ca.pem", "tokenFile: the-token"), ""},
		"not verified":                       {file("insecure", "insecure-skip-tls-verify: true", token), ""},
		"another authority":                  {file("untrusted", "", token), "certificate"},
		"a wrong token":                      {file("wrong", data, "token: guessed"), "HTTP 401"},
		"neither":                            {nil, "KUBECONFIG"},
		"a user that is not there":           {map[string]string{"KUBECONFIG": write("bare", "current-context: x\n")}, "needs one cluster"},
		"a certificate that is none":         {file("certificate", data, "client-certificate-data: aGVsbG8="), "client certificate cannot be read"},
		"a file that is not there":           {file("absent", "certificate-authority: absent.pem", token), "absent.pem"},
		"a kubeconfig that is no kubeconfig": {map[string]string{"KUBECONFIG": write("text", "- a\n")}, "is not a kubeconfig"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			client, err := kube.Connect(getenv(test.env), account)
			var node kube.Node
			if err == nil {
				err = client.Get(context.Background(), kube.NodePath("node-1"), &node)
			}
			if test.want == "" && (err != nil || node.Metadata.Name != "node-1") {
				t.Errorf("got %+v, %v", node, err)
			}
			if test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestARefusalKeepsTheServersWords(t *testing.T) {
	server := kubetest.Start(t)
	server.Deny("GET /api/v1/nodes")
	err := server.Client(t).Get(context.Background(), kube.NodePath("node-1"), &kube.Node{})
	var refused *kube.StatusError
	if !errors.As(err, &refused) || refused.Code != 403 || !strings.Contains(err.Error(), "is forbidden") {
		t.Errorf("got %v", err)
	}
}

// told is a Sink that says each thing that it is told.
type told chan string

func (s told) Replace(nodes []kube.Node) {
	names := make([]string, len(nodes))
	for n, node := range nodes {
		names[n] = node.Metadata.Name
	}
	s <- "list " + strings.Join(names, " ")
}

func (s told) Put(node kube.Node) {
	s <- fmt.Sprintf("put %s %d", node.Metadata.Name, node.Status.Capacity["aliyun.com/gpu-mem"])
}

func (s told) Delete(node kube.Node) { s <- "delete " + node.Metadata.Name }

func TestFollow(t *testing.T) {
	server := kubetest.Start(t)
	server.Node("node-1", nil)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	sink := make(told, 16)
	go kube.Follow(ctx, server.Client(t), "/api/v1/nodes", sink, log.New(io.Discard, "", 0))
	steps := []struct {
		do   func()
		want string
	}{
		{func() {}, "list node-1"},
		{func() { server.Node("node-2", map[string]string{"aliyun.com/gpu-mem": "80k"}) }, "put node-2 80000"},
		{func() { server.Pod("pod-1", "", "3", "Pending", nil); server.Delete(kube.NodePath("node-1")) }, "delete node-1"},
		{server.CloseClientConnections, "list node-2"},
		{func() { server.Delete(kube.NodePath("node-2")) }, "delete node-2"},
	}
	for _, step := range steps {
		step.do()
		select {
		case got := <-sink:
			if got != step.want {
				t.Fatalf("told %q, want %q", got, step.want)
			}
		case <-time.After(patience):
			t.Fatalf("not told %q", step.want)
		}
	}
}

// lines collects what a logger writes.
type lines chan string

func (l lines) Write(content []byte) (int, error) {
	l <- string(content)
	return len(content), nil
}

func TestFollowSaysOnceWhatIsRefusedAndGoesOn(t *testing.T) {
	server := kubetest.Start(t)
	server.Deny("GET /api/v1/nodes")
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	sink, logged := make(told, 16), make(lines, 16)
	go kube.Follow(ctx, server.Client(t), "/api/v1/nodes", sink, log.New(logged, "", 0))
	if said := <-logged; !strings.Contains(said, "cannot list and watch /api/v1/nodes") || !strings.Contains(said, "is forbidden") {
		t.Errorf("said %q", said)
	}
	for limit := time.Now().Add(patience); server.Refused() < 2; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("tried %d times", server.Refused())
		}
	}
	server.Deny()
	if got := <-sink; got != "list " {
		t.Errorf("told %q", got)
	}
	if len(logged) != 0 {
		t.Errorf("said again: %q", <-logged)
	}
}
