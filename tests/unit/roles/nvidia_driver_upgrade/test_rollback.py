# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way back of an upgrade: what it needs, how it is gone on with, and the undo."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import re

import pytest
import yaml

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import DEBIAN, ROOT, task_of
from ansible_collections.gpu.kubernetes.tests.unit.roles.nvidia_driver_upgrade.upgraded import (
    ANY_HOST,
    PLAN,
    RESULT,
    ROLE,
    encoded,
    note,
    offering,
)

if os.geteuid() != 0:
    pytest.skip("only root gives files to root", allow_module_level=True)


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


def test_an_upgrade_without_a_way_back(made, tmp_path):
    """One that is half way has its own; one that has only to give the node back needs none, and one that begins anew after that does."""
    task = task_of("nvidia_driver_upgrade", "plan", "Refuse an upgrade without a rollback")
    hosts = {}
    for name, (phase, due, _refused) in WANTS.items():
        plan = {**PLAN, "due": due, "no_way_back": f"{name}: it is gone"}
        hosts[name] = {"nvidia_driver_plan": plan}
        if phase:
            (tmp_path / name).mkdir()
            hosts[name]["__nvidia_driver_upgrade_read"] = encoded(note(tmp_path / name, phase=phase))
    hosts["given-up"] = {**hosts["none"], "nvidia_driver_upgrade_rollback": False}
    told = made("nvidia_driver_upgrade", hosts, "''", task)
    for name, (*_what, refused) in {**WANTS, "given-up": (None, True, False)}.items():
        assert (told[name] or "") == (
            f"{name}: the installed driver could not be restored if the new one failed: it is gone. "
            "Set nvidia_driver_upgrade_rollback to false to upgrade without a rollback."
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
    assert re.match("lost: MIG is enabled on 0000:[0-9a-f:.]+(, [0-9a-f:.]+)*, and MIG devices are", told["lost"]), told
    assert told["kept"] == ""


#: Variables of a run that finds a way back begun; what it says, or else how it ends, and the phase that is noted last.
WAYS = {
    "stuck": (
        {},
        "no GPU answers. Node {} stays cordoned, because the rollback to driver 570.1 failed too",
        "returning",
    ),
    "neither": ({"nvidia_driver_upgrade_rollback": False}, "because nvidia_driver_upgrade_rollback is", "swapping"),
    "forward": ({"nvidia_driver_upgrade_rollback": False, "nvidia_driver_method": "none"}, "upgraded", ""),
}


def test_a_way_back_that_was_cut_off_is_gone_on_with(refusals, cluster, given, tmp_path):
    """The hosts have no driver: the method preinstalled fails, and the method none does not."""
    hosts, paths = {}, {}
    for name, (asked, *_result) in WAYS.items():
        state = tmp_path / name
        state.mkdir()
        cluster.put(offering(name, {}))
        paths[name] = note(state, phase="returning", reason="no GPU answers.")
        hosts[name] = {
            **given,
            "gpu_node_name": name,
            "nvidia_driver_upgrade_state_dir": str(state),
            "nvidia_driver_upgrade_result": {**RESULT, "host": name, "node": name},
            "__nvidia_driver_upgrade_read": encoded(paths[name]),
            **asked,
        }
    told = refusals(
        "nvidia_driver_upgrade",
        ["upgrade"],
        hosts,
        fact="nvidia_driver_upgrade_result.state",
        extra={"__nvidia_driver_upgrade_running": [], "gpu_preflight_gpus": {"ansible_facts": {}}},
        facts={"nvml": {"gpus": []}},
    )
    for name, (_asked, said, phase) in WAYS.items():
        assert said.format(name) in told[name]
        assert (json.loads(paths[name].read_text())["phase"] if paths[name].exists() else "") == phase, name
    cordoned = {item["metadata"]["name"] for item in cluster.all("Node") if item["spec"].get("unschedulable")}
    assert cordoned == {"stuck", "neither"}


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
        "returning": "no GPU answers. Driver 570.1 is restored, and the maintenance of node returning has ended.",
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
    _connect, _first, upgrades, report = yaml.safe_load((ROOT / "playbooks" / "upgrade_nvidia_driver.yml").read_text())
    for play in (upgrades, report):
        play.pop("vars_files")
        play["hosts"] = "w1,w2"
    upgrades["tasks"][0]["ansible.builtin.include_tasks"] = str(ROOT / "playbooks" / "tasks" / "stop_upgrade.yml")
    (steps,) = yaml.safe_load((ROOT / "playbooks" / "tasks" / "upgrade_host.yml").read_text())
    steps["block"] = [step for step in steps["block"] if step["name"] != "Count the unavailable GPU nodes"]
    upgrades["tasks"][1] = steps
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
    assert "w1: driver 570.1 would be restored." in said
    assert "no GPU answers. Driver 570.1 would be restored, and the maintenance of node w1 would end." in said
    assert "w1: would be rolled back (570.1 -> 580.1)" in said
    assert "w2: not reached (570.1 -> 580.1)" in said
    assert "would be replaced with" not in said
    assert json.loads(path.read_text())["phase"] == "returning"
    code, said = run({"all": {"hosts": hosts}}, playbook, "--check", nvidia_driver_upgrade_rollback=False)
    said = " ".join(said.split())
    assert code == 0, said
    for name in ("w1", "w2"):
        assert f"{name}: driver 570.1 would be replaced with 580.1." in said
        assert f"{name}: would be upgraded (570.1 -> 580.1)" in said


#: What is known of the former installer, and what the refusal says.
INSTALLERS = {
    "gone": (
        {"url": "file:///nonexistent/former.run", "checksum": "sha256:" + "0" * 64},
        "which a rollback needs, is not",
    ),
    "not-needed": ({}, ""),
}


def test_the_way_back_lies_ready_before_the_node_is_touched(refusals, given, tmp_path):
    new = tmp_path / "new.run"
    new.write_text("an installer")
    asked = {"url": new.as_uri(), "checksum": "sha256:" + hashlib.sha256(new.read_bytes()).hexdigest()}
    hosts = {}
    for name, (runfile, _said) in INSTALLERS.items():
        (tmp_path / name).mkdir()
        path = note(tmp_path / name, former={"version": "570.1", "runfile": runfile})
        hosts[name] = {
            **given,
            "nvidia_driver_method": "runfile",
            "nvidia_driver_runfile": asked,
            "nvidia_driver_upgrade_state_dir": str(tmp_path / name),
            "nvidia_driver_state_dir": str(tmp_path / name),
            "__nvidia_driver_upgrade_read": encoded(path),
        }
    told = refusals("nvidia_driver_upgrade", ["fetch"], hosts)
    for name, (_runfile, said) in INSTALLERS.items():
        assert said in told[name]
        assert bool(said) is bool(told[name])
        assert (tmp_path / name / "driver-runfile" / "installer.run").read_text() == "an installer"


def test_the_undo_gives_a_node_back_whose_upgrade_was_cut_off(run, cluster, given, tmp_path):
    cluster.put(offering("w1", {"nvidia.com/gpu": "2"}, labels={"theirs": "1"}))
    kept = copy.deepcopy(cluster.all("Node")[0])

    def play(*parts, check=False):
        vars_ = {**given, "nvidia_driver_upgrade_labels": {"theirs": "paused"}, "gpu_node_maintenance_scope": "none"}
        tasks = [
            {"ansible.builtin.include_role": {"name": ROLE, "tasks_from": part}} if isinstance(part, str) else part
            for part in parts
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
    labels = {"theirs": "paused", "gpu-kubernetes/paused": "nvidia-driver-upgrade"}
    pause = {"kubeconfig": given["gpu_kubeconfig"], "owner": "nvidia_driver_upgrade", "nodes": {"w1": labels}}
    play("begin", {"gpu.kubernetes.node_labels": pause})
    path, paused = note(tmp_path, phase="swapping"), copy.deepcopy(state())
    assert paused[0]["unschedulable"]
    assert paused[1] == labels
    assert play("absent", check=True) == 3
    assert (state(), path.exists()) == (paused, True)
    assert play("absent") == 3
    assert (state(), path.exists()) == (before, False)
    assert kept["metadata"]["labels"] == {"theirs": "1"}
    # Nothing is left to be taken off one that has left the cluster.
    cluster.objects.clear()
    path = note(tmp_path, phase="swapping")
    assert (play("absent"), path.exists()) == (1, False)
