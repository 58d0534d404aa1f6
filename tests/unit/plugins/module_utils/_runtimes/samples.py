# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small reproductions of the configuration files that nodes have."""

from __future__ import annotations

V2 = "io.containerd.grpc.v1.cri"
V3 = "io.containerd.cri.v1.runtime"

#: What Debian's package ships.
DEBIAN = """\
version = 2

[plugins]
  [plugins."io.containerd.grpc.v1.cri"]
    [plugins."io.containerd.grpc.v1.cri".cni]
      bin_dir = "/usr/lib/cni"
      conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.internal.v1.opt"]
    path = "/var/lib/containerd"
"""

#: What Docker's containerd.io package ships: no version, CRI switched off, the rest in comments.
DOCKER = """\
#   Licensed to you; see the documentation.

disabled_plugins = ["cri"]

#root = "/var/lib/containerd"
#state = "/run/containerd"

#[grpc]
#  address = "/run/containerd/containerd.sock"
"""

#: The settings of kubeadm's guide alone.
KUBEADM_V2 = """\
version = 2
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"   # the shim
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
    SystemdCgroup = true
"""

KUBEADM_V3 = """\
version = 3
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = 'io.containerd.runc.v2'
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
    SystemdCgroup = true
"""

#: The shape of `containerd config default` of 1.7, which writes every setting, empty strings as well.
DEFAULT_V2 = """\
disabled_plugins = []
imports = []
oom_score = 0
required_plugins = []
root = "/var/lib/containerd"
state = "/run/containerd"
temp = ""
version = 2

[cgroup]
  path = ""

[grpc]
  address = "/run/containerd/containerd.sock"
  gid = 0
  max_recv_message_size = 16777216

[plugins]

  [plugins."io.containerd.gc.v1.scheduler"]
    deletion_threshold = 0
    pause_threshold = 0.02

  [plugins."io.containerd.grpc.v1.cri"]
    cdi_spec_dirs = ["/etc/cdi", "/var/run/cdi"]
    enable_cdi = false
    sandbox_image = "registry.k8s.io/pause:3.8"

    [plugins."io.containerd.grpc.v1.cri".cni]
      bin_dir = "/opt/cni/bin"

    [plugins."io.containerd.grpc.v1.cri".containerd]
      default_runtime_name = "runc"
      snapshotter = "overlayfs"

      [plugins."io.containerd.grpc.v1.cri".containerd.default_runtime]
        runtime_type = ""

        [plugins."io.containerd.grpc.v1.cri".containerd.default_runtime.options]

      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes]

        [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
          base_runtime_spec = ""
          cni_conf_dir = ""
          cni_max_conf_num = 0
          container_annotations = []
          pod_annotations = []
          privileged_without_host_devices = false
          runtime_engine = ""
          runtime_path = ""
          runtime_root = ""
          runtime_type = "io.containerd.runc.v2"
          sandbox_mode = "podsandbox"

          [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
            BinaryName = ""
            CriuImagePath = ""
            IoGid = 0
            NoNewKeyring = false
            SystemdCgroup = false

    [plugins."io.containerd.grpc.v1.cri".registry]
      config_path = ""

      [plugins."io.containerd.grpc.v1.cri".registry.mirrors]

  [plugins."io.containerd.internal.v1.opt"]
    path = "/opt/containerd"

[timeouts]
  "io.containerd.timeout.bolt.open" = "0s"
"""

#: The shape of `containerd config default` of 2.x (%d is the version: 3 or 4).
DEFAULT_V3 = """\
version = %d
root = '/var/lib/containerd'
state = '/run/containerd'
temp = ''
disabled_plugins = []
required_plugins = []
oom_score = 0
imports = []

[plugins]
  [plugins.'io.containerd.cri.v1.images']
    snapshotter = 'overlayfs'

    [plugins.'io.containerd.cri.v1.images'.pinned_images]
      sandbox = 'registry.k8s.io/pause:3.10'

  [plugins.'io.containerd.cri.v1.runtime']
    enable_selinux = false
    cdi_spec_dirs = ['/etc/cdi', '/var/run/cdi']

    [plugins.'io.containerd.cri.v1.runtime'.containerd]
      default_runtime_name = 'runc'
      ignore_rdt_not_enabled_errors = false

      [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes]
        [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
          runtime_type = 'io.containerd.runc.v2'
          runtime_path = ''
          pod_annotations = []
          privileged_without_host_devices = false
          cni_max_conf_num = 0
          sandboxer = 'podsandbox'

          [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
            BinaryName = ''
            IoGid = 0
            SystemdCgroup = true

    [plugins.'io.containerd.cri.v1.runtime'.cni]
      bin_dirs = ['/opt/cni/bin']

  [plugins.'io.containerd.gc.v1.scheduler']
    pause_threshold = 0.02
"""

#: The shape of kubespray's file, with mirrors, a login, Kata Containers and gVisor.
KUBESPRAY = """\
version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
oom_score = 0

[grpc]
  max_recv_message_size = 16777216

[plugins]
  [plugins."io.containerd.grpc.v1.cri"]
    sandbox_image = "registry.k8s.io/pause:3.9"
    enable_unprivileged_ports = false
    [plugins."io.containerd.grpc.v1.cri".containerd]
      default_runtime_name = "runc"
      snapshotter = "overlayfs"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes]
        [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
          runtime_type = "io.containerd.runc.v2"
          runtime_engine = ""
          runtime_root = "/run/containerd/runc"
          base_runtime_spec = "/etc/containerd/cri-base.json"

          [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
            SystemdCgroup = true
        [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.kata-qemu]
          runtime_type = "io.containerd.kata-qemu.v2"
        [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runsc]
          runtime_type = "io.containerd.runsc.v1"
    [plugins."io.containerd.grpc.v1.cri".registry]
      [plugins."io.containerd.grpc.v1.cri".registry.mirrors]
        [plugins."io.containerd.grpc.v1.cri".registry.mirrors."docker.io"]
          endpoint = ["https://mirror.example/", "https://user:hunter2@other.example/"]
      [plugins."io.containerd.grpc.v1.cri".registry.configs."registry.example".auth]
        username = "robot"
        password = "correct horse"
"""

#: Kata Containers as the default, gVisor beside it, crun as the only runtime of runc's type.
KATA_DEFAULT = """\
version = 3
[plugins."io.containerd.cri.v1.runtime".containerd]
default_runtime_name = "kata"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.kata]
runtime_type = "io.containerd.kata.v2"
privileged_without_host_devices = true
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.kata.options]
ConfigPath = "/opt/kata/configuration.toml"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runsc]
runtime_type = "io.containerd.runsc.v1"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.crun]
runtime_type = "io.containerd.runc.v2"
base_runtime_spec = "/etc/containerd/base.json"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.crun.options]
BinaryName = "/usr/bin/crun"
SystemdCgroup = true
"""

#: A site's own file for containerd 2, with comments, mirrors, Kata Containers and gVisor.
SITE_V3 = """\
# Managed by the platform team; ask before you change it.
version = 3
root = "/data/containerd"   # the fast disk

[grpc]
  # large images
  max_recv_message_size = 33554432

[plugins]
  [plugins.'io.containerd.cri.v1.images']
    snapshotter = 'overlayfs'
    [plugins.'io.containerd.cri.v1.images'.pinned_images]
      sandbox = 'registry.example/pause:3.10'
    [plugins.'io.containerd.cri.v1.images'.registry]
      config_path = '/etc/containerd/certs.d'  # mirrors of the site live there

  [plugins.'io.containerd.cri.v1.runtime']
    max_container_log_line_size = 65536
    [plugins.'io.containerd.cri.v1.runtime'.containerd]
      default_runtime_name = 'runc'
      [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
        runtime_type = 'io.containerd.runc.v2'
        # as the kubelet
        [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
          SystemdCgroup = true
      # sandboxes of untrusted tenants
      [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.kata]
        runtime_type = 'io.containerd.kata.v2'
        privileged_without_host_devices = true
      [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runsc]
        runtime_type = 'io.containerd.runsc.v1'
        [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runsc.options]
          TypeUrl = 'io.containerd.runsc.v1.options'
          ConfigPath = '/etc/containerd/runsc.toml'
"""

#: By name, the release of containerd that a node with such a file has.
FILES = {
    "debian": (DEBIAN, "1.7"),
    "docker on 1.7": (DOCKER, "1.7"),
    "docker on 2.1": (DOCKER, "2.1"),
    "kubeadm, version 2": (KUBEADM_V2, "1.7"),
    "kubeadm, version 2 on 2.x": (KUBEADM_V2, "2.1"),
    "kubeadm, version 3": (KUBEADM_V3, "2.1"),
    "default of 1.7": (DEFAULT_V2, "1.7"),
    "default of 2.1": (DEFAULT_V3 % 3, "2.1"),
    "default of 2.4": (DEFAULT_V3 % 4, "2.4"),
    "kubespray": (KUBESPRAY, "1.7"),
    "site, version 3": (SITE_V3, "2.1"),
    "kata default": (KATA_DEFAULT, "2.1"),
    "empty on 1.7": ("", "1.7"),
    "empty on 2.4": ("", "2.4"),
    "comments only": ("# nothing here yet\n", "2.1"),
    "CRLF": (KUBEADM_V3.replace("\n", "\r\n"), "2.1"),
}
