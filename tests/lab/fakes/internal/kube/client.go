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

// ServiceAccount is where the kubelet puts the token and the CA certificate of a pod's service account.
const ServiceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

const callTimeout = 10 * time.Second

// Client calls one API server as one user.
type Client struct {
	// Origin says where the address and the credentials come from.
	Origin string
	server string
	http   *http.Client
	// token gives the bearer token, "" where the user has a certificate.
	token func() (string, error)
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

// Connect makes a client from the file that KUBECONFIG names, where there is one, else from the service account that
// lies in the folder account. It does not call the API server yet.
func Connect(getenv func(string) string, account string) (*Client, error) {
	if path := getenv("KUBECONFIG"); path != "" {
		if content, err := os.ReadFile(path); err == nil {
			return fromKubeconfig(path, content)
		}
	}
	host, port := getenv("KUBERNETES_SERVICE_HOST"), getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, errors.New("there is no kubeconfig (KUBECONFIG), and KUBERNETES_SERVICE_HOST does not say that this is a pod")
	}
	authority, err := os.ReadFile(filepath.Join(account, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("the service account cannot be read: %w", err)
	}
	return newClient("service account", "https://"+net.JoinHostPort(host, port), access{
		authority: authority, tokenFile: filepath.Join(account, "token"),
	})
}

// access is what a client needs to trust the server and to be trusted.
type access struct {
	authority, certificate, key []byte
	insecure                    bool
	token, tokenFile            string
}

func newClient(origin, server string, given access) (*Client, error) {
	settings := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: given.insecure} //nolint:gosec // as the kubeconfig asks
	if len(given.authority) > 0 {
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(given.authority) {
			return nil, fmt.Errorf("%s: the CA certificate cannot be read", origin)
		}
	}
	if len(given.certificate) > 0 {
		pair, err := tls.X509KeyPair(given.certificate, given.key)
		if err != nil {
			return nil, fmt.Errorf("%s: the client certificate cannot be read: %w", origin, err)
		}
		settings.Certificates = []tls.Certificate{pair}
	}
	return &Client{
		Origin: origin,
		server: strings.TrimRight(server, "/"),
		http:   &http.Client{Transport: &http.Transport{TLSClientConfig: settings, ForceAttemptHTTP2: true, Proxy: http.ProxyFromEnvironment}},
		token: func() (string, error) {
			if given.tokenFile == "" {
				return given.token, nil
			}
			content, err := os.ReadFile(given.tokenFile) // the kubelet renews it
			return strings.TrimSpace(string(content)), err
		},
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
	token, err := c.token()
	if err != nil {
		return nil, fmt.Errorf("the token cannot be read: %w", err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
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
