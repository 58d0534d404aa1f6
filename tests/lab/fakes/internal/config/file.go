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
		TimeSlicing *sharing `yaml:"timeSlicing"`
		MPS         *sharing `yaml:"mps"`
	} `yaml:"sharing"`
	Imex struct {
		ChannelIDs []int `yaml:"channelIDs"`
		Required   bool  `yaml:"required"`
	} `yaml:"imex"`
}

type sharing struct {
	RenameByDefault            bool       `yaml:"renameByDefault"`
	FailRequestsGreaterThanOne *bool      `yaml:"failRequestsGreaterThanOne"`
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
	switch sharing := read.Sharing; {
	case sharing.MPS != nil && sharing.TimeSlicing != nil:
		return errors.New("sharing has both mps and timeSlicing; the original ignores timeSlicing then and says nothing")
	case sharing.MPS != nil:
		return applySharing(config, SharingMPS, "sharing.mps", sharing.MPS)
	case sharing.TimeSlicing != nil:
		return applySharing(config, SharingTimeSlicing, "sharing.timeSlicing", sharing.TimeSlicing)
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

func applySharing(config *Config, kind Sharing, key string, read *sharing) error {
	if len(read.Resources) == 0 {
		return fmt.Errorf("%s: no resources specified", key)
	}
	config.Sharing, config.Replicas = kind, map[string]int{}
	config.RenameByDefault = read.RenameByDefault
	// MPS allows one replica only, as before the setting existed.
	config.FailRequestsGreaterThanOne = kind == SharingMPS
	if read.FailRequestsGreaterThanOne != nil {
		config.FailRequestsGreaterThanOne = *read.FailRequestsGreaterThanOne
	}
	for index, resource := range read.Resources {
		where := fmt.Sprintf("%s.resources[%d]", key, index)
		if err := applyReplicas(config, where, resource); err != nil {
			return err
		}
	}
	return nil
}

func applyReplicas(config *Config, where string, resource replicas) error {
	name := resource.Name
	if name == "" {
		return fmt.Errorf("%s: no resource name specified", where)
	}
	if !strings.HasPrefix(name, "nvidia.com/") {
		name = "nvidia.com/" + name
	}
	if resource.Replicas < 2 {
		return fmt.Errorf("%s: number of replicas must be >= 2", where)
	}
	if resource.Rename != "" || !resource.Devices.IsZero() {
		config.Ignored = append(config.Ignored, where+".rename/devices")
	}
	if config.Replicas[name] != 0 {
		return fmt.Errorf("%s repeats %s", where, name)
	}
	config.Replicas[name] = resource.Replicas
	return nil
}
