# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults on a deployed cluster; only `make test-all` runs them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fakes.nvml import compose
from kubernetes import client
from lab import fingerprint as prints
from lab import gpus
from lab.shell import run
from lab.wait import until

pytestmark = pytest.mark.thorough
HOST = "molecule-worker-2"
CONFIG = "/etc/containerd/config.toml"
PLUGIN = ("nvidia-device-plugin-daemonset", "kube-system")


def test_malformed_configuration_is_refused_before_any_host_changes(
    get_machine: Callable[[str], Any], expect_refusal: Callable[..., None]
) -> None:
    """The file is on the last host: the first host is not changed either."""
    machine = get_machine(HOST)
    machine.check_output(f"cp -p {CONFIG} /root/ && echo 'broken = [' >> {CONFIG}")
    try:
        expect_refusal([], HOST, CONFIG, "line")
    finally:
        machine.check_output(f"mv /root/config.toml {CONFIG}")


def test_second_run_is_refused_while_a_first_one_holds_the_node(playbook: Callable[..., Any]) -> None:
    """The first run stops after it has begun to change a node, while the second one runs, and ends well afterwards."""
    second: list[tuple[int, str]] = []

    def run_second(first: subprocess.Popen[str]) -> None:
        os.killpg(first.pid, signal.SIGSTOP)
        try:
            code, _recap, printed = playbook("prepare_gpu_nodes", "--limit", HOST)
            second.append((code, " ".join(printed.split())))
        finally:
            os.killpg(first.pid, signal.SIGCONT)

    code, _recap, printed = playbook(
        "prepare_gpu_nodes", "--limit", HOST, at={r"^TASK \[.*Install or keep the driver": run_second}
    )
    assert code == 0, printed
    ((code, refusal),) = second
    assert code != 0, refusal
    assert re.search(r"another run changes this host: that of \S+, since .*; wait until it ends, or", refusal), refusal


def test_run_is_refused_while_the_lease_of_the_node_has_another_holder(playbook: Callable[..., Any], api: Any) -> None:
    """As that of a run on another controller, which has no lock on the host yet."""
    leases, now = client.CoordinationV1Api(api.api_client), datetime.now(UTC)
    spec = client.V1LeaseSpec(
        holder_identity="alice@elsewhere/1", acquire_time=now, renew_time=now, lease_duration_seconds=3600
    )
    name = f"gpu-kubernetes-{HOST}"
    leases.create_namespaced_lease("kube-system", client.V1Lease(metadata={"name": name}, spec=spec))
    try:
        code, _recap, printed = playbook("prepare_gpu_nodes", "--limit", HOST)
        assert leases.read_namespaced_lease(name, "kube-system").spec.holder_identity == "alice@elsewhere/1"
    finally:
        leases.delete_namespaced_lease(name, "kube-system")
    refusal = " ".join(printed.split())
    assert code != 0, refusal
    assert f"another run changes node {HOST}: that of alice@elsewhere, since 20" in refusal, refusal


def test_report_names_nodes_without_allocatable_gpus(tmp_path: Path, playbook: Callable[..., Any]) -> None:
    path = tmp_path / "report.json"
    extra = {
        "gpu_verify_report_path": str(path),
        "k8s_device_plugin_expected_gpus": 99,
        "k8s_device_plugin_wait_timeout": 5,  # the test waits for it
    }
    code, _recap, printed = playbook("site", "--tags", "device_plugin,smoke_test,verify", "-e", json.dumps(extra))
    assert code != 0
    assert "GPU report: 2 nodes" in printed
    report = json.loads(path.read_text(encoding="utf-8"))
    assert [problem["code"] for problem in report["problems"]] == ["node", "node"]
    assert [node["smoke_test"]["result"] for node in report["nodes"]] == ["passed", "passed"]


class Lab(NamedTuple):
    """What faults are injected into."""

    machine: Any
    settings: Any
    api: Any
    folder: Path


@pytest.fixture
def lab(get_machine: Callable[[str], Any], settings: Any, api: Any, tmp_path: Path) -> Lab:
    """The lab with the machine of the faults."""
    return Lab(get_machine(HOST), settings, api, tmp_path)


@pytest.fixture(scope="module")
def before(settings: Any) -> dict[str, str]:
    """Nodes and cluster as they are before the first of the doctor's faults."""
    return prints.take(settings)


@contextlib.contextmanager
def stop_kubelet(lab: Lab) -> Iterator[None]:
    lab.machine.check_output("systemctl stop kubelet")
    try:
        yield
    finally:
        lab.machine.check_output("systemctl start kubelet")


@contextlib.contextmanager
def move_runtime(lab: Lab) -> Iterator[None]:
    path = lab.machine.check_output("command -v nvidia-container-runtime")
    lab.machine.check_output(f"mv {path} /root/away")
    try:
        yield
    finally:
        lab.machine.check_output(f"mv /root/away {path}")


@contextlib.contextmanager
def delete_runtime_class(lab: Lab) -> Iterator[None]:
    classes = client.NodeV1Api(lab.api.api_client)
    body = lab.api.api_client.sanitize_for_serialization(classes.read_runtime_class("nvidia"))
    body["metadata"] = {key: body["metadata"].get(key) for key in ("name", "labels", "annotations")}
    classes.delete_runtime_class("nvidia")
    try:
        yield
    finally:
        classes.create_runtime_class(body)


@contextlib.contextmanager
def keep_plugin_off(lab: Lab) -> Iterator[None]:
    apps = client.AppsV1Api(lab.api.api_client)
    labels = apps.read_namespaced_daemon_set(*PLUGIN).spec.selector.match_labels
    selector = ",".join(f"{key}={value}" for key, value in labels.items())

    def select_nodes(value: str | None) -> None:
        selected = {"spec": {"template": {"spec": {"nodeSelector": {"lab/nothing": value}}}}}
        apps.patch_namespaced_daemon_set(*PLUGIN, selected)

    select_nodes("true")
    try:
        until(lambda: lab.api.list_namespaced_pod(PLUGIN[1], label_selector=selector).items, lambda pods: not pods)
        yield
    finally:
        select_nodes(None)


@contextlib.contextmanager
def hang_nvml(lab: Lab) -> Iterator[None]:
    """Replace the library by one whose first call never returns. The device plugin keeps the former one."""
    node = next(each for each in lab.settings.nodes if each.name == HOST)
    path = f"/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.{gpus.driver_version(node)}"
    library = lab.folder / "libnvidia-ml.so"
    words = [gpus.library(lab.settings), gpus.profile(node), library, "--set", "init_fault=hang"]
    compose.main([str(word) for word in words])
    run(["podman", "cp", library, f"{HOST}:/root/hanging"])
    lab.machine.check_output(f"mv {path} /root/away")
    try:
        lab.machine.check_output(f"mv /root/hanging {path}")
        yield
    finally:
        lab.machine.check_output(f"mv /root/away {path}")


@pytest.mark.parametrize(
    ("inject", "check", "hosts", "variables"),
    [
        (stop_kubelet, "kl.ready", [HOST], {}),
        (move_runtime, "tk.binary", [HOST], {}),
        (delete_runtime_class, "pod.runtime_class", [""], {}),
        (keep_plugin_off, "pl.daemonset", ["molecule-worker-1", HOST], {}),
        # The kernel is that of the lab's host, which has no module of NVIDIA.
        (hang_nvml, "lib.answers", [HOST], {"gpu_doctor_timeout": 5, "gpu_doctor_skip": ["kernel"]}),
    ],
)
def test_doctor_finds_one_cause_of_a_fault(
    inject: Callable[[Lab], contextlib.AbstractContextManager[None]],
    check: str,
    hosts: list[str],
    variables: dict[str, Any],
    lab: Lab,
    before: dict[str, str],
    run_doctor: Callable[..., Any],
) -> None:
    with inject(lab):
        causes, report = run_doctor(**variables)
        assert (causes, report["exit_code"]) == ([(check, "fail", hosts)], 2)
    assert prints.remaining(before, lab.settings) == []
