# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""share_gpus with MPS on a cluster in memory and a host with fakes of the daemon and of NVML: in, again, another number of pods, and out."""

from __future__ import annotations

import copy
import ctypes
import json
import os
import re
from pathlib import Path

import pytest
from fakes import sharing_machine
from fakes.loopback_api import serve_in_thread
from fakes.sharing_machine import GPU, SharingMachine

from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.objects import can_run_on
from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml import compute_mode
from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml.library import Nvml
from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT
from ansible_collections.gpu.kubernetes.tests.unit.plugins.modules.mps_node import Node

NAME, PLUGIN = "nvidia-device-plugin-mps-control-daemon", "nvidia-device-plugin-daemonset"
CONFIG = "nvidia.com/device-plugin.config"
HERE = {"ansible_connection": "local", "ansible_become": False, "gpu_node_name": "{{ inventory_hostname }}"}
HOSTS = {"all": {"vars": HERE, "children": {"gpu_nodes": {"hosts": {"w1": {}}}}}}


class MpsMachine(SharingMachine):
    """``host`` is that of w1, which has one T4. ``observed`` has for each change which of daemon and plugin run there."""

    def __init__(self, folder: Path, library: str) -> None:
        super().__init__(folder)
        self.host, self.library, self.observed = Node(folder / "host"), library, []

    def react(self, cluster):
        super().react(cluster)
        item = cluster.objects["Node", "", "w1"]
        labels = item["metadata"]["labels"]
        replicas = re.match(r"mps-(\d+)-", labels.get(CONFIG, ""))
        if item["status"]["capacity"].get(GPU) == "1" and replicas:
            item["status"].update(capacity={GPU: replicas[1]}, allocatable={GPU: replicas[1]})
        key = ("Pod", "kube-system", f"{NAME}-w1")
        found = cluster.objects.get(("DaemonSet", "kube-system", NAME))
        runs = found and can_run_on(found["spec"]["template"]["spec"], labels)
        if runs and key not in cluster.objects:
            cluster.objects[key] = self._pod(copy.deepcopy(found["spec"]["template"]), found, key[2], "w1")
            cluster.objects[key]["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
            self.start(int(replicas[1]))
        elif not runs:
            cluster.objects.pop(key, None)
        names = {name.rpartition("-")[0] for _kind, _space, name in cluster.objects if name in (key[2], f"{PLUGIN}-w1")}
        self.observed += [names] if self.observed[-1:] != [names] else []

    def start(self, replicas: int) -> None:
        """Do what the daemon does; its end leaves all of it, as that of one that is killed."""
        self.host.leave()
        memory = 15360 // replicas
        size = f"{memory // 1024}G" if memory >= 1024 else f"{memory}M"
        answers = f"get_default_active_thread_percentage = {100 // replicas}.0\nget_default_device_pinned_mem_limit 0 = {size}\n"
        (self.host.pipe / "answers").write_text(answers)
        nvml, handle = Nvml(ctypes.CDLL(self.library)), ctypes.c_void_p()
        nvml.start()
        nvml.call(["nvmlDeviceGetHandleByIndex_v2"], ctypes.c_uint(0), ctypes.byref(handle))
        assert nvml.call(["nvmlDeviceSetComputeMode"], handle, ctypes.c_uint(compute_mode.EXCLUSIVE_PROCESS)) == 0
        nvml.stop()


@pytest.fixture
def machine(tmp_path, nvml_builder, monkeypatch):
    monkeypatch.setenv("NVML_STATE", str(tmp_path / "nvml/state"))
    monkeypatch.setenv("NVML_INFOROM", str(tmp_path / "nvml/inforom"))
    monkeypatch.setitem(sharing_machine.PLUGINS, PLUGIN, {GPU: "1"})
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/libnvidia-ml.so.1").symlink_to(nvml_builder.library("t4"))
    made = MpsMachine(tmp_path, str(tmp_path / "lib/libnvidia-ml.so.1"))
    with serve_in_thread(made.cluster):
        yield made


@pytest.fixture
def share(run, machine, tmp_path):
    """Run share_gpus for w1 without tests: exit code, number of changed tasks, and output in one line."""

    def run_playbook(strategy, *options, **variables):
        environment = {
            "PATH": f"{machine.host.programs}:{os.environ['PATH']}",
            "LD_LIBRARY_PATH": str(tmp_path / "lib"),
        }
        facts = {"nodename": "w1", "cacheable": True}
        wrapper = tmp_path / "wrapper.yml"
        first = {
            "hosts": "all",
            "gather_facts": False,
            "tags": ["always"],
            "tasks": [{"ansible.builtin.set_fact": facts}],
        }
        wrapper.write_text(
            json.dumps([first, {"ansible.builtin.import_playbook": str(ROOT / "playbooks/share_gpus.yml")}])
        )
        tags = ("--tags", "device_plugin,sharing")
        given = {
            **machine.variables,
            "__mps_path": str(machine.host.path),
            "gpu_sharing_strategy": strategy,
            **variables,
        }
        code, output = run(HOSTS, wrapper, *tags, *options, environment=environment, **given)
        return code, sum(map(int, re.findall(r"changed=(\d+)", output))), " ".join(output.split())

    return run_playbook


@pytest.mark.thorough
def test_mps_comes_with_its_daemon_and_leaves_nothing_behind(machine, share):
    code, _changes, output = share("exclusive")
    assert code == 0, output
    labels = dict(machine.cluster.objects["Node", "", "w1"]["metadata"]["labels"])
    del machine.observed[:]
    for replicas, options in ((4, []), (4, ["--check"]), (16, [])):
        code, changes, output = share("mps", *options, gpu_sharing_replicas=replicas)
        assert (code, changes > 0) == (0, not options), output
        assert machine.read_capacity("w1") == {GPU: str(replicas)}
        assert compute_mode.list_exclusive(machine.library) == [0]
    code, changes, output = share("exclusive")
    assert (code, changes > 0) == (0, True), output
    assert (machine.cluster.objects["Node", "", "w1"]["metadata"]["labels"], machine.read_capacity("w1")) == (
        labels,
        {GPU: "1"},
    )
    assert ("DaemonSet", "kube-system", NAME) not in machine.cluster.objects
    assert compute_mode.list_exclusive(machine.library) == []
    assert not machine.host.path.exists()
    # The plugin leaves first and comes last.
    both = {NAME, PLUGIN}
    assert machine.observed == [{PLUGIN}, set(), {NAME}, both, {NAME}, set(), {NAME}, both, {NAME}, set(), {PLUGIN}]
