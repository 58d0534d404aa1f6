# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real kubelets that keep resources from pods, and the ways in which one could fail to come back."""

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
# Beside one of our settings it gives the kubelet a flag that it refuses, about which the file says nothing.
TRAP = "/etc/systemd/system/kubelet.service.d/90-trap.conf"
TRAPPED = """\
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
    """The nodes, which the hosts are called after."""
    return list(inventory["all"]["children"]["gpu_nodes"]["hosts"])


@pytest.fixture(scope="module")
def machines(request: pytest.FixtureRequest, names: list[str]) -> list[Any]:
    path = request.config.getoption("--ansible-inventory")
    return [testinfra.get_host(f"ansible://{name}?ansible_inventory={path}") for name in names]


@pytest.fixture
def machine(machines: list[Any]) -> Any:
    """The one that suffers; the other is only more of the same."""
    return machines[0]


@pytest.fixture
def apply(playbook: Any, names: list[str]) -> Apply:
    """Run the playbook on the one that suffers: exit code, what was said in one line."""

    def run(**variables: Any) -> tuple[int, str]:
        code, _recap, said = playbook(CONVERGE, "--limit", names[0], "-e", json.dumps(variables))
        return code, " ".join(said.split())

    return run


def configuration(machine: Any) -> Any:
    return yaml.safe_load(machine.file(CONFIG).content_string)


def unproved(machine: Any) -> bool:
    """Whether a change has not been proved; there has to be a record of it."""
    return json.loads(machine.check_output(f"cat {RECORDS}"))["record"]["former"] is not None


def write(machine: Any, path: str, text: str) -> None:
    """Replace a file by text that no shell looks at."""
    machine.check_output(f"echo {base64.b64encode(text.encode()).decode()} | base64 --decode > {path}")


def kept(api: Any, name: str) -> tuple[Any, Any]:
    """CPUs and MiB that a node has and does not offer."""
    status = api.read_node(name).status
    cpu, memory = (
        parse_quantity(status.capacity[of]) - parse_quantity(status.allocatable[of]) for of in ("cpu", "memory")
    )
    return float(cpu), int(memory) / MIB


def test_pods_get_what_is_left(machines: list[Any], names: list[str], api: Any) -> None:
    until(lambda: [kept(api, name) for name in names], lambda amounts: set(amounts) == {(0.15, 256 + 128 + 64)})
    for name, machine in zip(names, machines, strict=True):
        said = api.connect_get_node_proxy_with_path(name, "configz", _preload_content=False)
        running = json.loads(said.data)["kubeletconfig"]
        assert running["kubeReserved"] == {"cpu": "100m", "memory": "256Mi"}
        assert running["systemReserved"] == {"cpu": "50m", "memory": "128Mi", "pid": "500"}
        # what kubeadm was told stays
        assert running["evictionHard"]["memory.available"] == "64Mi"
        assert running["evictionHard"]["nodefs.available"] == "0%"
        before = yaml.safe_load(machine.file(BEFORE).content_string)
        now = configuration(machine)
        assert {key: now[key] for key in before if key != "evictionHard"} == {
            key: value for key, value in before.items() if key != "evictionHard"
        }
        assert not unproved(machine)


@pytest.fixture
def trap(machine: Any) -> Iterator[None]:
    """A kubelet that does not start with one of the settings."""
    machine.check_output(f"mkdir -p {Path(TRAP).parent}")
    write(machine, TRAP, TRAPPED)
    machine.check_output("systemctl daemon-reload")
    yield
    machine.check_output(f"rm -rf {TRAP} /run/lab-trap.env")
    machine.check_output("systemctl daemon-reload")


@pytest.mark.usefixtures("trap")
def test_a_kubelet_that_does_not_come_back_gets_its_former_file(
    machine: Any, names: list[str], api: Any, apply: Apply
) -> None:
    before = machine.file(CONFIG).content
    code, said = apply(kubelet_reserved_kube_reserved={"cpu": "111m", "memory": "256Mi"})
    assert code != 0
    assert "so its former configuration was restored" in said
    told = said.partition("The kubelet's last log lines: ")[2]
    assert "grace period must be specified for the soft eviction threshold memory.available" in told
    assert "It works again." in said
    assert machine.file(CONFIG).content == before
    assert not unproved(machine)
    until(lambda: kept(api, names[0]), lambda amounts: amounts[0] == 0.15)


def test_what_kubeadm_writes_anew_gets_it_again_also_by_a_run_that_was_killed(
    machine: Any, names: list[str], api: Any, apply: Apply, killed_at: Any
) -> None:
    """As an upgrade writes it, of the ConfigMap in the cluster; the run is killed between the restart and the proof."""
    before = configuration(machine)
    machine.check_output("kubeadm upgrade node phase kubelet-config && rm -rf /etc/kubernetes/tmp")
    assert "kubeReserved" not in configuration(machine)
    # what the undo has to give back
    machine.check_output(f"cp -p {CONFIG} {BEFORE}")
    killed_at(CONVERGE, "Verify | Wait until the kubelet has run", "--limit", names[0])
    assert unproved(machine)
    code, said = apply()
    assert code == 0, said
    now = configuration(machine)
    assert {key: now[key] for key in SETTINGS} == {key: before[key] for key in SETTINGS}
    until(lambda: kept(api, names[0]), lambda amounts: amounts == (0.15, 448))
    assert not unproved(machine)
