// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"strings"
	"time"
)

const (
	// watchSeconds bounds a watch whose connection is dead without an error.
	watchSeconds = 120
	retryPause   = time.Second
)

// Sink receives a list and the events of the watch after it; it is called by one goroutine.
type Sink[T any] interface {
	Replace(items []T)
	Put(item T)
	Delete(item T)
}

// Follow lists and watches the collection at path, which may have a query, until the context ends, and repeats both when one ends. Each new
// failure is logged once.
func Follow[T any](ctx context.Context, client *Client, path string, sink Sink[T], logger *log.Logger) {
	lastMessage := ""
	for ctx.Err() == nil {
		message := ""
		if err := follow(ctx, client, path, sink); err != nil {
			message = err.Error()
		}
		if message != "" && message != lastMessage && ctx.Err() == nil {
			logger.Printf("cannot list and watch %s, trying again: %s", path, message)
		}
		lastMessage = message
		select {
		case <-ctx.Done():
		case <-time.After(retryPause):
		}
	}
}

// follow is one list and one watch; nil means that the watch ended without an error.
func follow[T any](ctx context.Context, client *Client, path string, sink Sink[T]) error {
	var list struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Items []T `json:"items"`
	}
	if err := client.Get(ctx, path, &list); err != nil {
		return err
	}
	sink.Replace(list.Items)

	ctx, cancel := context.WithTimeout(ctx, (watchSeconds+10)*time.Second)
	defer cancel()
	query := fmt.Sprintf("watch=1&timeoutSeconds=%d&resourceVersion=%s", watchSeconds, list.Metadata.ResourceVersion)
	body, err := client.open(ctx, "GET", addQuery(path, query), "", nil)
	if err != nil {
		return err
	}
	defer body.Close()
	for decoder := json.NewDecoder(body); ; {
		var event struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if decoder.Decode(&event) != nil {
			return nil // the server or the time limit ended the watch
		}
		if err := apply(event.Type, event.Object, sink); err != nil {
			return err
		}
	}
}

func addQuery(path, query string) string {
	if strings.Contains(path, "?") {
		return path + "&" + query
	}
	return path + "?" + query
}

func apply[T any](kind string, object json.RawMessage, sink Sink[T]) error {
	if kind == "ERROR" {
		return fmt.Errorf("the watch ended with %s", strings.TrimSpace(string(object)))
	}
	var item T
	if err := json.Unmarshal(object, &item); err != nil {
		return fmt.Errorf("an object of the watch cannot be read: %w", err)
	}
	if kind == "DELETED" {
		sink.Delete(item)
	} else {
		sink.Put(item)
	}
	return nil
}
