# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rolling upgrade up to the driver itself, on a cluster in memory: whom it waits for, what it counts, what it proves and undoes."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import os
import re
import threading
import time
from pathlib import Path

import pytest

pytest.importorskip("ansible.playbook", reason="only ansible.module_utils is here")
pytest.importorskip("kubernetes")

import yaml
from fakes.kubernetes_api import node, pod
from fakes.loopback_api import write_kubeconfig
from fakes.small_cluster import SmallCluster

if os.geteuid() != 0:
    pytest.skip("only root gives files to root", allow_module_level=True)

ROOT = Path(__file__).resolve().parents[4]
ROLE = "gpu.kubernetes.nvidia_driver_upgrade"
DEBIAN = {
    "distribution": "Debian",
    "distribution_version": "12.15",
    "distribution_major_version": "12",
    "distribution_release": "bookworm",
    "os_family": "Debian",
    "architecture": "x86_64",
    "kernel": "6.1.0-56-amd64",
    "pkg_mgr": "apt",
}
ANY_HOST = {
    "nvidia_driver_method": "package",
    "nvidia_driver_require_gpu": False,
    "nvidia_driver_kernel_modules": "none",
}
RUNNING = {"dcgm": "running", "exporter": "running", "stopped": "stopped"}
UID, HASH = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9", "d0a1" * 8
RESULT = {"node": "w1", "state": "begun", "reason": "", "from": "570.1", "to": "580.1", "host": "w1", "unproved": ""}
PLAN = {"rebooting": False, "installers": ["/nonexistent/installer"], "from": "570.1", "former": {}}


def offering(name, resources, **parts):
    """A node that offers these resources."""
    made = node(name, **parts)
    made["status"].update(capacity=dict(resources), allocatable={"cpu": "8", **resources})
    return {"kind": "Node", "apiVersion": "v1", **made}


def placed(name, **parts):
    return {"kind": "Pod", "apiVersion": "v1", **pod(name, **{"on": "w1", **parts})}


@pytest.fixture
def cluster():
    """One with nothing in it yet."""
    server = SmallCluster()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def given(cluster, tmp_path):
    """What a host is told of the cluster, and what no machine of a test is asked."""
    return {
        "gpu_kubeconfig": str(write_kubeconfig(cluster.url, tmp_path / "kubeconfig")),
        "gpu_node_name": "w1",
        "nvidia_driver_upgrade_state_dir": str(tmp_path),
        "nvidia_driver_upgrade_result": RESULT,
        "nvidia_driver_plan": PLAN,
        "nvidia_driver_method": "preinstalled",
    }


def note(tmp_path, **values):
    """Have the note of an upgrade there: its path."""
    path = tmp_path / "state" / "driver-upgrade.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        json.dumps({"from": "570.1", "former": {}, "phase": "noted", "offered": {}, "services": [], **values})
    )
    return path


def encoded(path):
    """What reading a note has registered."""
    return {"content": base64.b64encode(path.read_bytes()).decode()}


BUDGET = {
    "message": "Cannot evict pod as it would violate the pod's disruption budget.",
    "details": {
        "causes": [{"reason": "DisruptionBudget", "message": "The disruption budget web needs 1 healthy pods"}]
    },
}


def test_a_pod_that_its_budget_keeps_is_named_and_the_node_given_back(refusals, cluster, given, tmp_path):
    first = copy.deepcopy(cluster.put(offering("w1", {"nvidia.com/gpu": "2"})))
    cluster.put(placed("web", gpus=1, owner="web", owner_kind="ReplicaSet"))
    cluster.refuse = lambda _pod: BUDGET
    path = note(tmp_path)
    told = refusals(
        "nvidia_driver_upgrade",
        ["upgrade"],
        {"w1": {**given, "gpu_node_maintenance_evict_timeout": 1}},
        extra={"__nvidia_driver_upgrade_read": encoded(path)},
    )
    assert "default/web is kept by a PodDisruptionBudget (The disruption budget web needs 1 healthy pods)" in told["w1"]
    assert told["w1"].endswith("Driver 570.1 was not touched, and node w1 was given back.")
    (now,) = cluster.all("Node")
    assert (now["spec"], now["metadata"].get("annotations") or {}) == (first["spec"], {})
    assert len(cluster.all("Pod")) == 1
    assert not path.exists()


def test_a_job_goes_only_after_its_deadline(refusals, cluster, given):
    """The other pod is waited with: it may share the node until then."""
    cluster.put(offering("w1", {"nvidia.com/gpu": "2"}))
    cluster.put(placed("job", gpus=1, owner="job", owner_kind="Job", restartPolicy="Never"))
    cluster.put(placed("web", gpus=1, owner="web", owner_kind="ReplicaSet"))
    cluster.put(placed("cpu", owner="cpu", owner_kind="ReplicaSet"))
    times = {}
    cluster.react = lambda _cluster: times.setdefault("cordoned", time.monotonic())
    cluster.refuse = lambda item: times.update({item["metadata"]["name"]: time.monotonic()})
    told = refusals(
        "nvidia_driver_upgrade",
        ["begin"],
        {"w1": {**given, "gpu_node_maintenance_jobs_timeout": 2}},
        fact="nvidia_driver_upgrade_result.evicted + nvidia_driver_upgrade_result.waited_for",
    )
    assert told["w1"] == ["default/job", "default/web", "default/job"]
    assert sorted(times) == ["cordoned", "job", "web"]
    assert min(times["job"], times["web"]) - times["cordoned"] >= 2


#: The phase of an upgrade that was cut off, and whether the run that goes on has to be told the driver again.
PHASES = {"noted": True, "releasing": True, "swapping": True, "returning": False, "proved": False}


def test_a_run_that_goes_on_has_to_be_told_where_to(refusals, given, tmp_path):
    hosts = {}
    for phase in PHASES:
        (tmp_path / phase).mkdir()
        note(tmp_path / phase, phase=phase)
        hosts[phase] = {
            **given,
            **ANY_HOST,
            "nvidia_driver_upgrade_state_dir": str(tmp_path / phase),
            "nvidia_driver_state_dir": str(tmp_path / phase),
        }
    told = refusals("nvidia_driver_upgrade", ["plan"], hosts, facts=DEBIAN)
    for phase, refused in PHASES.items():
        words = f"{phase}: an upgrade from driver "
        assert (
            told[phase].startswith(words) and "was begun and cut off, and it has to be told again" in told[phase]
        ) is refused, told


def test_another_wish_is_not_taken_for_done(refusals, cluster, given, tmp_path):
    """Only giving the node back was to come; then the run begins anew, and meets a pod that it may not evict."""
    cluster.put(offering("w1", {"nvidia.com/gpu": "2"}))
    cluster.put(placed("web", gpus=1, owner="web", owner_kind="ReplicaSet"))
    cluster.refuse = lambda _pod: BUDGET
    path = note(tmp_path, phase="proved", **{"from": "560.1"})
    asked = {"nvidia_driver_plan": {**PLAN, "due": True}, "__nvidia_driver_upgrade_read": encoded(path)}
    told = refusals(
        "nvidia_driver_upgrade",
        ["upgrade"],
        {"w1": {**given, **asked, "gpu_node_maintenance_evict_timeout": 1}},
    )
    assert told["w1"].endswith("Driver 570.1 was not touched, and node w1 was given back.")
    assert not path.exists()


#: The phase of an upgrade, whether another driver is asked for, and whether it is refused for want of a way back.
WANTS = {
    "none": (None, True, True),
    "nothing-to-do": (None, False, False),
    "noted": ("noted", True, True),
    "releasing": ("releasing", True, False),
    "swapping": ("swapping", True, False),
    "returning": ("returning", True, False),
    "proved": ("proved", True, True),
    "given-back": ("proved", False, False),
}


def test_an_upgrade_without_a_way_back(refusals, given, tmp_path):
    """One that is half way has its own; one that has only to give the node back needs none, and one that begins anew after that does."""
    hosts = {}
    for name, (phase, due, _refused) in WANTS.items():
        state = tmp_path / name
        (state / "state").mkdir(parents=True)
        if phase:
            note(state, phase=phase)
        # As an earlier release has recorded it, without a place to have it from.
        record = {"version": "570.1", "options": []}
        (state / "state" / "driver-runfile.json").write_text(json.dumps(record))
        hosts[name] = {
            **given,
            **ANY_HOST,
            "nvidia_driver_method": "runfile",
            "nvidia_driver_version": "580.1" if due else "570.1",
            "nvidia_driver_runfile": {"url": "file:///nonexistent/installer.run", "checksum": "sha256:" + "0" * 64},
            "nvidia_driver_upgrade_state_dir": str(state),
            "nvidia_driver_state_dir": str(state),
        }
    there = {"__nvidia_driver_found_version": "570.1", "__nvidia_driver_runfile_options": []}
    told = refusals("nvidia_driver_upgrade", ["plan"], hosts, facts=DEBIAN, extra=there)
    for name, (*_what, refused) in WANTS.items():
        assert told[name] == (
            f"{name}: the driver that the host has could not be brought back if the other one failed: nobody has recorded where its installer can "
            "be had. Set nvidia_driver_upgrade_rollback to false to go on without a way back."
            if refused
            else ""
        )


def test_mig_devices_that_nobody_sets_up_again(refusals, given, tmp_path, workshop):
    note(tmp_path, phase="returning")
    here = {**given, **ANY_HOST, "nvidia_driver_state_dir": str(tmp_path)}
    told = refusals(
        "nvidia_driver_upgrade",
        ["plan"],
        {"lost": here, "kept": {**here, "nvidia_driver_upgrade_mig_services": ["nvidia-mig-manager"]}},
        facts=DEBIAN,
        module_defaults={
            "gpu.kubernetes.nvml_facts": {"library": workshop.library("h100-mig"), "pci_path": workshop.pci("h100-mig")}
        },
    )
    assert re.match("lost: MIG is enabled on 0000:[0-9a-f:.]+(, [0-9a-f:.]+)*, and MIG devices go", told["lost"]), told
    assert told["kept"] == ""


#: Variables of a run that finds a way back begun; what it says, or else how it ends, and the phase that is noted last.
WAYS = {
    "back": ({"nvidia_driver_method": "none"}, "no GPU answers. Driver 570.1 is back, and node w1 was given back", ""),
    "stuck": (
        {},
        "no GPU answers. Node w1 stays cordoned, because the way back to driver 570.1 failed as",
        "returning",
    ),
    "forward": ({"nvidia_driver_method": "none", "nvidia_driver_upgrade_rollback": False}, "upgraded", ""),
    "neither": ({"nvidia_driver_upgrade_rollback": False}, "for nvidia_driver_upgrade_rollback is false", "swapping"),
}


@pytest.mark.parametrize(("asked", "said", "phase"), WAYS.values(), ids=WAYS)
def test_a_way_back_that_was_cut_off_is_gone_on_with(refusals, cluster, given, tmp_path, asked, said, phase):
    """Where the host has no driver, one that somebody is to have installed fails, and none at all does not."""
    cluster.put(offering("w1", {}))
    path = note(tmp_path, phase="returning", reason="no GPU answers.")
    told = refusals(
        "nvidia_driver_upgrade",
        ["upgrade"],
        {"w1": {**given, **asked}},
        fact="nvidia_driver_upgrade_result.state",
        extra={
            "__nvidia_driver_upgrade_read": encoded(path),
            "__nvidia_driver_upgrade_running": [],
            "gpu_preflight_gpus": {"ansible_facts": {}},
        },
        facts={"nvml": {"gpus": []}},
    )
    assert said in told["w1"]
    assert (json.loads(path.read_text())["phase"] if path.exists() else "") == phase


# A service that runs is a file.
SYSTEMCTL = """#!/bin/sh
cd {folder}
case $1 in
    show) echo LoadState=loaded; [ -e $2 ] && echo ActiveState=active || echo ActiveState=inactive; exit ;;
    start) touch $2 ;;
    stop) rm $2 ;;
esac
echo $1 $2 >> asked
"""
#: The phase in which a run was cut off, which services it had noted, and which of them and of the exporter, that runs, the next one starts.
STOPPED = {
    "releasing": (["unnamed.service", "dcgm.service"], ["unnamed.service", "dcgm.service", "exporter.service"]),
    "returning": (["dcgm.service"], ["dcgm.service", "exporter.service"]),
}


def test_services_that_a_killed_run_has_stopped_are_started_again(refusals, cluster, given, tmp_path):
    """What the next run notes comes beside that, and all are started in the other order than that in which they are named."""
    hosts, paths = {}, {}
    for phase, (noted, _started) in STOPPED.items():
        state = tmp_path / phase
        state.mkdir()
        (state / "exporter.service").touch()
        (state / "systemctl").write_text(SYSTEMCTL.format(folder=state))
        (state / "systemctl").chmod(0o755)
        cluster.put(offering(phase, {}))
        paths[phase] = note(state, phase=phase, reason="no GPU answers.", services=noted)
        hosts[phase] = {
            **given,
            "gpu_node_name": phase,
            "nvidia_driver_method": "none",
            "nvidia_driver_upgrade_state_dir": str(state),
            "nvidia_driver_upgrade_result": {**RESULT, "host": phase, "node": phase},
            # Not an extra variable: each note is read again.
            "__nvidia_driver_upgrade_read": encoded(paths[phase]),
        }
    told = refusals(
        "nvidia_driver_upgrade",
        ["upgrade"],
        hosts,
        fact="nvidia_driver_upgrade_result.state",
        extra={
            "nvidia_driver_upgrade_services": ["exporter", "dcgm"],
            "__nvidia_driver_upgrade_running": ["exporter.service"],
            "__nvidia_driver_upgrade_users": {"users": [], "reboot_reasons": []},
            "gpu_preflight_gpus": {"ansible_facts": {}},
        },
        facts={"nvml": {"gpus": []}},
        environment={"PATH": f"{tmp_path}/{{{{ inventory_hostname }}}}:{os.environ['PATH']}"},
    )
    assert told == {
        "releasing": "upgraded",
        "returning": "no GPU answers. Driver 570.1 is back, and node returning was given back with it.",
    }
    for phase, (_noted, started) in STOPPED.items():
        asked = (tmp_path / phase / "asked").read_text().splitlines()
        assert asked == ["stop exporter.service", *(f"start {name}" for name in started)], phase
        assert not paths[phase].exists()


def test_a_check_of_a_way_back_tells_that_the_former_driver_would_come(run, cluster, given, tmp_path):
    """Of two hosts, whose turn comes one after the other; the run would leave the second one alone."""
    for name in ("w1", "w2"):
        cluster.put(offering(name, {}))
    path = note(tmp_path, phase="returning", reason="no GPU answers.")
    _first, upgrades, report = yaml.safe_load((ROOT / "playbooks" / "upgrade_nvidia_driver.yml").read_text())
    for play in (upgrades, report):
        play.pop("vars_files")
        play["hosts"] = "w1,w2"
    upgrades["tasks"][1]["block"].pop(0)
    playbook = tmp_path / "check.yml"
    playbook.write_text(json.dumps([upgrades, report]))
    hosts = {
        name: {
            **given,
            "ansible_connection": "local",
            "ansible_become": False,
            "gpu_node_name": name,
            "nvidia_driver_upgrade_result": {
                **RESULT,
                "host": name,
                "node": name,
                "state": "due",
                "evicted": [],
                "waited_for": [],
            },
            "nvidia_driver_plan": {**PLAN, "due": True},
            "__nvidia_driver_upgrade_read": encoded(path),
        }
        for name in ("w1", "w2")
    }
    code, said = run({"all": {"hosts": hosts}}, playbook, "--check")
    assert code != 0
    said = " ".join(said.split())
    assert "w1: driver 570.1 would be brought back." in said
    assert "no GPU answers. Driver 570.1 would come back, and node w1 would be given back with it." in said
    assert "w1: would be rolled back (570.1 -> 580.1)" in said
    assert "w2: not reached (570.1 -> 580.1)" in said
    assert "would be swapped for" not in said
    assert json.loads(path.read_text())["phase"] == "returning"
    code, said = run({"all": {"hosts": hosts}}, playbook, "--check", nvidia_driver_upgrade_rollback=False)
    said = " ".join(said.split())
    assert code == 0, said
    for name in ("w1", "w2"):
        assert f"{name}: driver 570.1 would be swapped for 580.1." in said
        assert f"{name}: would be upgraded (570.1 -> 580.1)" in said


#: What is known of the former installer, and what the refusal says.
INSTALLERS = {
    "gone": (
        {"url": "file:///nonexistent/former.run", "checksum": "sha256:" + "0" * 64},
        "which is the way back, cannot",
    ),
    "not-needed": ({}, ""),
}


@pytest.mark.parametrize(("runfile", "said"), INSTALLERS.values(), ids=INSTALLERS)
def test_the_way_back_lies_ready_before_the_node_is_touched(refusals, given, tmp_path, runfile, said):
    new = tmp_path / "new.run"
    new.write_text("an installer")
    asked = {"url": new.as_uri(), "checksum": "sha256:" + hashlib.sha256(new.read_bytes()).hexdigest()}
    path = note(tmp_path, former={"version": "570.1", "runfile": runfile})
    told = refusals(
        "nvidia_driver_upgrade",
        ["fetch"],
        {"w1": {**given, "nvidia_driver_method": "runfile", "nvidia_driver_runfile": asked}},
        extra={"__nvidia_driver_upgrade_read": encoded(path), "nvidia_driver_state_dir": str(tmp_path)},
    )
    assert said in told["w1"]
    assert bool(said) is bool(told["w1"])
    assert (tmp_path / "driver-runfile" / "installer.run").read_text() == "an installer"


def test_who_has_the_driver_open_is_named_by_pod(refusals, cluster, given, tmp_path):
    note(tmp_path)
    cluster.put(offering("w1", {"nvidia.com/gpu": "2"}))
    for name, keys in (("train", {"uid": UID}), ("static", {"annotations": {"kubernetes.io/config.hash": HASH}})):
        item = placed(name)
        item["metadata"].update(keys)
        cluster.put(item)
    cluster.put(placed("elsewhere", on="w2"))
    users = {
        "users": [{"pod_uid": UID}, {"pod_uid": HASH}, {"pod_uid": None}],
        "reboot_reasons": [
            f"train (pid 1) in pod {UID} uses the GPUs",
            f"s (pid 2) in pod {HASH} uses the GPUs",
            "dcgm (pid 3) uses the GPUs",
        ],
    }
    told = refusals(
        "nvidia_driver_upgrade",
        ["release"],
        {"w1": {**given, "nvidia_driver_upgrade_release_timeout": 2}},
        extra={"__nvidia_driver_upgrade_users": users, "__nvidia_driver_upgrade_running": []},
    )
    assert told["w1"].startswith(
        "w1: train (pid 1) in pod default/train uses the GPUs, and s (pid 2) in pod default/static uses the GPUs, "
        "and dcgm (pid 3) uses the GPUs, 2 seconds after"
    )


def test_all_that_was_offered_has_to_be_there_again(refusals, cluster, given, tmp_path):
    cluster.put(offering("w1", {"aliyun.com/gpu-mem": "31", "nvidia.com/gpu": "0", "nvidia.com/mig-1g.5gb": "7"}))
    note(tmp_path).unlink()
    extra = {"__nvidia_driver_upgrade_running": []}
    told = refusals("nvidia_driver_upgrade", ["note"], {"w1": given}, extra=extra)
    assert told == {"w1": ""}
    written = json.loads((tmp_path / "state" / "driver-upgrade.json").read_text())
    assert written["offered"] == {"aliyun.com/gpu-mem": 31, "nvidia.com/mig-1g.5gb": 7}
    cluster.put(offering("w1", {"aliyun.com/gpu-mem": "0", "nvidia.com/gpu": "0", "nvidia.com/mig-1g.5gb": "7"}))
    extra = {"__nvidia_driver_upgrade_read": encoded(tmp_path / "state" / "driver-upgrade.json")}
    hosts = {"w1": {**given, "nvidia_driver_upgrade_wait_timeout": 1}}
    told = refusals("nvidia_driver_upgrade", ["resume"], hosts, extra=extra)
    assert "node w1: 0 of 31 aliyun.com/gpu-mem allocatable; look at the pod of its device plugin" in told["w1"]
    assert "mig" not in told["w1"]


def test_what_was_offered_before_the_swap_is_not_taken_for_the_new_drivers(refusals, cluster, given, tmp_path):
    paused = {"gpu-kubernetes/paused": "nvidia-driver-upgrade"}
    owned = json.dumps({"nvidia_driver_upgrade": {key: {"set": value, "was": None} for key, value in paused.items()}})
    annotations = {"gpu-kubernetes/managed-labels": owned}
    cluster.put(offering("w1", {"nvidia.com/gpu": "2"}, labels=paused, annotations=annotations))
    reports, told = iter(["2", "2", "0"]), []  # the kubelet is late

    def report(_cluster):
        (item,) = cluster.all("Node")
        if "gpu-kubernetes/paused" in item["metadata"]["labels"]:
            item["status"]["allocatable"]["nvidia.com/gpu"] = next(reports, "0")
        else:
            told.append(item["status"]["allocatable"]["nvidia.com/gpu"])
            item["status"]["allocatable"]["nvidia.com/gpu"] = "2"

    cluster.look = report
    extra = {"__nvidia_driver_upgrade_read": encoded(note(tmp_path, offered={"nvidia.com/gpu": 2}))}
    hosts = {"w1": {**given, "nvidia_driver_upgrade_wait_timeout": 20}}
    assert refusals("nvidia_driver_upgrade", ["resume"], hosts, extra=extra) == {"w1": ""}
    assert told[0] == "0"


def test_nodes_of_a_batch_are_proved_by_what_each_offers(refusals, cluster, given):
    """It fails before there is a pod, and says what that would have asked for."""
    asked = {"a": "nvidia.com/gpu", "b": "nvidia.com/mig-1g.5gb", "c": "nvidia.com/gpu"}
    for name in asked:
        cluster.put(offering(name, {}))
    told = refusals(
        "nvidia_driver_upgrade",
        ["prove"],
        {name: {**given, "gpu_node_name": name, "offers": [resource]} for name, resource in asked.items()},
        facts={"nvml": {"gpus": [{}]}},
        extra={"gpu_preflight_gpus": {"ansible_facts": {}}, "__nvidia_driver_upgrade_testable": "{{ offers }}"},
    )
    for name, resource in asked.items():
        assert f"(node {name}) did not pass the GPU test: offers 0 {resource}, so" in told[name]


#: What a node offered, what else is asked, which resource a pod asks for, and why nothing is proved.
PROOFS = {
    "whole": ({"nvidia.com/gpu": 2}, {}, "nvidia.com/gpu", ""),
    "mixed": ({"nvidia.com/mig-2g.10gb": 1, "nvidia.com/mig-1g.5gb": 7}, {}, "nvidia.com/mig-1g.5gb", ""),
    "named": ({"a.example/gpu": 2}, {"nvidia_driver_upgrade_resource_name": "a.example/gpu"}, "a.example/gpu", ""),
    "shared": (
        {"aliyun.com/gpu-mem": 31, "aliyun.com/gpu-count": 2},
        {},
        "",
        "the node offers aliyun.com/gpu-count, aliyun.com/gpu-mem again, which the test asks for none of",
    ),
    "nothing": ({}, {}, "", "the node offered no GPUs before"),
    "untested": (
        {"nvidia.com/gpu": 2},
        {"nvidia_driver_upgrade_smoke_test": False},
        "nvidia.com/gpu",
        "nvidia_driver_upgrade_smoke_test is false",
    ),
}


def test_services_are_named_with_or_without_their_suffix(hear):
    services = {f"{name}.service": {"name": f"{name}.service", "state": state} for name, state in RUNNING.items()}
    variables = yaml.safe_load((ROOT / "roles" / "nvidia_driver_upgrade" / "vars" / "main.yml").read_text())
    units = variables["__nvidia_driver_upgrade_units"]
    named = ["dcgm", "exporter.service", "stopped", "nobody"]
    found = hear(
        {"w1": {"nvidia_driver_upgrade_services": named, "__nvidia_driver_upgrade_units": units}},
        [],
        variables["__nvidia_driver_upgrade_running"].strip().removeprefix("{{").removesuffix("}}").strip(),
        facts={"services": services},
    )
    assert found == ["dcgm.service", "exporter.service"]


def test_what_no_pod_has_proved_is_told(hear):
    role = ROOT / "roles" / "nvidia_driver_upgrade"
    defaults = {"nvidia_driver_upgrade_resource_name": "nvidia.com/gpu", "nvidia_driver_upgrade_smoke_test": True}
    hosts = {
        name: {**defaults, "record": {"offered": offered}, **asked} for name, (offered, asked, *_x) in PROOFS.items()
    }
    told = "[__nvidia_driver_upgrade_testable | first | default(''), __nvidia_driver_upgrade_unproved]"
    result = {**RESULT, "host": "{{ inventory_hostname }}", "state": "upgraded", "evicted": [], "waited_for": []}
    result["unproved"] = "{{ __nvidia_driver_upgrade_unproved }}"
    tasks = [{"ansible.builtin.set_fact": {"told": "{{ " + told + " }}", "one": result}}]
    play = {"hosts": "all", "gather_facts": False, "vars_files": [f"{role}/vars/main.yml"], "tasks": tasks}
    report = (
        "{'told': dict(ansible_play_hosts | zip(ansible_play_hosts | map('extract', hostvars, 'told'))), 'report': "
        f"lookup('ansible.builtin.template', '{role}/templates/report.j2', template_vars="
        "{'nvidia_driver_upgrade_report': ansible_play_hosts | map('extract', hostvars, 'one') | list}).splitlines()}"
    )
    heard = hear(hosts, [play], report, __nvidia_driver_upgrade_record="{{ record }}")
    assert heard["told"] == {name: list(expected) for name, (_offered, _asked, *expected) in PROOFS.items()}
    assert heard["report"][0] == "whole: upgraded (570.1 -> 580.1)"
    assert heard["report"][4:] == [
        "nothing: upgraded (570.1 -> 580.1); NOT PROVED by a pod: the node offered no GPUs before",
        "untested: upgraded (570.1 -> 580.1); NOT PROVED by a pod: nvidia_driver_upgrade_smoke_test is false",
    ]


def test_nodes_that_take_no_work_already_count(refusals, cluster, given):
    gpus = {"nvidia.com/gpu": "2"}
    for name, parts in {
        "w1": {},
        "w2": {},
        "w3": {},
        "away": {"unschedulable": True},
        "sick": {"ready": False, "unschedulable": True},
    }.items():
        cluster.put(offering(name, gpus, **parts))
    cluster.put(offering("no-gpu", {}, unschedulable=True))
    #: Hosts whose turn it is, by their nodes, and the limit; what is said, if anything.
    batches = [
        ({"a": "w1"}, 2, "with w1 more GPU nodes", "2", "are away, sick", "3"),
        ({"b": "w1"}, 3, ""),
        ({"c": "away", "d": "sick"}, 1, ""),
        ({"e": "w1", "f": "w2"}, "50%", "with w1, w2 more GPU nodes", "1", "are away, sick", "4"),
        ({"g": "w1", "h": "sick"}, 3, ""),
        ({"i": "w1", "j": "sick"}, 2, "with w1, sick more GPU nodes", "2", "is away", "3"),
    ]
    groups = [
        {
            host: {
                **given,
                "nvidia_driver_upgrade_max_unavailable": limit,
                "gpu_node_name": name,
                "nvidia_driver_upgrade_result": {"node": name},
            }
            for host, name in hosts.items()
        }
        for hosts, limit, *_words in batches
    ]
    told = refusals("nvidia_driver_upgrade", ["room"], *groups)
    for hosts, _limit, words, *more in batches:
        for host in hosts:
            assert bool(told[host]) is bool(words), told[host]
            if words:
                limit, others, needed = more
                assert told[host] == (
                    f"{host}: not begun, for {words} would take no work than the {limit} of nvidia_driver_upgrade_max_unavailable: "
                    f"cordoned or not Ready already {others}. Bring back what can be brought back, or set it to {needed} with -e."
                )


def test_an_api_server_that_does_not_tell_stops_the_batch(refusals, cluster, given):
    given["gpu_kubeconfig"] = str(write_kubeconfig("http://127.0.0.1:1", Path(given["gpu_kubeconfig"])))
    told = refusals("nvidia_driver_upgrade", ["room"], {"w1": given})
    assert told["w1"].startswith("w1: ")
    assert "127.0.0.1:1" in told["w1"]


@pytest.mark.parametrize(
    ("limit", "batches"),
    [
        (1, ["0 1", "1 1", "2 1", "3 1", "4 1"]),
        (2, ["0 1", "1 2", "3 2"]),
        ("60%", ["0 1", "1 3", "4 1"]),
    ],
)
def test_what_was_begun_goes_first_and_the_others_follow_in_batches(hear, limit, batches):
    first, second, _report = yaml.safe_load((ROOT / "playbooks" / "upgrade_nvidia_driver.yml").read_text())
    # They come through it in no order that is known.
    first = {"hosts": "all", "order": "reverse_inventory", "gather_facts": False, "tasks": first["tasks"][-2:]}
    assert all("ansible.builtin.group_by" in task for task in first["tasks"])
    second = {key: second[key] for key in ("hosts", "serial", "gather_facts")}
    # The hosts of a batch, and how many had their turn before.
    had = "{{ ansible_play_hosts_all | map('extract', hostvars) | selectattr('batch', 'defined') | list | length }}"
    keep = [
        {"ansible.builtin.set_fact": {"had": had}},
        {"ansible.builtin.set_fact": {"batch": "{{ had }} {{ ansible_play_batch | length }}"}},
    ]
    states = {**dict.fromkeys("abcde", "due"), "f": "unchanged"}
    hosts = {
        name: {"nvidia_driver_upgrade_result": {"state": state, "resumed": name == "e"}}
        for name, state in states.items()
    }
    told = hear(
        hosts,
        [first, {**second, "tasks": keep}],
        "'eabcd' | map('extract', hostvars, 'batch') | unique | list",
        nvidia_driver_upgrade_max_unavailable=limit,
    )
    assert told == batches, "first the one that was begun, then all others in the inventory's order"


def test_why_it_failed_first_is_told_first(hear):
    reasons = {"alone": "", "before": "first.", "within": "second"}
    results = {name: {"nvidia_driver_upgrade_result": {**RESULT, "reason": reason}} for name, reason in reasons.items()}
    tasks = [
        {
            "block": [{"ansible.builtin.fail": {"msg": "second."}}],
            "rescue": [{"ansible.builtin.include_role": {"name": ROLE, "tasks_from": "failed"}}],
        }
    ]
    told = hear(
        results,
        [{"hosts": "all", "gather_facts": False, "tasks": tasks}],
        "ansible_play_hosts | map('extract', hostvars, 'nvidia_driver_upgrade_result') | map(attribute='reason') | list",
    )
    assert told == ["second.", "first. second.", "second."]


def test_the_undo_gives_a_node_back_whose_upgrade_was_cut_off(run, cluster, given, tmp_path):
    cluster.put(offering("w1", {"nvidia.com/gpu": "2"}, labels={"theirs": "1"}))
    kept = copy.deepcopy(cluster.all("Node")[0])

    def play(*parts, check=False):
        vars_ = {**given, "nvidia_driver_upgrade_labels": {"theirs": "paused"}, "gpu_node_maintenance_scope": "none"}
        tasks = [
            {"ansible.builtin.include_role": {"name": ROLE, "tasks_from": part}, "vars": more} for part, more in parts
        ]
        playbook = tmp_path / "undo.yml"
        playbook.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "vars": vars_, "tasks": tasks}]))
        inventory = "w1 ansible_connection=local ansible_become=false\n"
        code, said = run(inventory, playbook, *(["--check"] if check else []))
        assert code == 0, said
        return int(said.rpartition("changed=")[2].split()[0])

    def state():
        (item,) = cluster.all("Node")
        return item["spec"], item["metadata"].get("labels"), item["metadata"].get("annotations") or {}

    before = state()
    assert play(("absent", {})) == 0
    play(("begin", {}), ("api", {"__nvidia_driver_upgrade_step": "pause"}))
    path, paused = note(tmp_path, phase="swapping"), copy.deepcopy(state())
    assert paused[0]["unschedulable"]
    assert paused[1] == {"theirs": "paused", "gpu-kubernetes/paused": "nvidia-driver-upgrade"}
    assert play(("absent", {}), check=True) == 3
    assert (state(), path.exists()) == (paused, True)
    assert play(("absent", {})) == 3
    assert (state(), path.exists()) == (before, False)
    assert play(("absent", {})) == 0
    assert kept["metadata"]["labels"] == {"theirs": "1"}
    # Nothing is left to be taken off one that has left the cluster.
    cluster.objects.clear()
    path = note(tmp_path, phase="swapping")
    assert (play(("absent", {})), path.exists()) == (1, False)
