# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real kube-scheduler with a configuration of ours, and the ways in which it could fail to come back."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

testinfra_hosts = ["ansible://kube_control_plane"]

CONVERGE = str(Path(__file__).parents[1] / "converge.yml")
CONFIG = "/etc/kubernetes/gpu-kubernetes-scheduler.yaml"
MANIFEST = "/etc/kubernetes/manifests/kube-scheduler.yaml"
NOTE = "/var/lib/gpu-kubernetes/state/kube-scheduler-change.json"
CHECKSUM = "gpu-kubernetes/scheduler-config-checksum"
OTHER = {
    "urlPrefix": "http://127.0.0.1:32766/gpushare-scheduler",
    "filterVerb": "filter",
    "bindVerb": "bind",
    "httpTimeout": "7s",
    "managedResources": [{"name": "aliyun.com/gpu-mem"}],
}
Apply = Callable[..., tuple[int, int, str]]


@pytest.fixture
def apply(playbook: Any, host: Any) -> Apply:
    """Run the playbook with other variables: exit code, count of changes, what was said in one line."""

    def run(*words: str, **variables: Any) -> tuple[int, int, str]:
        code, recap, said = playbook(CONVERGE, "-e", json.dumps(variables), *words)
        return code, recap.get(host.backend.get_hostname(), {}).get("changed", 0), " ".join(said.split())

    return run


def files(host: Any) -> dict[str, str]:
    """The files that count, by their content."""
    return {name: host.file(name).content_string for name in (CONFIG, MANIFEST) if host.file(name).exists}


def scheduler(api: Any, host: Any) -> Any:
    return api.read_namespaced_pod(f"kube-scheduler-{host.backend.get_hostname()}", "kube-system")


def schedules(api: Any, requests: dict[str, str] | None = None) -> str:
    """Have a pod scheduled within half a minute; empty, or why it is not."""
    container = {"name": "one", "image": "lab.local/pause:none", "resources": {"limits": requests or {}}}
    spec = {"containers": [container], "tolerations": [{"operator": "Exists"}]}
    made = api.create_namespaced_pod("default", {"metadata": {"generateName": "try-"}, "spec": spec})
    why = "nobody looked at it"
    for _ in range(60):
        pod = api.read_namespaced_pod(made.metadata.name, "default")
        if pod.spec.node_name:
            why = ""
            break
        why = next((each.message for each in pod.status.conditions or [] if each.type == "PodScheduled"), why)
        if why != "nobody looked at it" and requests:
            break
        time.sleep(0.5)
    api.delete_namespaced_pod(made.metadata.name, "default", grace_period_seconds=0)
    return why


def test_the_scheduler_has_the_extender(host: Any, api: Any) -> None:
    pod = scheduler(api, host)
    config = host.file(CONFIG)
    assert pod.metadata.annotations[CHECKSUM] == config.sha256sum
    assert f"--config={CONFIG}" in pod.spec.containers[0].command
    tree = yaml.safe_load(config.content_string)
    assert tree["apiVersion"] == "kubescheduler.config.k8s.io/v1"
    assert [extender["urlPrefix"] for extender in tree["extenders"]] == ["http://127.0.0.1:32766/gpushare-scheduler"]
    assert config.mode == 0o600
    assert not host.file(NOTE).exists
    assert host.check_output("ls /etc/kubernetes/manifests") == host.check_output(
        "ls /etc/kubernetes/manifests | grep -v gpu-kubernetes"
    )


def test_only_pods_with_its_resource_depend_on_the_extender(api: Any) -> None:
    """Nobody answers at its URL."""
    assert schedules(api) == ""
    node = api.list_node().items[-1].metadata.name
    places = [f"/status/{kind}/aliyun.com~1gpu-mem" for kind in ("capacity", "allocatable")]
    api.patch_node_status(node, [{"op": "add", "path": place, "value": "16"} for place in places])
    try:
        assert "connection refused" in schedules(api, {"aliyun.com/gpu-mem": "3"})
    finally:
        api.patch_node_status(node, [{"op": "remove", "path": place} for place in places])


def test_a_scheduler_that_does_not_come_back_gets_its_former_files(host: Any, api: Any, apply: Apply) -> None:
    """Of the versions of a KubeSchedulerConfiguration it reads v1 alone."""
    code, _changed, said = apply(kube_scheduler_extender_state="absent")
    assert code == 0, said
    before = files(host)
    assert list(before) == [MANIFEST]
    code, _changed, said = apply(kube_scheduler_extender_kubernetes_version="v1.24.0")
    assert code != 0
    assert "so that the former was put back" in said
    told = said.partition("The scheduler said last: ")[2]
    assert re.search(r"is registered for version .{0,4}kubescheduler\.config\.k8s\.io/v1beta3", told), told
    assert "It works again as before." in said
    assert (files(host), host.file(NOTE).exists) == (before, False)
    assert schedules(api) == ""
    code, _changed, said = apply()
    assert code == 0, said


def test_a_run_that_is_killed_before_the_proof_is_gone_on_with(host: Any, apply: Apply, killed_at: Any) -> None:
    before = files(host)
    steps = (
        ("Wait | Wait until the kubelet", "absent", "present"),  # and the other way from there
        ("Wait | Wait until the kubelet", "absent", "absent"),
        ("Probe | Have a pod scheduled", "present", "present"),
    )
    for task, begun, state in steps:
        killed_at(CONVERGE, task, "-e", json.dumps({"kube_scheduler_extender_state": begun}))
        assert host.file(NOTE).exists
        assert (CONFIG in files(host)) is (begun == "present")
        code, _changed, said = apply(kube_scheduler_extender_state=state)
        assert code == 0, said
        assert not host.file(NOTE).exists
    assert (apply()[:2], files(host)) == ((0, 0), before)


@pytest.fixture
def full(host: Any) -> Iterator[Callable[[str], None]]:
    """Put a folder on a file system of its own, which has no byte left."""
    folders = []

    def fill(folder: str) -> None:
        host.check_output(
            f"cp -a {folder} /root/kept && mount -t tmpfs -o size=1m full {folder} && cp -a /root/kept/. {folder} && rm -r /root/kept"
            f" && ! cat /dev/zero > {folder}/zeros 2>/dev/null"
        )
        folders.append(folder)

    yield fill
    for folder in folders:
        host.check_output(f"umount {folder}")


@pytest.mark.parametrize("folder", ["/var/lib/gpu-kubernetes", "/etc/kubernetes"])
def test_a_full_disk_changes_nothing(host: Any, api: Any, apply: Apply, full: Any, folder: str) -> None:
    before = files(host)
    full(folder)
    code, _changed, said = apply(kube_scheduler_extender_extenders=[OTHER])
    assert (code != 0, files(host)) == (True, before)
    assert re.search("no space (is )?left", said, re.IGNORECASE), said
    assert schedules(api) == ""


def test_an_api_server_that_is_away_is_waited_for(host: Any, at_task: Any, apply: Apply) -> None:
    """It is killed for as long as the kubelet needs to start the scheduler, and after what the full disk has left."""
    kill = "systemd-run --quiet sh -c 'for each in 1 2 3 4 5 6 7 8; do pkill -KILL kube-apiserver; sleep 2; done'"
    wish = json.dumps({"kube_scheduler_extender_extenders": [OTHER]})
    code, said = at_task(CONVERGE, "Wait | Wait until the kubelet", lambda _run: host.check_output(kill), "-e", wish)
    assert code == 0, said
    assert yaml.safe_load(files(host)[CONFIG])["extenders"][0]["httpTimeout"] == "7s"
    assert apply()[0] == 0


def test_what_an_upgrade_wrote_without_it_is_left(host: Any, apply: Apply) -> None:
    """kubeadm was not told, so that the manifest of an upgrade names no configuration; what is left of ours goes without a restart."""
    keep = {"kube_scheduler_extender_keep": False}
    assert apply(kube_scheduler_extender_state="absent")[0] == 0
    assert apply(**keep)[0] == 0
    host.check_output("kubeadm init phase control-plane scheduler --config /root/kubeadm-before.yaml")
    written = files(host)[MANIFEST]
    assert CONFIG not in written
    code, _changed, said = apply(kube_scheduler_extender_state="absent", **keep)
    assert (code, files(host), host.file(NOTE).exists) == (0, {MANIFEST: written}, False), said
    code, _changed, said = apply()
    assert code == 0, said


def test_kubeadm_writes_the_same_again(host: Any, apply: Apply) -> None:
    """As an upgrade does, which renders the manifest of the ClusterConfiguration in the cluster."""
    before = files(host)
    get = "kubectl --kubeconfig /etc/kubernetes/admin.conf -n kube-system get configmap kubeadm-config"
    host.check_output(f"{get} -o jsonpath={{.data.ClusterConfiguration}} > /root/kubeadm-now.yaml")
    host.check_output("kubeadm init phase control-plane scheduler --config /root/kubeadm-now.yaml")
    command = yaml.safe_load(files(host)[MANIFEST])["spec"]["containers"][0]["command"]
    assert f"--config={CONFIG}" in command
    code, changed, said = apply()
    assert (code, changed > 0) == (0, True), said
    tree, former = (yaml.safe_load(text[MANIFEST]) for text in (files(host), before))
    assert tree["metadata"]["annotations"] == former["metadata"]["annotations"]
    assert files(host)[CONFIG] == before[CONFIG]
    assert apply()[:2] == (0, 0)
