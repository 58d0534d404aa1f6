// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1alpha1"

	"gpu.kubernetes.lab/fakes/internal/kube"
	"gpu.kubernetes.lab/fakes/internal/nanogpu"
)

// inContainer is the path of the GPU in a container, for each GPU of the node.
const inContainer = "/dev/nvidia0"

// service answers the kubelet's calls.
type service struct {
	pluginapi.UnimplementedDevicePluginServer

	client   *kube.Client
	database string
	gpus     int
	log      *log.Logger
	// recording is held while the database changes.
	recording sync.Mutex
}

func options() *pluginapi.DevicePluginOptions {
	return &pluginapi.DevicePluginOptions{PreStartRequired: true}
}

func (s *service) GetDevicePluginOptions(context.Context, *pluginapi.Empty) (*pluginapi.DevicePluginOptions, error) {
	return options(), nil
}

// ListAndWatch reports a hundred devices for each GPU, once: their health is not checked.
func (s *service) ListAndWatch(_ *pluginapi.Empty, stream grpc.ServerStreamingServer[pluginapi.ListAndWatchResponse]) error {
	var devices []*pluginapi.Device
	for gpu := range s.gpus {
		for hundredth := range nanogpu.Whole {
			devices = append(devices, &pluginapi.Device{ID: fmt.Sprintf("%d-%02d", gpu, hundredth), Health: pluginapi.Healthy})
		}
	}
	if err := stream.Send(&pluginapi.ListAndWatchResponse{Devices: devices}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

// Allocate gives the container a device that PreStartContainer makes: which pod this is for is not known yet. The
// variables are the original's, by which its hook finds the GPU; where there is no hook, the kubelet hands the device on.
func (s *service) Allocate(_ context.Context, request *pluginapi.AllocateRequest) (*pluginapi.AllocateResponse, error) {
	response := &pluginapi.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		hash := hashOf(container.DevicesIds)
		response.ContainerResponses = append(response.ContainerResponses, &pluginapi.ContainerAllocateResponse{
			Envs:    map[string]string{"GPU": hash, "NVIDIA_VISIBLE_DEVICES": "none"},
			Devices: []*pluginapi.DeviceSpec{{HostPath: "/dev/" + linkOf(hash), ContainerPath: inContainer, Permissions: "rw"}},
		})
	}
	return response, nil
}

// PreStartContainer asks the kubelet whose devices these are, the pod's annotation which GPU the extender chose, and
// makes the link to it among the node's devices.
func (s *service) PreStartContainer(
	ctx context.Context, request *pluginapi.PreStartContainerRequest,
) (*pluginapi.PreStartContainerResponse, error) {
	hash := hashOf(request.DevicesIds)
	if err := s.link(ctx, hash, request.DevicesIds); err != nil {
		s.log.Printf("%d hundredths cannot be given a GPU: %v", len(request.DevicesIds), err)
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	return &pluginapi.PreStartContainerResponse{}, nil
}

func (s *service) link(ctx context.Context, hash string, ids []string) error {
	owner, err := s.owner(ctx, ids)
	if err != nil {
		return err
	}
	var pod kube.Pod
	if err := s.client.Get(ctx, kube.PodPath(owner.Namespace, owner.Pod), &pod); err != nil {
		return err
	}
	gpu, placed := nanogpu.GPU(pod, owner.Container)
	if !placed || gpu < 0 || gpu >= s.gpus {
		return fmt.Errorf("the extender gave container %s of pod %s no GPU of this node", owner.Container, pod)
	}
	owner.GPU = gpu
	path := filepath.Join(devices, linkOf(hash))
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(fmt.Sprintf("/dev/nvidia%d", gpu), path); err != nil {
		return err
	}
	s.log.Printf("container %s of pod %s has %d hundredths of GPU %d", owner.Container, pod, len(ids), gpu)
	return s.record(hash, owner)
}

// holder is a container that has devices.
type holder struct {
	Namespace, Pod, Container string
	GPU                       int
}

// owner is the container that the kubelet has given exactly these devices.
func (s *service) owner(ctx context.Context, ids []string) (holder, error) {
	connection, err := grpc.NewClient("unix://"+podResourcesSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return holder{}, err
	}
	defer connection.Close()
	listed, err := podresources.NewPodResourcesListerClient(connection).List(ctx, &podresources.ListPodResourcesRequest{})
	if err != nil {
		return holder{}, fmt.Errorf("the kubelet does not report the owner of these devices: %w", err)
	}
	wanted := hashOf(ids)
	for _, pod := range listed.PodResources {
		for _, container := range pod.Containers {
			var deviceIDs []string
			for _, devices := range container.Devices {
				if devices.ResourceName == nanogpu.Percent {
					deviceIDs = append(deviceIDs, devices.DeviceIds...)
				}
			}
			if len(deviceIDs) > 0 && hashOf(deviceIDs) == wanted {
				return holder{Namespace: pod.Namespace, Pod: pod.Name, Container: container.Name}, nil
			}
		}
	}
	return holder{}, errors.New("the kubelet has no container with these devices")
}

// record stores the container of the devices. Nothing is removed, as by the original.
func (s *service) record(hash string, owner holder) error {
	s.recording.Lock()
	defer s.recording.Unlock()
	known := map[string]holder{}
	if content, err := os.ReadFile(s.database); err == nil {
		if err := json.Unmarshal(content, &known); err != nil {
			return fmt.Errorf("%s cannot be read: %w", s.database, err)
		}
	}
	known[hash] = owner
	content, err := json.Marshal(known)
	if err != nil {
		return err
	}
	return os.WriteFile(s.database, append(content, '\n'), 0o600)
}

func linkOf(hash string) string { return "nano-gpu-" + hash }

// hashOf names a set of devices, in whatever order they come.
func hashOf(ids []string) string {
	sum := sha256.Sum256([]byte(strings.Join(slices.Sorted(slices.Values(ids)), ",")))
	return hex.EncodeToString(sum[:4])
}
