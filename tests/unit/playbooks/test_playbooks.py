# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order of plays and roles in the playbooks, their first checks, and defaults that follow other roles."""

from __future__ import annotations

import os
import shutil

import jinja2
import pytest
import yaml

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import HERE, ROOT

MANIFEST = ROOT / "tests/unit/plugins/module_utils/_scheduler/fixtures/kubeadm-1.34.4.yaml"
LOCAL = "ansible_connection=local ansible_become=false"
# This playbook reads only the API server.
NO_HOSTS = ("show_gpu_allocation.yml",)
OTHER_GROUPS = {"patch_kube_scheduler.yml": "kube_control_plane"}
PLAYBOOKS = sorted({path.name for path in (ROOT / "playbooks").glob("*.yml")} - {*NO_HOSTS})
ROLES = ("k8s_device_plugin", "gpu_smoke_test", "gpu_verify")


def iterate_plays(path):
    """All plays of a playbook and of those that it imports, in their order."""
    for play in yaml.safe_load(path.read_text()):
        imported = play.get("ansible.builtin.import_playbook")
        yield from iterate_plays(path.parent / imported) if imported else [play]


def read_plays(name):
    """The plays of a playbook without the first one of many, which only connects to the hosts."""
    return [play for play in iterate_plays(ROOT / "playbooks" / name) if play["name"] != "Connect to the GPU hosts"]


@pytest.mark.parametrize("playbook", PLAYBOOKS)
def test_first_play_runs_on_a_group_that_must_have_hosts(playbook):
    first = read_plays(playbook)[0]
    group = OTHER_GROUPS.get(playbook, "gpu_nodes")
    assert (first["hosts"], first["vars_files"]) == (f"{{{{ __{group} }}}}", ["vars/hosts.yml"])


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
    check, change = read_plays("prepare_gpu_nodes.yml")[:2]
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
    assert sum(number for path, number in lines.items() if path.parent.name == "vars") <= 40


def iterate_tasks(tasks):
    """The tasks of a play of playbooks/ in order, with those of blocks and imported files."""
    for task in tasks:
        if "block" in task:
            yield from iterate_tasks([*task["block"], *task.get("rescue", []), *task.get("always", [])])
        elif (imported := ROOT / "playbooks" / task.get("ansible.builtin.import_tasks", "/")).is_file():
            yield from iterate_tasks(yaml.safe_load(imported.read_text()))
        else:
            yield task


def find_included_role(task):
    """Name and entry point of the role that a task includes; None if it includes none."""
    included = next((task[key] for key in task if key.endswith(("import_role", "include_role"))), None)
    return included and (included["name"].removeprefix("gpu.kubernetes."), included.get("tasks_from", "main"))


def iterate_steps(name):
    """Role and entry point of each step of a playbook, in order, without the leases."""
    for play in read_plays(name):
        yield from ((role["role"].rpartition(".")[2], "main") for role in play.get("roles", []))
        for task in iterate_tasks(play.get("tasks", [])):
            included = find_included_role(task)
            if included and included[0] != "_lease":
                yield included
            if "__scheduler_step" in task.get("vars", {}):
                yield "kube_scheduler_extender", task["vars"]["__scheduler_step"]


#: The steps that change hosts, nodes or kube-scheduler: roles with their entry points, and an imported file.
CHANGES = {
    "runtime.yml",
    ("cuda", "main"),
    ("cuda", "prepare"),
    ("gpu_node_maintenance", "begin"),
    ("gpu_node_maintenance", "end"),
    ("kube_scheduler_extender", "{{ __scheduler_step }}"),
    ("kubelet_reserved", "main"),
    ("nvidia_driver", "main"),
    ("nvidia_driver", "prepare"),
    ("nvidia_driver_upgrade", "absent"),
    ("nvidia_driver_upgrade", "main"),
    ("{{ __gpu_strategy_role }}", "node_absent"),
    ("{{ gpu_sharing_node_plan.node_present }}", "node_present"),
}


def list_steps(tasks, is_held=False):
    """Each step, and whether a block around it holds a lease from its first step on and releases it in any case."""
    for task in tasks:
        first, *_steps = [step for step, _held in list_steps(task.get("block", []))] or [None]
        released = [step for step, _held in list_steps(task.get("always", []))] == [("_lease", "release")]
        for part in ("pre_tasks", "tasks", "block", "rescue", "always"):
            yield from list_steps(task.get(part, []), is_held or (first == ("_lease", "main") and released))
        if step := find_included_role(task) or task.get("ansible.builtin.import_tasks"):
            yield step, is_held


def test_each_change_is_made_while_a_lease_is_held():
    found = {}
    for path in (ROOT / "playbooks").rglob("*.yml"):
        content = yaml.safe_load(path.read_text())
        for step, is_held in list_steps(content) if isinstance(content, list) else ():
            found.setdefault(step, set()).add(is_held)
    assert {step: found.get(step) for step in CHANGES} == {step: {True} for step in CHANGES}


ENTERED_ROLE, ROLE, LEFT_ROLE = (
    "{{ gpu_sharing_node_plan.node_present }}",
    "{{ gpu_sharing_role }}",
    "{{ __gpu_strategy_role }}",
)
#: If nodes reported shares before kube-scheduler calls the extender, their pods would get no GPU.
CHANGE = [
    ("gpu_sharing", "main"),
    (ENTERED_ROLE, "preflight"),
    ("kube_scheduler_extender", "preflight"),
    ("kube_scheduler_extender", "restore"),
    ("gpu_node_maintenance", "begin"),
    (LEFT_ROLE, "node_absent"),
    (ROLE, "cluster_present"),
    ("kube_scheduler_extender", "endpoints"),
    ("kube_scheduler_extender", "main"),
    (LEFT_ROLE, "cluster_absent"),
]
ENTER = [("k8s_device_plugin", "main"), (ENTERED_ROLE, "node_present"), ("gpu_node_maintenance", "end")]
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
    ("playbook", "inventory"),
    [
        ("label_gpu_nodes.yml", "[gpus]\nnode\n"),
        ("patch_kube_scheduler.yml", "[gpus]\nnode\n"),
        ("site.yml", "[gpu_nodes]\n[others]\nnode\n"),
    ],
)
def test_group_without_hosts_is_an_error(run, playbook, inventory):
    code, output = run(inventory, ROOT / "playbooks" / playbook)
    assert code != 0
    assert f"The inventory has no host in {OTHER_GROUPS.get(playbook, 'gpu_nodes')}; " in output


@pytest.mark.parametrize(
    "name",
    [
        "label_gpu_nodes",
        "deploy_device_plugin",
        "smoke_test_gpu_nodes",
        "remove_gpu_nodes",
        "show_gpu_allocation",
    ],
)
def test_kubeconfig_is_checked_first(name):
    """Only the task that ends hosts outside the run comes before it."""
    first = next(task for task in read_plays(f"{name}.yml")[0]["pre_tasks"] if "ansible.builtin.meta" not in task)
    assert find_included_role(first) == ("gpu_preflight", "controller")
    assert "when" not in first


def test_missing_kubeconfig_is_reported(run):
    inventory = "[gpu_nodes]\nnode ansible_connection=local\n"
    code, output = run(inventory, ROOT / "playbooks" / "label_gpu_nodes.yml", gpu_kubeconfig="/nonexistent")
    assert code != 0
    assert "node: the kubeconfig /nonexistent does not exist" in " ".join(output.split())


@pytest.mark.parametrize(
    ("name", "play"), [("site", "Label the GPU nodes"), ("remove_gpu_nodes", "Remove the pods of interrupted")]
)
def test_sharing_is_not_planned_in_a_run_without_its_tags(run, name, play):
    playbook = ROOT / "playbooks" / f"{name}.yml"
    code, output = run(f"[gpu_nodes]\nnode {LOCAL}\n", playbook, "--tags", "labels", gpu_kubeconfig="/nonexistent")
    assert code != 0
    assert f"PLAY [{play}" in output.partition("the kubeconfig /nonexistent does not exist")[0]


@pytest.mark.parametrize(("tag", "required"), [("labels,smoke_test", False), ("device_plugin", True)])
def test_helm_is_required_only_by_the_device_plugin(run, tmp_path, tag, required):
    helm = tmp_path / "bin" / "helm"
    helm.parent.mkdir()
    helm.write_text("#!/bin/sh\nexit 1\n")
    helm.chmod(0o755)
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text("{}")
    code, output = run(
        f"[gpu_nodes]\nnode {LOCAL}\n",
        ROOT / "playbooks" / "remove_gpu_nodes.yml",
        "--tags",
        tag,
        environment={"PATH": f"{helm.parent}:{os.environ['PATH']}"},
        gpu_kubeconfig=str(kubeconfig),
        k8s_device_plugin_method="helm",
    )
    assert code != 0
    assert ("no helm command that works" in " ".join(output.split())) is required, output


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
    text = (ROOT / "playbooks" / "vars" / "hosts.yml").read_text()
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
    "missing": ({}, "no NVML library", True),
    "missing-and-unmanaged": ({"nvidia_driver_method": "none"}, "no NVML library", False),
}


def test_working_driver_of_others_is_not_managed(evaluate):
    """As prepare_gpu_nodes decides it; in its roles, the default of the method counts as a set method."""
    first, second = read_plays("prepare_gpu_nodes.yml")[:2]
    assert second["tasks"][0] == first["tasks"][0]
    hosts = {
        name: {
            **variables,
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
