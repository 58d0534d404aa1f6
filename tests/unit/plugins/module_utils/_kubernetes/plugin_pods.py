# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods of a device plugin in each state, its DaemonSet, and its logs."""

from __future__ import annotations

from typing import Any

from fakes.kubernetes_api import pod

LABELS = {"name": "nvidia-device-plugin-ds"}
READY = {"phase": "Running", "containerStatuses": [{"name": "ctr", "ready": True, "state": {"running": {}}}]}
# As Go writes it when a program calls into C and crashes there.
TRACE = """PC=0x0 m=0 sigcode=1 addr=0x0
goroutine 1 gp=0xbd5360e1e0 m=0 mp=0x1b54020 [syscall]:
runtime.cgocall(0xe7e588, 0xbd5365bc28)
\t/usr/local/go/src/runtime/cgocall.go:167 +0x4b fp=0xbd5365bc00 sp=0xbd5365bbc8 pc=0x48770b
github.com/example/plugin/nvml.Init(...)
\t/src/plugin/nvml/nvml.go:251
main.main()
\t/src/plugin/main.go:61 +0x12e fp=0xbd5365bf48 sp=0xbd5365bec8 pc=0xe12bee
created by runtime.init.7 in goroutine 1
rax    0x0
rflags 0x10246
"""


def plugin(status: dict[str, Any] | None = None, on: str = "w1", **parts: Any) -> dict[str, Any]:
    return pod("plugin-x", on=on, namespace="kube-system", labels=LABELS, status=status or READY, **parts)


def waiting(reason: str, message: str = "", **more: Any) -> dict[str, Any]:
    state = {"waiting": {"reason": reason, "message": message}}
    return {
        "phase": "Pending",
        "containerStatuses": [{"name": "ctr", "ready": False, "image": "reg/plugin:1", "state": state, **more}],
    }


def daemon_set(selector: dict[str, str] | None = None, tolerations: Any = ()) -> dict[str, Any]:
    spec = {"nodeSelector": selector or {}, "tolerations": list(tolerations)}
    return {"metadata": {"name": "ds"}, "spec": {"template": {"metadata": {"labels": LABELS}, "spec": spec}}}


PINNED = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["w1"]}]}]
        }
    }
}
GPU_LABEL = {"nvidia.com/gpu.present": "true"}
NVML_LOG = """I1121 11:00:00.123456       1 main.go:200] Starting FS watcher.
E1121 11:00:00.123457       1 factory.go:112] Incompatible strategy detected auto
I1121 11:00:00.123458       1 main.go:300] No devices found. Waiting indefinitely."""
