# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rollback of an upgrade: its requirements, its resumption, and the undo."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import re

import pytest
import yaml

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import DEBIAN, ROOT
from ansible_collections.gpu.kubernetes.tests.unit.roles.nvidia_driver_upgrade.upgrade_objects import (
    ANY_HOST,
    PLAN,
    RESULT,
    ROLE,
    encode_record,
    make_node,
    write_record,
)

if os.geteuid() != 0:
    pytest.skip("only root gives files to root", allow_module_level=True)


def test_mig_devices_without_a_service_are_refused(refusals, host_variables, tmp_path, nvml_builder):
    write_record(tmp_path, phase="rolling_back")
    (tmp_path / "managed.service").touch()
    variables = {**host_variables, **ANY_HOST, "nvidia_driver_state_dir": str(tmp_path)}
    results = refusals(
        "nvidia_driver_upgrade",
        ["plan"],
        {
            "lost": variables,
            "kept": {**variables, "nvidia_driver_upgrade_mig_services": ["nvidia-mig-manager"]},
            "managed": variables,
        },
        facts=DEBIAN,
        extra={"__nvidia_driver_upgrade_mig_file": f"{tmp_path}/{{{{ inventory_hostname }}}}.service"},
        module_defaults={
            "gpu.kubernetes.nvml_facts": {
                "library": nvml_builder.library("h100-mig"),
                "pci_path": nvml_builder.pci("h100-mig"),
            }
        },
    )
    assert re.match("lost: MIG is enabled on 0000:[0-9a-f:.]+(, [0-9a-f:.]+)*, and MIG devices are", results["lost"]), (
        results
    )
    assert (results["kept"], results["managed"]) == ("", "")


def test_upgrade_and_the_role_mig_name_the_same_unit():
    upgrade, mig = (
        yaml.safe_load((ROOT / "roles" / role / "vars" / "main.yml").read_text())
        for role in ("nvidia_driver_upgrade", "mig")
    )
    assert upgrade["__nvidia_driver_upgrade_mig_file"] == f"{mig['__mig_units']}/{mig['__mig_unit']}"


#: Variables of a run that finds an interrupted rollback, the message or the final state, and the last recorded phase.
ROLLBACKS = {
    "stuck": (
        {},
        "no GPU answers. Node stuck stays cordoned, because the rollback to driver 570.1 failed too",
        "rolling_back",
    ),
    "neither": ({"nvidia_driver_upgrade_rollback": False}, "because nvidia_driver_upgrade_rollback is", "installing"),
    "forward": ({"nvidia_driver_upgrade_rollback": False, "nvidia_driver_method": "none"}, "upgraded", ""),
}

# A service that runs is a file.
SYSTEMCTL = """#!/bin/sh
cd {folder}
case $1 in
    show) echo LoadState=loaded; [ -e $2 ] && echo ActiveState=active || echo ActiveState=inactive; exit ;;
    start) touch $2 ;;
    stop) rm $2 ;;
esac
echo $1 $2 >> calls
"""


#: The phase of a killed run, the services in its record, those that the next run starts in reverse order, and its result. The exporter runs, and
#: the next run adds it to the record. The hosts have the unit of the role mig, which restores MIG devices that a change of the driver has removed.
STOPPED = {
    "stopping": (
        ["unnamed.service", "dcgm.service"],
        ["gpu-kubernetes-mig.service", "unnamed.service", "dcgm.service", "exporter.service"],
        "upgraded",
    ),
    "rolling_back": (
        ["dcgm.service"],
        ["gpu-kubernetes-mig.service", "dcgm.service", "exporter.service"],
        "no GPU answers. Driver 570.1 is restored, and the maintenance of node rolling_back has ended.",
    ),
}


def test_interrupted_rollback_is_resumed_and_stopped_services_are_started(refusals, cluster, host_variables, tmp_path):
    """The hosts have no driver: the method preinstalled fails, and the method none does not."""
    hosts, paths = {}, {}

    def add(name, phase, services, running, **variables):
        state = tmp_path / name
        state.mkdir()
        for service in running:
            (state / service).touch()
        (state / "systemctl").write_text(SYSTEMCTL.format(folder=state))
        (state / "systemctl").chmod(0o755)
        cluster.put(make_node(name, {}))
        paths[name] = write_record(state, phase=phase, reason="no GPU answers.", services=services)
        hosts[name] = {
            **host_variables,
            "gpu_node_name": name,
            "nvidia_driver_upgrade_state_dir": str(state),
            "nvidia_driver_upgrade_result": {**RESULT, "host": name, "node": name},
            # Not an extra variable: each record is read again.
            "__nvidia_driver_upgrade_read": encode_record(paths[name]),
            "__nvidia_driver_upgrade_mig_unit": {"stat": {"exists": bool(services)}},
            "running": running,
            "nvidia_driver_upgrade_max_unavailable": 5,
            **variables,
        }

    for name, (variables, *_result) in ROLLBACKS.items():
        add(name, "rolling_back", [], [], **variables)
    for phase, (recorded, *_result) in STOPPED.items():
        services = {"nvidia_driver_upgrade_services": ["exporter", "dcgm"], "nvidia_driver_method": "none"}
        add(phase, phase, recorded, ["exporter.service"], **services)
    results = refusals(
        "nvidia_driver_upgrade",
        ["upgrade"],
        hosts,
        fact="nvidia_driver_upgrade_result.state",
        extra={
            "__nvidia_driver_upgrade_running": "{{ running }}",
            "__nvidia_driver_upgrade_users": {"users": [], "reboot_reasons": []},
            "gpu_preflight_gpus": {"ansible_facts": {}},
        },
        facts={"nvml": {"gpus": []}},
        environment={"PATH": f"{tmp_path}/{{{{ inventory_hostname }}}}:{os.environ['PATH']}"},
    )
    for name, (_variables, words, phase) in ROLLBACKS.items():
        assert words in results[name]
        assert (json.loads(paths[name].read_text())["phase"] if paths[name].exists() else "") == phase, name
    cordoned = {item["metadata"]["name"] for item in cluster.all("Node") if item["spec"].get("unschedulable")}
    assert cordoned == {"stuck", "neither"}
    for name, (_recorded, started, result) in STOPPED.items():
        calls = (tmp_path / name / "calls").read_text().splitlines()
        assert calls == ["stop exporter.service", *(f"start {service}" for service in started)], name
        assert (results[name], paths[name].exists()) == (result, False)


def test_check_mode_predicts_the_rollback(run, cluster, host_variables, tmp_path):
    """Of two hosts, one after the other; the run would not reach the second one."""
    for name in ("w1", "w2"):
        cluster.put(make_node(name, {}))
    path = write_record(tmp_path, phase="rolling_back", reason="no GPU answers.")
    _connect, _first, upgrades, report = yaml.safe_load((ROOT / "playbooks" / "upgrade_nvidia_driver.yml").read_text())
    for play in (upgrades, report):
        play.pop("roles")
        play["hosts"] = "w1,w2"
    (steps,) = yaml.safe_load((ROOT / "playbooks" / "tasks" / "upgrade_host.yml").read_text())
    steps["block"] = [step for step in steps["block"] if step["name"] != "Count the unavailable GPU nodes"]
    upgrades["tasks"][-1] = steps
    playbook = tmp_path / "check.yml"
    playbook.write_text(json.dumps([upgrades, report]))
    hosts = {
        name: {
            **host_variables,
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
            "__nvidia_driver_upgrade_read": encode_record(path),
        }
        for name in ("w1", "w2")
    }
    code, output = run({"all": {"hosts": hosts}}, playbook, "--check")
    assert code != 0
    output = " ".join(output.split())
    assert "w1: driver 570.1 would be restored." in output
    assert "no GPU answers. Driver 570.1 would be restored, and the maintenance of node w1 would end." in output
    assert "w1: would be rolled back (570.1 -> 580.1)" in output
    assert "w2: not reached (570.1 -> 580.1)" in output
    assert "would be replaced with" not in output
    assert json.loads(path.read_text())["phase"] == "rolling_back"


def test_report_lists_hosts_that_the_run_has_left_out(run, tmp_path):
    *_plays, report = yaml.safe_load((ROOT / "playbooks" / "upgrade_nvidia_driver.yml").read_text())
    report.pop("roles")
    report["hosts"] = "w1"
    playbook = tmp_path / "report.yml"
    playbook.write_text(json.dumps([report]))
    result = {**RESULT, "host": "w1", "state": "upgraded", "evicted": [], "waited_for": []}
    inventory = {
        "all": {"hosts": {"w1": {"ansible_connection": "local", "nvidia_driver_upgrade_result": result}}},
        "gpu_nodes_left_out": {"hosts": {"w9": {}}},
    }
    # AWX passes the artifacts of a workflow's earlier jobs as extra variables.
    stale = [{**result, "host": "earlier", "state": "failed"}]
    environment = {"ANSIBLE_SHOW_CUSTOM_STATS": "1"}
    code, output = run(inventory, playbook, environment=environment, gpu_upgrade_report=stale)
    assert code == 0, output
    artifact = output.partition("CUSTOM STATS")[2]
    assert ("left_out" in artifact, "earlier" in artifact) == (True, False), output
    assert "w9: unreachable, and left out; restore its connection, and run again" in output
    assert "w1: upgraded (570.1 -> 580.1)" in output


#: The recorded former installer, and the message.
INSTALLERS = {
    "missing": (
        {"url": "file:///nonexistent/former.run", "checksum": "sha256:" + "0" * 64},
        "which a rollback needs, is not",
    ),
    "not-needed": ({}, ""),
}


def test_former_installer_is_fetched_before_the_node_changes(refusals, host_variables, tmp_path):
    new = tmp_path / "new.run"
    new.write_text("an installer")
    installer = {"url": new.as_uri(), "checksum": "sha256:" + hashlib.sha256(new.read_bytes()).hexdigest()}
    hosts = {}
    for name, (runfile, _words) in INSTALLERS.items():
        (tmp_path / name).mkdir()
        path = write_record(tmp_path / name, former={"version": "570.1", "runfile": runfile})
        hosts[name] = {
            **host_variables,
            "nvidia_driver_method": "runfile",
            "nvidia_driver_runfile": installer,
            "nvidia_driver_upgrade_state_dir": str(tmp_path / name),
            "nvidia_driver_state_dir": str(tmp_path / name),
            "__nvidia_driver_upgrade_read": encode_record(path),
        }
    results = refusals("nvidia_driver_upgrade", ["fetch"], hosts)
    for name, (_runfile, words) in INSTALLERS.items():
        assert words in results[name]
        assert bool(words) is bool(results[name])
        assert (tmp_path / name / "driver-runfile" / "installer.run").read_text() == "an installer"


def test_undo_of_an_interrupted_upgrade_uncordons_the_node(run, cluster, host_variables, tmp_path):
    """A node that has left the cluster has nothing to undo."""
    pause = {"gpu-kubernetes/paused": "nvidia-driver-upgrade", "unmanaged": "paused"}
    former = {"unmanaged": "1"}
    owned = {"nvidia_driver_upgrade": {key: {"set": value, "was": former.get(key)} for key, value in pause.items()}}
    maintenance = {"was_schedulable": True, "reason": "NVIDIA driver upgrade", "since": "2026-01-01T00:00:00Z"}
    annotations = {
        "gpu-kubernetes/maintenance": json.dumps(maintenance),
        "gpu-kubernetes/managed-labels": json.dumps(owned),
    }
    paused = cluster.put(
        make_node("w1", {"nvidia.com/gpu": "2"}, unschedulable=True, labels=pause, annotations=annotations)
    )
    before = copy.deepcopy(paused)
    hosts, paths = {}, {}
    for name in ("w1", "gone"):
        (tmp_path / name).mkdir()
        paths[name] = write_record(tmp_path / name, phase="installing")
        hosts[name] = {
            **host_variables,
            "ansible_connection": "local",
            "ansible_become": False,
            "gpu_node_name": name,
            "nvidia_driver_upgrade_state_dir": str(tmp_path / name),
            "nvidia_driver_upgrade_labels": {"unmanaged": "paused"},
        }
    tasks = [{"ansible.builtin.include_role": {"name": ROLE, "tasks_from": "absent"}}]
    playbook = tmp_path / "undo.yml"
    playbook.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": tasks}]))

    def undo(*options):
        code, output = run({"all": {"hosts": hosts}}, playbook, *options)
        assert code == 0, output
        changes = dict(re.findall(r"^(\w+) .*changed=(\d+)", output, re.MULTILINE))
        (node,) = cluster.all("Node")
        return changes, node, [path.exists() for path in paths.values()]

    assert undo("--check") == ({"w1": "3", "gone": "1"}, before, [True, True])
    changes, node, exist = undo()
    assert (changes, exist) == ({"w1": "3", "gone": "1"}, [False, False])
    assert not node["spec"].get("unschedulable")
    assert (node["metadata"]["labels"], node["metadata"].get("annotations") or {}) == (former, {})
