// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gpu.kubernetes.lab/fakes/internal/extender/extendertest"
	"gpu.kubernetes.lab/fakes/internal/gpushare"
	"gpu.kubernetes.lab/fakes/internal/kube"
	"gpu.kubernetes.lab/fakes/internal/kube/kubetest"
)

const patience = 60 * time.Second

// recorded is what kube-scheduler 1.34.4 sent for pod three, which asks for 3, with nodes worker-1 and worker-2.
func recorded(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// recordedPod stores the pod of the recorded calls, with one change to its only container's limit ("" takes it away).
func recordedPod(t *testing.T, api *kubetest.Server, limit string) {
	t.Helper()
	var args struct{ Pod kubetest.Object }
	if err := json.Unmarshal(recorded(t, "filter"), &args); err != nil {
		t.Fatal(err)
	}
	container := args.Pod["spec"].(kubetest.Object)["containers"].([]any)[0].(kubetest.Object)
	limits := container["resources"].(kubetest.Object)["limits"].(kubetest.Object)
	if limits[gpushare.Memory] = limit; limit == "" {
		delete(limits, gpushare.Memory)
	}
	api.Put(kube.PodPath("default", "three"), args.Pod)
}

// started is an extender that knows what the API server has, and is told what changes until the test ends.
func started(t *testing.T, api *kubetest.Server) string {
	t.Helper()
	url, _ := startedUntil(t, api)
	return url
}

// startedUntil is the same with a function that ends the telling.
func startedUntil(t *testing.T, api *kubetest.Server) (string, context.CancelFunc) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	e := &answers{ledger: newLedger(), client: api.Client(t), log: log.New(io.Discard, "", 0), debug: true}
	if !e.follow(ctx) {
		t.Fatal("the API was not read")
	}
	server := httptest.NewServer(e.handler())
	t.Cleanup(func() {
		stop()
		server.Close()
	})
	return server.URL, stop
}

func capacity(memory, count string) map[string]string {
	return map[string]string{gpushare.Memory: memory, gpushare.Count: count}
}

func onGPU(index, amount string) map[string]string {
	return map[string]string{gpushare.Index: index, gpushare.PodMemory: amount}
}

func TestFilterAnswersTheScheduler(t *testing.T) {
	api := kubetest.Start(t)
	api.Node("worker-1", capacity("8", "4"))
	api.Node("worker-2", capacity("80k", "2"))
	api.Pod("full", "worker-2", "38k", "Running", onGPU("0", "38000"))
	status, body := extendertest.Post(t, started(t, api)+"/gpushare-scheduler/filter", recorded(t, "filter"))
	var result struct {
		NodeNames   *[]string
		FailedNodes map[string]string
		Error       string
	}
	decoder := json.NewDecoder(strings.NewReader(body))
	if err := decoder.Decode(&result); err != nil || status != http.StatusOK {
		t.Fatalf("HTTP %d, %v: %s", status, err, body)
	}
	if result.NodeNames == nil || !slices.Equal(*result.NodeNames, []string{"worker-2"}) || result.Error != "" {
		t.Errorf("nodes in %s", body)
	}
	if len(result.FailedNodes) != 1 || result.FailedNodes["worker-1"] != "Insufficient GPU Memory in one device" {
		t.Errorf("failed nodes in %s", body)
	}
}

func TestFilterOfWhatIsNoJSON(t *testing.T) {
	status, body := extendertest.Post(t, started(t, kubetest.Start(t))+"/gpushare-scheduler/filter", []byte("{"))
	if status != http.StatusOK || !strings.Contains(body, "cannot be read") {
		t.Errorf("HTTP %d: %s", status, body)
	}
}

// The traps of the original: the connection ends without an answer.
func TestCallsThatTheOriginalDiesOf(t *testing.T) {
	api := kubetest.Start(t)
	api.Node("worker-1", capacity("32", "2"))
	url := started(t, api)
	withoutNames := bytes.Replace(recorded(t, "filter"), []byte(`"NodeNames":["worker-1","worker-2"]`), []byte(`"NodeNames":null`), 1)
	if _, err := http.Post(url+"/gpushare-scheduler/filter", "application/json", bytes.NewReader(withoutNames)); !errors.Is(err, io.EOF) {
		t.Errorf("filter without nodeCacheCapable gave %v", err)
	}
	if _, err := http.Get(url + "/gpushare-scheduler/inspect/worker-9"); !errors.Is(err, io.EOF) {
		t.Errorf("inspect of an unknown node gave %v", err)
	}
	if body := extendertest.Get(t, url+"/gpushare-scheduler/inspect/worker-1"); !strings.HasPrefix(body, `{"nodes":[{"name":"worker-1","totalGPU":32,`) {
		t.Errorf("inspect gave %s", body)
	}
	if body := extendertest.Get(t, url+"/version"); !strings.HasPrefix(body, "0.1.0") || !strings.Contains(body, "fake") {
		t.Errorf("version is %s", body)
	}
}

func TestBind(t *testing.T) {
	api := kubetest.Start(t)
	api.Node("worker-1", capacity("32", "2"))
	api.Pod("older", "worker-1", "5", "Running", onGPU("1", "5"))
	recordedPod(t, api, "3")
	url := started(t, api)
	before := time.Now().UnixNano()
	if status, body := extendertest.Post(t, url+"/gpushare-scheduler/bind", recorded(t, "bind")); status != http.StatusOK || body != `{"Error":""}` {
		t.Fatalf("HTTP %d: %s", status, body)
	}
	if node := api.At(kube.PodPath("default", "three"), "spec", "nodeName"); node != "worker-1" {
		t.Errorf("the pod is on node %v", node)
	}
	annotations := api.Annotations("three")
	for key, want := range map[string]string{
		gpushare.Index: "1", gpushare.PodMemory: "3", gpushare.GPUMemory: "16", gpushare.Assigned: "false",
	} {
		if annotations[key] != want {
			t.Errorf("%s is %q, want %q", key, annotations[key], want)
		}
	}
	if annotations["kubectl.kubernetes.io/last-applied-configuration"] == "" {
		t.Error("an annotation of somebody else is gone")
	}
	if at := annotations[gpushare.AssumeTime]; at < fmt.Sprint(before) || at > fmt.Sprint(time.Now().UnixNano()) {
		t.Errorf("%s is %s, which is not now in nanoseconds", gpushare.AssumeTime, at)
	}
	if body := extendertest.Get(t, url+"/gpushare-scheduler/inspect"); !strings.Contains(body, `{"id":1,"totalGPU":16,"usedGPU":8,`) {
		t.Errorf("inspect gave %s", body)
	}
	calls := api.Calls()
	path := kube.PodPath("default", "three")
	if last := calls[len(calls)-3:]; !slices.Equal(last, []string{"GET " + path, "PATCH " + path, "POST " + path + "/binding"}) {
		t.Errorf("calls %v", calls)
	}
}

func TestBindRefuses(t *testing.T) {
	path := kube.PodPath("default", "three")
	cases := map[string]struct {
		limit   string
		arrange func(*kubetest.Server)
		node    string
		want    string
	}{
		"a pod that is not there":         {"3", func(api *kubetest.Server) { api.Delete(path) }, "worker-1", "not found"},
		"a pod that was made anew":        {"3", func(api *kubetest.Server) { api.Delete(path); api.Pod("three", "", "3", "Pending", nil) }, "worker-1", "has UID uid-of-three, and not"},
		"a pod with an init container's":  {"", nil, "worker-1", "has no limit of aliyun.com/gpu-mem"},
		"a node that is not there":        {"3", nil, "worker-9", "node worker-9 is not in the cluster"},
		"a node without GPUs":             {"3", nil, "worker-2", "node worker-2 has no aliyun.com/gpu-mem"},
		"a node that is full":             {"17", nil, "worker-1", "Insufficient GPU Memory in one device"},
		"a pod that must not be patched":  {"3", func(api *kubetest.Server) { api.Deny("PATCH " + path) }, "worker-1", "is forbidden"},
		"a pod that must not be bound":    {"3", func(api *kubetest.Server) { api.Deny("POST " + path + "/binding") }, "worker-1", "is forbidden"},
		"a pod that is on a node already": {"3", func(api *kubetest.Server) { bindElsewhere(api, path) }, "worker-1", "already assigned"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			api := kubetest.Start(t)
			api.Node("worker-1", capacity("32", "2"))
			api.Node("worker-2", nil)
			recordedPod(t, api, test.limit)
			url := started(t, api)
			if test.arrange != nil {
				test.arrange(api)
			}
			args := bytes.Replace(recorded(t, "bind"), []byte("worker-1"), []byte(test.node), 1)
			status, body := extendertest.Post(t, url+"/gpushare-scheduler/bind", args)
			if status != http.StatusInternalServerError || !strings.HasPrefix(body, `{"Error":"`) || !strings.Contains(body, test.want) {
				t.Errorf("HTTP %d: %s", status, body)
			}
			if node := api.At(path, "spec", "nodeName"); node == "worker-1" {
				t.Error("the pod was bound")
			}
			api.Deny()
			if body := extendertest.Get(t, url+"/gpushare-scheduler/inspect/worker-1"); !strings.Contains(body, `"usedGPU":0,"devs"`) {
				t.Errorf("what was not bound counts: %s", body)
			}
		})
	}
}

func bindElsewhere(api *kubetest.Server, path string) {
	pod := api.At(path).(kubetest.Object)
	pod["spec"].(kubetest.Object)["nodeName"] = "worker-2"
	api.Put(path, pod)
}

// Twelve pods of 5 at once, on two GPUs of 16: three go on each, whatever the order and however late the API tells of it.
func TestBindsAtOnceDoNotOverbook(t *testing.T) {
	api := kubetest.Start(t)
	api.Node("worker-1", capacity("32", "2"))
	for n := range 12 {
		api.Pod(fmt.Sprintf("pod-%d", n), "", "5", "Pending", nil)
	}
	url, stop := startedUntil(t, api)
	stop()
	var together sync.WaitGroup
	statuses := make([]int, 12)
	for n := range 12 {
		together.Add(1)
		go func() {
			defer together.Done()
			args := fmt.Sprintf(`{"PodName":"pod-%d","PodNamespace":"default","PodUID":"uid-of-pod-%d","Node":"worker-1"}`, n, n)
			response, err := http.Post(url+"/gpushare-scheduler/bind", "application/json", strings.NewReader(args))
			if err == nil {
				statuses[n] = response.StatusCode
				_ = response.Body.Close()
			}
		}()
	}
	together.Wait()
	slices.Sort(statuses)
	want := append(slices.Repeat([]int{200}, 6), slices.Repeat([]int{500}, 6)...)
	if !slices.Equal(statuses, want) {
		t.Errorf("HTTP %v", statuses)
	}
	if body := extendertest.Get(t, url+"/gpushare-scheduler/inspect"); strings.Count(body, `"totalGPU":16,"usedGPU":15,`) != 2 {
		t.Errorf("inspect gave %s", body)
	}
}

func TestRun(t *testing.T) {
	api := kubetest.Start(t)
	api.Node("worker-1", capacity("32", "2"))
	api.Deny("GET /api/v1/configmaps", "GET /api/v1/pods")
	account, env := api.Account(t)
	env["PORT"], env["LOG_LEVEL"], env["THREADNESS"] = extendertest.FreePort(t), "debug", "1"
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var output extendertest.Output
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, nil, func(key string) string { return env[key] }, account, &output) }()

	output.Await(t, "cannot list and watch /api/v1/pods")
	if _, err := http.Get("http://127.0.0.1:" + env["PORT"] + "/version"); err == nil {
		t.Error("it serves before it knows the pods")
	}
	api.Deny("GET /api/v1/configmaps")
	output.Await(t, "listening at port "+env["PORT"])
	if body := extendertest.Get(t, "http://127.0.0.1:"+env["PORT"]+"/gpushare-scheduler/inspect"); body != `{"nodes":[]}`+"\n" {
		t.Errorf("inspect gave %s", body)
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
		if !strings.HasPrefix(line, "FAKE gpushare-schd-extender: ") {
			t.Errorf("line %q does not say that this is a fake", line)
		}
	}
}

func TestRunRefuses(t *testing.T) {
	api := kubetest.Start(t)
	account, inPod := api.Account(t)
	taken, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	cases := map[string]struct {
		arguments []string
		env       map[string]string
		want      string
	}{
		"an argument":         {[]string{"--port=1"}, nil, `argument "--port=1"`},
		"a log level":         {nil, map[string]string{"LOG_LEVEL": "loud"}, `"loud" is not one of`},
		"no API":              {nil, map[string]string{"KUBERNETES_SERVICE_HOST": ""}, "the API server cannot be called"},
		"a port that is used": {nil, map[string]string{"PORT": port}, "address already in use"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			getenv := func(key string) string {
				if value, given := test.env[key]; given {
					return value
				}
				return inPod[key]
			}
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			var output extendertest.Output
			if status := run(ctx, test.arguments, getenv, account, &output); status != 1 || !strings.Contains(output.String(), test.want) {
				t.Errorf("status %d, output:\n%s", status, output.String())
			}
		})
	}
}
