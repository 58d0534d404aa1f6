# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node that is emptied for a reboot, by a cluster in memory, and is given back: by the run, the next one or the removal."""

from __future__ import annotations

import json
import os
import threading

import pytest

pytest.importorskip("ansible.playbook", reason="only ansible.module_utils is here")
pytest.importorskip("kubernetes")

from fakes.loopback_api import write_kubeconfig
from fakes.small_cluster import SmallCluster

if os.geteuid() != 0:
    pytest.skip("only root gives files to root", allow_module_level=True)


def offering(count):
    """The node with this many of its two GPUs."""
    status = {"capacity": {"nvidia.com/gpu": "2"}, "allocatable": {"nvidia.com/gpu": count}}
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": "node", "labels": {}},
        "spec": {},
        "status": {**status, **ready},
    }


@pytest.fixture
def cluster():
    """One that the role reaches."""
    server = SmallCluster(offering("2"), {"kind": "Namespace", "metadata": {"name": "kube-system"}})
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def asked(cluster, machine, apply):
    """What the role is told; it has emptied the node and booted it."""
    told = {
        "gpu_kubeconfig": str(write_kubeconfig(cluster.url, machine.folder / "kubeconfig")),
        "nvidia_driver_reboot_reasons": ["nouveau is loaded"],
        "nvidia_driver_reboot_timeout": 1,
    }
    code, _done, said = apply("reboot_if_needed", **told)
    assert code == 0, said
    note = machine.folder / "state" / "state" / "driver-reboot.json"
    assert int(json.loads(note.read_text())["gpus"]) == 2
    return told


def test_the_node_is_given_back_once_it_offers_its_gpus_again(cluster, machine, apply, asked):
    cluster.put(offering("1"))
    code, _done, said = apply("reboot_wait", **asked)
    assert code != 0, said
    assert "node: Waited 1 s in vain for allocatable nvidia.com/gpu: node node: 1 of 2" in said
    assert "Node node stays cordoned until then; run again, which gives it back." in said
    cluster.put(offering("2"))
    code, _done, said = apply("reboot_wait reboot_end", **asked)
    assert (code, machine.notes()) == (0, []), said


def test_a_removal_gives_the_node_back(cluster, machine, apply, asked):
    assert cluster.all("Node")[0]["spec"] == {"unschedulable": True}
    machine.note("packages-nvidia-driver")
    gone = {**asked, "nvidia_driver_state": "absent"}
    code, told, said = apply("main", "--check", **gone)
    assert (code, told > 0, machine.notes()) == (0, True, ["driver-reboot", "packages-nvidia-driver"]), said
    code, _done, said = apply("main", **gone)
    assert (code, machine.notes()) == (0, []), said
    assert not cluster.all("Node")[0]["spec"].get("unschedulable")
    code, again, said = apply("main", **gone)
    assert (code, again) == (0, 0), said
