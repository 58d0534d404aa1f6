// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package intel

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"gpu.kubernetes.lab/fakes/internal/kubelet"
	"gpu.kubernetes.lab/fakes/internal/offer"
)

const (
	domain  = "gpu.intel.com/"
	cdiKind = "intel.cdi.k8s.io/gpu"
	byPath  = "dri/by-path"
)

// Plugin offers the cards of a node, each kind of them by a socket of its own.
type Plugin struct {
	Settings      Settings
	KubeletSocket string
	// CDI is the folder of specifications, which stay when the program ends.
	CDI string
	Log *log.Logger
	// Interval is the time between two scans.
	Interval time.Duration

	offers map[string]*offer.Offer
	cards  atomic.Pointer[[]Card]
}

// Run scans and serves until the context ends. The first scan has to succeed.
func (p *Plugin) Run(ctx context.Context) error {
	p.offers = map[string]*offer.Offer{}
	failed := make(chan error)
	for first := true; ; first = false {
		cards, err := Scan(p.Settings, p.Log)
		if err != nil {
			return err
		}
		if first || !slices.Equal(cards, *p.cards.Load()) {
			if err := p.update(ctx, cards, failed); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err
		case <-time.After(p.Interval):
		}
	}
}

// update changes the offers; a resource that has lost its last card stays registered with an empty list.
func (p *Plugin) update(ctx context.Context, cards []Card, failed chan<- error) error {
	p.cards.Store(&cards)
	p.Log.Printf("found %d cards", len(cards))
	for _, card := range cards {
		if err := p.writeCDI(card); err != nil {
			return err
		}
	}
	resources := Resources(p.Settings, cards)
	for name, existing := range p.offers {
		existing.Set(resources[name])
	}
	for _, name := range slices.Sorted(maps.Keys(resources)) {
		if p.offers[name] == nil {
			p.serve(ctx, name, resources[name], failed)
		}
	}
	return nil
}

func (p *Plugin) serve(ctx context.Context, name string, devices []*pluginapi.Device, failed chan<- error) {
	service := &offer.Offer{
		Resource:   domain + name,
		EmptyFirst: true,
		Grant: func(ids []string) *pluginapi.ContainerAllocateResponse {
			return Grant(p.Settings, *p.cards.Load(), ids)
		},
		Log: p.Log,
	}
	if p.Settings.Policy != none {
		service.Prefer = func(available []string) []string { return prefer(p.Settings.Policy, available) }
	}
	service.Set(devices)
	p.offers[name] = service
	endpoint := &kubelet.Endpoint{
		Resource:      service.Resource,
		Offer:         fmt.Sprintf("with %d devices", len(devices)),
		KubeletSocket: p.KubeletSocket,
		SocketName:    "gpu.intel.com-" + name + ".sock",
		Options:       service.Options(),
		Service:       service,
		Log:           p.Log,
		Interval:      time.Second,
	}
	go func() {
		if err := endpoint.Run(ctx); err != nil {
			select {
			case failed <- err:
			case <-ctx.Done():
			}
		}
	}()
}

// Resources are the devices by the end of the name of their resource.
func Resources(settings Settings, cards []Card) map[string][]*pluginapi.Device {
	found := map[string][]*pluginapi.Device{}
	for _, card := range cards {
		for share := range settings.Shared {
			id := card.Name + "-" + strconv.Itoa(share)
			found[card.Driver] = append(found[card.Driver], offer.Device(id, card.NUMA, card.NUMA >= 0))
		}
		if settings.Monitoring {
			found[settings.monitoring(card)] = []*pluginapi.Device{offer.Device(all, 0, false)}
		}
	}
	return found
}

func (s Settings) monitoring(card Card) string {
	if s.MonitoringMode == split {
		return card.Driver + "_monitoring"
	}
	return "monitoring"
}

// Grant is what a container with these devices gets.
func Grant(settings Settings, cards []Card, ids []string) *pluginapi.ContainerAllocateResponse {
	response := &pluginapi.ContainerAllocateResponse{}
	for _, card := range cards {
		shared := slices.ContainsFunc(ids, func(id string) bool { return strings.HasPrefix(id, card.Name+"-") })
		if !shared && !slices.Contains(ids, all) {
			continue
		}
		for _, name := range []string{card.Name, card.Render} {
			response.Devices = append(response.Devices, offer.Node("dri/"+name))
		}
		if shared {
			response.Mounts = append(response.Mounts, settings.mounts(card)...)
			response.CdiDevices = append(response.CdiDevices, &pluginapi.CDIDevice{Name: cdiKind + "=" + card.Name})
		}
	}
	return response
}

// mounts are the links to the device nodes of a card, by its address on the PCI bus.
func (s Settings) mounts(card Card) []*pluginapi.Mount {
	names := map[string][]string{
		single: {"/pci-" + card.Address + "-card", "/pci-" + card.Address + "-render"},
		all:    {""},
	}[s.ByPath]
	var found []*pluginapi.Mount
	for _, name := range names {
		if _, err := os.Lstat(filepath.Join(s.Prefix, "/dev", byPath+name)); err == nil {
			found = append(found, &pluginapi.Mount{HostPath: "/dev/" + byPath + name, ContainerPath: "/dev/" + byPath + name, ReadOnly: true})
		}
	}
	return found
}

// prefer sorts shares of cards: packed takes all shares of a card first, balanced the first share of each card.
func prefer(policy string, available []string) []string {
	keys := func(id string) (string, string) {
		card, share, _ := strings.Cut(id, "-")
		if policy == packed {
			return card, share
		}
		return share, card
	}
	sorted := slices.Clone(available)
	slices.SortFunc(sorted, func(a, b string) int {
		first, second := keys(a)
		otherFirst, otherSecond := keys(b)
		return cmp.Or(strings.Compare(first, otherFirst), strings.Compare(second, otherSecond))
	})
	return sorted
}

// writeCDI writes the specification of a card.
func (p *Plugin) writeCDI(card Card) error {
	nodes := []map[string]string{}
	for _, name := range []string{card.Name, card.Render} {
		nodes = append(nodes, map[string]string{"path": "/dev/dri/" + name, "hostPath": "/dev/dri/" + name, "permissions": "rw"})
	}
	specification := map[string]any{
		"cdiVersion": "0.6.0",
		"kind":       cdiKind,
		"devices":    []any{map[string]any{"name": card.Name, "containerEdits": map[string]any{"deviceNodes": nodes}}},
	}
	content, err := json.MarshalIndent(specification, "", "  ") // which is YAML, too
	if err != nil {
		return err
	}
	if err := os.MkdirAll(p.CDI, 0o755); err != nil {
		return err
	}
	path := filepath.Join(p.CDI, "intel.cdi.k8s.io-gpu-"+card.Name+".yaml")
	return os.WriteFile(path, append(content, '\n'), 0o644)
}
