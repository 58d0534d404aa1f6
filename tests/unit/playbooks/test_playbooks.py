# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbooks' first checks, and defaults that follow other roles; tests/unit/static reads their files."""

from __future__ import annotations

import os
import re
import shutil

import pytest
from fakes.kubernetes_api import node
from fakes.loopback_api import serve_in_thread, write_kubeconfig
from fakes.small_cluster import SmallCluster

from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.drain.plan import describe_maintenance
from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import HERE, ROOT
from ansible_collections.gpu.kubernetes.tests.unit.playbook_files import find_included_role, read_plays

MANIFEST = ROOT / "tests/unit/plugins/module_utils/_scheduler/fixtures/kubeadm-1.34.4.yaml"
LOCAL = "ansible_connection=local ansible_become=false"
ROLES = ("k8s_device_plugin", "gpu_smoke_test", "gpu_verify")


def test_no_control_plane_is_changed_while_another_would_be_refused(run, tmp_path):
    manifests = {}
    for name, text in (("one", MANIFEST.read_text()), ("two", "kind: Deployment\n"), ("three", "metadata: [\n")):
        manifests[name] = tmp_path / name / "kube-scheduler.yaml"
        manifests[name].parent.mkdir()
        manifests[name].write_text(text)
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text("{}")
    hosts = {
        name: {
            "gpu_node_name": name,
            "kube_scheduler_extender_manifest": str(path),
            "kube_scheduler_extender_config_path": str(tmp_path / f"{name}.yaml"),
            "kube_scheduler_extender_state_dir": str(tmp_path / f"state-{name}"),
        }
        for name, path in manifests.items()
    }
    code, output = run(
        {"kube_control_plane": {"hosts": hosts, "vars": HERE}},
        ROOT / "playbooks" / "patch_kube_scheduler.yml",
        gpu_kubeconfig=str(kubeconfig),
        kube_scheduler_extender_extenders=[{"urlPrefix": "http://127.0.0.1:1/x", "filterVerb": "filter"}],
    )
    assert code != 0
    for refused in ("two", "three"):
        assert str(manifests[refused]) in " ".join(output.split())
        assert f"fatal: [{refused}]" in output
    assert "fatal: [one]" not in output
    assert "PLAY [Patch kube-scheduler]" not in output
    assert not (tmp_path / "state-one").exists()


@pytest.mark.parametrize(
    ("playbook", "inventory", "group"),
    [
        ("patch_kube_scheduler.yml", "[gpus]\nnode\n", "kube_control_plane"),
        ("site.yml", "[gpu_nodes]\n[others]\nnode\n", "gpu_nodes"),
    ],
)
def test_group_without_hosts_is_an_error(run, playbook, inventory, group):
    code, output = run(inventory, ROOT / "playbooks" / playbook)
    assert code != 0
    assert f"The inventory has no host in {group}; " in output


@pytest.fixture
def broken_helm(tmp_path):
    """An environment whose helm fails."""
    helm = tmp_path / "bin" / "helm"
    helm.parent.mkdir()
    helm.write_text("#!/bin/sh\nexit 1\n")
    helm.chmod(0o755)
    return {"PATH": f"{helm.parent}:{os.environ['PATH']}"}


@pytest.mark.parametrize(
    ("name", "play"), [("site", "Label the GPU nodes"), ("remove_gpu_nodes", "Remove the pods of interrupted")]
)
def test_sharing_is_not_planned_in_a_run_without_its_tags(run, broken_helm, name, play):
    """Helm is not required either."""
    playbook = ROOT / "playbooks" / f"{name}.yml"
    code, output = run(
        f"[gpu_nodes]\nnode {LOCAL}\n",
        playbook,
        "--tags",
        "labels",
        environment=broken_helm,
        gpu_kubeconfig="/nonexistent",
        k8s_device_plugin_method="helm",
    )
    assert code != 0
    assert "no helm command that works" not in " ".join(output.split())
    assert f"PLAY [{play}" in output.partition("the kubeconfig /nonexistent does not exist")[0]


def test_helm_is_required_by_the_device_plugin(run, broken_helm, tmp_path):
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text("{}")
    code, output = run(
        f"[gpu_nodes]\nnode {LOCAL}\n",
        ROOT / "playbooks" / "remove_gpu_nodes.yml",
        "--tags",
        "device_plugin",
        environment=broken_helm,
        gpu_kubeconfig=str(kubeconfig),
        k8s_device_plugin_method="helm",
    )
    assert code != 0
    assert "no helm command that works" in " ".join(output.split()), output


ALL = ["preflight", "device_plugin", "sharing", "scheduler"]


#: Tags that are requested and skipped, and those of them that concern the sharing strategies.
RUNS = {
    "everything": (["all"], [], ALL),
    "verify": (["verify"], [], []),
    "one": (["device_plugin"], [], ALL[1:2]),
    "two": (["sharing", "device_plugin", "verify"], [], ALL[1:3]),
    "runtime": (["runtime"], [], []),
    "not-verify": (["all"], ["verify"], ALL),
    "not-one": (["all"], ["device_plugin"], [ALL[0], *ALL[2:]]),
    "not-scheduler": (["all"], ["scheduler"], ALL[:3]),
    "labels-and-scheduler": (["labels", "scheduler"], [], ALL[3:]),
    "nothing": (["all"], ["all"], []),
}


def test_tags_of_a_run_are_those_of_the_plan(evaluate, tmp_path):
    text = (ROOT / "roles" / "_hosts" / "vars" / "main.yml").read_text()
    # Ansible's own names have one value in a run; each host has its own here.
    for name in ("ansible_run_tags", "ansible_skip_tags"):
        assert name in text
        text = text.replace(name, f"its_{name}")
    (tmp_path / "hosts.yml").write_text(text)
    play = {
        "hosts": "all",
        "gather_facts": False,
        "vars_files": [str(tmp_path / "hosts.yml")],
        "tasks": [{"ansible.builtin.set_fact": {"found": "{{ gpu_sharing_run_tags }}"}}],
    }
    found = evaluate(
        {
            name: {"its_ansible_run_tags": tags, "its_ansible_skip_tags": skipped}
            for name, (tags, skipped, _expected) in RUNS.items()
        },
        [play],
        "dict(groups.all | zip(groups.all | map('extract', hostvars, 'found')))",
    )
    assert found == {name: expected for name, (_tags, _skipped, expected) in RUNS.items()}


LINKED = {
    "containerd_nvidia_config_path": "/etc/other.toml",
    "containerd_nvidia_runtime_name": "other",
    "gpu_preflight_require_gpu": False,
    "k8s_device_plugin_config": {"flags": {"nvidiaDriverRoot": "/driver"}},
    "k8s_device_plugin_method": "helm",
    "k8s_device_plugin_namespace": "plugins",
    "k8s_device_plugin_release_name": "release",
    "k8s_device_plugin_resource_name": "nvidia.com/gpu.shared",
    "k8s_device_plugin_runtime_class": "other-class",
}
DEFAULTS = {
    "k8s_device_plugin_driver_root": ("/", "/driver"),
    "k8s_device_plugin_runtime_handler": ("nvidia", "other"),
    "gpu_smoke_test_resource_name": ("nvidia.com/gpu", "nvidia.com/gpu.shared"),
    "gpu_smoke_test_runtime_class": ("nvidia", "other-class"),
    "gpu_verify_configuration": ({}, {"path": "/etc/other.toml"}),
    "gpu_verify_plugin_labels": (
        {"name": "nvidia-device-plugin-ds"},
        {"app.kubernetes.io/name": "nvidia-device-plugin", "app.kubernetes.io/instance": "release"},
    ),
    "gpu_verify_plugin_namespace": ("kube-system", "plugins"),
    "gpu_verify_report_path": (f"{os.environ.get('PWD', '')}/gpu-report.json",) * 2,
    "gpu_verify_require_gpu": (True, False),
    "gpu_verify_resource_name": ("nvidia.com/gpu", "nvidia.com/gpu.shared"),
    "gpu_verify_runtime_class": ("nvidia", "other-class"),
    "gpu_verify_runtime_handler": ("nvidia", "other"),
    "gpu_verify_runtime_name": ("nvidia", "other"),
}
SHARED = {
    "gpu_sharing_strategy": "gpushare",
    "gpushare_namespace": "shared",
    "gpushare_runtime_class": "shared-class",
    "gpushare_runtime_handler": "shared-handler",
}
SHARED_DEFAULTS = {
    "gpu_verify_plugin_namespace": "shared",
    "gpu_verify_resource_name": "aliyun.com/gpu-mem",
    "gpu_verify_runtime_class": "shared-class",
    "gpu_verify_runtime_handler": "shared-handler",
}


#: The variables of a host, and the values of defaults there.
HOSTS = {
    "alone": ({}, {name: values[0] for name, values in DEFAULTS.items()}),
    "linked": (LINKED, {name: values[1] for name, values in DEFAULTS.items()}),
    "shared": ({**LINKED, **SHARED}, SHARED_DEFAULTS),
}


def test_defaults_follow_the_variables_of_other_roles(evaluate, tmp_path):
    # As role defaults, not play variables: variables of the inventory override them.
    for role in ROLES:
        for folder in ("defaults", "vars"):
            shutil.copytree(ROOT / "roles" / role / folder, tmp_path / "roles" / role / folder)
    tasks = [
        {"ansible.builtin.set_fact": {"result": "{{ {" + ", ".join(f"'{name}': {name}" for name in DEFAULTS) + "} }}"}}
    ]
    play = {"hosts": "all", "gather_facts": False, "roles": list(ROLES), "tasks": tasks}
    results = evaluate(
        {name: variables for name, (variables, _values) in HOSTS.items()},
        [play],
        "dict(groups.all | zip(groups.all | map('extract', hostvars, 'result')))",
    )
    for name, (_variables, values) in HOSTS.items():
        assert {key: results[name][key] for key in values} == values, name


#: Variables and NVML's answer of a host with one GPU, and whether its driver is managed.
DRIVERS = {
    "works": ({}, None, False),
    "of-this-collection": ({"__gpu_preflight_driver_recorded": True}, None, True),
    "method-set": ({"nvidia_driver_method": "package"}, None, True),
    "license-set": ({"nvidia_driver_vgpu_license_token": "a token"}, None, True),
    "missing": ({}, "no NVML library", True),
    "missing-and-unmanaged": ({"nvidia_driver_method": "none"}, "no NVML library", False),
}


def test_working_driver_of_others_is_not_managed(evaluate):
    """As prepare_gpu_nodes decides it; in its roles, the default of the method counts as a set method."""
    decision = "Decide whether this collection manages the driver"
    first, second = (play for play in read_plays("prepare_gpu_nodes.yml") if play["tasks"][0]["name"] == decision)
    assert second["tasks"][0] == first["tasks"][0]
    hosts = {
        name: {
            **variables,
            "gpu_devices": {"served": True},
            "gpu_preflight_gpus": {"ansible_facts": {"nvml": {"error": error, "gpus": [{"lost": False}]}}},
        }
        for name, (variables, error, _managed) in DRIVERS.items()
    }
    tasks = [first["tasks"][0], {**first["tasks"][1], "when": "not gpu_preflight_driver_managed"}]
    assert find_included_role(tasks[1]) == ("nvidia_driver", "preflight")
    managed = evaluate(
        hosts,
        [{"hosts": "all", "gather_facts": False, "tasks": tasks}],
        "dict(groups.all | zip(groups.all | map('extract', hostvars, 'gpu_preflight_driver_managed')))",
    )
    assert managed == {name: expected for name, (*_host, expected) in DRIVERS.items()}


@pytest.mark.parametrize(
    ("playbook", "tags", "message"),
    [
        ("deploy_gpu_monitoring", "exporter,prometheus", "set gpu_prometheus_host to the host of Prometheus"),
        ("remove_gpu_monitoring", "dashboards,prometheus", ""),
    ],
)
def test_monitoring_needs_what_the_inventory_declares_before_any_change(run, playbook, tags, message):
    path = ROOT / "playbooks" / f"{playbook}.yml"
    code, output = run(f"[gpu_nodes]\nnode {LOCAL}\n", path, "--tags", tags)
    assert (code != 0, message in " ".join(output.split())) == (bool(message), True), output
    assert "changed=0" in output
    assert not message or "TASK [gpu.kubernetes.gpu_exporter" not in output


GOOD, BAD = ({"examined": True, "checks": [{"verdict": verdict}]} for verdict in ("warn", "fail"))


#: The rows of the report that the host of node n1 has, and whether that node is cordoned.
REPORTS = {
    "good": ([{"node": "n1", **GOOD}, {"node": "n2", **BAD}, {"node": "n3", **GOOD, "examined": False}], False),
    "bad": ([{"node": "n1", **BAD}, {"node": "n2", **GOOD}], True),
    "not-examined": ([{"node": "n1", "examined": False, "checks": []}], True),
    "without-its-row": ([{"node": "n2", **GOOD}], True),
    "no-report": (None, True),
}


def test_node_is_cordoned_by_its_own_row_of_the_report(evaluate):
    """The condition of the task, for the report of each host instead of that of the only one."""
    [task] = read_plays("cordon_gpu_node.yml")[-1]["tasks"]
    report, only = task["vars"]["__report"], "hostvars[groups['gpu_nodes_of_alert'][0]]"
    assert report.count(only) == 1
    assert find_included_role(task) == ("gpu_node_maintenance", "begin")
    names = {**task["vars"], "__report": report.replace(only, "hostvars[inventory_hostname]")}
    record = {"ansible.builtin.set_fact": {"is_cordoned": True}, "when": task["when"], "vars": names}
    hosts = {
        host: {} if rows is None else {"gpu_doctor_report": {"hosts": rows}}
        for host, (rows, _cordoned) in REPORTS.items()
    }
    found = evaluate(
        hosts,
        [{"hosts": "all", "gather_facts": False, "tasks": [record]}],
        "dict(groups.all | zip(groups.all | map('extract', hostvars) | map(attribute='is_cordoned', default=false)))",
        gpu_alert_node="n1",
    )
    assert found == {host: is_cordoned for host, (_rows, is_cordoned) in REPORTS.items()}


@pytest.mark.parametrize(
    ("node", "host"),
    [
        ("n1", "n1"),
        ("n2", "n2.example.com"),
        ("n2.example.com", "n2.example.com"),
        ("worker-3", "n3.example.com"),
        ("n3", ""),
    ],
)
def test_host_of_an_alert_is_found_by_the_name_of_its_node_or_its_own_with_or_without_domain(evaluate, node, host):
    tasks = read_plays("cordon_gpu_node.yml")[0]["tasks"][:2]
    hosts = {"n1": {}, "n1.example.com": {}, "n2.example.com": {}, "n3.example.com": {"gpu_node_name": "worker-3"}}
    play = {
        "hosts": "all",
        "gather_facts": False,
        "tasks": tasks,
        "vars": {"gpu_alert_node": node, "__gpu_nodes": "all"},
    }
    assert evaluate(hosts, [play], "groups.gpu_nodes_of_alert | default([]) | join(' ')") == host


def test_cordon_of_a_node_leaves_time_reason_and_remedy_in_its_annotation(run, tmp_path):
    """The host does not answer; the API server is a fake."""
    cluster = SmallCluster({**node("n1", 2, allocatable=1), "kind": "Node"})
    hosts = {"n1.example.com": {"ansible_host": "127.0.0.1", "ansible_port": 9}}
    options = {"gpu_alert_node": "n1", "gpu_doctor_checks": ["kl.unhealthy"]}
    with serve_in_thread(cluster):
        options["gpu_kubeconfig"] = str(write_kubeconfig(cluster.url, tmp_path / "kubeconfig"))
        inventory = {"gpu_nodes": {"hosts": hosts}}
        code, output = run(inventory, ROOT / "playbooks" / "cordon_gpu_node.yml", **options)
    assert code == 0, output
    found = cluster.objects["Node", "", "n1"]
    assert found["spec"]["unschedulable"] is True
    message = describe_maintenance(found)["message"]
    assert re.match(
        r"is cordoned, and in maintenance by this collection since 20\S+Z for a fault or failed exam", message
    )
    assert "uncordon the node with the role gpu_node_maintenance (tasks_from: end)" in message
