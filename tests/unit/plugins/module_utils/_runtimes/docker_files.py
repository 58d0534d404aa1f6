# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration files of Docker, and requests."""

from __future__ import annotations

import json
import typing as t

BINARY = "/usr/bin/nvidia-container-runtime"
NVIDIA = {"path": BINARY}
KUBEADM = """\
{
  "exec-opts": ["native.cgroupdriver=systemd"],
  "log-driver": "json-file",
  "log-opts": {
    "max-size": "100m"
  },
  "storage-driver": "overlay2"
}
"""
FILES = {
    "kubeadm": KUBEADM,
    "CRLF and tabs": KUBEADM.replace("  ", "\t").replace("\n", "\r\n"),
    "no end of line": KUBEADM.rstrip("\n"),
    "by nvidia-ctk": json.dumps({"runtimes": {"nvidia": {"args": [], "path": "nvidia-container-runtime"}}}, indent=4),
    "other runtimes": '{\n  "default-runtime": "crun",\n  "runtimes": {"crun": {"path": "/usr/bin/crun"}}\n}\n',
    "shim": '{"runtimes": {"kata": {"runtimeType": "io.containerd.kata.v2", "options": {"ConfigPath": "/k"}}}}\n',
    "features": '{\n    "features": {"containerd-snapshotter": true},\n    "data-root": "/data"\n}\n',
    "nulls": '{\n "a": null,\n "log-opts": null,\n "big": 123456789012345678901234567890\n}\n',
    "packed": '{"a":[1,2],"b":{"c":"d"}}',
    "empty object": "{}\n",
    "empty": "",
    "only space": "\n \n",
}
REQUESTED: list[dict[str, t.Any]] = [
    {},
    {"set_default": True, "enable_cdi": True},
    {"set_default": False, "enable_cdi": False},
    {"settings": {"log-level": "debug", "runtimes": {"nvidia": {"runtimeArgs": ["--debug"]}}, "big": 7}},
]
