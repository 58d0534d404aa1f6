# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration files of CRI-O, and functions that read and render them."""

from __future__ import annotations

import typing as t

from ansible_collections.gpu.kubernetes.plugins.module_utils._toml import loads

#: As the packages of the CRI-O project ship it.
SHIPPED = """\
[crio.image]
signature_policy = "/etc/crio/policy.json"

[crio.runtime]
default_runtime = "crun"

[crio.runtime.runtimes.crun]
runtime_path = "/usr/libexec/crio/crun"
runtime_root = "/run/crun"
monitor_path = "/usr/libexec/crio/conmon"
allowed_annotations = [
    "io.containers.trace-syscall",
]

[crio.runtime.runtimes.runc]
runtime_path = "/usr/libexec/crio/runc"
runtime_root = "/run/runc"
monitor_path = "/usr/libexec/crio/conmon"
"""
KATA = """\
[crio.runtime]
default_runtime = "kata"
[crio.runtime.runtimes.kata]
runtime_path = "/usr/bin/containerd-shim-kata-v2"
runtime_type = "vm"
runtime_root = "/run/vc"
privileged_without_host_devices = true
"""
PATH = "/usr/bin/nvidia-container-runtime"


def nvidia(text: str, name: str = "nvidia") -> dict[str, t.Any]:
    found: dict[str, t.Any] = loads(text)["crio"]["runtime"]["runtimes"][name]
    return found


def table(name: str = "nvidia", path: str = PATH, more: str = "") -> str:
    return f'[crio.runtime.runtimes.{name}]\nruntime_path = "{path}"\nruntime_type = "oci"\n{more}'


def default(name: str) -> str:
    return f'[crio.runtime]\ndefault_runtime = "{name}"\n'
