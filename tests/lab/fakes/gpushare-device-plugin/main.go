// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

// Command gpushare-device-plugin is a fake of the gpushare device plugin where its image cannot be pulled.
// It is not the original, and each line that it writes says so.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"time"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"gpu.kubernetes.lab/fakes/internal/gpushare"
	"gpu.kubernetes.lab/fakes/internal/kube"
	"gpu.kubernetes.lab/fakes/internal/kubelet"
	"gpu.kubernetes.lab/fakes/internal/nvml"
	"gpu.kubernetes.lab/fakes/internal/plugin"
	"gpu.kubernetes.lab/fakes/internal/program"
)

const (
	socketName = "fake-aliyungpushare.sock"
	// noIsolation is the label of nodes whose containers disable cGPU.
	noIsolation = "cgpu.disable.isolation"
)

// How often NVML and the kubelet's socket are read.
const (
	healthInterval = 3 * time.Second
	socketInterval = time.Second
)

func main() {
	program.Main("gpushare-device-plugin-v2", "the gpushare device plugin", run)
}

func run(ctx context.Context, arguments []string, logger *log.Logger) error {
	settings, err := parse(arguments)
	if err != nil {
		return err
	}
	logger.Printf("memory unit %s, health check %t", settings.unit, settings.healthCheck)
	return serve(ctx, settings, logger)
}

type settings struct {
	unit        string
	healthCheck bool
}

// parse reads the options that the published image knows. Those of later sources (--query-kubelet …) end it, as they do
// there.
func parse(arguments []string) (settings, error) {
	chosen := settings{unit: "GiB"}
	err := program.Parse(arguments, func(set *flag.FlagSet) {
		program.Choice(set, "memory-unit", &chosen.unit, "GiB", "MiB")
		set.BoolVar(&chosen.healthCheck, "health-check", false, "check the GPUs' health")
		set.Bool("mps", false, "without effect")
	})
	return chosen, err
}

func serve(ctx context.Context, chosen settings, logger *log.Logger) error {
	library, gpus, err := discover(logger)
	if err != nil {
		// A fault of the original: the pod is Running and Ready, and the node reports nothing.
		logger.Printf("no GPU can be offered, waiting: %v", err)
		<-ctx.Done()
		return nil
	}
	units, err := unitsOf(gpus, chosen.unit)
	if err != nil {
		return err
	}
	node := os.Getenv("NODE_NAME")
	if node == "" {
		return errors.New("NODE_NAME is not set; it has to be the name of this node")
	}
	client, err := kube.Connect()
	if err != nil {
		return fmt.Errorf("the API server cannot be called: %w", err)
	}
	labels, err := publishCount(ctx, client, node, len(gpus))
	if err != nil {
		return fmt.Errorf("%s cannot be written to the node: %w", gpushare.Count, err)
	}
	health := plugin.NewHealth(gpus)
	inventory := plugin.NewUnitInventory(health, gpus, units)
	if chosen.healthCheck {
		go health.Watch(ctx, library, healthInterval, logger)
	}
	endpoint := kubelet.Endpoint{
		Resource:      gpushare.Memory,
		Offer:         fmt.Sprintf("of %d GPUs with %d %s each", len(gpus), units, chosen.unit),
		KubeletSocket: pluginapi.KubeletSocket,
		SocketName:    socketName,
		Options:       &pluginapi.DevicePluginOptions{},
		Service: &service{
			client: client, inventory: inventory, gpus: gpus, log: logger, node: node,
			units: units, unit: chosen.unit, noIsolation: labels[noIsolation] == "true",
		},
		Log:      logger,
		Interval: socketInterval,
	}
	return endpoint.Run(ctx)
}

// discover lists the GPUs; none at all is an error too.
func discover(logger *log.Logger) (*nvml.Library, []nvml.GPU, error) {
	library, err := nvml.Open("")
	if err != nil {
		return nil, nil, err
	}
	driver, gpus, err := library.Read()
	if err != nil {
		return nil, nil, err
	}
	if len(gpus) == 0 {
		return nil, nil, errors.New("NVML lists no GPU on this node")
	}
	logger.Printf("NVML %s, driver %s, %d GPUs", library.Path, driver, len(gpus))
	for _, gpu := range gpus {
		if gpu.Fault == "" {
			logger.Printf("GPU %d %s %s, %d MiB", gpu.Index, gpu.UUID, gpu.Name, gpu.MemoryBytes>>20)
		} else {
			logger.Printf("GPU %d %s %s is unhealthy: %s", gpu.Index, gpu.UUID, gpu.Name, gpu.Fault)
		}
	}
	return library, gpus, nil
}

// unitsOf is the memory of the first GPU in units; the original uses it for every GPU.
func unitsOf(gpus []nvml.GPU, unit string) (int, error) {
	for _, gpu := range gpus {
		if gpu.UUID == "" {
			return 0, fmt.Errorf("GPU %d has no UUID: %s", gpu.Index, gpu.Fault)
		}
	}
	units := int(gpus[0].MemoryBytes >> 20)
	if unit == "GiB" {
		units /= 1024
	}
	if units == 0 {
		return 0, fmt.Errorf("the memory of GPU 0 is not known or below one %s: %s", unit, gpus[0].Fault)
	}
	return units, nil
}

// publishCount writes the number of GPUs to the status of the node, once in the life of the program, and returns the
// labels of the node.
func publishCount(ctx context.Context, client *kube.Client, name string, count int) (map[string]string, error) {
	var node kube.Node
	path := kube.NodePath(name)
	if err := client.Get(ctx, path, &node); err != nil {
		return nil, err
	}
	status := node.Status
	if int(status.Capacity[gpushare.Count]) == count && int(status.Allocatable[gpushare.Count]) == count {
		return node.Metadata.Labels, nil
	}
	amount := map[string]string{gpushare.Count: fmt.Sprint(count)}
	return node.Metadata.Labels, client.Patch(ctx, path+"/status", map[string]any{
		"status": map[string]any{"capacity": amount, "allocatable": amount},
	})
}
