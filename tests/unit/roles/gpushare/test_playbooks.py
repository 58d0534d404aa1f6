# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order in which gpushare comes and goes, whom its playbooks concern, and what its role and the report make of what they see."""

from __future__ import annotations

import copy
import json
import re
from contextlib import ExitStack

import pytest
import yaml
from fakes.kubernetes_api import node, pod
from fakes.loopback_api import serving, write_kubeconfig
from fakes.small_cluster import SmallCluster

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import HERE, ROOT

MANIFEST = (
    ROOT / "tests" / "unit" / "plugins" / "module_utils" / "_scheduler" / "fixtures" / "kubeadm-1.34.4.yaml"
).read_text()
PREFIX = "gpu.kubernetes."
BY_HOST = "dict(groups.all | zip(groups.all | map('extract', hostvars, 'told')))"


def steps(playbook):
    """Role, entry point and tags of what the plays of a playbook do, in order; roles that only look before are left out."""
    found = []
    for play in yaml.safe_load((ROOT / "playbooks" / f"{playbook}.yml").read_text()):
        included = [
            next((task[key] for key in task if key.endswith(("import_role", "include_role"))), None)
            for task in play.get("tasks", [])
        ]
        roles = [*({"name": role["role"]} for role in play.get("roles", [])), *(role for role in included if role)]
        for role in roles:
            where = "serial" if "serial" in play else "all"
            found.append((role["name"].replace(PREFIX, ""), role.get("tasks_from", "main"), where))
    return found


@pytest.mark.parametrize(
    ("playbook", "wanted"),
    [
        (
            "deploy_gpushare",
            [
                ("gpushare", "check", "all"),
                ("gpushare", "tell", "all"),
                ("kube_scheduler_extender", "check", "all"),
                # A node that offered memory before kube-scheduler asks the extender would be given pods without a GPU.
                ("gpushare", "extender", "all"),
                ("kube_scheduler_extender", "main", "serial"),
                ("gpushare", "main", "all"),
            ],
        ),
        (
            "remove_gpushare",
            [
                ("gpu_smoke_test", "main", "all"),
                ("gpushare", "check", "all"),
                ("kube_scheduler_extender", "check", "all"),
                ("gpushare", "withdraw", "all"),
                ("kube_scheduler_extender", "main", "serial"),
                ("gpushare", "main", "all"),
            ],
        ),
        (
            "patch_kube_scheduler",
            [("kube_scheduler_extender", "check", "all"), ("kube_scheduler_extender", "main", "serial")],
        ),
    ],
)
def test_the_order_of_what_is_done(playbook, wanted):
    assert steps(playbook) == wanted


def test_every_task_of_the_role_belongs_to_a_step():
    """What is left out by one step is not lost to the role that is used alone."""
    tasks = ROOT / "roles" / "gpushare" / "tasks"
    text = "".join(path.read_text() for path in tasks.glob("*.yml"))
    steps_by_name = {"check_present", "check_absent", "present", "absent", "present_extender", "absent_nodes"}
    entries = {"main", "check", "tell", "extender", "withdraw"}
    unused = {
        path.stem for path in tasks.glob("*.yml") if f"_tasks: {path.name}" not in text and path.stem not in entries
    } - steps_by_name
    assert unused == {"service"}
    assert "_cluster_api_tasks: service" in text


def test_no_control_plane_is_changed_while_another_would_be_refused(run, tmp_path):
    manifests = {}
    for name, text in (("one", MANIFEST), ("two", "kind: Deployment\n"), ("three", "metadata: [\n")):
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
    local = {
        "ansible_connection": "local",
        "ansible_become": False,
    }
    code, said = run(
        {"kube_control_plane": {"hosts": hosts, "vars": local}},
        ROOT / "playbooks" / "patch_kube_scheduler.yml",
        gpu_kubeconfig=str(kubeconfig),
        kube_scheduler_extender_extenders=[{"urlPrefix": "http://127.0.0.1:1/x", "filterVerb": "filter"}],
    )
    assert code != 0
    for bad in ("two", "three"):
        assert str(manifests[bad]) in " ".join(said.split())
        assert f"fatal: [{bad}]" in said
    assert "fatal: [one]" not in said
    assert "PLAY [Patch kube-scheduler]" not in said
    assert not (tmp_path / "state-one").exists()


MIRROR = "kubernetes.io/config.mirror"
#: The nodes with a kube-scheduler, whether that is a static pod, and whether a run on cp1 alone may change it.
SCHEDULERS = {
    "one": ({"cp1": True}, True),
    "under-another-name": ({"cp1.example.com": True}, True),
    "a-second-scheduler": ({"cp1": True, "worker": False}, True),
    "more": ({"cp1": True, "cp2": True, "cp3": True}, False),
}


def test_a_control_plane_that_the_inventory_lacks_stops_the_run(run, tmp_path):
    """Each case has a cluster and a GPU node of its own; the runs are plays of one playbook."""
    parts = {"namespace": "kube-system", "labels": {"component": "kube-scheduler"}}
    wanted = str(ROOT / "playbooks" / "tasks" / "control_planes.yml")
    hosts, plays = {}, []
    with ExitStack() as stack:
        for case, (nodes, _goes_on) in SCHEDULERS.items():
            pods = [
                {"apiVersion": "v1", "kind": "Pod"}
                | pod(f"kube-scheduler-{name}", on=name, annotations={MIRROR: "x"} if static else {}, **parts)
                for name, static in nodes.items()
            ]
            server = stack.enter_context(serving(SmallCluster(*pods)))
            hosts[case] = {"gpu_kubeconfig": str(write_kubeconfig(server.url, tmp_path / f"kubeconfig-{case}"))}
            tasks = [
                {"ansible.builtin.include_tasks": wanted},
                {"ansible.builtin.debug": {"msg": "{{ inventory_hostname }} goes on"}},
            ]
            play = {"hosts": case, "gather_facts": False, "tasks": tasks}
            plays.append({**play, "vars_files": [str(ROOT / "playbooks" / "vars" / "hosts.yml")]})
        (tmp_path / "play.yml").write_text(json.dumps(plays))
        groups = {"kube_control_plane": {"hosts": {"cp1": {}}}, "gpu_nodes": {"hosts": hosts}}
        code, said = run(groups, tmp_path / "play.yml", ansible_connection="local", __control_planes_wanted=True)
    assert code != 0
    assert {case: f"{case} goes on" in said for case in SCHEDULERS} == {
        case: goes_on for case, (_nodes, goes_on) in SCHEDULERS.items()
    }, said
    told = (
        "kube-scheduler runs on cp1, cp2, cp3, and the group kube_control_plane of the inventory has only cp1; add the"
    )
    assert told in " ".join(said.split())


GPUS = [{"name": "GPU", "lost": False, "memory_total_bytes": 16 * 2**30}] * 2


@pytest.fixture
def play(run, tmp_path):
    """Run the tag gpushare of a playbook on the host w1, in a cluster of these objects: exit code, output, whether an object has changed."""

    def run_play(name, objects, *options):
        facts = {"nvml": {"source": "nvml", "error": None, "gpus": GPUS}, "nodename": "w1", "cacheable": True}
        tasks = [{"ansible.builtin.set_fact": facts}]
        first = {"hosts": "all", "gather_facts": False, "tags": ["always"], "tasks": tasks}
        playbook = {"ansible.builtin.import_playbook": str(ROOT / "playbooks" / f"{name}.yml")}
        (tmp_path / "play.yml").write_text(json.dumps([first, playbook]))
        cluster = SmallCluster({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "kube-system"}}, *objects)
        before = copy.deepcopy(cluster.objects)
        with serving(cluster) as server:
            code, printed = run(
                {"gpu_nodes": {"hosts": {"w1": {}}, "vars": HERE}},
                tmp_path / "play.yml",
                "--tags=gpushare",
                *options,
                gpu_kubeconfig=str(write_kubeconfig(server.url, tmp_path / "kubeconfig")),
                gpu_preflight_gpus={"ansible_facts": {}},
                gpushare_extender_image_tag="c0b6141",
                # Nothing reacts here: a run that changes what it should not ends soon.
                gpushare_wait_timeout=2,
            )
        return code, printed, cluster.objects != before

    return run_play


@pytest.mark.thorough
def test_deploy_gpushare_in_check_mode_reports_changes_and_makes_none(play):
    code, printed, changed = play("deploy_gpushare", [{"kind": "Node", "apiVersion": "v1", **node("w1", 2)}], "--check")
    assert (code, changed) == (0, False), printed
    items = re.findall(r"^changed: \[w1 -> localhost\](?: => \(item=(.*)\))?", printed, re.MULTILINE)
    # The label of the node has no item.
    assert items.count("") == 1, printed
    for name in ("RuntimeClass nvidia", "DaemonSet gpushare-schd-extender", "DaemonSet gpushare-device-plugin-ds"):
        assert name in ", ".join(items)


@pytest.mark.thorough
def test_remove_gpushare_while_pods_hold_memory_is_refused(play):
    shared = node("w1", labels={"gpushare": "true"})
    for key in ("capacity", "allocatable"):
        shared["status"][key] = {"aliyun.com/gpu-mem": "32"}
    main = {"name": "main", "resources": {"limits": {"aliyun.com/gpu-mem": "8"}}}
    holder = pod("holder", on="w1", containers=[main], status={"phase": "Running"})
    objects = [{"kind": "Node", "apiVersion": "v1", **shared}, {"kind": "Pod", "apiVersion": "v1", **holder}]
    code, printed, changed = play("remove_gpushare", objects)
    assert (code, changed) == (2, False), printed
    assert "Node w1: pods use aliyun.com/gpu-mem" in printed
    # What names the pods.
    assert "the playbook show_gpu_allocation with -e gpushare_report_details=true" in " ".join(printed.split())


#: What a run knows of a host, whether an import for those that leave, or for what is found, leaves it out.
CONCERNED = {
    "leaves": ({"gpu_sharing_leaves_gpushare": True, "gpu_sharing_decided": "exclusive"}, False, True),
    "stays": ({"gpu_sharing_leaves_gpushare": False, "gpu_sharing_decided": "gpushare"}, True, False),
    "has-it-undeclared": ({"gpu_sharing_has_gpushare": True}, True, False),
    "has-it-and-declares-another": ({"gpu_sharing_has_gpushare": True, "gpu_sharing_strategy": "mps"}, True, False),
    "declares-it": ({"gpu_sharing_has_gpushare": False, "gpu_sharing_strategy": "gpushare"}, True, False),
    "has-nothing": ({"gpu_sharing_has_gpushare": False}, True, True),
}


def test_whom_a_removal_concerns(hear):
    plays = [
        {
            "hosts": "all",
            "gather_facts": False,
            "vars_files": [str(ROOT / "playbooks" / "vars" / "hosts.yml")],
            "vars": {"__gpushare_only": only},
            "tasks": [{"ansible.builtin.set_fact": {only: "{{ __gpushare_unconcerned | bool }}"}}],
        }
        for only in ("leaving", "found")
    ]
    told = hear(
        {name: host for name, (host, *_out) in CONCERNED.items()},
        plays,
        "dict(groups.all | zip(groups.all | map('extract', hostvars, 'leaving')"
        " | zip(groups.all | map('extract', hostvars, 'found'))))",
    )
    assert told == {name: out for name, (_host, *out) in CONCERNED.items()}


def row(name, total, *gpus):
    return {"name": name, "total": total, "gpus": [{"index": index, "total": each} for index, each in gpus]}


NOW = [row("two", 32, (0, 16), (1, 16)), row("none", 8), row("one", 16, (0, 16))]
STRAY = [row("two", 32, (0, 16), (1, 16), (7, 16)), *NOW[1:]]


def test_the_extender_starts_anew_for_what_nodes_have_and_not_for_what_pods_say(hear):
    """A pod that is said to be on a GPU that a node does not have makes it no other node."""
    play = {
        "hosts": "all",
        "gather_facts": False,
        "vars_files": [str(ROOT / "roles" / "gpushare" / "vars" / "main" / "state.yml")],
        "vars": {"__gpushare_now": {"nodes": "{{ nodes }}"}, "__gpushare_hosts": []},
        "tasks": [{"ansible.builtin.set_fact": {"told": "{{ __gpushare_capacities }}"}}],
    }
    told = hear({"now": {"nodes": NOW}, "stray": {"nodes": STRAY}}, [play], BY_HOST)
    assert told["now"] == told["stray"] == {"two": [16, 32], "none": [0, 8], "one": [16, 16]}


def test_a_node_that_offers_no_memory_fails_its_own_host(refusals):
    good = {"name": "good", "ok": True, "reason": ""}
    bad, uncounted = (
        {"name": name, "ok": False, "reason": f"offers 0 of {amount}"} for name, amount in (("bad", 16), ("odd", 2))
    )
    hosts = {name: {"gpu_node_name": name} for name in ("good", "bad", "odd")}
    left = {f"{name}-left": {"gpu_node_name": name, "gpushare_wait_fail": False} for name in ("bad", "odd")}
    seen = {
        "__gpushare_after": {"nodes": [good, bad, {**good, "name": "odd"}]},
        "__gpushare_counted": {"nodes": [good, uncounted]},
    }
    why = refusals("gpushare", ["report"], {**hosts, **left}, variables=seen)
    words = "Host {0} (node {0}) is not as expected after 300 s: offers 0 of {1}."
    assert why == {
        "good": "",
        "bad": words.format("bad", 16),
        "odd": words.format("odd", 2),
        "bad-left": "",
        "odd-left": "",
    }
