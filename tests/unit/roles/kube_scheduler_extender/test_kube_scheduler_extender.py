# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role on control planes: changes, refusals, verification and undo."""

from __future__ import annotations

import re

import pytest
import yaml
from fakes.loopback_api import serve_in_thread, write_kubeconfig
from fakes.scheduler_machine import KUBEADM, ControlPlanes

from ansible_collections.gpu.kubernetes.tests.unit.roles.kube_scheduler_extender.control_planes import (
    FAILS,
    MANIFEST,
    RECORD_PATH,
    describe_hosts,
    extender,
)


def test_check_run_and_undo(plane, apply) -> None:
    """With the probe. The scheduler leads, and does not start at once. The scenario repeats the run."""
    code, predicted, output = apply(plane, "--check")
    assert (code, predicted, plane.manifest.read_text(), plane.kubeadm) == (0, {"cp1": 2}, MANIFEST, KUBEADM), output
    plane.failing_reads = 1
    code, _changes, output = apply(plane, kube_scheduler_extender_probe=True)
    assert (code, f"path: {plane.config}\n" in plane.manifest.read_text()) == (0, True), output
    assert "NOT THE LEADER" not in output
    assert f"value: {plane.config}" in plane.kubeadm
    code, _changes, output = apply(plane, kube_scheduler_extender_state="absent")
    assert (code, plane.manifest.read_text(), plane.kubeadm) == (0, MANIFEST, KUBEADM), output
    assert not plane.config.exists()
    assert not plane.record.exists()


@pytest.mark.thorough
def test_undo_without_a_manifest_removes_the_configuration(plane, apply) -> None:
    variables = {"kube_scheduler_extender_keep": False}
    code, _changes, output = apply(plane, **variables)
    assert (code, plane.config.exists()) == (0, True), output
    plane.manifest.unlink()
    code, _changes, output = apply(plane, **variables, kube_scheduler_extender_state="absent")
    assert (code, plane.config.exists(), plane.record.exists()) == (0, False, False), output


def test_hosts_are_refused_before_any_change(refusals, tmp_path) -> None:
    """The kubelet may run either of two manifests after its next scan. For an undo, the second one is no reason."""
    planes = ControlPlanes(tmp_path, MANIFEST, "two-manifests", "no-node", "undo")
    hosts = describe_hosts(planes)
    hosts["undo"]["kube_scheduler_extender_state"] = "absent"
    copies = {
        name: planes.folders[name] / "manifests" / "kube-scheduler.yaml.bak" for name in ("two-manifests", "undo")
    }
    for copy in copies.values():
        copy.write_text(MANIFEST)
    with serve_in_thread(planes.cluster):
        del planes.cluster.objects["Node", "", "no-node"]
        extra = {
            "gpu_kubeconfig": str(write_kubeconfig(planes.cluster.url, tmp_path / "kubeconfig")),
            "kube_scheduler_extender_config_path": str(tmp_path / "scheduler.yaml"),
            "kube_scheduler_extender_extenders": [extender("one")],
        }
        found = refusals("kube_scheduler_extender", ["preflight"], hosts, extra=extra)
    assert f"two-manifests: {copies['two-manifests']} also defines a pod kube-scheduler" in found["two-manifests"]
    words = "no-node: the cluster has no node no-node; join the host to the cluster, or set gpu_node_name"
    assert words in found["no-node"]
    assert found["undo"] == ""


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


#: The extender of the run, and the control planes that keep the change.
BATCHES = {"dead": ("dead", set()), "alive": ("one", {"cp1", "cp2"})}


@pytest.mark.parametrize("case", ["dead", pytest.param("alive", marks=pytest.mark.thorough)])
def test_change_is_verified_only_when_a_changed_scheduler_leads(tmp_path, apply, case) -> None:
    """The first scheduler loses the lease as it restarts, and leads again after the second one restarts."""
    name, changed_hosts = BATCHES[case]
    planes = ControlPlanes(tmp_path, MANIFEST, "cp1", "cp2")
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


def test_kubeadm_is_changed_with_the_last_control_plane(planes, apply, tmp_path) -> None:
    """The flag is two items: in the command of the first control plane, and in the arguments of the second. Another leader is reported."""
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
    planes.set_leader("cp2")
    code, _changes, output = apply(planes, "--limit", "cp1", kube_scheduler_extender_probe=True)
    assert (code, planes.kubeadm) == (0, KUBEADM), output
    assert re.search(r"NOT KEPT YET: cp1: .*these do not have it yet: cp2\.", output)
    assert "NOT THE LEADER: cp1: its scheduler is ready, but the leader cp2 scheduled the pod." in output
    # The control planes of this test share the file, in which the second one would find the extender.
    (tmp_path / "scheduler.yaml").write_text(yaml.safe_dump(unmanaged))
    code, _changes, output = apply(planes, "--limit", "cp2")
    assert (code, "name: config" in planes.kubeadm) == (0, True), output
    assert "NOT KEPT YET" not in output
    code, _changes, output = apply(planes, "--check", "-lcp1", kube_scheduler_extender_state="absent")
    assert "not in this run: cp2. An" in output
