# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role on control planes: changes, refusals, verification and undo."""

from __future__ import annotations

import re
import shutil

import pytest
import yaml
from fakes.loopback_api import serve_in_thread
from fakes.scheduler_machine import KUBEADM, ControlPlanes

from ansible_collections.gpu.kubernetes.tests.unit.roles.kube_scheduler_extender.control_planes import (
    FAILS,
    MANIFEST,
    RECORD_PATH,
    extender,
)


@pytest.mark.thorough
def test_check_mode_predicts_the_changes(plane, apply) -> None:
    code, predicted, output = apply(plane, "--check")
    assert (code, plane.manifest.read_text(), plane.kubeadm) == (0, MANIFEST, KUBEADM), output
    assert predicted == {"cp1": 2}


def test_run_repeated_run_and_undo(plane, apply) -> None:
    """With the probe. The scheduler leads, and does not start at once."""
    plane.failing_reads = 1
    code, _changes, output = apply(plane, kube_scheduler_extender_probe=True)
    assert (code, f"path: {plane.config}\n" in plane.manifest.read_text()) == (0, True), output
    assert "NOT THE LEADER" not in output
    assert f"value: {plane.config}" in plane.kubeadm
    assert apply(plane)[:2] == (0, {"cp1": 0})
    code, _changes, output = apply(plane, kube_scheduler_extender_state="absent")
    assert (code, plane.manifest.read_text(), plane.kubeadm) == (0, MANIFEST, KUBEADM), output
    assert not plane.config.exists()
    assert not plane.record.exists()


def test_second_manifest_in_the_folder_is_refused(plane, apply) -> None:
    """The kubelet may run either of the two after its next scan."""
    copy = plane.manifest.with_name("kube-scheduler.yaml.bak")
    copy.write_text(MANIFEST)
    code, _changes, output = apply(plane)
    assert (code != 0, plane.manifest.read_text()) == (True, MANIFEST), output
    assert f"cp1: {copy} also defines a pod kube-scheduler" in output
    assert apply(plane, kube_scheduler_extender_state="absent")[:2] == (0, {"cp1": 0})


@pytest.mark.thorough
def test_undo_keeps_an_upgraded_or_missing_manifest(plane, apply, tmp_path) -> None:
    """An upgrade has removed the configuration from it, or the manifest does not exist any more."""
    variables = {"kube_scheduler_extender_keep": False}
    code, _changes, output = apply(plane, **variables)
    assert code == 0, output
    config = plane.config.read_text()
    shutil.copytree(tmp_path / "cp1" / "state", tmp_path / "state")
    upgraded = MANIFEST.replace("v1.34.4", "v1.34.5")
    plane.manifest.write_text(upgraded)
    code, _changes, output = apply(plane, **variables, kube_scheduler_extender_state="absent")
    assert (code, plane.manifest.read_text(), plane.config.exists()) == (0, upgraded, False), output
    shutil.copytree(tmp_path / "state", tmp_path / "cp1" / "state", dirs_exist_ok=True)
    plane.config.write_text(config)
    plane.manifest.unlink()
    code, _changes, output = apply(plane, **variables, kube_scheduler_extender_state="absent")
    assert (code, plane.config.exists(), plane.record.exists()) == (0, False, False), output


def test_change_of_kubeadm_since_it_was_read_is_kept(plane, apply) -> None:
    config = plane.cluster.objects["ConfigMap", "kube-system", "kubeadm-config"]
    plane.cluster.before_read = lambda cluster: cluster.put(config)
    variables = {
        "__kube_scheduler_extender_plan": {"config_path": str(plane.config)},
        "__kube_scheduler_extender_without": [],
        "environment": {"K8S_AUTH_KUBECONFIG": str(plane.config.with_name("kubeconfig"))},
    }
    code, _changes, output = apply(plane, parts=["api_keep"], **variables)
    assert (code != 0, plane.kubeadm) == (True, KUBEADM), output
    assert "the object has been modified" in output
    plane.cluster.before_read = lambda _cluster: None
    code, _changes, output = apply(plane, parts=["api_keep"], **variables)
    assert (code, f"value: {plane.config}" in plane.kubeadm) == (0, True), output


#: The extender of the run, and the control planes that keep the change.
BATCHES = {"dead": ("dead", set()), "alive": ("one", {"cp1", "cp2", "cp3"})}


@pytest.mark.parametrize("case", ["dead", pytest.param("alive", marks=pytest.mark.thorough)])
def test_change_is_verified_only_when_a_changed_scheduler_leads(tmp_path, apply, case) -> None:
    """The first scheduler loses the lease as it restarts, and leads again after the second one restarts."""
    name, changed_hosts = BATCHES[case]
    planes = ControlPlanes(tmp_path, MANIFEST, *(["cp1", "cp2"] if case == "dead" else ["cp1", "cp2", "cp3"]))
    planes.changes_leader = True
    unrestricted = {**extender(name)}
    del unrestricted["managedResources"]
    variables = {
        "extenders": [unrestricted],
        "kube_scheduler_extender_probe": True,
        "kube_scheduler_extender_config_path": "{{ kube_scheduler_extender_state_dir }}/scheduler.yaml",
        "kube_scheduler_extender_keep": False,
        **({} if changed_hosts else FAILS),
    }
    with serve_in_thread(planes.cluster):
        code, _changes, output = apply(planes, **variables)
    manifests = {name: (folder / "manifests" / "kube-scheduler.yaml") for name, folder in planes.folders.items()}
    assert {name for name, path in manifests.items() if path.read_text() != MANIFEST} == changed_hosts, output
    assert "NOT THE LEADER: cp1: " in output
    assert not [folder for folder in planes.folders.values() if (folder / RECORD_PATH).exists()]
    if changed_hosts:
        assert code == 0, output
    else:
        assert code != 0
        assert (
            "so the former one was restored, also on cp1, whose change was not verified yet: cp2: no pod was" in output
        )
        assert "(the leader is cp1)" in output
        assert "It works again." in output


@pytest.mark.thorough
def test_unverified_change_is_resumed(tmp_path, apply) -> None:
    """The second control plane is refused, so the change of the first one stays unverified and recorded."""
    planes = ControlPlanes(tmp_path, MANIFEST, "cp1", "cp2")
    planes.changes_leader = True
    records = [folder / RECORD_PATH for folder in planes.folders.values()]
    variables = {
        "kube_scheduler_extender_probe": True,
        "kube_scheduler_extender_config_path": "{{ kube_scheduler_extender_state_dir }}/scheduler.yaml",
        "kube_scheduler_extender_keep": False,
    }
    second = planes.folders["cp2"] / "manifests" / "kube-scheduler.yaml"
    with serve_in_thread(planes.cluster):
        second.with_name("copy").write_text(MANIFEST)
        code, _changes, output = apply(planes, **variables)
        assert (code != 0, [record.exists() for record in records]) == (True, [True, False]), output
        second.with_name("copy").unlink()
        code, _changes, output = apply(planes, **variables)
        assert (code, [record.exists() for record in records]) == (0, [False, False]), output


def test_host_without_a_node_is_refused_before_any_change(plane, apply) -> None:
    del plane.cluster.objects["Node", "", "cp1"]
    code, _changes, output = apply(plane)
    assert (code != 0, plane.manifest.read_text(), plane.record.exists()) == (True, MANIFEST, False), output
    assert "cp1: the cluster has no node cp1; join the host to the cluster, or set gpu_node_name" in output


def test_flag_of_two_items_is_recognized(planes, apply, tmp_path) -> None:
    """In the command of the first control plane, and in the arguments of the second."""
    unmanaged = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    unmanaged["clientConnection"] = {"kubeconfig": "/etc/kubernetes/scheduler.conf"}
    (tmp_path / "scheduler.yaml").write_text(yaml.safe_dump(unmanaged))
    for place, folder in zip(("command", "args"), planes.folders.values(), strict=True):
        pod = yaml.safe_load(MANIFEST)
        container = pod["spec"]["containers"][0]
        container.setdefault(place, []).extend(["--config", str(tmp_path / "scheduler.yaml")])
        container["volumeMounts"].append({"name": "unmanaged", "mountPath": str(tmp_path), "readOnly": True})
        pod["spec"]["volumes"].append({"name": "unmanaged", "hostPath": {"path": str(tmp_path)}})
        (folder / "manifests" / "kube-scheduler.yaml").write_text(yaml.safe_dump(pod))
    _code, _changes, output = apply(planes, "--limit", "cp1")
    assert "NOT KEPT YET: cp1:" in output
    # The control planes of this test share the file, in which the second one would find the extender.
    (tmp_path / "scheduler.yaml").write_text(yaml.safe_dump(unmanaged))
    code, _changes, output = apply(planes, "--limit", "cp2")
    assert (code, "name: config" in planes.kubeadm) == (0, True), output
    assert "NOT KEPT YET" not in output
    code, _changes, output = apply(planes, "--check", "-lcp1", kube_scheduler_extender_state="absent")
    assert "not in this run: cp2. An" in output
    planes.kubeadm = planes.kubeadm.replace("gpu-kubernetes-scheduler-config", "unmanaged").replace(
        "scheduler.yaml", "x.yaml"
    )
    code, _changes, output = apply(planes, extenders=["two"])
    assert (code != 0, "two" in (planes.folders["cp1"].parent / "scheduler.yaml").read_text()) == (True, False)
    assert "make one of them the other" in output


def test_kubeadm_is_not_changed_before_all_control_planes(planes, apply) -> None:
    """Another leader that scheduled the pod is reported."""
    planes.set_leader("cp2")
    code, _changes, output = apply(planes, "--limit", "cp1", kube_scheduler_extender_probe=True)
    assert (code, planes.kubeadm) == (0, KUBEADM), output
    assert re.search(r"NOT KEPT YET: cp1: .*these do not have it yet: cp2\.", output)
    assert "NOT THE LEADER: cp1: its scheduler is ready, but the leader cp2 scheduled the pod." in output
