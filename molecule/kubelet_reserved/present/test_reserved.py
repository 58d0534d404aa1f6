# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real kubelets with reserved resources, and their failures."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import testinfra
import yaml
from kubernetes.utils.quantity import parse_quantity
from lab.wait import until

CONVERGE = str(Path(__file__).parents[1] / "converge.yml")
CONFIG = "/var/lib/kubelet/config.yaml"
BEFORE = "/root/kubelet-before.yaml"
RECORDS = "/var/lib/gpu-kubernetes/state/kubelet/*.json"
SETTINGS = ("kubeReserved", "systemReserved", "evictionHard")
MIB = 1 << 20
# A drop-in that adds a flag which the kubelet rejects, if the configuration has one of the test's settings.
DROP_IN = "/etc/systemd/system/kubelet.service.d/90-trap.conf"
DROP_IN_TEXT = """\
[Service]
EnvironmentFile=-/run/lab-trap.env
ExecStartPre=/bin/sh -c 'rm -f /run/lab-trap.env; ! grep -q 111m /var/lib/kubelet/config.yaml || \
echo "LAB_TRAP=--eviction-soft=memory.available<1Mi" > /run/lab-trap.env'
ExecStart=
ExecStart=/usr/local/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $LAB_TRAP
"""
Apply = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def names(inventory: dict[str, Any]) -> list[str]:
    """The nodes; the hosts have the same names."""
    return list(inventory["all"]["children"]["gpu_nodes"]["hosts"])


@pytest.fixture(scope="module")
def machines(request: pytest.FixtureRequest, names: list[str]) -> list[Any]:
    path = request.config.getoption("--ansible-inventory")
    return [testinfra.get_host(f"ansible://{name}?ansible_inventory={path}") for name in names]


@pytest.fixture
def machine(machines: list[Any]) -> Any:
    """The machine with faults: the first one."""
    return machines[0]


@pytest.fixture
def apply(playbook: Any, names: list[str]) -> Apply:
    """Run the playbook on the machine with faults: exit code, output in one line."""

    def run(**variables: Any) -> tuple[int, str]:
        code, _recap, output = playbook(CONVERGE, "--limit", names[0], "-e", json.dumps(variables))
        return code, " ".join(output.split())

    return run


def read_configuration(machine: Any) -> Any:
    return yaml.safe_load(machine.file(CONFIG).content_string)


def has_unverified_change(machine: Any) -> bool:
    """Whether a change is not verified yet. The record has to exist."""
    return json.loads(machine.check_output(f"cat {RECORDS}"))["record"]["former"] is not None


def write_file(machine: Any, path: str, text: str) -> None:
    """Write a file without a shell that reads its text."""
    machine.check_output(f"echo {base64.b64encode(text.encode()).decode()} | base64 --decode > {path}")


def read_reserved(api: Any, name: str) -> tuple[Any, Any]:
    """CPUs and MiB of a node that are not allocatable."""
    status = api.read_node(name).status
    cpu, memory = (
        parse_quantity(status.capacity[of]) - parse_quantity(status.allocatable[of]) for of in ("cpu", "memory")
    )
    return float(cpu), int(memory) / MIB


def test_reservations_reduce_allocatable(machines: list[Any], names: list[str], api: Any) -> None:
    until(
        lambda: [read_reserved(api, name) for name in names], lambda amounts: set(amounts) == {(0.15, 256 + 128 + 64)}
    )
    for name, machine in zip(names, machines, strict=True):
        response = api.connect_get_node_proxy_with_path(name, "configz", _preload_content=False)
        running = json.loads(response.data)["kubeletconfig"]
        assert running["kubeReserved"] == {"cpu": "100m", "memory": "256Mi"}
        assert running["systemReserved"] == {"cpu": "50m", "memory": "128Mi", "pid": "500"}
        # thresholds of kubeadm stay
        assert running["evictionHard"]["memory.available"] == "64Mi"
        assert running["evictionHard"]["nodefs.available"] == "0%"
        before = yaml.safe_load(machine.file(BEFORE).content_string)
        now = read_configuration(machine)
        assert {key: now[key] for key in before if key != "evictionHard"} == {
            key: value for key, value in before.items() if key != "evictionHard"
        }
        assert not has_unverified_change(machine)


@pytest.fixture
def failing_kubelet(machine: Any) -> Iterator[None]:
    """A kubelet that does not start with one of the settings."""
    machine.check_output(f"mkdir -p {Path(DROP_IN).parent}")
    write_file(machine, DROP_IN, DROP_IN_TEXT)
    machine.check_output("systemctl daemon-reload")
    yield
    machine.check_output(f"rm -rf {DROP_IN} /run/lab-trap.env")
    machine.check_output("systemctl daemon-reload")


@pytest.mark.usefixtures("failing_kubelet")
def test_failed_kubelet_gets_its_former_file(machine: Any, names: list[str], api: Any, apply: Apply) -> None:
    before = machine.file(CONFIG).content
    code, output = apply(kubelet_reserved_kube_reserved={"cpu": "111m", "memory": "256Mi"})
    assert code != 0
    assert "so its former configuration was restored" in output
    log = output.partition("The kubelet's last log lines: ")[2]
    assert "grace period must be specified for the soft eviction threshold memory.available" in log
    assert "It works again." in output
    assert machine.file(CONFIG).content == before
    assert not has_unverified_change(machine)
    until(lambda: read_reserved(api, names[0]), lambda amounts: amounts[0] == 0.15)


@pytest.mark.thorough
@pytest.mark.usefixtures("failing_kubelet")
def test_node_without_controller_and_ssh_restores_itself(
    machine: Any, names: list[str], api: Any, apply: Apply, kill_run_at: Any, wait_without_ssh: Any
) -> None:
    """The run ends between the restart, which fails, and its verification, and no later run can reach the node."""
    before = machine.file(CONFIG).content
    # The timer is set to 300 s for the restart, 60 for the tasks in between, and this amount for the verification: 90 s in all.
    wrong = {"kubelet_reserved_kube_reserved": {"cpu": "111m"}, "_restore_timer_verify_seconds": -270}
    kill_run_at(CONVERGE, "Verify | Wait until the kubelet has run", "--limit", names[0], "-e", json.dumps(wrong))
    has_change = f"grep -q 111m {CONFIG}"
    wait_without_ssh(names[:1], has_change, f"! {has_change} && systemctl is-active --quiet kubelet")
    assert machine.file(CONFIG).content == before
    code, output = apply()
    assert code == 0, output
    assert output.count("RESTORED: ") == 1, output
    assert machine.file(CONFIG).content == before
    assert not has_unverified_change(machine)
    until(lambda: read_reserved(api, names[0]), lambda amounts: amounts == (0.15, 448))


def test_configuration_of_kubeadm_is_completed_by_the_resumed_run(
    machine: Any, names: list[str], api: Any, apply: Apply, kill_run_at: Any
) -> None:
    """An upgrade writes it from the ConfigMap in the cluster, too; the run is killed between restart and verification."""
    before = read_configuration(machine)
    machine.check_output("kubeadm upgrade node phase kubelet-config && rm -rf /etc/kubernetes/tmp")
    assert "kubeReserved" not in read_configuration(machine)
    # the undo has to restore this file
    machine.check_output(f"cp -p {CONFIG} {BEFORE}")
    kill_run_at(CONVERGE, "Verify | Wait until the kubelet has run", "--limit", names[0])
    assert has_unverified_change(machine)
    code, output = apply()
    assert code == 0, output
    now = read_configuration(machine)
    assert {key: now[key] for key in SETTINGS} == {key: before[key] for key in SETTINGS}
    until(lambda: read_reserved(api, names[0]), lambda amounts: amounts == (0.15, 448))
    assert not has_unverified_change(machine)
