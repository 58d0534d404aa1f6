# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node that is emptied for a reboot, by a cluster in memory, and is given back: by the run, the next one or the removal.

What the run does of it is told in the order in which it is done, with what is done with services.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from fakes.driver_machine import DAEMON, NEXT_KERNEL
from fakes.kubernetes_api import pod
from fakes.loopback_api import serving, write_kubeconfig
from fakes.small_cluster import SmallCluster

if os.geteuid() != 0:
    pytest.skip("only root gives files to root", allow_module_level=True)

# It gives up beside nouveau, as NVIDIA's does.
INSTALLER = """
[ ! -e {folder}/root/sys/module/nouveau ] || exit 1
echo install $1 >> {folder}/services.log
printf 580.1 > {folder}/library
cp {folder}/modules.json {folder}/programs/node.json
"""


BOOT = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def offering(count, boot=BOOT, **spec):
    """The node with this many of its two GPUs, as its kubelet reports since a boot."""
    status = {"capacity": {"nvidia.com/gpu": "2"}, "allocatable": {"nvidia.com/gpu": count}}
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": "node", "labels": {}},
        "spec": spec,
        "status": {**status, **ready, "nodeInfo": {"bootID": boot}},
    }


@pytest.fixture
def cluster():
    """One that the role reaches."""
    with serving(SmallCluster(offering("2"), {"kind": "Namespace", "metadata": {"name": "kube-system"}})) as server:
        yield server


@pytest.fixture
def reached(cluster, machine):
    """What the role is told of the cluster."""
    kubeconfig = write_kubeconfig(cluster.url, machine.folder / "kubeconfig")
    return {"gpu_kubeconfig": str(kubeconfig), "nvidia_driver_reboot_timeout": 1}


@pytest.fixture
def asked(reached, machine, apply):
    """What the role is told; it has emptied the node and booted it."""
    told = {**reached, "nvidia_driver_reboot_reasons": ["nouveau is loaded"]}
    code, _done, said = apply("reboot_if_needed", **told)
    assert code == 0, said
    note = machine.folder / "state" / "state" / "driver-reboot.json"
    assert int(json.loads(note.read_text())["gpus"]) == 2
    return told


def test_the_node_is_given_back_once_it_offers_its_gpus_again(cluster, machine, apply, asked):
    cluster.put(offering("1"))
    code, _done, said = apply("reboot_wait", **asked)
    assert code != 0, said
    assert "node: After 1 s, the nodes lack allocatable nvidia.com/gpu: node node: 1 of 2" in said
    assert "Node node stays cordoned until then; run again to end its maintenance." in said
    cluster.put(offering("2", boot="before"))
    code, _done, said = apply("reboot_wait", **asked)
    assert code != 0, said
    assert "node node: its kubelet has not reported since the host was booted; check it on the node." in said
    cluster.put(offering("2"))
    code, _done, said = apply("reboot_wait reboot_end", **asked)
    assert (code, machine.notes()) == (0, []), said


@pytest.mark.thorough
def test_a_removal_gives_the_node_back(cluster, machine, apply, asked):
    assert cluster.all("Node")[0]["spec"] == {"unschedulable": True}
    machine.note("packages-nvidia-driver")
    gone = {**asked, "nvidia_driver_state": "absent"}
    code, _done, said = apply("main", **gone)
    assert (code, machine.notes()) == (0, []), said
    assert not cluster.all("Node")[0]["spec"].get("unschedulable")


@pytest.fixture
def rebooting(cluster, machine, reached):
    """What the role is told that may reboot; a pod is on the node."""
    cluster.put({"kind": "Pod", "apiVersion": "v1", **pod("train", on="node", owner="train", owner_kind="ReplicaSet")})

    def cordoned(_cluster):
        machine.log("cordoned" if cluster.all("Node")[0]["spec"].get("unschedulable") else "given back")

    cluster.react = cordoned
    cluster.refuse = lambda item: machine.log(f"evict {item['metadata']['name']}")
    return {**reached, "nvidia_driver_reboot": "if_needed"}


@pytest.fixture
def beside(machine, rebooting):
    """The driver 580.1 is installed beside 570.2, which is loaded, and which the daemon and a pod's process use."""
    machine.note("packages-nvidia-driver")
    machine.update("580.1")
    machine.start()
    machine.node.process(4712, "/dev/nvidia0", "train", "/kubepods.slice/x")
    return rebooting


def version(machine):
    """That of the module which is loaded."""
    return (machine.node.root / "sys" / "module" / "nvidia" / "version").read_text().strip()


def test_a_driver_beside_one_in_use_is_brought_in_by_a_reboot(cluster, machine, apply, beside):
    code, _done, said = apply("present", **beside)
    assert code == 0, said
    # The boot loads one of them, the role the other.
    assert machine.done() == [
        *("modprobe nvidia_drm", "modprobe nvidia_uvm"),
        *("initramfs", "cordoned", "evict train", "boot", f"enable {DAEMON}", f"start {DAEMON}", "given back"),
    ]
    assert (version(machine), machine.is_("running")) == ("580.1", True)
    assert machine.notes() == [f"driver-enabled-{DAEMON}", "packages-nvidia-driver"]


@pytest.mark.thorough
def test_a_boot_that_brings_the_former_driver_again_is_refused(cluster, machine, apply, beside):
    machine.have_a_stale_image()
    (machine.folder / f"{DAEMON}.enabled").touch()
    code, _done, said = apply("present", **beside)
    assert code != 0, said
    assert "node: the driver cannot be used even after a reboot, because the loaded kernel module is 570.2" in said
    assert machine.done()[1:] == ["initramfs", "cordoned", "evict train", "boot", f"start {DAEMON}"]
    assert "driver-reboot" in machine.notes()
    code, _done, said = apply("present", **beside)
    assert (code, version(machine), machine.notes()) == (0, "580.1", ["packages-nvidia-driver"]), said
    assert machine.done()[-3:] == [f"stop {DAEMON}", f"start {DAEMON}", "given back"]


@pytest.mark.thorough
def test_a_node_that_was_cordoned_before_stays_so(cluster, machine, apply, beside):
    cluster.put(offering("2", unschedulable=True))
    code, _done, said = apply("present", **beside)
    assert (code, version(machine)) == (0, "580.1"), said
    assert "node: node node stays cordoned, as it was before" in said
    (node,) = cluster.all("Node")
    assert (node["spec"], node["metadata"].get("annotations") or {}) == ({"unschedulable": True}, {})
    assert "driver-reboot" not in machine.notes()
    machine.done()
    code, again, said = apply("present", **beside)
    assert (code, again, machine.done()) == (0, 0, []), said


@pytest.mark.thorough
def test_an_installer_runs_after_a_reboot_without_nouveau(cluster, machine, apply, rebooting):
    machine.have_nouveau()
    (machine.folder / "modules" / NEXT_KERNEL / "build").mkdir(parents=True)
    code, _done, said = apply("present", **rebooting, **machine.installer(INSTALLER.format(folder=machine.folder)))
    assert code == 0, said
    story = [line for line in machine.done() if "modprobe" not in line]
    assert story[:5] == ["initramfs", "cordoned", "evict train", "boot", f"install --kernel-name={NEXT_KERNEL}"]
    assert story[5:] == [f"enable {DAEMON}", f"start {DAEMON}", "given back"]
    assert (version(machine), machine.notes()) == ("580.1", [f"driver-enabled-{DAEMON}", "driver-runfile"])


@pytest.mark.thorough
def test_an_installer_does_not_run_beside_nouveau_that_comes_again(machine, apply, rebooting):
    machine.have_nouveau()
    (machine.folder / "modules" / NEXT_KERNEL / "build").mkdir(parents=True)
    asked = {**machine.installer(INSTALLER.format(folder=machine.folder)), "nvidia_driver_blacklist_nouveau": False}
    code, _done, said = apply("present", **rebooting, **asked)
    assert code != 0, said
    assert "node: the installer cannot run, because nouveau is loaded even after a reboot" in said
    assert [line for line in machine.done() if "modprobe" not in line] == ["cordoned", "evict train", "boot"]
    assert "driver-reboot" in machine.notes()
