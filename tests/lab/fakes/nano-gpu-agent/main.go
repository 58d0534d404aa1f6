// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

// Command nano-gpu-agent is a fake of the agent of nano-gpu 0.3.0 where its image cannot be pulled.
// It is not the original, and each line that it writes says so.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"regexp"
	"strconv"
	"time"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"gpu.kubernetes.lab/fakes/internal/kube"
	"gpu.kubernetes.lab/fakes/internal/kubelet"
	"gpu.kubernetes.lab/fakes/internal/nanogpu"
	"gpu.kubernetes.lab/fakes/internal/program"
)

const (
	socketName = "fake-nano-gpu.sock"
	// devices is the host's /dev.
	devices            = "/host/dev"
	podResourcesSocket = "/var/lib/kubelet/pod-resources/kubelet.sock"
)

func main() {
	program.Main("nano-gpu-agent", "nano-gpu's agent", run)
}

type settings struct{ node, database string }

func run(ctx context.Context, arguments []string, logger *log.Logger) error {
	chosen := settings{}
	err := program.Parse(arguments, func(set *flag.FlagSet) {
		set.StringVar(&chosen.node, "nodename", "", "name of this node")
		set.StringVar(&chosen.database, "dbfile", "/host/var/lib/nanogpu/meta.db", "file with the containers' GPUs")
	})
	if err != nil {
		return err
	}
	if chosen.node == "" {
		return errors.New("--nodename is not given; it has to be the name of this node")
	}
	return serve(ctx, chosen, logger)
}

func serve(ctx context.Context, chosen settings, logger *log.Logger) error {
	gpus, err := count()
	if err != nil {
		return err
	}
	client, err := kube.Connect()
	if err != nil {
		return fmt.Errorf("the API server cannot be called: %w", err)
	}
	logger.Printf("node %s", chosen.node)
	endpoint := kubelet.Endpoint{
		Resource:      nanogpu.Percent,
		Offer:         fmt.Sprintf("of %d GPUs", gpus),
		KubeletSocket: pluginapi.KubeletSocket,
		SocketName:    socketName,
		Options:       options(),
		Service:       &service{client: client, database: chosen.database, gpus: gpus, log: logger},
		Log:           logger,
		Interval:      time.Second,
	}
	return endpoint.Run(ctx)
}

var isGPU = regexp.MustCompile(`^nvidia(\d+)$`)

// count is the number of device nodes of GPUs, which have to be nvidia0, nvidia1 and so on: NVML is not used.
func count() (int, error) {
	entries, err := os.ReadDir(devices)
	if err != nil {
		return 0, err
	}
	found, highest := 0, -1
	for _, entry := range entries {
		if match := isGPU.FindStringSubmatch(entry.Name()); match != nil {
			number, _ := strconv.Atoi(match[1])
			found, highest = found+1, max(highest, number)
		}
	}
	if highest+1 != found {
		return 0, fmt.Errorf("%s has %d device nodes of GPUs, the last of which is nvidia%d", devices, found, highest)
	}
	return found, nil
}
