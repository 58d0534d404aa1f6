# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults on a node: containerd fails to start, and a run is interrupted. One machine has containerd 2, one has containerd 1.

The scenario default tests a malformed file; the unit tests test a missing program.
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
    """The machines with faults: the first two."""
    return list(inventory["all"]["children"]["gpu_nodes"]["hosts"])[:2]


@pytest.fixture
def machines(request: pytest.FixtureRequest, names: list[str]) -> Machines:
    """The same machines for testinfra."""
    path = request.config.getoption("--ansible-inventory")
    return [testinfra.get_host(f"ansible://{name}?ansible_inventory={path}") for name in names]


@pytest.fixture
def converge(playbook: Converge, names: list[str]) -> Converge:
    """Run the role on these machines."""
    return lambda *words: playbook(CONVERGE, "--limit", ",".join(names), *words)


def _read_daemons(machines: Machines) -> list[str]:
    return [machine.check_output("systemctl show containerd --property=MainPID,ActiveState") for machine in machines]


def _read_configurations(machines: Machines) -> list[bytes]:
    return [machine.file(CONFIG).content for machine in machines]


def test_failed_daemon_gets_its_former_file(machines: Machines, converge: Converge) -> None:
    before = _read_configurations(machines)
    # containerd accepts the file and then cannot listen there
    wrong = '{"containerd_nvidia_settings": {"grpc": {"address": "/proc/no/such.sock"}}}'
    code, recap, output = converge("-e", wrong)
    assert code != 0
    assert all(counts["failed"] == 1 for counts in recap.values()), output
    assert " ".join(output.split()).count("the former one was restored and works") >= len(machines), output
    assert "/proc/no" in output, "the daemon's own message is missing"
    assert _read_configurations(machines) == before
    assert all(machine.service("containerd").is_running for machine in machines)
    code, recap, output = converge()
    assert code == 0, output
    assert all(counts["changed"] == 0 for counts in recap.values()), output


@pytest.mark.thorough
def test_node_without_controller_and_ssh_restores_itself(
    machines: Machines,
    converge: Converge,
    kill_run_at: Callable[..., None],
    wait_without_ssh: Callable[..., None],
    names: list[str],
) -> None:
    """The run ends between the restart, which fails, and its verification, and no later run can reach the node."""
    before = _read_configurations(machines)
    # The timer is set to 300 s for the restart, 60 for the tasks in between, and this amount for the verification: 90 s in all.
    wrong = '{"containerd_nvidia_settings": {"grpc": {"address": "/proc/no/such.sock"}}, "_restore_timer_verify_seconds": -270}'
    kill_run_at(CONVERGE, "Restart | Query the daemon", "--limit", ",".join(names), "-e", wrong)
    has_change = f"grep -q /proc/no {CONFIG}"
    wait_without_ssh(names, has_change, f"! {has_change} && systemctl is-active --quiet containerd")
    assert _read_configurations(machines) == before
    former_daemons = _read_daemons(machines)
    code, _recap, output = converge()
    assert code == 0, output
    assert " ".join(output.split()).count("RESTORED: ") == len(machines), output
    assert _read_configurations(machines) == before
    assert _read_daemons(machines) == former_daemons
    assert not any(machine.file(PENDING).exists for machine in machines)


def test_missed_restart_is_repeated_unless_the_daemon_was_restarted(machines: Machines, converge: Converge) -> None:
    """As after a run that is killed between merge and restart: the file is new, the daemon is not. The first machine restarts it."""
    former_daemons = _read_daemons(machines)
    options = ["-e", '{"containerd_nvidia_set_default": true, "containerd_nvidia_settings": {"oom_score": -1}}']
    # a string, as key=value sets it
    code, _recap, output = converge(*options, "-e", "container_runtime_restart_ok=false")
    assert code == 0, output
    assert _read_daemons(machines) == former_daemons
    assert all(machine.file(PENDING).exists for machine in machines)
    machines[0].check_output("systemctl restart containerd")
    former_daemons = _read_daemons(machines)
    code, _recap, output = converge(*options)
    assert code == 0, output
    assert [new == old for new, old in zip(_read_daemons(machines), former_daemons, strict=True)] == [True, False]
    assert not any(machine.file(PENDING).exists for machine in machines)
    assert all(b"default_runtime_name" in text for text in _read_configurations(machines))
    code, _recap, output = converge("-e", '{"containerd_nvidia_set_default": false}')
    assert code == 0, output
    for text in _read_configurations(machines):
        assert b"default_runtime_name = 'nvidia'" not in text.replace(b'"', b"'")


def test_toolkit_stays_while_containerd_may_use_it(machines: Machines, converge: Converge) -> None:
    former_daemons = _read_daemons(machines)
    code, _recap, output = converge(
        "-e", '{"containerd_nvidia_state": "absent", "container_runtime_restart_ok": false}'
    )
    assert code == 0, output
    assert "KEPT: " in output
    assert all(machine.package("nvidia-container-toolkit").is_installed for machine in machines)
    assert _read_daemons(machines) == former_daemons
    code, _recap, output = converge()
    assert code == 0, output
    for machine in machines:
        assert "nvidia-container-runtime" in machine.check_output("containerd config dump 2>/dev/null")
