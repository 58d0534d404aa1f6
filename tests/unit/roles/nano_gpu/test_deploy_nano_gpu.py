# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""deploy_nano_gpu and remove_nano_gpu on a cluster in memory: check, run, and back to the byte."""

from __future__ import annotations

import copy
import json
import os
import re
import threading
import time
from pathlib import Path

import pytest
from fakes.kubernetes_api import node
from fakes.loopback_api import write_kubeconfig
from fakes.small_cluster import SmallCluster

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

TODAY = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
LABEL, RESOURCE, WHOLE = "gpu-kubernetes/nano-gpu", "nano-gpu/gpu-percent", "nvidia.com/gpu"
HOSTS = {
    "all": {
        "vars": {
            "ansible_connection": "local",
            "ansible_become": False,
            "gpu_node_name": "{{ inventory_hostname }}",
        },
        "children": {
            "kube_control_plane": {"hosts": {"plane": {}}},
            "gpu_nodes": {"hosts": {"w1": {}, "w2": {"gpu_sharing_strategy": "exclusive"}}},
        },
    }
}
NVML = {"source": "nvml", "error": None, "gpus": [{"name": "GPU", "lost": False, "memory_total_bytes": 2**34}] * 2}


class Machine:
    """A cluster of two nodes with two GPUs each, and the programs of the first."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        (self.bin / "hook").write_bytes(b"\x7fELF")
        (self.bin / "hook").chmod(0o755)
        (self.bin / "toolkit").symlink_to("hook")
        nodes = [{"kind": "Node", "apiVersion": "v1", **node(name, 2)} for name in ("w1", "w2")]
        self.cluster = SmallCluster(*nodes, {"kind": "Namespace", "metadata": {"name": "kube-system"}})
        self.cluster.react = self.react
        self.kubeconfig = write_kubeconfig(self.cluster.url, folder / "kubeconfig")
        self.wrapper = folder / "play.yml"
        self.first = self.state()
        self.paths = {
            "__nano_gpu_programs": [str(self.bin / name) for name in ("hook", "toolkit")],
            "__nano_gpu_leftovers": [str(self.bin / "toolkit-bak")],
            "nano_gpu_state_dir": str(folder / "state"),
        }

    def react(self, cluster: SmallCluster) -> None:
        """Be the DaemonSet's controller, the kubelets, the agent's installer, and what makes addresses."""
        agents = [item for item in cluster.all("DaemonSet") if item["metadata"]["name"] == "nano-gpu-agent"]
        for item in cluster.all("Node"):
            name, chosen = item["metadata"]["name"], item["metadata"]["labels"].get(LABEL) == "true"
            works = bool(agents) and chosen
            offered = {WHOLE: "0" if chosen else "2", **({RESOURCE: "200"} if works else {})}
            if RESOURCE in item["status"]["capacity"] and not works:
                offered[RESOURCE] = "0"
            item["status"].update(capacity=offered, allocatable=dict(offered))
            for key in [key for key in cluster.objects if key[::2] == ("Pod", f"nano-gpu-agent-{name}")]:
                del cluster.objects[key]
            if works:
                key = ("Pod", agents[0]["metadata"]["namespace"], f"nano-gpu-agent-{name}")
                template = copy.deepcopy(agents[0]["spec"]["template"])
                template["metadata"].update(name=key[2], namespace=key[1], creationTimestamp=TODAY)
                template["spec"]["nodeName"] = name
                statuses = [{"name": "nano-gpu-agent", "ready": True, "state": {"running": {}}}]
                status = {"phase": "Running", "containerStatuses": statuses}
                cluster.objects[key] = {"kind": "Pod", "apiVersion": "v1", **template, "status": status}
                if "initContainers" in template["spec"]:
                    self.install()
        for item in cluster.all("Deployment"):
            counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas"), 1)
            item["status"] = {"observedGeneration": item["metadata"]["generation"], **counts}
        for item in cluster.all("Service"):
            item["spec"]["clusterIP"] = "10.96.0.9"

    def install(self) -> None:
        os.replace(self.bin / "toolkit", self.bin / "toolkit-bak")
        for name in ("hook", "toolkit"):
            (self.bin / name).write_text("the agent's")

    def programs(self) -> dict[str, object]:
        paths = sorted(self.bin.iterdir())
        return {
            path.name: os.readlink(path) if path.is_symlink() else (path.stat().st_mode, path.read_bytes())
            for path in paths
        }

    def state(self) -> tuple[object, ...]:
        """All objects, as far as somebody has written them, and the programs."""
        kept = {key: (item.get("spec"), item["metadata"].get("labels")) for key, item in self.cluster.objects.items()}
        return copy.deepcopy(kept), self.programs()


@pytest.fixture
def machine(tmp_path):
    made = Machine(tmp_path)
    thread = threading.Thread(target=made.cluster.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield made
    made.cluster.shutdown()
    made.cluster.server_close()
    thread.join()


@pytest.fixture
def play(run, machine):
    """Run a playbook on the machine: exit code, how many tasks changed something, and all that was said."""

    def run_play(name, *options, scheduler=False, **variables):
        facts = {"nvml": NVML, "nodename": "{{ inventory_hostname }}", "cacheable": True}
        first = {"hosts": "all", "gather_facts": False, "tasks": [{"ansible.builtin.set_fact": facts}]}
        first["tags"] = ["always"]
        machine.wrapper.write_text(
            json.dumps([first, {"ansible.builtin.import_playbook": str(ROOT / "playbooks" / f"{name}.yml")}])
        )
        given = {
            "gpu_kubeconfig": str(machine.kubeconfig),
            "gpu_preflight_gpus": {"ansible_facts": {}},
            "nano_gpu_wait_timeout": 300,
            **machine.paths,
            **variables,
        }
        skipped = [] if scheduler else ["--skip-tags", "scheduler"]
        code, said = run(HOSTS, machine.wrapper, *skipped, *options, **given)
        changed = sum(map(int, re.findall(r"changed=(\d+)", said)))
        return code, changed, " ".join(said.split())

    return run_play


@pytest.mark.thorough
def test_there_and_back(machine, play):
    allowed = {"nano_gpu_replace_host_binaries": True}
    code, changed, said = play("deploy_nano_gpu", "--check", **allowed)
    assert (code, changed > 0) == (0, True), said
    assert machine.state() == machine.first
    code, changed, said = play("deploy_nano_gpu", **allowed)
    assert (code, changed > 0) == (0, True), said
    [first, second] = machine.cluster.all("Node")
    assert first["status"]["capacity"] == {WHOLE: "0", RESOURCE: "200"}
    assert (second["status"]["capacity"], LABEL in second["metadata"]["labels"]) == ({WHOLE: "2"}, False)
    assert machine.programs()["hook"][1] == b"the agent's"

    # What is not allowed any more is given back.
    code, _changed, said = play("deploy_nano_gpu", nano_gpu_agent_needs_host_binaries=False)
    assert code == 0, said
    assert machine.programs() == machine.first[1]
    assert machine.cluster.all("Node")[0]["status"]["capacity"][RESOURCE] == "200"

    code, changed, said = play("remove_nano_gpu", **allowed)
    assert (code, changed > 0) == (0, True), said
    assert machine.state() == machine.first


def test_the_role_deploys_into_a_namespace_of_its_own_and_removes_it(machine, run):
    given = {
        **machine.paths,
        "gpu_kubeconfig": str(machine.kubeconfig),
        "gpu_preflight_gpus": {"ansible_facts": {}},
        "nano_gpu_agent_needs_host_binaries": False,
        "nano_gpu_namespace": "gpu-sharing",
        "nano_gpu_wait_timeout": 300,
    }
    facts = {"nvml": NVML, "nodename": "{{ inventory_hostname }}", "cacheable": True}
    role = {"ansible.builtin.include_role": {"name": "gpu.kubernetes.nano_gpu"}}
    tasks = [{"ansible.builtin.set_fact": facts}, role]
    machine.wrapper.write_text(json.dumps([{"hosts": "w1", "gather_facts": False, "tasks": tasks}]))
    code, said = run(HOSTS, machine.wrapper, **given)
    assert code == 0, said
    assert ("Deployment", "gpu-sharing", "nano-gpu-scheduler") in machine.cluster.objects
    assert machine.cluster.all("Node")[0]["status"]["capacity"] == {WHOLE: "0", RESOURCE: "200"}
    code, said = run(HOSTS, machine.wrapper, nano_gpu_state="absent", **given)
    assert code == 0, said
    assert machine.state() == machine.first


def test_nothing_is_touched_that_is_not_allowed(machine, play):
    code, changed, said = play("deploy_nano_gpu")
    assert code != 0
    assert "Host w1: the agent of nano-gpu gives GPUs to containers by programs of its own" in said
    machine.cluster.objects["Node", "", "w2"]["metadata"]["labels"]["gpushare"] = "true"
    code, more, said = play("deploy_nano_gpu", nano_gpu_agent_needs_host_binaries=False)
    assert code != 0
    assert "Node w2: shares its GPUs by gpushare, and a kube-scheduler takes only one extender" in said
    assert changed + more == 0
    del machine.cluster.objects["Node", "", "w2"]["metadata"]["labels"]["gpushare"]
    assert machine.state() == machine.first


@pytest.mark.thorough
def test_a_scheduler_that_cannot_ask_is_found_before_anything_is_touched(machine, play, tmp_path):
    machine.cluster.put({"kind": "Node", "apiVersion": "v1", **node("plane", 0)})
    machine.first = machine.state()
    manifest = tmp_path / "manifests" / "kube-scheduler.yaml"
    manifest.parent.mkdir()
    fixtures = ROOT / "tests" / "unit" / "plugins" / "module_utils" / "_scheduler" / "fixtures"
    manifest.write_text((fixtures / "kubeadm-1.34.4.yaml").read_text())
    given = {
        "nano_gpu_agent_needs_host_binaries": False,
        "kube_scheduler_extender_manifest": str(manifest),
        "kube_scheduler_extender_config_path": str(tmp_path / "scheduler.yaml"),
        "kube_scheduler_extender_state_dir": str(tmp_path / "plane"),
    }
    hosts = HOSTS["all"]["children"]["kube_control_plane"]["hosts"]["plane"]
    hosts["kube_scheduler_extender_extenders"] = [
        {"urlPrefix": "http://10.0.0.9/mine", "bindVerb": "bind", "ignorable": True}
    ]
    try:
        code, changed, said = play("deploy_nano_gpu", scheduler=True, **given)
    finally:
        hosts.clear()
    assert code != 0
    assert (
        "http://10.0.0.9/mine and http://127.0.0.1:39999/scheduler both have a bindVerb, and kube-scheduler takes at"
        in said
    )
    code, more, said = play("deploy_nano_gpu", "--check", scheduler=True, **given)
    assert (code, changed, more > 0) == (0, 0, True), said
    assert (
        "UNKNOWN IN CHECK MODE: plane: kube-scheduler gets the address of a Service that a run creates first." in said
    )
    assert machine.state() == machine.first
