// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

// Package kube speaks to the API server with the few calls that the fakes need.
package kube

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// account is where the kubelet puts the token and the CA certificate of a pod's service account.
const account = "/var/run/secrets/kubernetes.io/serviceaccount"

const callTimeout = 10 * time.Second

// Client calls one API server by a service account.
type Client struct {
	server, tokenFile string
	http              *http.Client
}

// StatusError is an answer of the API server that is not a success.
type StatusError struct {
	Code    int
	Call    string
	Message string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s: %s (HTTP %d)", e.Call, e.Message, e.Code)
}

// Connect makes a client by the service account of the pod that this runs in. It does not call the API server yet.
func Connect() (*Client, error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, errors.New("KUBERNETES_SERVICE_HOST does not say that this is a pod")
	}
	authority, err := os.ReadFile(filepath.Join(account, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("the service account cannot be read: %w", err)
	}
	settings := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
	if !settings.RootCAs.AppendCertsFromPEM(authority) {
		return nil, errors.New("the CA certificate of the service account cannot be read")
	}
	return &Client{
		server:    "https://" + net.JoinHostPort(host, port),
		tokenFile: filepath.Join(account, "token"),
		http:      &http.Client{Transport: &http.Transport{TLSClientConfig: settings, ForceAttemptHTTP2: true, Proxy: http.ProxyFromEnvironment}},
	}, nil
}

// Get reads the object or list at path, which may have a query.
func (c *Client) Get(ctx context.Context, path string, result any) error {
	return c.call(ctx, http.MethodGet, path, "", nil, result)
}

// Create posts an object.
func (c *Client) Create(ctx context.Context, path string, object any) error {
	return c.call(ctx, http.MethodPost, path, "application/json", object, nil)
}

// Update replaces the object at path.
func (c *Client) Update(ctx context.Context, path string, object any) error {
	return c.call(ctx, http.MethodPut, path, "application/json", object, nil)
}

// Patch changes the object at path by a strategic merge patch.
func (c *Client) Patch(ctx context.Context, path string, change any) error {
	return c.call(ctx, http.MethodPatch, path, "application/strategic-merge-patch+json", change, nil)
}

func (c *Client) call(ctx context.Context, method, path, contentType string, content, result any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	body, err := c.open(ctx, method, path, contentType, content)
	if err != nil {
		return err
	}
	defer body.Close()
	if result == nil {
		return nil
	}
	if err := json.NewDecoder(body).Decode(result); err != nil {
		return fmt.Errorf("%s %s: the answer cannot be read: %w", method, path, err)
	}
	return nil
}

// open sends a request and returns the body of a successful answer.
func (c *Client) open(ctx context.Context, method, path, contentType string, content any) (io.ReadCloser, error) {
	var sent bytes.Buffer
	if content != nil {
		if err := json.NewEncoder(&sent).Encode(content); err != nil {
			return nil, err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, c.server+path, &sent)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	token, err := os.ReadFile(c.tokenFile) // each time, because the kubelet renews it
	if err != nil {
		return nil, fmt.Errorf("the token cannot be read: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		defer response.Body.Close()
		return nil, refusal(method+" "+path, response)
	}
	return response.Body, nil
}

func refusal(call string, response *http.Response) error {
	var status struct {
		Message string `json:"message"`
	}
	if err := json.NewDecoder(response.Body).Decode(&status); err != nil || status.Message == "" {
		status.Message = response.Status
	}
	return &StatusError{Code: response.StatusCode, Call: call, Message: status.Message}
}

// PodPath is where the API has a pod.
func PodPath(namespace, name string) string {
	return "/api/v1/namespaces/" + url.PathEscape(namespace) + "/pods/" + url.PathEscape(name)
}

// NodePath is where the API has a node.
func NodePath(name string) string { return "/api/v1/nodes/" + url.PathEscape(name) }
