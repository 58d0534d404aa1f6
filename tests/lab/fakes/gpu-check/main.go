// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

// Command gpu-check is a fake of rocminfo and of clinfo: it computes nothing, and lists the device nodes that its container was granted.
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"gpu.kubernetes.lab/fakes/internal/program"
)

func main() {
	run := map[string]func(root string, output io.Writer) int{"rocminfo": rocminfo, "clinfo": clinfo}
	name := program.Choose("rocminfo", "clinfo")
	fmt.Printf("%s (fake): this is not the vendor's program; no GPU computes anything\n", name)
	os.Exit(run[name]("/", os.Stdout))
}

// list prints the device nodes of GPUs and returns the render nodes. A node that cannot be opened is an error.
func list(root string, output io.Writer) ([]string, error) {
	nodes, _ := filepath.Glob(filepath.Join(root, "dev/dri/[cr]*"))
	if kfd := filepath.Join(root, "dev/kfd"); exists(kfd) {
		nodes = append(nodes, kfd)
	}
	var renders []string
	for _, node := range nodes {
		name := strings.TrimPrefix(node, strings.TrimSuffix(root, "/"))
		fmt.Fprintf(output, "granted %s\n", name)
		file, err := os.OpenFile(node, os.O_RDWR, 0)
		if err != nil {
			return nil, fmt.Errorf("Unable to open %s read-write: %w", name, err)
		}
		file.Close()
		if strings.HasPrefix(filepath.Base(node), "renderD") {
			renders = append(renders, name)
		}
	}
	return renders, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func rocminfo(root string, output io.Writer) int {
	renders, err := list(root, output)
	switch {
	case err != nil:
		fmt.Fprintln(output, err)
		return 1
	case !exists(filepath.Join(root, "dev/kfd")):
		fmt.Fprintln(output, "ROCk module is NOT loaded, possibly no GPU devices")
		return 1
	}
	fmt.Fprintln(output, "ROCk module is loaded")
	for number, render := range renders {
		fmt.Fprintf(output, "Agent %d\n", number+1)
		for _, line := range [][2]string{
			{"Name", "gfx942"}, {"Marketing Name", "AMD GPU (fake) " + render}, {"Vendor Name", "AMD"}, {"Device Type", "GPU"},
		} {
			fmt.Fprintf(output, "  %-25s%s\n", line[0]+":", line[1])
		}
	}
	if len(renders) == 0 {
		fmt.Fprintln(output, "no agent is a GPU")
		return 1
	}
	return 0
}

func clinfo(root string, output io.Writer) int {
	renders, err := list(root, output)
	if err != nil {
		fmt.Fprintln(output, err)
		return 1
	}
	const format = "%-50s%v\n"
	if len(renders) == 0 {
		fmt.Fprintf(output, format, "Number of platforms", 0)
		return 0 // as the original
	}
	fmt.Fprintf(output, format, "Number of platforms", 1)
	fmt.Fprintf(output, format, "  Platform Name", "Intel(R) OpenCL Graphics (fake)")
	fmt.Fprintf(output, format, "Number of devices", len(renders))
	for _, render := range renders {
		fmt.Fprintf(output, format, "  Device Name", "Intel(R) Graphics (fake) "+render)
	}
	return 0
}
