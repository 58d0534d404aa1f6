# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the roles decide from what they know of their hosts, before and after a cluster is asked."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("ansible.playbook", reason="only ansible.module_utils is here")
from fakes.kubelet_machine import Machine
from fakes.loopback_api import listed, serving, write_kubeconfig

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parents[3]
LOCAL = "ansible_connection=local ansible_become=false"
WORKING = {"source": "nvml", "error": None, "gpus": [{"name": "Tesla T4", "memory_total_bytes": 2**34, "lost": False}]}
NONE = {"source": "none", "error": None, "gpus": []}
LOST = {**WORKING, "error": "1 of 2 GPUs is lost.", "gpus": [*WORKING["gpus"], {"lost": True, "name": None}]}
ON_THE_BUS = {**WORKING, "source": "pci", "error": "The NVIDIA kernel module is not loaded; load it."}
SILENT = {**NONE, "error": "The NVIDIA driver did not answer within 10 seconds; reboot the node."}


def loaded(*parts):
    return yaml.safe_load(ROOT.joinpath("roles", *parts).read_text())


@pytest.fixture
def play(run, tmp_path):
    """Run tasks on the hosts of an inventory, as one play."""

    def run_play(inventory, tasks, *options, extra=None, **keywords):
        playbook = tmp_path / "play.yml"
        playbook.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": tasks, **keywords}]))
        code, said = run(inventory, playbook, *options, **(extra or {}))
        return code, " ".join(said.split())

    return run_play


def test_a_broken_driver_does_not_take_the_labels(play):
    nodes = {"works": WORKING, "none": NONE, "lost": LOST, "on-the-bus": ON_THE_BUS, "silent": SILENT}
    tasks = [
        task for task in loaded("gpu_node_labels", "tasks", "facts.yml") if "gpu.kubernetes.nvml_facts" not in task
    ]
    facts = {"nvml": "{{ nodes[inventory_hostname] }}", "nodename": "{{ inventory_hostname }}", "cacheable": True}
    variables = {**loaded("gpu_node_labels", "defaults", "main.yml"), **loaded("gpu_node_labels", "vars", "main.yml")}
    inventory = "".join(f"{name} {LOCAL}\n" for name in nodes)
    code, said = play(inventory, [{"ansible.builtin.set_fact": facts}, *tasks], vars={**variables, "nodes": nodes})
    assert code != 0
    for name, nvml in nodes.items():
        told = f"keeps the labels of node {name}, for its GPUs cannot be told: {nvml['error']}" in said
        assert told is (name in {"on-the-bus", "silent"}), said
        assert bool(re.search(rf"{name} +: ok=\d+ +changed=\d+ +unreachable=0 +failed=1 ", said)) is told, said


def test_hosts_of_later_batches_do_not_break_earlier_ones(play):
    """Their nodes are not asked for yet."""
    labels = loaded("gpu_node_labels", "tasks", "labels.yml")[0]["vars"]["__gpu_node_labels_all"]
    plugin = loaded("k8s_device_plugin", "vars", "main.yml")["__k8s_device_plugin_hosts"]
    names = {"__gpu_node_labels_wanted": {"node": "{{ inventory_hostname }}"}}
    names["__k8s_device_plugin_host"] = names["__gpu_node_labels_wanted"]
    tasks = [
        {"ansible.builtin.set_fact": names},
        {"ansible.builtin.debug": {"msg": "{{ labels | map(attribute='node') | join('+') }}"}},
        {"ansible.builtin.debug": {"msg": "{{ plugin | map(attribute='node') | join('+') }}"}},
    ]
    code, said = play(f"a {LOCAL}\nb {LOCAL}\n", tasks, serial=1, vars={"labels": labels, "plugin": plugin})
    assert code == 0, said
    assert (said.count("msg: a"), said.count("msg: a+b")) == (4, 2), said


@pytest.mark.parametrize("fails", [True, False])
def test_the_verdict_on_a_node_can_be_left_to_the_report(play, fails):
    mine = {"name": "node", "ok": False, "reason": "offers 0 of 1"}
    role = {"name": "gpu.kubernetes.k8s_device_plugin", "tasks_from": "report"}
    extra = {"__k8s_device_plugin_after": {"nodes": [mine]}, "gpu_node_name": "node"}
    code, said = play(
        f"node {LOCAL}\n",
        [{"ansible.builtin.setup": {"gather_subset": ["min"]}}, {"ansible.builtin.include_role": role}],
        extra={**extra, "k8s_device_plugin_wait_fail": fails},
    )
    assert (code != 0) is fails, said
    assert ("is not as expected after 300 s: offers 0 of 1." in said) is fails


def test_the_toolkit_stays_while_another_configuration_names_it(play):
    role = {"name": "gpu.kubernetes.nvidia_container_toolkit", "tasks_from": "absent"}
    extra = {"nvidia_container_toolkit_host": {"other_configurations": ["/etc/docker/daemon.json"]}}
    code, said = play(f"node {LOCAL}\n", [{"ansible.builtin.include_role": role}], extra=extra)
    assert code == 0, said
    assert "KEPT: node: /etc/docker/daemon.json still names the NVIDIA runtime" in said
    assert "remove.yml" not in said


SEEN_NOTHING = {
    "__gpu_verify_asked": {},
    "__gpu_verify_objects": {},
    "gpu_verify_runtime_class": "",
}
VERIFY = [{"ansible.builtin.include_role": {"name": "gpu.kubernetes.gpu_verify", "tasks_from": "report"}}]


def test_a_report_that_cannot_be_written_is_shown_all_the_same(play, tmp_path):
    path = str(tmp_path / "missing" / "report.json")
    code, said = play(f"node {LOCAL}\n", VERIFY, extra={**SEEN_NOTHING, "gpu_verify_report_path": path})
    assert code != 0
    assert "GPU report: 0 nodes, 0 GPUs, 1 problem" in said
    assert f"The report could not be written to {path} on the controller (Destination directory" in said


@pytest.mark.parametrize("text", ["", '{"schema": "gpu.kuber'])
def test_a_broken_earlier_report_is_written_anew(play, tmp_path, text):
    path = tmp_path / "report.json"
    path.write_text(text)
    code, said = play(f"node {LOCAL}\n", VERIFY, extra={**SEEN_NOTHING, "gpu_verify_report_path": str(path)})
    assert code != 0
    assert "node: the host could not be examined; look at its errors above." in said
    assert json.loads(path.read_text())["summary"]["problems"] == 1


@pytest.mark.parametrize("way", ["begin", "end", "main"])
def test_a_maintenance_that_fails_names_the_host(play, tmp_path, way):
    pytest.importorskip("kubernetes")
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
                "users": [{"name": "u", "user": {}}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "x",
            }
        )
    )
    role = {"name": "gpu.kubernetes.gpu_node_maintenance", "tasks_from": way}
    extra = {"gpu_kubeconfig": str(kubeconfig), "gpu_node_name": "node", "gpu_node_maintenance_state": "end"}
    code, said = play(f"host1 {LOCAL}\n", [{"ansible.builtin.include_role": role}], extra=extra)
    assert code != 0
    assert "host1: The Kubernetes API at http://127.0.0.1:9 cannot be reached" in said, said


MASTER = "node-role.kubernetes.io/master"
OURS = json.dumps({"gpu_node_labels_master": {MASTER: {"set": "", "was": None}}})
#: Control planes by who has made masters of them, as labels and annotations.
PLANES = {
    "nobody": ({}, {}),
    "we": ({MASTER: ""}, {"gpu-kubernetes/managed-labels": OURS}),
    "others": ({MASTER: ""}, {}),
}
#: What is asked for, and the value of the label that a control plane gets for it (None: it goes).
MASTERS = [
    ({"gpu_node_labels_master": True}, {"nobody": ""}),
    ({}, {"we": None}),
    ({"gpu_node_labels_master": True, "gpu_node_labels_state": "absent"}, {"we": None}),
    ({"gpu_node_labels_state": "absent", "ansible_limit": "node"}, {}),
]


def test_control_planes_are_masters_where_that_is_asked_for(hear, tmp_path):
    pytest.importorskip("kubernetes")
    role = {"name": "gpu.kubernetes.gpu_node_labels", "tasks_from": "masters"}
    after = "{{ told + [__gpu_node_labels_masters.nodes | default({})] }}"
    tasks = [{"ansible.builtin.include_role": role}, {"ansible.builtin.set_fact": {"told": after}}]
    plays = [
        {"hosts": "all", "gather_facts": False, "check_mode": True, "vars": given, "tasks": tasks}
        for given, _changed in MASTERS
    ]
    api = Machine(tmp_path, "").api([])
    api.lists["/api/v1/nodes"] = listed(
        [
            {"metadata": {"name": name, "labels": labels, "annotations": annotations}}
            for name, (labels, annotations) in PLANES.items()
        ]
    )
    with serving(api) as server:
        kubeconfig = str(write_kubeconfig(server.url, tmp_path / "kubeconfig"))
        told = hear({"node": {}}, plays, "told", facts={"told": []}, gpu_kubeconfig=kubeconfig)
    changes = [{name: node["after"][MASTER] for name, node in nodes.items() if node["changed"]} for nodes in told]
    assert changes == [changed for _given, changed in MASTERS]
    asked = [query["labelSelector"] for _method, _path, query in api.requests if "labelSelector" in query]
    assert asked == ["node-role.kubernetes.io/control-plane="] * 3


def test_the_role_and_the_module_agree_on_what_a_gpu_pod_is():
    from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.maintenance import GPU_RESOURCES

    defaults = loaded("gpu_node_maintenance", "defaults", "main.yml")
    assert defaults["gpu_node_maintenance_resources"] == list(GPU_RESOURCES)
