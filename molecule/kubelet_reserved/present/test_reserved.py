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

CONVERGE = str(Path(__file__).parents[1] / "converge.yml")
CONFIG = "/var/lib/kubelet/config.yaml"
BEFORE = "/root/kubelet-before.yaml"
FLAGS = "/var/lib/kubelet/kubeadm-flags.env"
NOTE = "/var/lib/gpu-kubernetes/state/kubelet-reserved-change.json"
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
Apply = Callable[..., tuple[int, int, str]]


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
    """Run the playbook on the one that suffers: exit code, count of changes, what was said in one line."""

    def run(*words: str, **variables: Any) -> tuple[int, int, str]:
        code, recap, said = playbook(CONVERGE, "--limit", names[0], "-e", json.dumps(variables), *words)
        return code, recap.get(names[0], {}).get("changed", 0), " ".join(said.split())

    return run


def started(machine: Any) -> str:
    return machine.check_output("systemctl show kubelet --property=MainPID")


def configuration(machine: Any) -> Any:
    return yaml.safe_load(machine.file(CONFIG).content_string)


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
    for name, machine in zip(names, machines, strict=True):
        assert kept(api, name) == (0.15, 256 + 128 + 64)
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
        assert not machine.file(NOTE).exists


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"kubelet_reserved_kube_reserved": {"memory": "5000Gi"}}, "and its kubelet would not start; ask for less."),
        (
            {"kubelet_reserved_kube_reserved": {"ephemeral-storage": "5000Ti"}},
            "and its kubelet would not start; ask for less.",
        ),
        (
            {"kubelet_reserved_kube_reserved": {"memory": "512m"}},
            "kubeReserved.memory is 512m, which is no whole number",
        ),
        ({"kubelet_reserved_eviction_hard": {"memory.available": "nonsense"}}, '"memory.available" is nonsense: give'),
        ({"kubelet_reserved_system_reserved": {"pid": 99999999}}, "and the node can have"),
    ],
)
def test_what_the_kubelet_could_not_bear_is_refused_before_anything_is_written(
    machine: Any, apply: Apply, variables: dict[str, Any], words: str
) -> None:
    before = (machine.file(CONFIG).content, started(machine))
    code, changed, said = apply(**variables)
    assert code != 0
    assert words in said
    assert changed == 0
    assert (machine.file(CONFIG).content, started(machine)) == before
    assert not machine.file(NOTE).exists


def test_a_flag_that_goes_before_the_file_is_named_with_its_place(machine: Any, apply: Apply) -> None:
    before = machine.file(FLAGS).content_string
    assert before.endswith('"\n')
    write(machine, FLAGS, before[:-2] + ' --kube-reserved=cpu=1"\n')
    try:
        code, _changed, said = apply()
    finally:
        write(machine, FLAGS, before)
    assert code != 0
    assert (
        f"--kube-reserved=cpu=1 (KUBELET_KUBEADM_ARGS in {FLAGS}), which goes before kubeReserved.cpu of {CONFIG}"
        in said
    )
    assert apply()[:2] == (0, 0)


def test_pods_are_not_ended_unless_that_is_allowed(machine: Any, names: list[str], api: Any, apply: Apply) -> None:
    offered = parse_quantity(api.read_node(names[0]).status.allocatable["cpu"])
    container = {
        "name": "one",
        "image": "lab.local/pause:none",
        "resources": {"requests": {"cpu": f"{int(offered * 1000) - 50}m"}},
    }
    spec = {"nodeName": names[0], "containers": [container], "tolerations": [{"operator": "Exists"}]}
    made = api.create_namespaced_pod("default", {"metadata": {"generateName": "try-"}, "spec": spec})
    before = started(machine)
    try:
        code, _changed, said = apply(kubelet_reserved_kube_reserved={"cpu": "200m", "memory": "256Mi"})
    finally:
        api.delete_namespaced_pod(made.metadata.name, "default", grace_period_seconds=0)
    assert code != 0
    assert "and a kubelet that starts ends pods that do not fit; move some away" in said
    assert started(machine) == before


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
    code, _changed, said = apply(kubelet_reserved_kube_reserved={"cpu": "111m", "memory": "256Mi"})
    assert code != 0
    assert "so that its former configuration was put back" in said
    told = said.partition("The kubelet said last: ")[2]
    assert "grace period must be specified for the soft eviction threshold memory.available" in told
    assert "It works again as before." in said
    assert machine.file(CONFIG).content == before
    assert not machine.file(NOTE).exists
    assert kept(api, names[0])[0] == 0.15
    assert apply()[:2] == (0, 0)


def test_a_run_that_is_killed_before_the_proof_is_gone_on_with(
    machine: Any, names: list[str], api: Any, apply: Apply, killed_at: Any
) -> None:
    before = machine.file(CONFIG).content
    steps = (
        ("Restart | Call for the restart", "absent", "present"),  # and the other way from there
        ("Wait | Wait until the node", "absent", "absent"),
        ("Steady | Look how often", "present", "present"),
    )
    for task, begun, state in steps:
        killed_at(CONVERGE, task, "--limit", names[0], "-e", json.dumps({"kubelet_reserved_state": begun}))
        assert machine.file(NOTE).exists
        assert ("kubeReserved" in configuration(machine)) is (begun == "present")
        code, _changed, said = apply(kubelet_reserved_state=state)
        assert code == 0, said
        assert not machine.file(NOTE).exists
        assert kept(api, names[0]) == ((0.15, 448) if state == "present" else (0, 0))
    assert (apply()[:2], machine.file(CONFIG).content) == ((0, 0), before)


def test_what_kubeadm_writes_anew_gets_it_again(machine: Any, names: list[str], api: Any, apply: Apply) -> None:
    """As an upgrade does, of the ConfigMap in the cluster."""
    before = configuration(machine)
    machine.check_output("kubeadm upgrade node phase kubelet-config")
    assert "kubeReserved" not in configuration(machine)
    code, changed, said = apply()
    assert (code, changed > 0) == (0, True), said
    now = configuration(machine)
    assert {key: now[key] for key in SETTINGS} == {key: before[key] for key in SETTINGS}
    assert kept(api, names[0]) == (0.15, 448)
    # the file as kubeadm wrote it first, for the undo to be compared with
    assert apply(kubelet_reserved_state="absent")[0] == 0
    machine.check_output(f"cp -p {BEFORE} {CONFIG}")
    code, _changed, said = apply()
    assert code == 0, said
    assert apply()[:2] == (0, 0)
