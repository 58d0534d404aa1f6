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


def read_waits():
    """An expression of the waits of the verification."""
    folder = ROOT / "roles" / "kube_scheduler_extender" / "tasks"
    verify, probe = (
        list(list_tasks(yaml.safe_load((folder / f"{name}.yml").read_text()))) for name in ("verify", "api_probe")
    )
    (health,) = (task for task in verify if "until" in task)
    waits = {
        "health": [health["retries"], health["delay"], health["ansible.builtin.uri"]["timeout"]],
        "probe": [task["timeout"] for task in probe if "timeout" in task],
    }
    return re.sub(r"['\"]?[{]{2}|[}]{2}['\"]?", "", str(waits))


VERSION = "kube_scheduler_extender_kubernetes_version"
#: The answer of a survey, and what the role reads. YAML reads an empty answer as nothing, and a version of two numbers as a decimal.
ANSWERS = {"nothing": (None, "left out"), "empty": ("", "left out"), "text": ("1.34.4", "1.34.4"), "number": (1.3, "")}
DOCKER_LOG = f"/var/lib/docker/containers/{'a' * 64}/{'a' * 64}-json.log"
#: What is at the path of a log, and the path that is read: a pod that may write to /var/log chooses the target of a link.
LOGS = {
    "file": ({"stat": {"exists": True, "isreg": True, "path": "/var/log/pods/a/0.log"}}, "/var/log/pods/a/0.log"),
    "docker": ({"stat": {"exists": True, "isreg": False, "lnk_source": DOCKER_LOG}}, DOCKER_LOG),
    "secret": ({"stat": {"exists": True, "isreg": False, "lnk_source": "/etc/kubernetes/admin.conf"}}, ""),
    "near": ({"stat": {"exists": True, "isreg": False, "lnk_source": f"{DOCKER_LOG}/../../x"}}, ""),
    "fifo": ({"stat": {"exists": True, "isreg": False}}, ""),
    "gone": ({"stat": {"exists": False}}, ""),
    "failed": ({"msg": "no"}, ""),
}
PLANES = ("cp1", "cp2", "cp3")


def test_variables_are_computed_from_those_of_the_host(evaluate_role) -> None:
    """One run for all: each host shows a variable of its own. The control planes are the last hosts."""
    version = "{{ __" + VERSION + " | default('left out', true) }}"
    waits = "{{ {'sum': __kube_scheduler_extender_verify_seconds, 'waits': " + read_waits() + "} }}"
    hosts = {
        **{name: {VERSION: answer, "shown": version} for name, (answer, _read) in ANSWERS.items()},
        **{
            name: {"__kube_scheduler_extender_log": log, "shown": "{{ __kube_scheduler_extender_log_path }}"}
            for name, (log, _path) in LOGS.items()
        },
        **{name: {"kube_scheduler_extender_timeout": 180, "shown": waits} for name in PLANES},
    }
    found = evaluate_role("kube_scheduler_extender", hosts, "shown")
    assert f"{VERSION} is 1.3, a number that may have lost its last digits" in found["number"]
    assert {name: found[name] for name in ANSWERS if name != "number"} == {
        name: read for name, (_answer, read) in ANSWERS.items() if name != "number"
    }
    assert {name: found[name] for name in LOGS} == {name: path for name, (_log, path) in LOGS.items()}
    check_waits({name: found[name] for name in PLANES})


def check_waits(found) -> None:
    """The node restores after all waits of the verification: of each control plane from the host on, since the last one verifies the change of the first."""
    retries, delay, timeout = map(int, found["cp3"]["waits"]["health"])
    # A request for the pod that begins at the end of its wait lasts up to 100 seconds.
    expected = 180 + 100 + (retries + 1) * (delay + timeout) + sum(map(int, found["cp3"]["waits"]["probe"]))
    assert expected <= int(found["cp3"]["sum"]) <= expected + 60
    assert [int(found[name]["sum"]) / int(found["cp3"]["sum"]) for name in PLANES] == [3, 2, 1]
