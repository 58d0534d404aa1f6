// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package kube

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

// kubeconfig is the part of the file that is read here; exec plugins and passwords are not.
type kubeconfig struct {
	Current  string `yaml:"current-context"`
	Contexts []struct {
		Name    string
		Context struct{ Cluster, User string }
	}
	Clusters []struct {
		Name    string
		Cluster struct {
			Server        string
			Insecure      bool   `yaml:"insecure-skip-tls-verify"`
			Authority     string `yaml:"certificate-authority"`
			AuthorityData string `yaml:"certificate-authority-data"`
		}
	}
	Users []struct {
		Name string
		User struct {
			Token           string
			TokenFile       string `yaml:"tokenFile"`
			Certificate     string `yaml:"client-certificate"`
			CertificateData string `yaml:"client-certificate-data"`
			Key             string `yaml:"client-key"`
			KeyData         string `yaml:"client-key-data"`
		}
	}
}

func fromKubeconfig(path string, content []byte) (*Client, error) {
	var config kubeconfig
	if err := yaml.Unmarshal(content, &config); err != nil {
		return nil, fmt.Errorf("%s is not a kubeconfig: %w", path, err)
	}
	server, given, err := config.current(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return newClient(path, server, given)
}

// current is the server and the access of the current context; relative paths start at folder.
func (k *kubeconfig) current(folder string) (string, access, error) {
	server, given, found := "", access{}, 0
	reader := blobs{folder: folder}
	for _, context := range k.Contexts {
		if context.Name != k.Current {
			continue
		}
		for _, named := range k.Clusters {
			if cluster := named.Cluster; named.Name == context.Context.Cluster {
				server, given.insecure = cluster.Server, cluster.Insecure
				given.authority = reader.read(cluster.Authority, cluster.AuthorityData)
				found++
			}
		}
		for _, named := range k.Users {
			if user := named.User; named.Name == context.Context.User {
				given.token, given.tokenFile = user.Token, reader.path(user.TokenFile)
				given.certificate = reader.read(user.Certificate, user.CertificateData)
				given.key = reader.read(user.Key, user.KeyData)
				found++
			}
		}
	}
	if found != 2 || server == "" {
		return "", access{}, fmt.Errorf("the current context %q needs one cluster with a server and one user", k.Current)
	}
	return server, given, reader.err
}

// blobs reads what a kubeconfig holds either in a file or in base64; the first error is kept.
type blobs struct {
	folder string
	err    error
}

func (b *blobs) path(name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(b.folder, name)
}

func (b *blobs) read(name, data string) []byte {
	var content []byte
	var err error
	switch {
	case data != "":
		content, err = base64.StdEncoding.DecodeString(data)
	case name != "":
		content, err = os.ReadFile(b.path(name))
	}
	if b.err == nil {
		b.err = err
	}
	return content
}
