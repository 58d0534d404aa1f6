# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests of upgrades share: nodes, pods and notes of a begun upgrade."""

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


RESULT = {"node": "w1", "state": "begun", "reason": "", "from": "570.1", "to": "580.1", "host": "w1", "unproved": ""}


PLAN = {"rebooting": False, "installers": ["/nonexistent/installer"], "from": "570.1", "former": {}}


def offering(name, resources, **parts):
    """A node that offers these resources."""
    made = node(name, **parts)
    made["status"].update(capacity=dict(resources), allocatable={"cpu": "8", **resources})
    return {"kind": "Node", "apiVersion": "v1", **made}


def placed(name, **parts):
    return {"kind": "Pod", "apiVersion": "v1", **pod(name, **{"on": "w1", **parts})}


def note(tmp_path, **values):
    """Have the note of an upgrade there: its path."""
    path = tmp_path / "state" / "driver-upgrade.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        json.dumps({"from": "570.1", "former": {}, "phase": "noted", "offered": {}, "services": [], **values})
    )
    return path


def encoded(path):
    """What reading a note has registered."""
    return {"content": base64.b64encode(path.read_bytes()).decode()}
