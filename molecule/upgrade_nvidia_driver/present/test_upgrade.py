# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rolling upgrade on a real cluster with GPU pods: no pod is killed early, and each end of a run leaves a working driver.

Each test depends on the tests before it. Other refusals, and runs that are killed at other steps, are in tests/unit/roles/nvidia_driver_upgrade.
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
# No image of the lab has a shell: pods use the machine's programs.
LIBRARIES = "/host/usr/lib/x86_64-linux-gnu"
LOADER = [f"{LIBRARIES}/ld-linux-x86-64.so.2", "--library-path", LIBRARIES]
FORMER, NEWER = "570.124.06", "570.195.03"
VARIABLES = ("-e", f"@{HERE / 'files' / 'driver.yml'}")
PLAYBOOK = "upgrade_nvidia_driver"
CORDON = "gpu_node_maintenance : Begin | Cordon and drain the node"
SERVICES = ("nvidia-dcgm", "dcgm-exporter", "nvidia_gpu_exporter")
ACTIVE, INACTIVE = ["active"] * len(SERVICES), ["inactive"] * len(SERVICES)
RECORD = "/var/lib/gpu-kubernetes/state/driver-upgrade.json"
Playbook = Callable[..., tuple[int, dict[str, dict[str, int]], str]]


@pytest.fixture
def upgrade(playbook: Playbook) -> Playbook:
    """Run the playbook for another version: exit code, recap, output in one line."""

    def run(version: str, *words: str, at: Any = None, **variables: Any) -> tuple[int, dict[str, dict[str, int]], str]:
        extra = json.dumps({"driver": version, **variables})
        code, recap, printed = playbook(PLAYBOOK, *VARIABLES, "-e", extra, *words, at=at)
        return code, recap, " ".join(printed.split())

    return run


@pytest.fixture(scope="module")
def workers(inventory: dict[str, Any], get_machine: Callable[[str], Any]) -> dict[str, Any]:
    """The GPU machines by the names of their nodes; the hosts have the same names."""
    return {name: get_machine(name) for name in inventory["all"]["children"]["gpu_nodes"]["hosts"]}


@pytest.fixture
def first(workers: dict[str, Any]) -> str:
    """The node that is upgraded first; services on its host use the driver."""
    name = next(iter(workers))
    workers[name].check_output(f"systemctl start {' '.join(SERVICES)}")
    return name


@pytest.fixture
def read_state(api: Any, workers: dict[str, Any]) -> Callable[[], dict[str, Any]]:
    """Read of each node: the driver, whether it is schedulable, the allocatable GPUs, the host's services, and the marks of an upgrade."""

    def read_node(name: str) -> tuple[str, bool, str, list[str], list[str]]:
        node = api.read_node(name)
        records = workers[name].run(f"ls {RECORD}").stdout.split()
        marks = [*(node.metadata.annotations or {}), *node.metadata.labels]
        left = [mark for mark in marks if mark in {"gpu-kubernetes/maintenance", "gpu-kubernetes/paused"}]
        library = workers[name].check_output(
            "ls /usr/lib/x86_64-linux-gnu | sed -n 's/^libnvidia-ml.so.\\([0-9]*\\.\\)/\\1/p'"
        )
        services = workers[name].run(f"systemctl is-active {' '.join(SERVICES)}").stdout.split()
        return library, not node.spec.unschedulable, node.status.allocatable["nvidia.com/gpu"], services, records + left

    return lambda: {name: read_node(name) for name in workers}


def gpu_pod(name: str, node: str, restart: str) -> dict[str, Any]:
    """The spec of a pod that has a GPU of a node until a file exists on the node, and then prints that it has ended by itself."""
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
def start_work(api: Any, workers: dict[str, Any]) -> Iterator[Callable[[str, str, str], str]]:
    """Start a pod with a GPU on a node, alone or by a controller, and wait until it runs: its name. All is deleted after the test."""
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
def let_pod_end(settings: Any, workers: dict[str, Any]) -> Callable[[str, str], Callable[[Any], None]]:
    """Let the pod of a name end when the maintenance of its node waits for it.

    It lists the pods of all namespaces then, again and again. The maintenance of another node, which waits for no pod, lists them less often.
    """

    def count_lists() -> float:
        metrics = kubectl(settings, "get", "--raw=/metrics")
        counter = r'^apiserver_request_total\{[^}]*resource="pods",scope="cluster",[^}]*verb="LIST"[^}]*\} (\S+)$'
        return sum(float(number) for number in re.findall(counter, metrics, re.MULTILINE))

    def act(process: subprocess.Popen[str], node: str, name: str) -> None:
        before = count_lists()
        until(count_lists, lambda now: now > before + 5 or process.poll() is not None)
        workers[node].check_output(f"touch /root/{name}-may-end")

    return lambda node, name: lambda process: act(process, node, name)


@pytest.fixture
def stall_installer(workers: dict[str, Any], first: str) -> Iterator[Callable[[str], Callable[[], bool]]]:
    """Let the installer of a version wait on the first node before it replaces anything; returns whether it waits."""
    machine = workers[first]

    def stall(version: str) -> Callable[[], bool]:
        machine.check_output(f"touch /root/fake-installer-{version}-waits")
        return lambda: bool(machine.file(f"/root/fake-installer-{version}-waiting").exists)

    yield stall
    machine.run("rm -f /root/fake-installer-*-waits /root/fake-installer-*-waiting")


def kill_installer(machine: Any) -> None:
    """Kill the installer, which survives the run on the controller."""
    machine.check_output("pkill -KILL -f '[i]nstaller[.]run'")
    machine.check_output("rm /root/fake-installer-*-waits /root/fake-installer-*-waiting")


def seconds_until_killed(api: Any, node: str, pod: str) -> float:
    """Seconds from the begin of the maintenance of a node until the kubelet ended a pod, by its event."""
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


def restart_machine(machine: str) -> None:
    """Wait for a machine to stop, and start it."""
    until(
        lambda: subprocess.check_output(["podman", "ps", "--format", "{{.Names}}"], text=True).split(),
        lambda running: machine not in running,
    )
    subprocess.run(["podman", "start", machine], check=True, capture_output=True)


def test_check_mode_reports_the_upgrade_and_changes_nothing(
    upgrade: Playbook, read_state: Callable[..., Any], fingerprint: Callable[..., Any]
) -> None:
    before, whole = read_state(), fingerprint()
    assert {driver for driver, *_more in before.values()} == {FORMER}
    code, recap, printed = upgrade(NEWER, "--check")
    assert code == 0, printed
    assert all(counts["changed"] for counts in recap.values())
    for name in before:
        assert f"{name}: would be upgraded ({FORMER} -> {NEWER})" in printed
    assert (read_state(), fingerprint()) == (before, whole)


def test_pod_with_a_disruption_budget_is_named(
    upgrade: Playbook,
    read_state: Callable[..., Any],
    start_work: Callable[..., str],
    api: Any,
    first: str,
    request: pytest.FixtureRequest,
) -> None:
    before = read_state()
    name = start_work("ReplicaSet", "served", first)
    policy = client.PolicyV1Api(api.api_client)
    budget = {"minAvailable": 1, "selector": {"matchLabels": {"made": "served"}}}
    policy.create_namespaced_pod_disruption_budget("default", {"metadata": {"name": "served"}, "spec": budget})
    request.addfinalizer(lambda: policy.delete_namespaced_pod_disruption_budget("served", "default"))
    code, _recap, printed = upgrade(NEWER, gpu_node_maintenance_evict_timeout=3)  # the test waits for it
    assert code != 0
    assert f"default/{name} is protected by a PodDisruptionBudget" in printed
    assert f"Driver {FORMER} was not changed, and the maintenance of node {first} has ended." in printed
    assert api.read_namespaced_pod(name, "default").status.phase == "Running"
    until(read_state, lambda now: now == before)


def test_rolling_upgrade_resumes_after_a_kill_while_it_waits(
    upgrade: Playbook,
    read_state: Callable[..., Any],
    start_work: Callable[..., str],
    let_pod_end: Callable[..., Any],
    kill_run_at: Callable[..., None],
    api: Any,
    workers: dict[str, Any],
    first: str,
    request: pytest.FixtureRequest,
) -> None:
    """A job ends by itself before its deadline, and a node that an administrator has cordoned stays cordoned."""
    second = list(workers)[-1]
    job = start_work("Job", "long", first)
    api.patch_node(second, {"spec": {"unschedulable": True}})
    request.addfinalizer(lambda: api.patch_node(second, {"spec": {"unschedulable": None}}))
    before, two = read_state(), {"nvidia_driver_upgrade_max_unavailable": 2}
    extra = json.dumps({"driver": NEWER, **two})
    kill_run_at(PLAYBOOK, CORDON, *VARIABLES, "-e", extra, condition=lambda: api.read_node(first).spec.unschedulable)
    driver, schedulable, _gpus, services, left = read_state()[first]
    assert (driver, schedulable, services) == (FORMER, False, ACTIVE)
    assert left == [RECORD, "gpu-kubernetes/maintenance"]
    assert api.read_namespaced_pod(job, "default").status.phase == "Running"
    code, _recap, printed = upgrade(NEWER, at={rf"^TASK \[.*{re.escape(CORDON)}": let_pod_end(first, "long")}, **two)
    assert code == 0, printed
    replaced = int(workers[first].check_output(f"stat --format %Z /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.{NEWER}"))
    for service in SERVICES:
        ran = f"systemctl show {service} --property=ActiveEnterTimestamp --value --timestamp=unix"
        stopped = int(workers[first].check_output(f"stat --format %Y /run/{service}.service.stopped"))
        started = int(workers[first].check_output(ran).lstrip("@"))
        assert stopped <= replaced <= started, "the service ran while the driver was replaced"
    assert f"{first}: upgraded ({FORMER} -> {NEWER}; waited for default/{job})" in printed
    assert "did all of it" in api.read_namespaced_pod_log(job, "default")
    until(read_state, lambda now: now == {name: (NEWER, *rest) for name, (_driver, *rest) in before.items()})
    states = [(works, services) for _driver, works, _gpus, services, _left in read_state().values()]
    assert states == [(True, ACTIVE), (False, INACTIVE)]
    code, recap, printed = upgrade(NEWER)
    assert (code, [counts["changed"] for counts in recap.values()]) == (0, [0, 0]), printed


def test_failed_smoke_test_rolls_back_the_node_and_ends_the_upgrade(
    upgrade: Playbook,
    read_state: Callable[..., Any],
    start_work: Callable[..., str],
    stall_installer: Callable[..., Any],
    kill_run_at: Callable[..., None],
    api: Any,
    workers: dict[str, Any],
    first: str,
) -> None:
    """A job that does not end is evicted at its deadline. The run is killed during the rollback, and the next run resumes it."""
    before, second = read_state(), list(workers)[-1]
    job = start_work("Job", "endless", first)
    # The expected output is wrong only while the driver is replaced, and not during the rollback.
    words = (
        "{{ 'output that this driver never prints' if nvidia_driver_upgrade_result.state == 'begun'"
        " and __nvidia_driver_upgrade_phase == 'installing' else 'Test PASSED' }}"
    )
    extra = {"driver": FORMER, "gpu_node_maintenance_jobs_timeout": 5, "gpu_smoke_test_expected_output": words}
    task = "Roll back | Install the former driver"
    kill_run_at(PLAYBOOK, task, *VARIABLES, "-e", json.dumps(extra), condition=stall_installer(NEWER))
    kill_installer(workers[first])
    assert [pod.metadata.name for pod in api.list_namespaced_pod("default").items if pod.metadata.name == job] == []
    assert seconds_until_killed(api, first, job) >= 5, "it was evicted before its deadline"
    now = read_state()
    assert (*now[first][:2], now[first][3], now[second]) == (FORMER, False, INACTIVE, before[second])
    # The former installer was fetched before: its source is not used again.
    workers[first].check_output(f"mv /root/fake-installer-{NEWER}.run /root/away")
    code, recap, printed = upgrade(FORMER)
    workers[first].check_output(f"mv /root/away /root/fake-installer-{NEWER}.run")
    assert code != 0
    assert "output that this driver never prints" in printed
    assert f"Driver {NEWER} is restored, and the maintenance of node {first} has ended." in printed
    assert f"{first}: failed, and rolled back ({NEWER} -> {FORMER})" in printed
    assert f"{second}: not reached ({NEWER} -> {FORMER})" in printed
    assert recap[second]["changed"] == 0
    until(read_state, lambda now: now == before)
    assert read_state()[first][3] == ACTIVE, "the killed run had stopped them"


def test_run_killed_during_the_replacement_is_resumed(
    upgrade: Playbook,
    read_state: Callable[..., Any],
    stall_installer: Callable[..., Any],
    kill_run_at: Callable[..., None],
    workers: dict[str, Any],
    first: str,
) -> None:
    """Once while the installer runs, and once while the run waits for the GPUs of the new driver."""
    before = read_state()
    words = (*VARIABLES, "-e", json.dumps({"driver": FORMER}), "--limit", first)
    kill_run_at(PLAYBOOK, "Runfile | Run the installer", *words, condition=stall_installer(FORMER))
    kill_installer(workers[first])
    driver, schedulable, _gpus, services, left = read_state()[first]
    assert (driver, schedulable, services) == (NEWER, False, INACTIVE)
    assert RECORD in left
    kill_run_at(PLAYBOOK, "Resume | Wait until the node reports its GPUs", *words)
    driver, schedulable, _gpus, services, left = read_state()[first]
    assert (driver, schedulable, services) == (FORMER, False, ACTIVE)
    assert left == [RECORD, "gpu-kubernetes/maintenance"]
    code, _recap, printed = upgrade(FORMER, "--limit", first)
    assert code == 0, printed
    until(read_state, lambda now: now == {**before, first: (FORMER, *before[first][1:])})
    assert read_state()[first][3] == ACTIVE, "the killed runs had stopped them"


def test_node_is_drained_of_all_pods_for_a_reboot(
    playbook: Playbook,
    read_state: Callable[..., Any],
    start_work: Callable[..., str],
    let_pod_end: Callable[..., Any],
    api: Any,
    workers: dict[str, Any],
) -> None:
    """A reboot ends the container of the lab's machine; this test starts it again."""
    name, machine = list(workers.items())[-1]
    read_start_time, before = "stat --format %Y /proc/1", read_state()
    first, job = machine.check_output(read_start_time), start_work("Pod", "short", name)
    at = {rf"^TASK \[.*{re.escape(CORDON)}": let_pod_end(name, "short")}
    with ThreadPoolExecutor(1) as pool:
        started = pool.submit(restart_machine, name)
        code, recap, printed = playbook(str(HERE / "reboot.yml"), "--limit", name, at=at)
    assert (code, recap[name]["changed"]) == (0, 5), printed
    started.result()
    assert machine.check_output(read_start_time) != first
    assert "did all of it" in api.read_namespaced_pod_log(job, "default")
    until(read_state, lambda now: now == before)
