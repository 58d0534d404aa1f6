// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

type file struct {
	Version   string               `yaml:"version"`
	Flags     map[string]yaml.Node `yaml:"flags"`
	Resources yaml.Node            `yaml:"resources"`
	Sharing   struct {
		TimeSlicing *timeSlicing `yaml:"timeSlicing"`
		MPS         yaml.Node    `yaml:"mps"`
	} `yaml:"sharing"`
	Imex struct {
		ChannelIDs []int `yaml:"channelIDs"`
		Required   bool  `yaml:"required"`
	} `yaml:"imex"`
}

type timeSlicing struct {
	RenameByDefault            bool       `yaml:"renameByDefault"`
	FailRequestsGreaterThanOne bool       `yaml:"failRequestsGreaterThanOne"`
	Resources                  []replicas `yaml:"resources"`
}

type replicas struct {
	Name     string    `yaml:"name"`
	Rename   string    `yaml:"rename"`
	Devices  yaml.Node `yaml:"devices"`
	Replicas int       `yaml:"replicas"`
}

// applyFile puts the settings of a configuration file, given as text, over config.
func applyFile(config *Config, content []byte) error {
	var read file
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	if err := decoder.Decode(&read); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if read.Version != "" && read.Version != "v1" {
		return fmt.Errorf("version %q is not v1", read.Version)
	}
	if err := applyFlags(config, "", read.Flags); err != nil {
		return err
	}
	if !read.Resources.IsZero() {
		config.Ignored = append(config.Ignored, "resources")
	}
	if len(read.Imex.ChannelIDs) > 0 || read.Imex.Required {
		return errors.New("imex is not implemented by this fake")
	}
	if !read.Sharing.MPS.IsZero() && read.Sharing.MPS.Tag != "!!null" {
		return errors.New("sharing.mps is not implemented by this fake")
	}
	if read.Sharing.TimeSlicing != nil {
		return applySharing(config, read.Sharing.TimeSlicing)
	}
	return nil
}

func applyFlags(config *Config, prefix string, nodes map[string]yaml.Node) error {
	for key, node := range nodes {
		name := prefix + key
		switch {
		case name == "gfd":
			config.Ignored = append(config.Ignored, "gfd")
		case name == "plugin":
			var nested map[string]yaml.Node
			if err := node.Decode(&nested); err != nil {
				return fmt.Errorf("flags.plugin: %w", err)
			}
			if err := applyFlags(config, "plugin.", nested); err != nil {
				return err
			}
		default:
			if err := applyFlag(config, name, node); err != nil {
				return fmt.Errorf("flags.%s: %w", name, err)
			}
		}
	}
	return nil
}

func applyFlag(config *Config, name string, node yaml.Node) error {
	for _, setting := range settings {
		if setting.key != name {
			continue
		}
		if node.Kind == yaml.ScalarNode {
			if node.Tag == "!!null" {
				return nil
			}
			return setting.apply(config, node.Value)
		}
		var list []string
		if err := node.Decode(&list); err != nil {
			return err
		}
		return setting.apply(config, strings.Join(list, ","))
	}
	return errors.New("the key is not known")
}

func applySharing(config *Config, sharing *timeSlicing) error {
	if len(sharing.Resources) == 0 {
		return errors.New("sharing.timeSlicing.resources is empty")
	}
	config.RenameByDefault = sharing.RenameByDefault
	config.FailRequestsGreaterThanOne = sharing.FailRequestsGreaterThanOne
	for index, resource := range sharing.Resources {
		where := fmt.Sprintf("sharing.timeSlicing.resources[%d]", index)
		if resource.Replicas < 2 {
			return fmt.Errorf("%s.replicas is %d and has to be at least 2", where, resource.Replicas)
		}
		if resource.Rename != "" || !resource.Devices.IsZero() {
			config.Ignored = append(config.Ignored, where+".rename/devices")
		}
		switch {
		case resource.Name != Resource && resource.Name != "gpu":
			config.Ignored = append(config.Ignored, where+" ("+resource.Name+")")
		case config.Shared():
			return fmt.Errorf("%s repeats %s", where, Resource)
		default:
			config.Replicas = resource.Replicas
		}
	}
	return nil
}
