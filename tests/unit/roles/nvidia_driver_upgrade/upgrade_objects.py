# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes, pods and records of an interrupted upgrade."""

from __future__ import annotations

import base64
import json

from fakes.kubernetes_api import node, pod

ROLE = "gpu.kubernetes.nvidia_driver_upgrade"


ANY_HOST = {
    "nvidia_driver_method": "package",
    "nvidia_driver_require_gpu": False,
    "nvidia_driver_kernel_modules": "none",
}


RESULT = {"node": "w1", "state": "begun", "reason": "", "from": "570.1", "to": "580.1", "host": "w1", "unverified": ""}


PLAN = {"rebooting": False, "installers": ["/nonexistent/installer"], "from": "570.1", "former": {}}


def make_node(name, resources, **parts):
    """A node with these resources as its capacity and allocatable."""
    item = node(name, **parts)
    item["status"].update(capacity=dict(resources), allocatable={"cpu": "8", **resources})
    return {"kind": "Node", "apiVersion": "v1", **item}


def make_pod(name, **parts):
    return {"kind": "Pod", "apiVersion": "v1", **pod(name, **{"on": "w1", **parts})}


def write_record(tmp_path, **values):
    """Write the record of an upgrade: its path."""
    path = tmp_path / "state" / "driver-upgrade.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        json.dumps({"from": "570.1", "former": {}, "phase": "recorded", "allocatable": {}, "services": [], **values})
    )
    return path


def encode_record(path):
    """The registered result of reading a record."""
    return {"content": base64.b64encode(path.read_bytes()).decode()}
