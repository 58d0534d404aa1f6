// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package kube

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// labels records the label `key` of one node, and ends after the third.
type labels struct {
	seen *[]string
	end  context.CancelFunc
}

func (l labels) Replace(nodes []Node) {
	for _, node := range nodes {
		l.Put(node)
	}
}

func (l labels) Put(node Node) {
	if *l.seen = append(*l.seen, node.Metadata.Labels["key"]); len(*l.seen) == 3 {
		l.end()
	}
}

func (l labels) Delete(Node) { l.Put(Node{}) }

func TestFollowListsAndWatchesOneNode(t *testing.T) {
	var queries []string
	server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		query := request.URL.Query()
		queries = append(queries, query.Get("fieldSelector")+" "+query.Get("watch")+" "+query.Get("resourceVersion"))
		node := `{"metadata": {"labels": {"key": "%s"}}}`
		if query.Get("watch") == "" {
			fmt.Fprintf(answer, `{"metadata": {"resourceVersion": "7"}, "items": [`+node+`]}`, "a")
			return
		}
		fmt.Fprintf(answer, `{"type": "MODIFIED", "object": `+node+`}{"type": "DELETED", "object": `+node+`}`, "b", "b")
	}))
	defer server.Close()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("t"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var seen []string
	client := &Client{server: server.URL, tokenFile: token, http: server.Client()}
	Follow(ctx, client, "/api/v1/nodes?fieldSelector=metadata.name%3Dworker", labels{&seen, cancel}, log.New(io.Discard, "", 0))
	if want := []string{"a", "b", ""}; !reflect.DeepEqual(seen, want) {
		t.Errorf("got %q, want %q", seen, want)
	}
	if want := []string{"metadata.name=worker  ", "metadata.name=worker 1 7"}; !reflect.DeepEqual(queries, want) {
		t.Errorf("got %q, want %q", queries, want)
	}
}
