// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"gpu.kubernetes.lab/fakes/internal/extender/extendertest"
	"gpu.kubernetes.lab/fakes/internal/kube"
	"gpu.kubernetes.lab/fakes/internal/kube/kubetest"
	"gpu.kubernetes.lab/fakes/internal/nanogpu"
)

func percent(amount string) map[string]string { return map[string]string{nanogpu.Percent: amount} }

// started is an extender that knows what the API server has, and is told what changes until the test ends.
func started(t *testing.T, api *kubetest.Server, policy string) string {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	a := &answers{ledger: newLedger(policy), client: api.Client(t), log: log.New(io.Discard, "", 0)}
	if !a.ledger.Follow(ctx, a.client, a.log) {
		t.Fatal("the API was not read")
	}
	server := httptest.NewServer(a.handler())
	t.Cleanup(func() {
		stop()
		server.Close()
	})
	return server.URL + "/scheduler"
}

func two(t *testing.T) *kubetest.Server {
	t.Helper()
	api := kubetest.Start(t)
	api.Node("worker-1", percent("200"))
	api.Node("worker-2", percent("100"))
	api.Node("bare", nil)
	api.PodOf("busy", "worker-1", []map[string]string{percent("60")}, "Running", map[string]string{
		nanogpu.Assume: "true", nanogpu.Container("main"): "1",
	})
	return api
}

const asks = `{"Pod":{"metadata":{"name":"new","namespace":"default"},"spec":{"containers":[{"name":"main","resources":{"limits":{"nano-gpu/gpu-percent":"%d"}}}]}},"NodeNames":%s}`

func TestFilterAndPriorities(t *testing.T) {
	names := `["worker-1","worker-2","bare","absent"]`
	for name, test := range map[string]struct {
		policy, call, body, want string
	}{
		"filter": {binpack, "/filter", fmt.Sprintf(asks, 50, names), `{"Nodes":null,"NodeNames":["worker-1","worker-2"],` +
			`"FailedNodes":{"absent":"node absent is not in the cluster","bare":"no GPU has as much nano-gpu/gpu-percent free"},` +
			`"FailedAndUnresolvableNodes":null,"Error":""}`},
		"the fuller is wanted":  {binpack, "/priorities", fmt.Sprintf(asks, 40, `["worker-1","worker-2"]`), `[{"Host":"worker-1","Score":5},{"Host":"worker-2","Score":4}]`},
		"the emptier is wanted": {spread, "/priorities", fmt.Sprintf(asks, 20, `["worker-1","worker-2"]`), `[{"Host":"worker-1","Score":6},{"Host":"worker-2","Score":8}]`},
		"without names": {binpack, "/filter", fmt.Sprintf(asks, 50, "null"), `{"Nodes":null,"NodeNames":null,"FailedNodes":null,` +
			`"FailedAndUnresolvableNodes":null,"Error":"there is no pod or there are no NodeNames; nodeCacheCapable has to be true"}`},
		"priorities without names": {binpack, "/priorities", fmt.Sprintf(asks, 50, "null"), `[]`},
	} {
		t.Run(name, func(t *testing.T) {
			if status, body := extendertest.Post(t, started(t, two(t), test.policy)+test.call, []byte(test.body)); status != 200 || body != test.want {
				t.Errorf("HTTP %d: %s", status, body)
			}
		})
	}
	if status, body := extendertest.Post(t, started(t, two(t), binpack)+"/priorities", []byte("{")); status != 400 || !strings.Contains(body, "cannot be read") {
		t.Errorf("HTTP %d: %s", status, body)
	}
}

func binding(name, node string) []byte {
	return fmt.Appendf(nil, `{"PodName":%q,"PodNamespace":"default","PodUID":"uid-of-%s","Node":%q}`, name, name, node)
}

func TestBind(t *testing.T) {
	api := two(t)
	api.PodOf("new", "", []map[string]string{percent("40"), {}, percent("30")}, "Pending", map[string]string{"of": "somebody else"})
	url := started(t, api, binpack)
	if status, body := extendertest.Post(t, url+"/bind", binding("new", "worker-1")); status != 200 || body != `{"Error":""}` {
		t.Fatalf("HTTP %d: %s", status, body)
	}
	path := kube.PodPath("default", "new")
	if node := api.At(path, "spec", "nodeName"); node != "worker-1" {
		t.Errorf("the pod is on node %v", node)
	}
	if label := api.At(path, "metadata", "labels", nanogpu.Assume); label != "true" {
		t.Errorf("the label is %v", label)
	}
	want := "map[nano-gpu/assume:true nano-gpu/container-main:1 nano-gpu/container-main-2:0 of:somebody else]"
	if got := fmt.Sprint(api.Annotations("new")); got != want {
		t.Errorf("annotations %s", got)
	}
	calls := api.Calls()
	if last := calls[len(calls)-3:]; !slices.Equal(last, []string{"GET " + path, "PUT " + path, "POST " + path + "/binding"}) {
		t.Errorf("calls %v", calls)
	}
	// What was bound counts.
	api.PodOf("late", "", []map[string]string{percent("71")}, "Pending", nil)
	if status, body := extendertest.Post(t, url+"/bind", binding("late", "worker-1")); status != 500 || !strings.Contains(body, tooSmall) {
		t.Errorf("HTTP %d: %s", status, body)
	}
}

func TestBindRefuses(t *testing.T) {
	path := kube.PodPath("default", "new")
	for name, test := range map[string]struct {
		amount, node string
		arrange      func(*kubetest.Server)
		want         string
	}{
		"a pod that is not there":        {"1", "worker-1", func(api *kubetest.Server) { api.Delete(path) }, "not found"},
		"a pod without a share":          {"0", "worker-1", nil, "has no limit of nano-gpu/gpu-percent"},
		"a node that is not there":       {"1", "worker-9", nil, "node worker-9 is not in the cluster"},
		"a node without GPUs":            {"1", "bare", nil, tooSmall},
		"a pod that must not be written": {"1", "worker-1", func(api *kubetest.Server) { api.Deny("PUT " + path) }, "is forbidden"},
		"a pod that must not be bound":   {"1", "worker-1", func(api *kubetest.Server) { api.Deny("POST " + path + "/binding") }, "is forbidden"},
		"a pod that was made anew since": {"1", "worker-1", func(api *kubetest.Server) { renamed(api, path) }, "has UID another, and not"},
	} {
		t.Run(name, func(t *testing.T) {
			api := two(t)
			api.PodOf("new", "", []map[string]string{percent(test.amount)}, "Pending", nil)
			url := started(t, api, binpack)
			if test.arrange != nil {
				test.arrange(api)
			}
			status, body := extendertest.Post(t, url+"/bind", binding("new", test.node))
			if status != 500 || !strings.Contains(body, test.want) {
				t.Errorf("HTTP %d: %s", status, body)
			}
			if node := api.At(path, "spec", "nodeName"); node == "worker-1" {
				t.Error("the pod was bound")
			}
		})
	}
}

func renamed(api *kubetest.Server, path string) {
	pod := api.At(path).(kubetest.Object)
	pod["metadata"].(kubetest.Object)["uid"] = "another"
	api.Put(path, pod)
}

func TestRun(t *testing.T) {
	api := two(t)
	account, env := api.Account(t)
	extendertest.Run(t, "nano-gpu-scheduler", "0.3.0 (fake)\n", func(ctx context.Context, port string, output io.Writer) int {
		env["PORT"] = port
		return run(ctx, []string{"--v", "2", "--priority", "spread"}, func(key string) string { return env[key] }, account, output)
	})
}

func TestRunRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		arguments []string
		want      string
	}{
		"another policy": {[]string{"--priority", "random"}, `neither of ["binpack" "spread"]`},
		"no API":         {nil, "the API server cannot be called"},
	} {
		t.Run(name, func(t *testing.T) {
			var output strings.Builder
			status := run(context.Background(), test.arguments, func(string) string { return "" }, t.TempDir(), &output)
			if status != 1 || !strings.Contains(output.String(), test.want) {
				t.Errorf("status %d, output:\n%s", status, output.String())
			}
		})
	}
}
