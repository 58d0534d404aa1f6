# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each kubelet of KUBELETS (gate units) reads the drop-in that the module writes."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from lab import wait

pytest.importorskip("ruamel.yaml")

from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._kubelet.kubelet_node import VALUES, DropInNode

PROGRAMS = [path for path in os.environ.get("KUBELETS", "").split(os.pathsep) if path]
SETTINGS = ("kubeReserved", "systemReserved", "evictionHard")


def read_effective(program: str, node: DropInNode, *flags: str) -> dict[str, dict[str, str]]:
    """Return what the kubelet reserves with the drop-ins of *node*: it logs that, and ends at a kubeconfig that is not there."""
    places = [f"--{name}={node.folder / name}" for name in ("root-dir", "cert-dir", "kubeconfig")]
    command = [program, f"--config-dir={node.config.parent}", "--v=5", *places, *flags]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=wait.LIMIT)
    assert done.returncode != 0
    found = {}
    for name in SETTINGS:
        text = re.search(rf'"{name[0].upper()}{name[1:]}": (null|{{[^}}]*}})', done.stderr)
        assert text, done.stderr[-2000:]
        found[name] = json.loads(text.group(1)) or {}
    return found


@pytest.mark.parametrize("program", PROGRAMS)
def test_kubelet_merges_drop_ins_as_planned_and_undone(tmp_path: Path, program: str) -> None:
    node = DropInNode(tmp_path)
    node.drop_in("10-cli-config.conf", "kubeReserved: {cpu: 250m, pid: '100'}")
    node.drop_in(
        "20-cli-config-dir/90-more.conf",
        "systemReserved: {ephemeral-storage: 1Gi}\nevictionHard: {nodefs.available: 7%}",
    )
    before = read_effective(program, node)
    assert before["evictionHard"] == {"imagefs.available": "5%", "nodefs.available": "7%"}
    done = node.run({**VALUES, "evictionHard": {"memory.available": "500Mi"}})
    assert read_effective(program, node) == done["reserved"]
    assert done["reserved"]["kubeReserved"] == {"cpu": "500m", "memory": "1Gi", "pid": "100"}
    # Why such an argument is refused.
    assert read_effective(program, node, "--kube-reserved=cpu=1")["kubeReserved"] == {"cpu": "1"}
    node.run(state="absent")
    assert read_effective(program, node) == before
