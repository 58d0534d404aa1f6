# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes wrong on a node: containerd that does not come back, a run that was cut off.

A malformed file is among the faults of the scenario default, a program that is not there in the unit tests.
On one machine with containerd 2 and one with containerd 1.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import testinfra

CONFIG = "/etc/containerd/config.toml"
PENDING = "/var/lib/gpu-kubernetes/pending/containerd.restart"
CONVERGE = str(Path(__file__).parents[1] / "converge.yml")
Converge = Callable[..., tuple[int, dict[str, dict[str, int]], str]]
Machines = list[Any]


@pytest.fixture
def names(inventory: dict[str, Any]) -> list[str]:
    """The machines that suffer; the others are only more of the same."""
    return list(inventory["all"]["children"]["gpu_nodes"]["hosts"])[:2]


@pytest.fixture
def machines(request: pytest.FixtureRequest, names: list[str]) -> Machines:
    """One run of a playbook for all, each looked at afterwards."""
    path = request.config.getoption("--ansible-inventory")
    return [testinfra.get_host(f"ansible://{name}?ansible_inventory={path}") for name in names]


@pytest.fixture
def converge(playbook: Converge, names: list[str]) -> Converge:
    """Run the role on them."""
    return lambda *words: playbook(CONVERGE, "--limit", ",".join(names), *words)


def _daemons(machines: Machines) -> list[str]:
    return [machine.check_output("systemctl show containerd --property=MainPID,ActiveState") for machine in machines]


def _configurations(machines: Machines) -> list[bytes]:
    return [machine.file(CONFIG).content for machine in machines]


def test_daemon_that_does_not_come_back_gets_its_file_back(machines: Machines, converge: Converge) -> None:
    before = _configurations(machines)
    # containerd accepts the file and then cannot listen there
    wrong = '{"containerd_nvidia_settings": {"grpc": {"address": "/proc/no/such.sock"}}}'
    code, recap, said = converge("-e", wrong)
    assert code != 0
    assert all(counts["failed"] == 1 for counts in recap.values()), said
    assert " ".join(said.split()).count("the former one was restored and works") >= len(machines), said
    assert "/proc/no" in said, "the daemon's own words are missing"
    assert _configurations(machines) == before
    assert all(machine.service("containerd").is_running for machine in machines)
    code, recap, said = converge()
    assert code == 0, said
    assert all(counts["changed"] == 0 for counts in recap.values()), said


def test_a_restart_that_is_due_is_made_up_for_unless_somebody_else_did(machines: Machines, converge: Converge) -> None:
    """As after a run that was killed between merge and restart: the file is new, the daemon is not. The first machine reboots then."""
    daemons = _daemons(machines)
    asked = ["-e", '{"containerd_nvidia_set_default": true, "containerd_nvidia_settings": {"oom_score": -1}}']
    # a word, as key=value gives it
    code, _recap, said = converge(*asked, "-e", "container_runtime_restart_ok=false")
    assert code == 0, said
    assert _daemons(machines) == daemons
    assert all(machine.file(PENDING).exists for machine in machines)
    machines[0].check_output("systemctl restart containerd")
    daemons = _daemons(machines)
    code, _recap, said = converge(*asked)
    assert code == 0, said
    assert [new == old for new, old in zip(_daemons(machines), daemons, strict=True)] == [True, False]
    assert not any(machine.file(PENDING).exists for machine in machines)
    assert all(b"default_runtime_name" in text for text in _configurations(machines))
    code, _recap, said = converge("-e", '{"containerd_nvidia_set_default": false}')
    assert code == 0, said
    for text in _configurations(machines):
        assert b"default_runtime_name = 'nvidia'" not in text.replace(b'"', b"'")


def test_toolkit_stays_as_long_as_containerd_may_use_it(machines: Machines, converge: Converge) -> None:
    daemons = _daemons(machines)
    code, _recap, said = converge("-e", '{"containerd_nvidia_state": "absent", "container_runtime_restart_ok": false}')
    assert code == 0, said
    assert "KEPT: " in said
    assert all(machine.package("nvidia-container-toolkit").is_installed for machine in machines)
    assert _daemons(machines) == daemons
    code, _recap, said = converge()
    assert code == 0, said
    for machine in machines:
        assert "nvidia-container-runtime" in machine.check_output("containerd config dump 2>/dev/null")
