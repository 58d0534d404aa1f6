# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables that the role computes."""

from __future__ import annotations

import re

import yaml

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT


def list_tasks(tasks):
    for task in tasks:
        yield task
        yield from list_tasks([*task.get("block", []), *task.get("always", [])])


def test_node_restores_after_all_waits_of_the_verification(evaluate_role) -> None:
    """On each control plane from the host on, since the last one verifies the change of the first one."""
    folder = ROOT / "roles" / "kube_scheduler_extender" / "tasks"
    verify, probe = (
        list(list_tasks(yaml.safe_load((folder / f"{name}.yml").read_text()))) for name in ("verify", "api_probe")
    )
    (health,) = (task for task in verify if "until" in task)
    waits = {
        "health": [health["retries"], health["delay"], health["ansible.builtin.uri"]["timeout"]],
        "probe": [task["timeout"] for task in probe if "timeout" in task],
    }
    expression = (
        "{'sum': __kube_scheduler_extender_verify_seconds, 'waits': "
        + re.sub(r"['\"]?[{]{2}|[}]{2}['\"]?", "", str(waits))
        + "}"
    )
    hosts = {name: {"kube_scheduler_extender_timeout": 180} for name in ("cp1", "cp2", "cp3")}
    found = evaluate_role("kube_scheduler_extender", hosts, expression)
    retries, delay, timeout = map(int, found["cp3"]["waits"]["health"])
    # A request for the pod that begins at the end of its wait lasts up to 100 seconds.
    expected = 180 + 100 + (retries + 1) * (delay + timeout) + sum(map(int, found["cp3"]["waits"]["probe"]))
    assert expected <= int(found["cp3"]["sum"]) <= expected + 60
    assert [int(found[name]["sum"]) / int(found["cp3"]["sum"]) for name in hosts] == [3, 2, 1]


def test_kubernetes_version_of_a_survey_is_left_out_read_or_refused(evaluate_role) -> None:
    """YAML reads an empty answer as nothing, and a version of two numbers as a decimal."""
    name = "kube_scheduler_extender_kubernetes_version"
    answers = {"nothing": None, "empty": "", "text": "1.34.4", "number": 1.3}
    hosts = {host: {name: answer} for host, answer in answers.items()}
    found = evaluate_role("kube_scheduler_extender", hosts, f"__{name} | default('left out', true)")
    assert f"{name} is 1.3, a number that may have lost its last digits" in found.pop("number")
    assert found == {"nothing": "left out", "empty": "left out", "text": "1.34.4"}


DOCKER_LOG = f"/var/lib/docker/containers/{'a' * 64}/{'a' * 64}-json.log"


def test_log_that_is_a_link_to_another_file_is_not_read(evaluate_role) -> None:
    """A pod that may write to /var/log chooses the target of the link."""
    states = {
        "file": ({"exists": True, "isreg": True, "path": "/var/log/pods/a/0.log"}, "/var/log/pods/a/0.log"),
        "docker": ({"exists": True, "isreg": False, "lnk_source": DOCKER_LOG}, DOCKER_LOG),
        "secret": ({"exists": True, "isreg": False, "lnk_source": "/etc/kubernetes/admin.conf"}, ""),
        "near": ({"exists": True, "isreg": False, "lnk_source": f"{DOCKER_LOG}/../../x"}, ""),
        "fifo": ({"exists": True, "isreg": False}, ""),
        "gone": ({"exists": False}, ""),
    }
    hosts = {name: {"__kube_scheduler_extender_log": {"stat": state}} for name, (state, _path) in states.items()}
    hosts["failed"] = {"__kube_scheduler_extender_log": {"msg": "no"}}
    found = evaluate_role("kube_scheduler_extender", hosts, "__kube_scheduler_extender_log_path")
    assert found == {**{name: path for name, (_state, path) in states.items()}, "failed": ""}
