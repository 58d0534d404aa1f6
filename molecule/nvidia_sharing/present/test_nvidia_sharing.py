# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``share_gpus`` shares the GPUs of a node by time slicing, by MPS and by MIG, one after the other. Each test depends on the tests before it.

kubelet, scheduler, API server and NVIDIA's control program of MPS are real. NVML is simulated, with MIG and compute modes that the node and its pods share;
NVIDIA's device plugin, its config-manager and the pod of the control program are fakes. The scenario sharing changes a node from MIG to gpushare.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from lab import fingerprint as prints
from lab import nodes
from lab.strategies import (
    FIRST,
    GPU,
    LABEL,
    RESET,
    SECOND,
    SINGLE,
    SLICED,
    WHOLE,
    Run,
    list_plugins,
    variables,
    write_words,
)
from lab.wait import until

SHARED = "nvidia.com/gpu.shared"
SMALL, LARGE = "nvidia.com/mig-1g.5gb", "nvidia.com/mig-3g.20gb"
DAEMON = "name=nvidia-device-plugin-mps-control-daemon"
UNIT, PIPE = "gpu-kubernetes-mig.service", "/run/nvidia/mps/nvidia.com/gpu/pipe"
#: A run for the first node alone, where the second one shows nothing more; and one without the smoke test, which the first run of a strategy has.
ALONE = {"gpu_nodes_group": FIRST}
UNTESTED = ("--skip-tags", "smoke_test")


@pytest.fixture
def execute(settings: Any) -> Callable[..., str]:
    """Run a shell command on a node, the first if none is named."""
    machines = {each.name: each for each in settings.nodes}
    return lambda command, node=FIRST: nodes.execute(machines[node], "sh", "-c", command)


RENAMED = variables("time_slicing", 3, rename=True)
MPS = variables("mps", 2)
MIXED = variables(
    "mig",
    mig="mixed",
    layout=[{"gpus": [0], "profiles": {"3g.20gb": 2}}, {"gpus": [1, 2, 3, 4, 5, 6, 7], "profiles": {"1g.5gb": 7}}],
)


def read_names(api: Any) -> tuple[list[str], list[str]]:
    """The names of configurations on nodes, and in the ConfigMap."""
    labels = [api.read_node(node).metadata.labels.get(LABEL, "") for node in (FIRST, SECOND)]
    data = api.read_namespaced_config_map("nvidia-device-plugin-config", "kube-system").data
    return labels, sorted(data)


def read_container(execute: Callable[[str], str], pod: Any) -> dict[str, Any]:
    """The configuration of a pod's container in the container runtime, with what the kubelet has from the device plugin's answer."""
    container = pod.status.container_statuses[0].container_id.partition("//")[2]
    return json.loads(execute(f"crictl inspect {container}"))["info"]["config"]


def read_environment(execute: Callable[[str], str], pod: Any) -> dict[str, str]:
    """The environment of a pod's container."""
    return {each["key"]: each["value"] for each in read_container(execute, pod)["envs"]}


def read_modes(execute: Callable[[str], str]) -> set[tuple[int, int, int]]:
    """MIG mode, pending MIG mode and compute mode of the GPUs of the first node, in the simulation's state."""
    found = re.findall(r"^gpu \S+ (\d) (\d) (\d)$", execute("cat /run/nvml-fake/state"), re.MULTILINE)
    return {(int(mode), int(pending), int(compute)) for mode, pending, compute in found}


@pytest.fixture
def predict(share: Run, read_allocatable: Any) -> Callable[..., None]:
    """Run share_gpus in check mode: it reports changes, and makes none."""

    def run(first: dict[str, Any], second: dict[str, Any], **more: Any) -> None:
        before = [read_allocatable(node) for node in (FIRST, SECOND)]
        code, predicted, printed = share(first, second, words=["--check", *UNTESTED], **more)
        assert (code, predicted > 0) == (0, True), printed
        assert [read_allocatable(node) for node in (FIRST, SECOND)] == before

    return run


@pytest.fixture
def repeat(share: Run) -> Callable[..., None]:
    """Run share_gpus as before, and in check mode: nothing changes."""

    def run(first: dict[str, Any], second: dict[str, Any], **more: Any) -> None:
        for words in ([], ["--check"]):
            code, changed, printed = share(first, second, words=[*words, *UNTESTED], **more)
            assert (code, changed) == (0, 0), printed

    return run


@pytest.mark.thorough
def test_time_slicing_in_check_mode_changes_nothing(predict: Any) -> None:
    predict(SLICED, RENAMED)


def test_two_nodes_have_two_numbers_of_replicas(share: Run, read_allocatable: Any, api: Any) -> None:
    code, changed, printed = share(SLICED, RENAMED)
    assert (code, changed > 0) == (0, True), printed
    assert read_allocatable(FIRST) == {GPU: "32"}
    assert read_allocatable(SECOND) == {SHARED: "6"}
    labels, keys = read_names(api)
    assert keys == sorted(["default", *labels])
    assert all(labels)


def test_unchanged_numbers_change_nothing(repeat: Any) -> None:
    repeat(SLICED, RENAMED)


def test_pod_gets_one_replica(api: Any, start_gpu_pod: Any) -> None:
    start_gpu_pod(1, GPU, FIRST)
    container = {"name": "gpu", "image": "lab.local/fake/cuda-sample:vectoradd", "resources": {"limits": {GPU: "2"}}}
    spec = {"nodeSelector": {"kubernetes.io/hostname": FIRST}, "containers": [container], "restartPolicy": "Never"}
    api.create_namespaced_pod("default", {"metadata": {"name": "two"}, "spec": spec})
    try:
        until(
            lambda: api.read_namespaced_pod("two", "default").status,
            lambda status: status.reason == "UnexpectedAdmissionError",
        )
    finally:
        api.delete_namespaced_pod("two", "default", grace_period_seconds=0)


@pytest.mark.thorough
def test_three_pods_share_each_gpu_and_one_more_stays_pending(start_gpu_pod: Any, execute: Any) -> None:
    pods = [start_gpu_pod(1, SHARED, SECOND) for _number in range(6)]
    at_second = partial(execute, node=SECOND)
    uses = Counter(read_environment(at_second, pod)["NVIDIA_VISIBLE_DEVICES"] for pod in pods)
    assert all(device.startswith("GPU-") for device in uses)
    assert list(uses.values()) == [3, 3]
    start_gpu_pod(1, SHARED, SECOND, pending_reason=f"Insufficient {SHARED}")


@pytest.mark.thorough
def test_device_plugin_alone_is_not_deployed_for_another_number(share: Run, read_allocatable: Any) -> None:
    code, changed, printed = share(variables("time_slicing", 3), RENAMED, "deploy_device_plugin")
    assert (code, changed) == (2, 0), printed
    assert "its node is not shared as declared" in printed
    assert read_allocatable(FIRST) == {GPU: "32"}


@pytest.mark.thorough
def test_another_number_restarts_the_plugin_of_its_node_alone(
    share: Run, read_allocatable: Any, start_gpu_pod: Any, api: Any
) -> None:
    pod, plugins = start_gpu_pod(1, GPU, FIRST), list_plugins(api)
    evicted = {"gpu_sharing_migrate": True, "gpu_node_maintenance_force": True}
    code, _changed, printed = share(variables("time_slicing", 3), RENAMED, words=UNTESTED, **evicted)
    assert code == 0, printed
    assert read_allocatable(FIRST) == {GPU: "24"}
    assert not [each for each in api.list_namespaced_pod("default").items if each.metadata.uid == pod.metadata.uid]
    assert list_plugins(api)[SECOND] == plugins[SECOND]
    assert list_plugins(api)[FIRST] != plugins[FIRST]
    labels, keys = read_names(api)
    # The former configuration of the first node is gone.
    assert keys == sorted(["default", *labels])


@pytest.mark.thorough
def test_mps_in_check_mode_changes_nothing(predict: Any, api: Any) -> None:
    predict(MPS, WHOLE, **ALONE)
    assert list_plugins(api, DAEMON) == {}


# Each of the next runs goes on where the one before was killed: while time slicing leaves, and when MPS is named and its daemon is not started.
@pytest.mark.thorough
@pytest.mark.parametrize(
    "task",
    [
        "Node absent | Wait until the plugin's pod is gone",
        "NVIDIA | Name each node's configuration with its label",
    ],
)
def test_run_to_mps_is_killed(kill_run_at: Any, task: str) -> None:
    kill_run_at("share_gpus", task, *write_words(MPS, WHOLE, **ALONE))


@pytest.fixture
def outage(api_server_outage: Any, is_thorough: bool) -> dict[str, Callable[[object], None]]:
    """In ``make test-all``, take the API server away for a while when a run waits for the daemon.

    After five minutes, a kubelet would report a resource that has left for ever.
    """
    begin, end = api_server_outage

    def leave_for_a_while(_process: object) -> None:
        begin()
        threading.Timer(20, end).start()

    return {r"^TASK \[.*Node present \| Wait until the daemon's pod": leave_for_a_while} if is_thorough else {}


def test_control_daemon_limits_the_clients_of_mps(
    share: Run, read_allocatable: Any, api: Any, execute: Any, start_gpu_pod: Any, outage: Any
) -> None:
    code, _changed, printed = share(MPS, WHOLE, at=outage)
    assert code == 0, printed
    assert (read_allocatable(FIRST), read_allocatable(SECOND)) == ({GPU: "16"}, {GPU: "2"})
    assert list(list_plugins(api, DAEMON)) == [FIRST]
    assert read_modes(execute) == {(0, 0, 3)}
    ask = f"CUDA_MPS_PIPE_DIRECTORY={PIPE} nvidia-cuda-mps-control"
    assert execute(f"echo get_default_active_thread_percentage | {ask}").strip() == "50.0"
    # Half of 40 GiB.
    assert execute(f"echo get_default_device_pinned_mem_limit 0 | {ask}").strip() == "20G"
    pod = start_gpu_pod(1, GPU, FIRST)
    assert read_environment(execute, pod)["CUDA_MPS_PIPE_DIRECTORY"] == "/mps/nvidia.com/gpu/pipe"
    mounts = {each["container_path"]: each["host_path"] for each in read_container(execute, pod)["mounts"]}
    assert mounts["/mps/nvidia.com/gpu/pipe"] == PIPE
    assert "/run/nvidia/mps/shm" in mounts.values()


@pytest.mark.thorough
def test_unchanged_mps_changes_nothing(repeat: Any) -> None:
    repeat(MPS, WHOLE, **ALONE)


@pytest.mark.thorough
def test_pod_beyond_the_clients_of_mps_stays_pending(start_gpu_pod: Any) -> None:
    for _number in range(16):
        start_gpu_pod(1, GPU, FIRST)
    start_gpu_pod(1, GPU, FIRST, pending_reason=f"Insufficient {GPU}")


def test_mig_is_refused_without_permission_to_reset(share: Run, read_allocatable: Any, execute: Any) -> None:
    before = read_allocatable(FIRST)
    code, changed, printed = share(SINGLE, WHOLE, **ALONE)
    assert (code, changed) == (2, 0), printed
    assert "takes effect after a reset of the GPU or a reboot, and neither is allowed" in printed
    assert read_allocatable(FIRST) == before
    assert read_modes(execute) == {(0, 0, 3)}


@pytest.mark.thorough
def test_mig_in_check_mode_changes_nothing(predict: Any, execute: Any) -> None:
    predict(SINGLE, WHOLE, **RESET, **ALONE)
    assert read_modes(execute) == {(0, 0, 3)}


# While MPS leaves, and when the GPUs have their layout and the device plugin is not back.
@pytest.mark.thorough
@pytest.mark.parametrize(
    "task",
    [
        "Node absent | Wait until the daemon's pod is gone",
        "Node present | Write the unit that applies the layout at boot",
    ],
)
def test_run_to_mig_is_killed(kill_run_at: Any, task: str) -> None:
    kill_run_at("share_gpus", task, *write_words(SINGLE, WHOLE, **RESET, **ALONE))


def test_gpus_are_seven_mig_devices_each(share: Run, read_allocatable: Any, api: Any, execute: Any) -> None:
    code, _changed, printed = share(SINGLE, WHOLE, **RESET)
    assert code == 0, printed
    assert read_allocatable(FIRST) == {GPU: "56"}
    assert read_modes(execute) == {(1, 1, 0)}
    # MPS has left nothing.
    assert list_plugins(api, DAEMON) == {}
    assert execute("test ! -e /run/nvidia/mps && ! pgrep -f '[n]vidia-cuda-mps' && echo gone").strip() == "gone"


@pytest.mark.thorough
def test_unchanged_layout_changes_nothing(repeat: Any) -> None:
    repeat(SINGLE, WHOLE, **RESET, **ALONE)


def test_each_pod_has_a_mig_device_of_its_own(execute: Any, start_gpu_pod: Any) -> None:
    pods = [start_gpu_pod(1, GPU, FIRST) for _number in range(2)]
    devices = {read_environment(execute, pod)["NVIDIA_VISIBLE_DEVICES"] for pod in pods}
    assert len(devices) == 2
    assert all(device.startswith("MIG-") for device in devices)


def test_layout_is_there_again_after_a_reboot(settings: Any, read_allocatable: Any, execute: Any) -> None:
    node = next(each for each in settings.nodes if each.name == FIRST)
    former = execute("cut -d' ' -f2- /run/nvml-fake/state | sort")
    nodes.reboot(settings, node)
    assert execute(f"systemctl show {UNIT} --property=Result,ExecMainStatus").split() == [
        "Result=success",
        "ExecMainStatus=0",
    ]
    assert execute("cut -d' ' -f2- /run/nvml-fake/state | sort") == former
    until(lambda: read_allocatable(FIRST), lambda found: found == {GPU: "56"})


def test_mixed_layout_offers_each_profile(share: Run, read_allocatable: Any, start_gpu_pod: Any, execute: Any) -> None:
    """The smoke test runs pods with these profiles."""
    code, _changed, printed = share(MIXED, WHOLE, gpu_sharing_migrate=True)
    assert code == 0, printed
    assert "SKIPPED" not in printed
    assert read_allocatable(FIRST) == {SMALL: "49", LARGE: "2"}
    assert read_environment(execute, start_gpu_pod(1, LARGE, FIRST))["NVIDIA_VISIBLE_DEVICES"].startswith("MIG-")
    start_gpu_pod(1, GPU, FIRST, pending_reason="Insufficient nvidia.com/gpu")


def test_report_lists_the_profiles(share: Run) -> None:
    code, _changed, printed = share(MIXED, WHOLE, name="show_gpu_allocation")
    assert code == 0, printed
    assert SMALL in printed
    assert LARGE in printed


@pytest.mark.thorough
def test_exclusive_in_check_mode_changes_nothing(predict: Any, execute: Any) -> None:
    predict(WHOLE, WHOLE, **RESET, **ALONE)
    assert read_modes(execute) == {(1, 1, 0)}


def test_exclusive_removes_layout_and_configurations(
    share: Run, read_allocatable: Any, api: Any, execute: Any, start_gpu_pod: Any
) -> None:
    code, _changed, printed = share(WHOLE, WHOLE, words=UNTESTED, **RESET)
    assert code == 0, printed
    assert (read_allocatable(FIRST), read_allocatable(SECOND)) == ({GPU: "8"}, {GPU: "2"})
    assert read_names(api) == (["", ""], ["config.yaml"])
    assert read_modes(execute) == {(0, 0, 0)}
    start_gpu_pod(1, GPU, FIRST)


@pytest.mark.thorough
def test_unchanged_whole_gpus_are_not_shared(repeat: Any, start_gpu_pod: Any) -> None:
    repeat(WHOLE, WHOLE, **ALONE)
    start_gpu_pod(2, GPU, SECOND)
    start_gpu_pod(1, GPU, SECOND, pending_reason=f"Insufficient {GPU}")


@pytest.mark.thorough
def test_mig_is_removed_with_the_playbook_of_the_undo(
    share: Run, read_allocatable: Any, api: Any, execute: Any
) -> None:
    """The device plugin, which has the GPUs open, leaves the node before their layout and comes back."""
    # The undo leaves labels of the GPUs as they are.
    code, _changed, printed = share(SINGLE, WHOLE, words=("--skip-tags", "smoke_test,labels"), **RESET)
    assert code == 0, printed
    code, changed, printed = share(SINGLE, WHOLE, "remove_gpu_nodes", ("--tags", "sharing"))
    assert (code, changed) == (2, 0), printed
    assert "neither is allowed" in printed
    assert read_allocatable(FIRST) == {GPU: "56"}
    code, _changed, printed = share(SINGLE, WHOLE, "remove_gpu_nodes", ("--tags", "sharing"), **RESET)
    assert code == 0, printed
    assert read_modes(execute) == {(0, 0, 0)}
    assert execute(f"test ! -e /etc/systemd/system/{UNIT} && echo gone").strip() == "gone"
    until(lambda: read_allocatable(FIRST), lambda found: found == {GPU: "8"})
    assert read_names(api)[0] == ["", ""]
    # The next deployment of the device plugin removes the configuration that no node names.
    code, _changed, printed = share(WHOLE, WHOLE, "deploy_device_plugin")
    assert code == 0, printed
    assert read_names(api)[1] == ["config.yaml"]


def test_nodes_and_cluster_are_as_before(before: dict[str, str], settings: Any) -> None:
    assert prints.remaining(before, settings) == []
