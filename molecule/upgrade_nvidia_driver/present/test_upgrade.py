# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rolling upgrade on a real cluster with GPU pods: nobody is killed early, and every way out leaves a driver that works."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import testinfra
from kubernetes import client
from kubernetes.dynamic import DynamicClient

HERE = Path(__file__).parents[1]
ROOT = HERE.parents[1]
LAB = ROOT / ".lab" / os.environ.get("LAB_NAME", "molecule")
IMAGE = "lab.local/stand-in/cuda-sample:vectoradd"
# No image of the lab has a shell, so that pods borrow the machine's programs.
LIBRARIES = "/host/usr/lib/x86_64-linux-gnu"
LOADER = [f"{LIBRARIES}/ld-linux-x86-64.so.2", "--library-path", LIBRARIES]
FORMER, NEWER = "570.124.06", "570.195.03"
VARIABLES = ("-e", f"@{HERE / 'files' / 'driver.yml'}")
QUICK = {"gpu_node_maintenance_evict_timeout": 60, "nvidia_driver_upgrade_wait_timeout": 60}
Playbook = Callable[..., tuple[int, dict[str, dict[str, int]], str]]

# Each step in its order; a run is killed as it begins the task. The test is one of the former driver first.
STEPS = [
    "Runfile | Fetch it",
    "Begin | Cordon the node and empty it",
    "Test | Run a pod on each node",
    "Pause | Have DaemonSets leave the node",
    "Release | Stop the host's own services",
    "Runfile | Run the installer",
    "Verify | Look at the driver",
    "Resume | Start the host's services again",
    "Resume | Let them come back",
    "Test | Run a pod on each node",
    "End | Give the node back as it was",
    "End | Remove installers",
]
AT_WORK = {*STEPS[:2], STEPS[-1]}
WITHOUT_SERVICES = {"Runfile | Run the installer", "Verify | Look at the driver"}
SERVICES = ("nvidia-dcgm", "dcgm-exporter")


@pytest.fixture
def upgrade(playbook: Playbook) -> Callable[..., tuple[int, dict[str, dict[str, int]], str]]:
    """Run the playbook for another version, with short waits: exit code, recap, what it said in one line."""

    def run(version: str, *words: str, **variables: Any) -> tuple[int, dict[str, dict[str, int]], str]:
        asked = json.dumps({"driver": version, **QUICK, **variables})
        code, recap, said = playbook("upgrade_nvidia_driver", *VARIABLES, "-e", asked, *words)
        return code, recap, " ".join(said.split())

    return run


@pytest.fixture(scope="module")
def workers(inventory: dict[str, Any]) -> dict[str, Any]:
    """The GPU machines by the names of their nodes, which are the hosts' own."""
    where = f"ansible_inventory={LAB / 'inventory.yml'}"
    return {
        name: testinfra.get_host(f"ansible://{name}?{where}")
        for name in inventory["all"]["children"]["gpu_nodes"]["hosts"]
    }


@pytest.fixture
def first(workers: dict[str, Any]) -> str:
    """The node whose turn comes first, on whose host services run that use the driver."""
    name = next(iter(workers))
    workers[name].check_output(f"systemctl start {' '.join(SERVICES)}")
    return name


@pytest.fixture
def state(api: Any, workers: dict[str, Any]) -> Callable[[], dict[str, Any]]:
    """Of each node: the driver, whether pods may come, the GPUs offered, the host's services, and what is left of an upgrade that goes on."""

    def look(name: str) -> tuple[str, bool, str, list[str], list[str]]:
        node = api.read_node(name)
        noted = workers[name].run("ls /var/lib/gpu-kubernetes/state/driver-upgrade.json").stdout.split()
        marks = [*(node.metadata.annotations or {}), *node.metadata.labels]
        left = [mark for mark in marks if mark in {"gpu-kubernetes/maintenance", "gpu-kubernetes/paused"}]
        library = workers[name].check_output(
            "ls /usr/lib/x86_64-linux-gnu | sed -n 's/^libnvidia-ml.so.\\([0-9]*\\.\\)/\\1/p'"
        )
        services = workers[name].run(f"systemctl is-active {' '.join(SERVICES)}").stdout.split()
        return library, not node.spec.unschedulable, node.status.allocatable["nvidia.com/gpu"], services, noted + left

    return lambda: {name: look(name) for name in workers}


def gpu_pod(node: str, seconds: int, restart: str = "Never") -> dict[str, Any]:
    """The spec of a pod that has a GPU of a node for some seconds, and tells if nobody has ended it before."""
    work = f"{' '.join(LOADER)} /host/usr/bin/sleep {seconds}; echo did all of it"
    container = {
        "name": "gpu",
        "image": IMAGE,
        "command": [*LOADER, "/host/usr/bin/dash", "-c", work],
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
        "volumeMounts": [{"name": "host", "mountPath": "/host", "readOnly": True}],
    }
    return {
        "runtimeClassName": "nvidia",
        "restartPolicy": restart,
        "terminationGracePeriodSeconds": 1,
        "nodeSelector": {"kubernetes.io/hostname": node},
        "containers": [container],
        "volumes": [{"name": "host", "hostPath": {"path": "/"}}],
    }


@pytest.fixture
def owned(api: Any) -> Iterator[Callable[..., str]]:
    """Start what makes one pod with a GPU on a node for some seconds, and wait until that runs: the pod. All is gone afterwards."""
    kinds = {"Job": ("batch/v1", {"backoffLimit": 5}), "ReplicaSet": ("apps/v1", {"replicas": 1})}
    dynamic = DynamicClient(api.api_client)
    made: list[tuple[Any, str]] = []

    def running(name: str) -> list[str]:
        pods = api.list_namespaced_pod("default", label_selector=f"made={name}").items
        return [
            pod.metadata.name for pod in pods if pod.status.phase == "Running" and not pod.metadata.deletion_timestamp
        ]

    def start(kind: str, name: str, node: str, seconds: int = 1000) -> str:
        version, spec = kinds[kind]
        labels = {"made": name}
        pod = gpu_pod(node, seconds, "Never" if kind == "Job" else "Always")
        template = {"metadata": {"labels": labels}, "spec": pod}
        selector = {} if kind == "Job" else {"selector": {"matchLabels": labels}}
        resource = dynamic.resources.get(api_version=version, kind=kind)
        body = {"apiVersion": version, "kind": kind, "metadata": {"name": name}}
        resource.create({**body, "spec": {**spec, **selector, "template": template}}, namespace="default")
        made.append((resource, name))
        assert_soon(lambda: running(name) != [])
        return running(name)[0]

    yield start
    for resource, name in made:
        resource.delete(name, "default", body={"propagationPolicy": "Foreground"})
    assert_soon(lambda: not [name for _resource, name in made if running(name)])


@pytest.fixture
def pods(api: Any) -> Iterator[Callable[[str, int], str]]:
    """Start a pod on a node that has a GPU for some seconds, and wait until it runs. All are gone afterwards."""
    made: list[str] = []

    def start(node: str, seconds: int) -> str:
        made_of = {"metadata": {"generateName": "job-"}, "spec": gpu_pod(node, seconds)}
        name = api.create_namespaced_pod("default", made_of).metadata.name
        made.append(name)
        for _ in range(120):
            if api.read_namespaced_pod(name, "default").status.phase == "Running":
                return name
            time.sleep(0.5)
        raise AssertionError(f"{name} does not run after a minute")

    yield start
    for name in made:
        api.delete_namespaced_pod(name, "default", grace_period_seconds=0)


def test_check_mode_tells_and_changes_nothing(
    upgrade: Callable[..., Any], state: Callable[..., Any], fingerprint: Callable[..., Any]
) -> None:
    before, whole = state(), fingerprint()
    assert {driver for driver, *_more in before.values()} == {FORMER}
    code, recap, said = upgrade(NEWER, "--check")
    assert code == 0, said
    assert all(counts["changed"] for counts in recap.values())
    for name in before:
        assert f"{name}: would be upgraded ({FORMER} -> {NEWER})" in said
    assert (state(), fingerprint()) == (before, whole)


def test_pods_that_end_are_waited_for_and_one_that_never_does_is_named(
    upgrade: Callable[..., Any], state: Callable[..., Any], pods: Callable[..., str], first: str
) -> None:
    """Nobody would start it again, so that it is not evicted, nothing is touched, and the node is given back."""
    before = state()
    name = pods(first, 1000)
    code, _recap, said = upgrade(NEWER, gpu_node_maintenance_jobs_timeout=2)
    assert code != 0
    assert f"default/{name}" in said
    assert f"Driver {FORMER} was not touched, and node {first} was given back." in said
    assert state() == before


def test_a_pod_that_its_budget_keeps_is_named(
    upgrade: Callable[..., Any],
    state: Callable[..., Any],
    owned: Callable[..., str],
    api: Any,
    first: str,
    request: pytest.FixtureRequest,
) -> None:
    before = state()
    name = owned("ReplicaSet", "served", first)
    policy = client.PolicyV1Api(api.api_client)
    budget = {"minAvailable": 1, "selector": {"matchLabels": {"made": "served"}}}
    policy.create_namespaced_pod_disruption_budget("default", {"metadata": {"name": "served"}, "spec": budget})
    request.addfinalizer(lambda: policy.delete_namespaced_pod_disruption_budget("served", "default"))
    code, _recap, said = upgrade(NEWER, gpu_node_maintenance_evict_timeout=3)
    assert code != 0
    assert f"default/{name} is kept by a PodDisruptionBudget" in said
    assert f"Driver {FORMER} was not touched, and node {first} was given back." in said
    assert api.read_namespaced_pod(name, "default").status.phase == "Running"
    assert state() == before


def test_an_installer_that_is_another_one_stops_nobody(
    upgrade: Callable[..., Any],
    state: Callable[..., Any],
    pods: Callable[..., str],
    workers: dict[str, Any],
    first: str,
) -> None:
    before = state()
    pods(first, 1000)
    code, _recap, said = upgrade(NEWER, installer="another")
    assert code != 0
    assert "did not match" in said
    assert f"Driver {FORMER} was not touched, and node {first} was given back." in said
    assert state() == before
    assert workers[first].run("ls /var/lib/gpu-kubernetes/driver-runfile").rc != 0


def test_one_node_after_the_other(
    upgrade: Callable[..., Any],
    state: Callable[..., Any],
    owned: Callable[..., str],
    api: Any,
    workers: dict[str, Any],
    first: str,
    request: pytest.FixtureRequest,
) -> None:
    """A job that might be evicted ends by itself before its deadline, and a node that an administrator had cordoned stays cordoned."""
    second = list(workers)[-1]
    job = owned("Job", "long", first, 90)  # longer than two plans take on a busy machine
    api.patch_node(second, {"spec": {"unschedulable": True}})
    request.addfinalizer(lambda: api.patch_node(second, {"spec": {"unschedulable": None}}))
    before = state()
    code, _recap, said = upgrade(NEWER)
    assert code != 0
    assert f"cordoned or not Ready already is {second}. " in said
    assert state() == before
    code, _recap, said = upgrade(NEWER, nvidia_driver_upgrade_max_unavailable=2)
    assert code == 0, said
    swapped = int(workers[first].check_output(f"stat --format %Z /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.{NEWER}"))
    for service in SERVICES:
        ran = f"systemctl show {service} --property=ActiveEnterTimestamp --value --timestamp=unix"
        stopped = int(workers[first].check_output(f"stat --format %Y /run/{service}.service.stopped"))
        started = int(workers[first].check_output(ran).lstrip("@"))
        assert stopped <= swapped <= started, "it ran beside neither of the drivers while they were swapped"
    assert f"{first}: upgraded ({FORMER} -> {NEWER}; waited for default/{job})" in said
    assert "did all of it" in api.read_namespaced_pod_log(job, "default")
    assert state() == {name: (NEWER, *rest) for name, (_driver, *rest) in before.items()}
    assert [(works, *services) for _driver, works, _gpus, services, _left in state().values()] == [
        (True, "active", "active"),
        (False, "inactive", "inactive"),
    ]
    code, recap, said = upgrade(NEWER)
    assert (code, [counts["changed"] for counts in recap.values()]) == (0, [0, 0]), said


def test_a_node_that_is_not_proved_gets_its_former_driver_and_the_others_keep_theirs(
    upgrade: Callable[..., Any],
    state: Callable[..., Any],
    owned: Callable[..., str],
    api: Any,
    workers: dict[str, Any],
    first: str,
    killed_at: Callable[..., None],
) -> None:
    """A job that does not end is evicted at its deadline. On the way back runs are killed, and the next ones go on with that way."""
    before, second = state(), list(workers)[-1]
    job = owned("Job", "endless", first)
    # Only while the driver is being swapped, and not on the way back, the pod has to say what it never says.
    words = (
        "{{ 'what this driver never brings about' if nvidia_driver_upgrade_result.state == 'begun'"
        " and __nvidia_driver_upgrade_phase == 'swapping' else 'Test PASSED' }}"
    )
    asked = {"gpu_node_maintenance_jobs_timeout": 5, "gpu_smoke_test_expected_output": words}
    wish = (*VARIABLES, "-e", json.dumps({"driver": FORMER, **QUICK, **asked}))
    killed_at("playbooks/upgrade_nvidia_driver.yml", "Roll back | Install the former driver", *wish)
    assert [pod.metadata.name for pod in api.list_namespaced_pod("default").items if pod.metadata.name == job] == []
    assert seconds_until_killed(api, first, job) >= 5, "it was evicted before its deadline"
    now = state()
    assert (*now[first][:2], now[first][3], now[second]) == (FORMER, False, ["inactive"] * 2, before[second])
    # Nobody needs to be asked for it any more.
    workers[first].check_output(f"mv /root/stand-in-installer-{NEWER}.run /root/away")
    killed_at("playbooks/upgrade_nvidia_driver.yml", "Resume | Start the host's services again", *wish)
    assert state()[first][:2] == (NEWER, False)
    code, recap, said = upgrade(FORMER)
    workers[first].check_output(f"mv /root/away /root/stand-in-installer-{NEWER}.run")
    assert code != 0
    assert "what this driver never brings about" in said
    assert f"Driver {NEWER} is back, and node {first} was given back with it." in said
    assert f"{first}: failed, and rolled back ({NEWER} -> {FORMER})" in said
    assert f"{second}: not reached ({NEWER} -> {FORMER})" in said
    assert recap[second]["changed"] == 0
    assert_soon(lambda: state() == before)
    assert state()[first][3] == ["active"] * 2, "runs that were killed had stopped them"


def test_a_run_that_is_killed_at_every_step_is_gone_on_with(
    upgrade: Callable[..., Any], state: Callable[..., Any], first: str, killed_at: Callable[..., None]
) -> None:
    before = state()
    asked = json.dumps({"driver": FORMER, **QUICK})
    for step in STEPS:
        killed_at("playbooks/upgrade_nvidia_driver.yml", step, *VARIABLES, "-e", asked, "--limit", first)
        driver, schedulable, _gpus, services, left = state()[first]
        assert driver in (FORMER, NEWER, "")
        assert "/var/lib/gpu-kubernetes/state/driver-upgrade.json" in left
        assert schedulable is (step in AT_WORK), "it takes work only before and after"
        assert step not in WITHOUT_SERVICES or services == ["inactive"] * 2
    code, _recap, said = upgrade(FORMER, "--limit", first)
    assert code == 0, said
    assert state() == {**before, first: (FORMER, *before[first][1:])}
    assert state()[first][3] == ["active"] * 2, "runs that were killed had stopped them"


def test_a_node_is_emptied_of_all_pods_for_a_reboot(
    playbook: Playbook, state: Callable[..., Any], pods: Callable[..., str], api: Any, workers: dict[str, Any]
) -> None:
    """The reboot of a machine of the lab ends its container, which this test starts again."""
    name, machine = list(workers.items())[-1]
    begun, before = "stat --format %Y /proc/1", state()
    first, job = machine.check_output(begun), pods(name, 5)
    with ThreadPoolExecutor(1) as beside:
        started = beside.submit(start_again, name)
        code, recap, said = playbook(str(HERE / "reboot.yml"), "--limit", name)
        assert started.result(), said
    assert (code, recap[name]["changed"]) == (0, 5), said
    assert machine.check_output(begun) != first
    assert "did all of it" in api.read_namespaced_pod_log(job, "default")
    assert_soon(lambda: state() == before)


def seconds_until_killed(api: Any, node: str, pod: str) -> float:
    """How long after the maintenance of its node had begun the kubelet ended a pod, as its event says."""
    since = json.loads(api.read_node(node).metadata.annotations["gpu-kubernetes/maintenance"])["since"]
    told = api.list_namespaced_event("default", field_selector=f"involvedObject.name={pod},reason=Killing").items
    return (min(event.first_timestamp for event in told) - datetime.fromisoformat(since)).total_seconds()


def start_again(machine: str) -> bool:
    """Wait a minute for a machine to stop, and start it."""
    for _ in range(60):
        if machine not in subprocess.check_output(["podman", "ps", "--format", "{{.Names}}"], text=True).split():
            return subprocess.run(["podman", "start", machine], check=True, capture_output=True).returncode == 0
        time.sleep(1)
    return False


def assert_soon(what: Callable[[], bool]) -> None:
    """Give the kubelet and the device plugin a minute to come back."""
    for _ in range(60):
        if what():
            return
        time.sleep(1)
    assert what()
