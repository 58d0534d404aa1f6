# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rolling upgrade on a real cluster with GPU pods: nobody is killed early, and every way out leaves a driver that works.

The tests are one way, in their order. Other refusals, and runs that are killed at other steps, are in tests/unit/roles/nvidia_driver_upgrade.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client
from kubernetes.dynamic import DynamicClient
from lab.cluster import kubectl
from lab.wait import until

HERE = Path(__file__).parents[1]
IMAGE = "lab.local/fake/cuda-sample:vectoradd"
# No image of the lab has a shell, so that pods borrow the machine's programs.
LIBRARIES = "/host/usr/lib/x86_64-linux-gnu"
LOADER = [f"{LIBRARIES}/ld-linux-x86-64.so.2", "--library-path", LIBRARIES]
FORMER, NEWER = "570.124.06", "570.195.03"
VARIABLES = ("-e", f"@{HERE / 'files' / 'driver.yml'}")
PLAYBOOK = "upgrade_nvidia_driver"
CORDON = "gpu_node_maintenance : Begin | Cordon and drain the node"
SERVICES = ("nvidia-dcgm", "dcgm-exporter")
NOTE = "/var/lib/gpu-kubernetes/state/driver-upgrade.json"
Playbook = Callable[..., tuple[int, dict[str, dict[str, int]], str]]


@pytest.fixture
def upgrade(playbook: Playbook) -> Playbook:
    """Run the playbook for another version: exit code, recap, all that it printed in one line."""

    def run(version: str, *words: str, at: Any = None, **variables: Any) -> tuple[int, dict[str, dict[str, int]], str]:
        extra = json.dumps({"driver": version, **variables})
        code, recap, printed = playbook(PLAYBOOK, *VARIABLES, "-e", extra, *words, at=at)
        return code, recap, " ".join(printed.split())

    return run


@pytest.fixture(scope="module")
def workers(inventory: dict[str, Any], machine_named: Callable[[str], Any]) -> dict[str, Any]:
    """The GPU machines by the names of their nodes, which are the hosts' own."""
    return {name: machine_named(name) for name in inventory["all"]["children"]["gpu_nodes"]["hosts"]}


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
        noted = workers[name].run(f"ls {NOTE}").stdout.split()
        marks = [*(node.metadata.annotations or {}), *node.metadata.labels]
        left = [mark for mark in marks if mark in {"gpu-kubernetes/maintenance", "gpu-kubernetes/paused"}]
        library = workers[name].check_output(
            "ls /usr/lib/x86_64-linux-gnu | sed -n 's/^libnvidia-ml.so.\\([0-9]*\\.\\)/\\1/p'"
        )
        services = workers[name].run(f"systemctl is-active {' '.join(SERVICES)}").stdout.split()
        return library, not node.spec.unschedulable, node.status.allocatable["nvidia.com/gpu"], services, noted + left

    return lambda: {name: look(name) for name in workers}


def gpu_pod(name: str, node: str, restart: str) -> dict[str, Any]:
    """The spec of a pod that has a GPU of a node until a file is there on the node, and prints it if nothing has ended it before."""
    pause = f"{' '.join(LOADER)} /host/usr/bin/sleep 1"
    work = f"while [ ! -e /host/root/{name}-may-end ]; do {pause}; done; echo did all of it"
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
def work(api: Any, workers: dict[str, Any]) -> Iterator[Callable[[str, str, str], str]]:
    """Start a pod with a GPU on a node, by itself or by what owns it, and wait until it runs: its name. All is gone afterwards."""
    kinds = {"Pod": "v1", "Job": "batch/v1", "ReplicaSet": "apps/v1"}
    dynamic = DynamicClient(api.api_client)
    made: list[tuple[Any, str]] = []

    def pods(name: str) -> list[tuple[str, str]]:
        found = api.list_namespaced_pod("default", label_selector=f"made={name}").items
        return [(pod.metadata.name, pod.status.phase) for pod in found if not pod.metadata.deletion_timestamp]

    def start(kind: str, name: str, node: str) -> str:
        labels = {"made": name}
        spec = gpu_pod(name, node, "Always" if kind == "ReplicaSet" else "Never")
        template = {"metadata": {"labels": labels}, "spec": spec}
        specs = {
            "Pod": spec,
            "Job": {"backoffLimit": 5, "template": template},
            "ReplicaSet": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
        }
        workers[node].check_output(f"rm -f /root/{name}-may-end")
        resource = dynamic.resources.get(api_version=kinds[kind], kind=kind)
        body = {"apiVersion": kinds[kind], "kind": kind, "metadata": {"name": name, "labels": labels}}
        resource.create({**body, "spec": specs[kind]}, namespace="default")
        made.append((resource, name))
        return until(lambda: pods(name), lambda found: [phase for _pod, phase in found] == ["Running"])[0][0]

    yield start
    for resource, name in made:
        resource.delete(name, "default", body={"propagationPolicy": "Foreground"})
    until(lambda: [pod for _resource, name in made for pod in pods(name)], lambda found: not found)


@pytest.fixture
def let_end(settings: Any, workers: dict[str, Any]) -> Callable[[str, str], Callable[[Any], None]]:
    """Let the pod of a name on a node end as soon as the maintenance of that node has seen it: it lists the pods of all namespaces."""

    def lists() -> float:
        metrics = kubectl(settings, "get", "--raw=/metrics")
        counter = r'^apiserver_request_total\{[^}]*resource="pods",scope="cluster",[^}]*verb="LIST"[^}]*\} (\S+)$'
        return sum(float(number) for number in re.findall(counter, metrics, re.MULTILINE))

    def act(process: subprocess.Popen[str], node: str, name: str) -> None:
        before = lists()
        until(lists, lambda now: now > before or process.poll() is not None)
        workers[node].check_output(f"touch /root/{name}-may-end")

    return lambda node, name: lambda process: act(process, node, name)


@pytest.fixture
def stalled(workers: dict[str, Any], first: str) -> Iterator[Callable[[str], Callable[[], bool]]]:
    """Have the installer of a version wait on the first node before it replaces anything; returns whether it waits. It is dead afterwards."""
    machine = workers[first]

    def stall(version: str) -> Callable[[], bool]:
        machine.check_output(f"touch /root/fake-installer-{version}-waits")
        return lambda: bool(machine.file(f"/root/fake-installer-{version}-waiting").exists)

    yield stall
    machine.run("rm -f /root/fake-installer-*-waits /root/fake-installer-*-waiting")


def kill_installer(machine: Any) -> None:
    """As when the node had gone down with the run: what the run has started on the node goes on otherwise."""
    machine.check_output("pkill -KILL -f '[i]nstaller[.]run'")
    machine.check_output("rm /root/fake-installer-*-waits /root/fake-installer-*-waiting")


def seconds_until_killed(api: Any, node: str, pod: str) -> float:
    """How long after the maintenance of its node had begun the kubelet ended a pod, as its event says."""
    since = json.loads(api.read_node(node).metadata.annotations["gpu-kubernetes/maintenance"])["since"]
    events = until(
        lambda: [
            event.first_timestamp
            for event in api.list_namespaced_event(
                "default", field_selector=f"involvedObject.name={pod},reason=Killing"
            ).items
        ]
    )
    return (min(events) - datetime.fromisoformat(since)).total_seconds()


def start_again(machine: str) -> None:
    """Wait for a machine to stop, and start it."""
    until(
        lambda: subprocess.check_output(["podman", "ps", "--format", "{{.Names}}"], text=True).split(),
        lambda running: machine not in running,
    )
    subprocess.run(["podman", "start", machine], check=True, capture_output=True)


def test_check_mode_tells_and_changes_nothing(
    upgrade: Playbook, state: Callable[..., Any], fingerprint: Callable[..., Any]
) -> None:
    before, whole = state(), fingerprint()
    assert {driver for driver, *_more in before.values()} == {FORMER}
    code, recap, printed = upgrade(NEWER, "--check")
    assert code == 0, printed
    assert all(counts["changed"] for counts in recap.values())
    for name in before:
        assert f"{name}: would be upgraded ({FORMER} -> {NEWER})" in printed
    assert (state(), fingerprint()) == (before, whole)


def test_a_pod_that_its_budget_keeps_is_named(
    upgrade: Playbook,
    state: Callable[..., Any],
    work: Callable[..., str],
    api: Any,
    first: str,
    request: pytest.FixtureRequest,
) -> None:
    before = state()
    name = work("ReplicaSet", "served", first)
    policy = client.PolicyV1Api(api.api_client)
    budget = {"minAvailable": 1, "selector": {"matchLabels": {"made": "served"}}}
    policy.create_namespaced_pod_disruption_budget("default", {"metadata": {"name": "served"}, "spec": budget})
    request.addfinalizer(lambda: policy.delete_namespaced_pod_disruption_budget("served", "default"))
    code, _recap, printed = upgrade(NEWER, gpu_node_maintenance_evict_timeout=3)  # which has to run out
    assert code != 0
    assert f"default/{name} is protected by a PodDisruptionBudget" in printed
    assert f"Driver {FORMER} was not changed, and the maintenance of node {first} has ended." in printed
    assert api.read_namespaced_pod(name, "default").status.phase == "Running"
    until(state, lambda now: now == before)


def test_one_node_after_the_other_also_by_a_run_that_is_killed_while_it_waits(
    upgrade: Playbook,
    state: Callable[..., Any],
    work: Callable[..., str],
    let_end: Callable[..., Any],
    killed_at: Callable[..., None],
    api: Any,
    workers: dict[str, Any],
    first: str,
    request: pytest.FixtureRequest,
) -> None:
    """A job that might be evicted ends by itself before its deadline, and a node that an administrator had cordoned stays cordoned."""
    second = list(workers)[-1]
    job = work("Job", "long", first)
    api.patch_node(second, {"spec": {"unschedulable": True}})
    request.addfinalizer(lambda: api.patch_node(second, {"spec": {"unschedulable": None}}))
    before, two = state(), {"nvidia_driver_upgrade_max_unavailable": 2}
    extra = json.dumps({"driver": NEWER, **two})
    killed_at(PLAYBOOK, CORDON, *VARIABLES, "-e", extra, once=lambda: api.read_node(first).spec.unschedulable)
    driver, schedulable, _gpus, services, left = state()[first]
    assert (driver, schedulable, services) == (FORMER, False, ["active"] * 2)
    assert left == [NOTE, "gpu-kubernetes/maintenance"]
    assert api.read_namespaced_pod(job, "default").status.phase == "Running"
    code, _recap, printed = upgrade(NEWER, at={rf"^TASK \[.*{re.escape(CORDON)}": let_end(first, "long")}, **two)
    assert code == 0, printed
    swapped = int(workers[first].check_output(f"stat --format %Z /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.{NEWER}"))
    for service in SERVICES:
        ran = f"systemctl show {service} --property=ActiveEnterTimestamp --value --timestamp=unix"
        stopped = int(workers[first].check_output(f"stat --format %Y /run/{service}.service.stopped"))
        started = int(workers[first].check_output(ran).lstrip("@"))
        assert stopped <= swapped <= started, "it ran beside neither of the drivers while they were swapped"
    assert f"{first}: upgraded ({FORMER} -> {NEWER}; waited for default/{job})" in printed
    assert "did all of it" in api.read_namespaced_pod_log(job, "default")
    until(state, lambda now: now == {name: (NEWER, *rest) for name, (_driver, *rest) in before.items()})
    assert [(works, *services) for _driver, works, _gpus, services, _left in state().values()] == [
        (True, "active", "active"),
        (False, "inactive", "inactive"),
    ]
    code, recap, printed = upgrade(NEWER)
    assert (code, [counts["changed"] for counts in recap.values()]) == (0, [0, 0]), printed


def test_a_node_that_is_not_proved_gets_its_former_driver_and_the_others_keep_theirs(
    upgrade: Playbook,
    state: Callable[..., Any],
    work: Callable[..., str],
    stalled: Callable[..., Any],
    killed_at: Callable[..., None],
    api: Any,
    workers: dict[str, Any],
    first: str,
) -> None:
    """A job that does not end is evicted at its deadline. On the way back the run is killed, and the next one goes on with that way."""
    before, second = state(), list(workers)[-1]
    job = work("Job", "endless", first)
    # Only while the driver is being swapped, and not on the way back, the pod has to say what it never says.
    words = (
        "{{ 'what this driver never brings about' if nvidia_driver_upgrade_result.state == 'begun'"
        " and __nvidia_driver_upgrade_phase == 'swapping' else 'Test PASSED' }}"
    )
    extra = {"driver": FORMER, "gpu_node_maintenance_jobs_timeout": 5, "gpu_smoke_test_expected_output": words}
    task = "Roll back | Install the former driver"
    killed_at(PLAYBOOK, task, *VARIABLES, "-e", json.dumps(extra), once=stalled(NEWER))
    kill_installer(workers[first])
    assert [pod.metadata.name for pod in api.list_namespaced_pod("default").items if pod.metadata.name == job] == []
    assert seconds_until_killed(api, first, job) >= 5, "it was evicted before its deadline"
    now = state()
    assert (*now[first][:2], now[first][3], now[second]) == (FORMER, False, ["inactive"] * 2, before[second])
    # The former installer was fetched before: its source is not used any more.
    workers[first].check_output(f"mv /root/fake-installer-{NEWER}.run /root/away")
    code, recap, printed = upgrade(FORMER)
    workers[first].check_output(f"mv /root/away /root/fake-installer-{NEWER}.run")
    assert code != 0
    assert "what this driver never brings about" in printed
    assert f"Driver {NEWER} is restored, and the maintenance of node {first} has ended." in printed
    assert f"{first}: failed, and rolled back ({NEWER} -> {FORMER})" in printed
    assert f"{second}: not reached ({NEWER} -> {FORMER})" in printed
    assert recap[second]["changed"] == 0
    until(state, lambda now: now == before)
    assert state()[first][3] == ["active"] * 2, "the run that was killed had stopped them"


def test_runs_that_are_killed_in_the_swap_are_gone_on_with(
    upgrade: Playbook,
    state: Callable[..., Any],
    stalled: Callable[..., Any],
    killed_at: Callable[..., None],
    workers: dict[str, Any],
    first: str,
) -> None:
    """Once while the installer runs, and once while the GPUs of the new driver are waited for."""
    before = state()
    words = (*VARIABLES, "-e", json.dumps({"driver": FORMER}), "--limit", first)
    killed_at(PLAYBOOK, "Runfile | Run the installer", *words, once=stalled(FORMER))
    kill_installer(workers[first])
    driver, schedulable, _gpus, services, left = state()[first]
    assert (driver, schedulable, services) == (NEWER, False, ["inactive"] * 2)
    assert NOTE in left
    killed_at(PLAYBOOK, "Resume | Wait until the node reports its GPUs", *words)
    driver, schedulable, _gpus, services, left = state()[first]
    assert (driver, schedulable, services) == (FORMER, False, ["active"] * 2)
    assert left == [NOTE, "gpu-kubernetes/maintenance"]
    code, _recap, printed = upgrade(FORMER, "--limit", first)
    assert code == 0, printed
    until(state, lambda now: now == {**before, first: (FORMER, *before[first][1:])})
    assert state()[first][3] == ["active"] * 2, "runs that were killed had stopped them"


def test_a_node_is_emptied_of_all_pods_for_a_reboot(
    playbook: Playbook,
    state: Callable[..., Any],
    work: Callable[..., str],
    let_end: Callable[..., Any],
    api: Any,
    workers: dict[str, Any],
) -> None:
    """The reboot of a machine of the lab ends its container, which this test starts again."""
    name, machine = list(workers.items())[-1]
    begun, before = "stat --format %Y /proc/1", state()
    first, job = machine.check_output(begun), work("Pod", "short", name)
    at = {rf"^TASK \[.*{re.escape(CORDON)}": let_end(name, "short")}
    with ThreadPoolExecutor(1) as beside:
        started = beside.submit(start_again, name)
        code, recap, printed = playbook(str(HERE / "reboot.yml"), "--limit", name, at=at)
    assert (code, recap[name]["changed"]) == (0, 5), printed
    started.result()
    assert machine.check_output(begun) != first
    assert "did all of it" in api.read_namespaced_pod_log(job, "default")
    until(state, lambda now: now == before)
