# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""share_gpus, remove_gpu_nodes and the strategies' roles on a cluster in memory: check mode, changes of the strategy, and a removal that restores each byte."""

from __future__ import annotations

import json
import re

import pytest
from fakes.kubernetes_api import node, pod
from fakes.loopback_api import serve_in_thread
from fakes.sharing_machine import COUNT, MEMORY, NVML, SharingMachine

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

HOSTS = {
    "all": {
        "vars": {
            "ansible_connection": "local",
            "ansible_become": False,
            "gpu_node_name": "{{ inventory_hostname }}",
        },
        "children": {
            "kube_control_plane": {"hosts": {"plane": {}}},
            "gpu_nodes": {"hosts": {"w1": {}, "w2": {}}},
        },
    }
}
FACTS = {"nvml": NVML, "nodename": "{{ inventory_hostname }}", "cacheable": True}


@pytest.fixture
def machine(tmp_path):
    sharing_machine = SharingMachine(tmp_path)
    with serve_in_thread(sharing_machine.cluster):
        yield sharing_machine


@pytest.fixture
def play(run, machine, tmp_path):
    """Run plays on the machine: exit code, number of changed tasks, and output in one line."""

    def run_play(content, *options, **variables):
        if isinstance(content, str):
            content = {"ansible.builtin.import_playbook": str(ROOT / "playbooks" / f"{content}.yml")}
        facts_play = {"hosts": "all", "gather_facts": False, "tags": ["always"]}
        wrapper = tmp_path / "wrapper.yml"
        wrapper.write_text(json.dumps([{**facts_play, "tasks": [{"ansible.builtin.set_fact": FACTS}]}, content]))
        code, output = run(HOSTS, wrapper, *options, **machine.variables, **variables)
        return code, sum(map(int, re.findall(r"changed=(\d+)", output))), " ".join(output.split())

    return run_play


@pytest.fixture
def share(play):
    """Run share_gpus for w1 with a strategy, without kube-scheduler and tests; w2 is not changed."""
    tags = ("--tags", "device_plugin,sharing")
    return lambda strategy, *options, **more: play(
        "share_gpus", *tags, *options, gpu_nodes_group="w1", gpu_sharing_strategy=strategy, **more
    )


def role_play(role):
    return {
        "hosts": "w1",
        "gather_facts": False,
        "tasks": [{"ansible.builtin.include_role": {"name": f"gpu.kubernetes.{role}"}}],
    }


def test_role_alone_deploys_removes_policies_and_removes_all(machine, play):
    """Without a plan. The scenario changes strategies with one, to nano_gpu too."""
    variables = {"gpushare_namespace": "sharing"}
    code, _changes, output = play(role_play("gpushare"), **variables)
    assert code == 0, output
    assert ("Namespace", "", "sharing") in machine.cluster.objects
    assert machine.read_capacity("w1") == {MEMORY: "32", COUNT: "2"}
    assert "ValidatingAdmissionPolicy" in {kind for kind, *_place in machine.cluster.objects}
    without = {"gpushare_admission_policy": False, "gpushare_extender_network_policy": False}
    code, _changes, output = play(role_play("gpushare"), **variables, **without)
    assert code == 0, output
    policies = {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "NetworkPolicy"}
    assert not policies & {kind for kind, *_place in machine.cluster.objects}
    code, _changes, output = play(role_play("gpushare"), **variables, gpushare_state="absent")
    assert code == 0, output
    assert machine.read_state() == machine.initial_state
    assert machine.read_capacity("w1") == {}


def test_nothing_changes_while_a_host_is_refused(machine, play, share):
    """By its own requirements in the plan, and by pods that hold GPUs in a role alone."""
    code, changes, output = share("nano_gpu")
    assert (code != 0, changes) == (True, 0), output
    assert "Host w1: the agent of nano-gpu gives GPUs to containers by programs that replace the host's" in output
    holder = pod("holder", on="w1", gpus=1)
    machine.cluster.put({"kind": "Pod", "apiVersion": "v1", **holder})
    code, changes, output = play(role_play("gpushare"))
    assert (code != 0, changes) == (True, 0), output
    assert "Host w1 (node w1): its GPUs are shared as exclusive, gpushare is requested, and pods hold GPUs" in output
    del machine.cluster.objects["Pod", "default", "holder"]
    assert machine.read_state() == machine.initial_state


@pytest.fixture
def plane(machine, tmp_path):
    """A control plane with kubeadm's manifest of kube-scheduler; its variables."""
    machine.cluster.put({"kind": "Node", "apiVersion": "v1", **node("plane", 0)})
    machine.initial_state = machine.read_state()
    manifest = tmp_path / "manifests" / "kube-scheduler.yaml"
    manifest.parent.mkdir()
    fixtures = ROOT / "tests" / "unit" / "plugins" / "module_utils" / "_scheduler" / "fixtures"
    manifest.write_text((fixtures / "kubeadm-1.34.4.yaml").read_text())
    return {
        "kube_scheduler_extender_manifest": str(manifest),
        "kube_scheduler_extender_config_path": str(tmp_path / "scheduler.yaml"),
        "kube_scheduler_extender_state_dir": str(tmp_path / "plane"),
    }


SCHEDULER = ("--tags", "device_plugin,sharing,scheduler")
UNKNOWN = (
    "UNKNOWN IN CHECK MODE: plane: kube-scheduler gets an extender whose address is known after a run has deployed it."
)


@pytest.mark.parametrize("awaited", [False, True])
def test_check_of_a_cluster_whose_first_host_has_another_strategy(machine, play, plane, monkeypatch, awaited):
    """Only the second host exports the extender of kube-scheduler, and no host before the driver is installed."""
    monkeypatch.setitem(HOSTS["all"]["children"]["gpu_nodes"]["hosts"], "w2", {"gpu_sharing_strategy": "gpushare"})
    code, changes, output = play("share_gpus", *SCHEDULER, "--check", nvidia_driver_awaited=awaited, **plane)
    assert (code, changes > 0, UNKNOWN in output) == (0, True, True), output
    assert machine.read_state() == machine.initial_state


@pytest.mark.thorough
def test_scheduler_that_cannot_be_changed_is_found_before_any_change(machine, play, plane, monkeypatch):
    variables = {"gpu_sharing_strategy": "nano_gpu", "nano_gpu_agent_needs_host_binaries": False, **plane}
    others = [{"urlPrefix": "http://10.0.0.9/other", "bindVerb": "bind", "ignorable": True}]
    hosts = HOSTS["all"]["children"]["kube_control_plane"]["hosts"]
    monkeypatch.setitem(hosts, "plane", {"kube_scheduler_extender_extenders": others})
    code, changes, output = play("share_gpus", *SCHEDULER, **variables)
    assert (code != 0, changes) == (True, 0), output
    assert (
        "http://10.0.0.9/other and http://127.0.0.1/unknown both have a bindVerb, and kube-scheduler accepts at"
        in output
    )
    assert machine.read_state() == machine.initial_state
