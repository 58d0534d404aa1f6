# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real kube-scheduler with a managed configuration, and its failures.

Interrupted runs at each step, full disks and files of an upgrade are in tests/unit; here a real kubelet restarts the scheduler.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from lab.wait import until

CONTROL_PLANE = "molecule-control-plane"
CONVERGE = str(Path(__file__).parents[1] / "converge.yml")
CONFIG = "/etc/kubernetes/gpu-kubernetes-scheduler.yaml"
MANIFEST = "/etc/kubernetes/manifests/kube-scheduler.yaml"
RECORD = "/var/lib/gpu-kubernetes/state/kube-scheduler-change.json"
CHECKSUM = "gpu-kubernetes/scheduler-config-checksum"
OTHER_EXTENDER = {
    "urlPrefix": "http://127.0.0.1:32766/gpushare-scheduler",
    "filterVerb": "filter",
    "bindVerb": "bind",
    "httpTimeout": "7s",
    "managedResources": [{"name": "aliyun.com/gpu-mem"}],
}
#: How long the role waits for the scheduler while the kubelet delays the API server: seconds.
WAIT_TIME = 600
Apply = Callable[..., tuple[int, int, str]]


@pytest.fixture
def control_plane(get_machine: Callable[[str], Any]) -> Any:
    """The machine of kube-scheduler. Not testinfra's `host`: pytest would take the tests that have it first."""
    return get_machine(CONTROL_PLANE)


@pytest.fixture
def apply(playbook: Any) -> Apply:
    """Run the playbook with other variables: exit code, count of changes, output in one line."""

    def run(at: Any = None, **variables: Any) -> tuple[int, int, str]:
        code, recap, printed = playbook(CONVERGE, "-e", json.dumps(variables), at=at)
        return code, recap.get(CONTROL_PLANE, {}).get("changed", 0), " ".join(printed.split())

    return run


def read_files(machine: Any) -> dict[str, str]:
    """The managed files that exist: path -> content."""
    return {name: machine.file(name).content_string for name in (CONFIG, MANIFEST) if machine.file(name).exists}


def wait_until_scheduled(api: Any, limits: dict[str, str] | None = None, pending_reason: str = "") -> None:
    """Wait until a pod is scheduled, or until it is pending for *pending_reason*."""
    container = {"name": "one", "image": "lab.local/pause:none", "resources": {"limits": limits or {}}}
    spec = {"containers": [container], "tolerations": [{"operator": "Exists"}]}
    name = api.create_namespaced_pod("default", {"metadata": {"generateName": "try-"}, "spec": spec}).metadata.name

    def read_pod() -> tuple[str | None, list[str]]:
        pod = api.read_namespaced_pod(name, "default")
        return pod.spec.node_name, [each.message or "" for each in pod.status.conditions or []]

    try:
        until(
            read_pod, lambda found: any(pending_reason in reason for reason in found[1]) if pending_reason else found[0]
        )
    finally:
        api.delete_namespaced_pod(name, "default", grace_period_seconds=0)


def test_scheduler_has_the_extender(control_plane: Any, api: Any) -> None:
    pod = api.read_namespaced_pod(f"kube-scheduler-{CONTROL_PLANE}", "kube-system")
    config = control_plane.file(CONFIG)
    assert pod.metadata.annotations[CHECKSUM] == config.sha256sum
    assert f"--config={CONFIG}" in pod.spec.containers[0].command
    tree = yaml.safe_load(config.content_string)
    assert tree["apiVersion"] == "kubescheduler.config.k8s.io/v1"
    assert [extender["urlPrefix"] for extender in tree["extenders"]] == ["http://127.0.0.1:32766/gpushare-scheduler"]
    assert config.mode == 0o600
    assert not control_plane.file(RECORD).exists
    assert control_plane.check_output("ls /etc/kubernetes/manifests") == control_plane.check_output(
        "ls /etc/kubernetes/manifests | grep -v gpu-kubernetes"
    )


def test_only_pods_with_its_resource_depend_on_the_extender(api: Any) -> None:
    """Nothing answers at its URL."""
    wait_until_scheduled(api)
    node = api.list_node().items[-1].metadata.name
    places = [f"/status/{kind}/aliyun.com~1gpu-mem" for kind in ("capacity", "allocatable")]
    api.patch_node_status(node, [{"op": "add", "path": place, "value": "16"} for place in places])
    try:
        wait_until_scheduled(api, {"aliyun.com/gpu-mem": "3"}, pending_reason="connection refused")
    finally:
        api.patch_node_status(node, [{"op": "remove", "path": place} for place in places])


def test_rejected_configuration_is_rolled_back_and_interrupted_run_resumes(
    control_plane: Any, api: Any, apply: Apply, kill_run_at: Any
) -> None:
    """The scheduler does not start without the CA of an extender. The undo is killed while the kubelet restarts the scheduler."""
    present = read_files(control_plane)
    rejected = {**OTHER_EXTENDER, "tlsConfig": {"caFile": "/nowhere/ca.crt"}}
    code, _changed, printed = apply(kube_scheduler_extender_extenders=[rejected])
    assert code != 0
    log = printed.partition("The scheduler's last log lines: ")[2]
    assert "open /nowhere/ca.crt: no such file or directory" in log, printed
    assert "It works again." in printed
    assert (read_files(control_plane), control_plane.file(RECORD).exists) == (present, False)
    wait_until_scheduled(api)
    absent = json.dumps({"kube_scheduler_extender_state": "absent"})
    kill_run_at(CONVERGE, "Wait | Wait until the kubelet", "-e", absent)
    assert control_plane.file(RECORD).exists
    assert list(read_files(control_plane)) == [MANIFEST]
    code, _changed, printed = apply()
    assert code == 0, printed
    assert (read_files(control_plane), control_plane.file(RECORD).exists) == (present, False)


@pytest.mark.thorough
def test_control_plane_without_controller_and_ssh_restores_itself(
    control_plane: Any, api: Any, apply: Apply, kill_run_at: Any, wait_without_ssh: Any
) -> None:
    """The run ends between the change, with which the scheduler does not start, and its verification, and no later run can reach the node."""
    present = read_files(control_plane)
    rejected = {**OTHER_EXTENDER, "tlsConfig": {"caFile": "/nowhere/ca.crt"}}
    # The timer is set to 300 s for a restart, 60 for the tasks in between, and this amount for the verification: 90 s in all.
    wrong = {"kube_scheduler_extender_extenders": [rejected], "_restore_timer_verify_seconds": -270}
    kill_run_at(CONVERGE, "Wait | Wait until the kubelet", "-e", json.dumps(wrong))
    has_change = f"grep -q /nowhere {CONFIG}"
    wait_without_ssh([CONTROL_PLANE], has_change, f"! {has_change}")
    until(lambda: read_files(control_plane), lambda found: found == present)
    wait_until_scheduled(api)
    code, _changed, printed = apply()
    assert code == 0, printed
    assert printed.count("RESTORED: ") == 1, printed
    assert (read_files(control_plane), control_plane.file(RECORD).exists) == (present, False)


def test_run_waits_for_an_unreachable_api_server(control_plane: Any, apply: Apply) -> None:
    """The API server is killed from the change on, until the run has read the scheduler in vain."""
    kill_command = "systemd-run --quiet --unit lab-kill sh -c 'while :; do pkill -KILL kube-apiserver; sleep 1; done'"
    at = {
        r"^TASK \[.*Change \| Write the configuration and the manifest": lambda _run: control_plane.check_output(
            kill_command
        ),
        r"RETRYING: .*Wait \| Wait until the kubelet": lambda _run: control_plane.check_output(
            "systemctl stop lab-kill"
        ),
    }
    changes = {"kube_scheduler_extender_extenders": [OTHER_EXTENDER], "kube_scheduler_extender_timeout": WAIT_TIME}
    try:
        code, _changed, printed = apply(at, **changes)
    finally:
        control_plane.run("systemctl stop lab-kill")
    assert code == 0, printed
    assert yaml.safe_load(read_files(control_plane)[CONFIG])["extenders"][0]["httpTimeout"] == "7s"
    assert not control_plane.file(RECORD).exists


def test_kubeadm_renders_the_same_manifest(control_plane: Any, api: Any, apply: Apply) -> None:
    """An upgrade renders the manifest from the ClusterConfiguration in the cluster, too."""
    before = read_files(control_plane)
    get = "kubectl --kubeconfig /etc/kubernetes/admin.conf -n kube-system get configmap kubeadm-config"
    control_plane.check_output(f"{get} -o jsonpath={{.data.ClusterConfiguration}} > /root/kubeadm-now.yaml")
    control_plane.check_output("kubeadm init phase control-plane scheduler --config /root/kubeadm-now.yaml")
    command = yaml.safe_load(read_files(control_plane)[MANIFEST])["spec"]["containers"][0]["command"]
    assert f"--config={CONFIG}" in command
    code, changed, printed = apply(kube_scheduler_extender_extenders=[OTHER_EXTENDER])
    assert (code, changed > 0) == (0, True), printed
    tree, former = (yaml.safe_load(text[MANIFEST]) for text in (read_files(control_plane), before))
    assert tree["metadata"]["annotations"] == former["metadata"]["annotations"]
    assert read_files(control_plane)[CONFIG] == before[CONFIG]
    wait_until_scheduled(api)
