# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shortened output of crictl, ctr and containerd."""

from __future__ import annotations

import json
from typing import Any

CRICTL_VERSION = "Version:  0.1.0\nRuntimeName:  containerd\nRuntimeVersion:  v2.1.4\nRuntimeApiVersion:  v1\n"

# `crictl info` of crictl 1.34 with containerd 2.1
CRICTL_INFO: dict[str, Any] = {
    "cniconfig": {"PluginConfDir": "/etc/cni/net.d", "Networks": []},
    "config": {
        "cdiSpecDirs": ["/etc/cdi", "/var/run/cdi"],
        "containerd": {
            "defaultRuntimeName": "runc",
            "runtimes": {
                "kata": {"runtimeType": "io.containerd.kata.v2", "options": None},
                "nvidia": {
                    "runtimeType": "io.containerd.runc.v2",
                    "options": {"BinaryName": "/usr/bin/nvidia-container-runtime", "SystemdCgroup": True},
                },
                "runc": {"runtimeType": "io.containerd.runc.v2", "options": {"BinaryName": "", "SystemdCgroup": True}},
            },
        },
        "enableCDI": True,
    },
    "features": {"supplemental_groups_policy": True},
    "golang": "go1.24.6",
    "lastCNILoadStatus": "cni config load failed: no network config found in /etc/cni/net.d",
    "runtimeHandlers": [
        {"features": {"recursive_read_only_mounts": True}},
        {"features": {"user_namespaces": True}, "name": "nvidia"},
        {"features": {"user_namespaces": True}, "name": "runc"},
    ],
    "status": {
        "conditions": [
            {"message": "", "reason": "", "status": True, "type": "RuntimeReady"},
            {
                "message": "Network plugin returns error: cni plugin not initialized",
                "reason": "NetworkPluginNotReady",
                "status": False,
                "type": "NetworkReady",
            },
        ]
    },
}
CRICTL_INFO_TEXT = json.dumps(CRICTL_INFO)

# answer of CRI-O: its configuration has only the pause image, and there are no runtime handlers before 1.31
CRIO_INFO_TEXT = json.dumps(
    {
        "config": {"sandboxImage": "registry.k8s.io/pause:3.10"},
        "runtimeHandlers": None,
        "status": {"conditions": [{"message": "", "reason": "", "status": True, "type": "RuntimeReady"}]},
    }
)

CRI_MISSING = (
    'time="2026-08-01T10:00:00Z" level=fatal msg="validate service connection: validate CRI v1 runtime API for endpoint '
    '\\"unix:///run/containerd/containerd.sock\\": rpc error: code = Unimplemented desc = unknown service '
    'runtime.v1.RuntimeService"\n'
)
TIMED_OUT = (
    'E0801 10:00:00.000000    1234 log.go:32] "Status from runtime service failed" err="rpc error: code = DeadlineExceeded"\n'
    'time="2026-08-01T10:00:00Z" level=fatal msg="getting status of runtime: rpc error: code = DeadlineExceeded desc = '
    'context deadline exceeded"\n'
)
BAD_FLAG = 'Incorrect Usage: flag provided but not defined: -output\n\ntime="x" level=fatal msg="flag provided but not defined: -output"\n'

CTR_VERSION = """\
Client:
  Version:  2.4.2
  Revision: 1
  Go version: go1.26.8

Server:
  Version:  2.1.4
  Revision: 75cb2b7193e4e490e9fbdc236c0e811ccaba3376
  UUID: cc049fa1-e785-4dc5-8fcc-7b4d1439983d
"""
# of containerd 1.7.29, with a platform of the plugin, and of 2.4.2, without one
CTR_PLUGINS_1 = """\
TYPE                                   ID                       PLATFORMS      STATUS
io.containerd.snapshotter.v1           aufs                     linux/amd64    skip
io.containerd.content.v1               content                  -              ok
io.containerd.grpc.v1                  cri                      linux/amd64    ok
"""
CTR_PLUGINS_2 = """\
TYPE                                      ID                       PLATFORMS      STATUS
io.containerd.content.v1                  content                  -              ok
io.containerd.cri.v1                      images                   -              ok
io.containerd.cri.v1                      runtime                  linux/amd64    ok
io.containerd.grpc.v1                     cri                      -              ok
io.containerd.server.v1                   debug                    -              skip
"""
CTR_NO_SOCKET = "ctr: cannot access socket /run/c.sock: stat /run/c.sock: no such file or directory\n"
CTR_TIMED_OUT = 'ctr: failed to dial "/run/c.sock": context deadline exceeded\n'

# `containerd config dump` of 2.4.2 and of 1.7.29
DUMP_3 = """\
version = 4
[plugins]
  [plugins.'io.containerd.cri.v1.images']
    snapshotter = 'overlayfs'
  [plugins.'io.containerd.cri.v1.runtime']
    cdi_spec_dirs = ['/etc/cdi', '/var/run/cdi']
    [plugins.'io.containerd.cri.v1.runtime'.containerd]
      default_runtime_name = 'nvidia'
      [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes]
        [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.nvidia]
          runtime_type = 'io.containerd.runc.v2'
          [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.nvidia.options]
            BinaryName = '/usr/bin/nvidia-container-runtime'
            SystemdCgroup = true
"""
DUMP_2 = """\
version = 2
[plugins]
  [plugins."io.containerd.grpc.v1.cri"]
    enable_cdi = false
    [plugins."io.containerd.grpc.v1.cri".containerd]
      default_runtime_name = "runc"
      [plugins."io.containerd.grpc.v1.cri".containerd.default_runtime]
        runtime_type = ""
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes]
        [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
          runtime_type = "io.containerd.runc.v2"
          [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
            BinaryName = ""
            SystemdCgroup = false
"""

# `GET /config` of CRI-O
CRIO_CONFIG = b"""
[crio.runtime]
default_runtime = "crun"
cgroup_manager = "systemd"
[crio.runtime.runtimes.crun]
runtime_path = "/usr/libexec/crio/crun"
runtime_type = ""
[crio.runtime.runtimes.nvidia]
runtime_path = "/usr/bin/nvidia-container-runtime"
runtime_type = "oci"
"""
