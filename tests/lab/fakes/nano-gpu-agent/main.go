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
	"io"
	"log"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"syscall"
	"time"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"gpu.kubernetes.lab/fakes/internal/kube"
	"gpu.kubernetes.lab/fakes/internal/kubelet"
	"gpu.kubernetes.lab/fakes/internal/nanogpu"
	"gpu.kubernetes.lab/fakes/internal/program"
)

const socketName = "fake-nano-gpu.sock"

// place is where the program finds what is not its own; the tests have another. devices is the host's /dev.
type place struct {
	devices, kubeletSocket, podResourcesSocket, account string
	socketInterval                                      time.Duration
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	node := place{
		devices:            "/host/dev",
		kubeletSocket:      pluginapi.KubeletSocket,
		podResourcesSocket: "/var/lib/kubelet/pod-resources/kubelet.sock",
		account:            kube.ServiceAccount,
		socketInterval:     time.Second,
	}
	os.Exit(run(ctx, node, os.Args[1:], os.Getenv, os.Stderr))
}

type settings struct{ node, database string }

// run is the whole program; it returns the exit status.
func run(ctx context.Context, on place, arguments []string, getenv func(string) string, output io.Writer) int {
	return program.Run("nano-gpu-agent", "nano-gpu's agent", output, func(logger *log.Logger) error {
		chosen := settings{}
		err := program.Parse(arguments, func(set *flag.FlagSet) {
			set.StringVar(&chosen.node, "nodename", "", "name of this node")
			set.StringVar(&chosen.database, "dbfile", "/host/var/lib/nanogpu/meta.db", "where the containers' GPUs are noted")
		})
		if err != nil {
			return err
		}
		if chosen.node == "" {
			return errors.New("--nodename is not given; it has to be the name of this node")
		}
		return serve(ctx, on, chosen, getenv, logger)
	})
}

func serve(ctx context.Context, on place, chosen settings, getenv func(string) string, logger *log.Logger) error {
	gpus, err := count(on.devices)
	if err != nil {
		return err
	}
	client, err := kube.Connect(getenv, on.account)
	if err != nil {
		return fmt.Errorf("the API server cannot be called: %w", err)
	}
	logger.Printf("node %s, credentials: %s", chosen.node, client.Origin)
	endpoint := kubelet.Endpoint{
		Resource:      nanogpu.Percent,
		Offer:         fmt.Sprintf("of %d GPUs", gpus),
		KubeletSocket: on.kubeletSocket,
		SocketName:    socketName,
		Options:       options(),
		Service:       &service{client: client, on: on, database: chosen.database, gpus: gpus, log: logger},
		Log:           logger,
		Interval:      on.socketInterval,
	}
	return endpoint.Run(ctx)
}

var isGPU = regexp.MustCompile(`^nvidia(\d+)$`)

// count is the number of device nodes of GPUs, which have to be nvidia0, nvidia1 and so on: NVML is not asked.
func count(devices string) (int, error) {
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
