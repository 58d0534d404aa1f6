# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node of a cluster in memory that is drained for a reboot, and uncordoned by the run, the next one or the removal.

The machine logs the steps of the run in order, with those of services.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from fakes.driver_machine import DAEMON, NEXT_KERNEL
from fakes.kubernetes_api import pod
from fakes.loopback_api import serve_in_thread, write_kubeconfig
from fakes.small_cluster import SmallCluster

if os.geteuid() != 0:
    pytest.skip("only root gives files to root", allow_module_level=True)

# It fails while nouveau is loaded, as NVIDIA's does.
INSTALLER = """
[ ! -e {folder}/root/sys/module/nouveau ] || exit 1
echo install $1 >> {folder}/services.log
printf 580.1 > {folder}/library
cp {folder}/modules.json {folder}/programs/node.json
"""


BOOT = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def make_node(count, boot=BOOT):
    """The node with so many allocatable of its two GPUs, as its kubelet reports since a boot."""
    status = {"capacity": {"nvidia.com/gpu": "2"}, "allocatable": {"nvidia.com/gpu": count}}
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": "node", "labels": {}},
        "spec": {},
        "status": {**status, **ready, "nodeInfo": {"bootID": boot}},
    }


@pytest.fixture
def cluster():
    """A cluster that the role reaches."""
    with serve_in_thread(
        SmallCluster(make_node("2"), {"kind": "Namespace", "metadata": {"name": "kube-system"}})
    ) as server:
        yield server


@pytest.fixture
def cluster_variables(cluster, machine):
    """Variables of the role for the cluster."""
    kubeconfig = write_kubeconfig(cluster.url, machine.folder / "kubeconfig")
    return {"gpu_kubeconfig": str(kubeconfig), "nvidia_driver_reboot_timeout": 1}


def test_rebooted_host_gets_its_lock_and_the_headers_of_its_kernel(machine, apply, tmp_path):
    """A reboot empties the folder of the lock."""
    variables = {"nvidia_driver_reboot_drain": False, "nvidia_driver_reboot_reasons": ["nouveau is loaded"]}
    code, _changes, output = apply("reboot_if_needed", **variables, lease_lock={"refused": []})
    assert (code, (tmp_path / "run" / "run-node.json").exists()) == (0, True), output
    assert f"linux-headers-{NEXT_KERNEL}" in machine.read_installed()


def test_node_stays_cordoned_without_its_gpus_until_the_driver_is_removed(
    cluster, machine, apply, cluster_variables, tmp_path
):
    """A run uncordons the node of which the kubelet has reported all GPUs since the boot, as the next test shows; a removal does not wait."""
    variables = {**cluster_variables, "nvidia_driver_reboot_reasons": ["nouveau is loaded"]}
    code, _changes, output = apply("reboot_if_needed", **variables, lease_lock={"failed": False})
    assert code == 0, output
    record = machine.folder / "state" / "state" / "driver-reboot.json"
    assert int(json.loads(record.read_text())["gpus"]) == 2
    assert not (tmp_path / "run" / "run-node.json").exists(), "without a lock before it there is none after it"

    (node,) = cluster.all("Node")
    assert node["spec"] == {"unschedulable": True}
    cluster.put({**node, "status": make_node("1")["status"]})
    code, _changes, output = apply("reboot_wait", **variables)
    assert code != 0, output
    assert "node: After 1 s, the nodes lack allocatable nvidia.com/gpu: node node: 1 of 2" in output
    assert "Node node stays cordoned until then; run again to end its maintenance." in output
    cluster.put({**node, "status": make_node("2", boot="before")["status"]})
    code, _changes, output = apply("reboot_wait", **variables)
    assert code != 0, output
    assert "node node: its kubelet has not reported since the host was booted; check it on the node." in output

    machine.write_records("packages-nvidia-driver")
    code, _changes, output = apply("main", **variables, nvidia_driver_state="absent")
    assert (code, machine.list_records()) == (0, []), output
    assert not cluster.all("Node")[0]["spec"].get("unschedulable")


@pytest.fixture
def may_reboot(cluster, machine, cluster_variables):
    """Variables of the role, which may reboot; a pod runs on the node."""
    cluster.put({"kind": "Pod", "apiVersion": "v1", **pod("train", on="node", owner="train", owner_kind="ReplicaSet")})

    def log_cordon(_cluster):
        machine.add_log_line("cordoned" if cluster.all("Node")[0]["spec"].get("unschedulable") else "uncordoned")

    cluster.react = log_cordon
    cluster.refuse = lambda item: machine.add_log_line(f"evict {item['metadata']['name']}")
    return {**cluster_variables, "nvidia_driver_reboot": "if_needed"}


@pytest.fixture
def newer_driver(machine, may_reboot):
    """Driver 580.1 is installed; 570.2 is loaded, and the daemon and the process of a pod use it."""
    machine.write_records("packages-nvidia-driver")
    machine.install_build("580.1")
    machine.start()
    machine.node.process(4712, "/dev/nvidia0", "train", "/kubepods.slice/x")
    return may_reboot


def read_loaded_version(machine):
    """The version of the loaded module."""
    return (machine.node.root / "sys" / "module" / "nvidia" / "version").read_text().strip()


def test_reboot_loads_the_newer_driver(cluster, machine, apply, newer_driver):
    code, _changes, output = apply("present", **newer_driver)
    assert code == 0, output
    # The boot loads one of the modules, the role the other.
    assert machine.read_actions() == [
        *("modprobe nvidia_drm", "modprobe nvidia_uvm"),
        *("initramfs", "cordoned", "evict train", "boot", f"enable {DAEMON}", f"start {DAEMON}", "uncordoned"),
    ]
    assert (read_loaded_version(machine), machine.has_state("running")) == ("580.1", True)
    assert machine.list_records() == [f"driver-enabled-{DAEMON}", "packages-nvidia-driver"]


@pytest.mark.thorough
def test_boot_into_the_former_driver_fails_the_run(cluster, machine, apply, newer_driver):
    machine.keep_stale_image()
    (machine.folder / f"{DAEMON}.enabled").touch()
    code, _changes, output = apply("present", **newer_driver)
    assert code != 0, output
    assert "node: the driver cannot be used even after a reboot, because the loaded kernel module is 570.2" in output
    assert machine.read_actions()[1:] == ["initramfs", "cordoned", "evict train", "boot", f"start {DAEMON}"]
    assert "driver-reboot" in machine.list_records()
    code, _changes, output = apply("present", **newer_driver)
    assert (code, read_loaded_version(machine), machine.list_records()) == (0, "580.1", ["packages-nvidia-driver"]), (
        output
    )
    assert machine.read_actions()[-3:] == [f"stop {DAEMON}", f"start {DAEMON}", "uncordoned"]


@pytest.mark.thorough
def test_installer_runs_after_a_reboot_without_nouveau(cluster, machine, apply, may_reboot):
    machine.load_nouveau()
    (machine.folder / "modules" / NEXT_KERNEL / "build").mkdir(parents=True)
    code, _changes, output = apply(
        "present", **may_reboot, **machine.write_installer(INSTALLER.format(folder=machine.folder))
    )
    assert code == 0, output
    steps = [line for line in machine.read_actions() if "modprobe" not in line]
    assert steps[:5] == ["initramfs", "cordoned", "evict train", "boot", f"install --kernel-name={NEXT_KERNEL}"]
    assert steps[5:] == [f"enable {DAEMON}", f"start {DAEMON}", "uncordoned"]
    assert (read_loaded_version(machine), machine.list_records()) == (
        "580.1",
        [f"driver-enabled-{DAEMON}", "driver-runfile"],
    )


@pytest.mark.thorough
def test_installer_does_not_run_if_nouveau_is_loaded_again(machine, apply, may_reboot):
    machine.load_nouveau()
    (machine.folder / "modules" / NEXT_KERNEL / "build").mkdir(parents=True)
    variables = {
        **machine.write_installer(INSTALLER.format(folder=machine.folder)),
        "nvidia_driver_blacklist_nouveau": False,
    }
    code, _changes, output = apply("present", **may_reboot, **variables)
    assert code != 0, output
    assert "node: the installer cannot run, because nouveau is loaded even after a reboot" in output
    assert [line for line in machine.read_actions() if "modprobe" not in line] == ["cordoned", "evict train", "boot"]
    assert "driver-reboot" in machine.list_records()
