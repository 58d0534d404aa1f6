# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order of plays and roles in the playbooks, and their first checks."""

from __future__ import annotations

import re

import jinja2
import pytest
import yaml

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT
from ansible_collections.gpu.kubernetes.tests.unit.playbook_files import find_included_role, iterate_tasks, read_plays

# These playbooks read only the API server or files of the controller, or can do so.
NO_HOSTS = (
    "configure_awx.yml",
    "cordon_gpu_node.yml",
    "diagnose_gpu_nodes.yml",
    "lint_gpu_workloads.yml",
    "prepare_managed_cluster.yml",
    "report_gpu_cost.yml",
    "report_gpu_fleet.yml",
    "show_gpu_allocation.yml",
    "verify_managed_cluster.yml",
)
OTHER_GROUPS = {
    "patch_kube_scheduler.yml": "kube_control_plane",
    # Those of the GPU nodes that do not have GPUs of other vendors alone.
    "prepare_gpu_nodes.yml": "nvidia_nodes",
    "upgrade_nvidia_driver.yml": "nvidia_nodes",
}
PLAYBOOKS = sorted({path.name for path in (ROOT / "playbooks").glob("*.yml")} - {*NO_HOSTS})


@pytest.mark.parametrize("playbook", PLAYBOOKS)
def test_first_play_runs_on_a_group_that_must_have_hosts(playbook):
    first = read_plays(playbook)[0]
    group = OTHER_GROUPS.get(playbook, "gpu_nodes")
    assert (first["hosts"], first["roles"][0]["role"]) == (f"{{{{ __{group} }}}}", "gpu.kubernetes._hosts")


def test_diagnosis_requires_hosts_unless_it_reads_none():
    (play,) = read_plays("diagnose_gpu_nodes.yml")
    assert play["hosts"] == "{{ 'localhost' if __diagnose_alone | bool else __gpu_nodes }}"
    assert play["roles"][0]["role"] == "gpu.kubernetes._hosts"


def find_cuda(name):
    """The plays of a playbook that use the role cuda, by its entry point."""
    found = {}
    for play in read_plays(name):
        for task in iterate_tasks(play.get("tasks", [])):
            role, entry_point = find_included_role(task) or (None, None)
            if role == "cuda":
                found[entry_point] = play
    return found


def test_cuda_is_checked_before_any_change_installed_and_removed_with_the_rest():
    check, _other_drivers, change = read_plays("prepare_gpu_nodes.yml")[:3]
    assert find_cuda("prepare_gpu_nodes.yml") == {"preflight": check, "prepare": change}
    assert "cuda" in check["tags"]
    assert find_cuda("remove_gpu_nodes.yml")["main"]["vars"]["cuda_state"] == "absent"


@pytest.mark.parametrize("name", ["prepare_gpu_nodes.yml", "remove_gpu_nodes.yml"])
def test_batches_are_one_host_and_then_a_tenth_of_the_hosts(name):
    [serial] = [play["serial"] for play in read_plays(name) if "gpu_nodes_serial" in str(play.get("serial"))]
    assert jinja2.Template(serial).render() == "[1, '10%']"


def test_playbooks_are_short():
    lines = {path: len(path.read_text().splitlines()) for path in (ROOT / "playbooks").rglob("*.yml")}
    assert {path.name for path, number in lines.items() if number > (100 if path.name == "site.yml" else 60)} == set()
    assert len((ROOT / "roles" / "_hosts" / "vars" / "main.yml").read_text().splitlines()) <= 40


def find_roles(play):
    """The roles with tasks of a play, without the collection's name."""
    names = (role["role"].rpartition(".")[2] for role in play.get("roles", []))
    return [name for name in names if name != "_hosts"]


def iterate_steps(name):
    """Role and entry point of each step of a playbook, in order, without the leases."""
    for play in read_plays(name):
        yield from ((role, "main") for role in find_roles(play))
        for task in iterate_tasks(play.get("tasks", [])):
            included = find_included_role(task)
            if included and included[0] != "_lease":
                yield included
            if "__scheduler_step" in task.get("vars", {}):
                yield "kube_scheduler_extender", task["vars"]["__scheduler_step"]


#: Entry points that only read, of whatever role.
READING = {
    "batch",
    "check",
    "controller",
    "driver",
    "inspect",
    "observe",
    "plan",
    "preflight",
    "preflight_absent",
    "report",
    "runtime",
}
#: Roles that read, write files of the controller or of Grafana and Prometheus, or change objects of the API server. Leases are for the nodes.
NO_NODES = {
    "awx_objects",
    "gpu_cost",
    "gpu_dashboards",
    "gpu_doctor",
    "gpu_feature_discovery",
    "gpu_html_report",
    "gpu_managed_cluster",
    "gpu_node_labels",
    "gpu_preflight",
    "gpu_prometheus",
    "gpu_sharing",
    "gpu_smoke_test",
    "gpu_verify",
    "gpu_workload_lint",
    "gpushare_report",
    "k8s_device_plugin",
}
#: The part of a sharing strategy in the cluster.
IN_CLUSTER = {"cluster_absent", "cluster_present"}


def needs_lease(step):
    """Whether a step can change hosts, nodes or kube-scheduler. Of the imported files, runtime.yml counts as a whole, the others by their steps."""
    if isinstance(step, str):
        return step == "runtime.yml"
    role, entry_point = step
    return role not in NO_NODES and entry_point not in READING | IN_CLUSTER


def list_steps(tasks, is_held=False):
    """Each step, and whether a block around it holds a lease from its first step on and releases it in any case."""
    for task in tasks:
        first, *_steps = [step for step, _held in list_steps(task.get("block", []))] or [None]
        released = [step for step, _held in list_steps(task.get("always", []))] == [("_lease", "release")]
        for role in find_roles(task):
            yield (role, "main"), is_held
        for part in ("pre_tasks", "tasks", "block", "rescue", "always"):
            yield from list_steps(task.get(part, []), is_held or (first == ("_lease", "main") and released))
        if step := find_included_role(task) or task.get("ansible.builtin.import_tasks"):
            yield step, is_held


def test_each_change_is_made_while_a_lease_is_held():
    # A node with a fault may not answer, and its cordon evicts nothing.
    without_lease = ROOT / "playbooks" / "cordon_gpu_node.yml"
    # It is imported where a lease is held.
    runtime = ROOT / "playbooks" / "tasks" / "runtime.yml"
    found = {}
    for path in {*(ROOT / "playbooks").rglob("*.yml")} - {without_lease, runtime}:
        content = yaml.safe_load(path.read_text())
        for step, is_held in list_steps(content) if isinstance(content, list) else ():
            found.setdefault(step, set()).add(is_held)
    changes = {step: is_held for step, is_held in found.items() if needs_lease(step)}
    assert changes == {step: {True} for step in changes}
    assert {step if isinstance(step, str) else step[0] for step in changes} > {
        "runtime.yml",
        "gpu_exporter",
        "nvidia_driver",
    }


def test_guide_names_the_playbooks_that_hold_leases():
    def is_holding(task):
        return "tasks/change_scheduler.yml" in task.values() or (find_included_role(task) or [""])[0] == "_lease"

    holding = [
        path.stem
        for path in sorted((ROOT / "playbooks").glob("*.yml"))
        if any(is_holding(task) for play in read_plays(path.name) for task in iterate_tasks(play.get("tasks", [])))
    ]
    guide = (ROOT / "docs" / "docsite" / "rst" / "guide_inventory.rst").read_text()
    sentence = re.search(r"These playbooks do: (.*?)[.]", guide, re.DOTALL)[1]
    assert re.findall(r"``(\w+)``", sentence) == holding


ENTERED_ROLE, ROLE, LEFT_ROLE = (
    "{{ __gpu_strategy_role }}",
    "{{ gpu_sharing_node_plan.cluster_present }}",
    "{{ __gpu_strategy_role }}",
)
#: If nodes reported shares before kube-scheduler calls the extender, their pods would get no GPU.
CHANGE = [
    ("gpu_sharing", "main"),
    (ENTERED_ROLE, "preflight"),
    (LEFT_ROLE, "preflight_absent"),
    ("k8s_device_plugin", "check"),
    ("kube_scheduler_extender", "preflight"),
    ("kube_scheduler_extender", "restore"),
    ("gpu_node_maintenance", "begin"),
    (LEFT_ROLE, "node_absent"),
    (ROLE, "cluster_present"),
    ("kube_scheduler_extender", "endpoints"),
    ("kube_scheduler_extender", "main"),
    (LEFT_ROLE, "cluster_absent"),
]
ENTER = [
    ("k8s_device_plugin", "main"),
    (ENTERED_ROLE, "node_present"),
    ("gpu_node_maintenance", "end"),
    ("gpu_node_labels", "main"),
]
TEST = [("gpu_smoke_test", "main")]


def test_strategies_change_in_an_order_in_which_no_pod_loses_its_gpu():
    assert list(iterate_steps("share_gpus.yml")) == [*CHANGE, *ENTER, *TEST]
    assert list(iterate_steps("remove_gpu_nodes.yml"))[1 : len(CHANGE) + 1] == CHANGE
    serial = {
        task["vars"]["__scheduler_step"]: play.get("serial")
        for play in read_plays("share_gpus.yml")
        for task in play.get("tasks", [])
        if "__scheduler_step" in task.get("vars", {})
    }
    assert serial == {"preflight": None, "restore": 1, "endpoints": None, "main": 1}


@pytest.mark.parametrize(
    "name",
    [
        "label_gpu_nodes",
        "deploy_device_plugin",
        "smoke_test_gpu_nodes",
        "remove_gpu_nodes",
        "show_gpu_allocation",
        "report_gpu_cost",
    ],
)
def test_kubeconfig_is_checked_first(name):
    """Only the task that ends hosts outside the run comes before it."""
    first = next(task for task in read_plays(f"{name}.yml")[0]["pre_tasks"] if "ansible.builtin.meta" not in task)
    assert find_included_role(first) == ("gpu_preflight", "controller")
    assert "when" not in first
