# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A failed change is rolled back, and an interrupted one restored."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys

import pytest
import yaml
from fakes.loopback_api import serve_in_thread
from fakes.scheduler_machine import KUBEADM, ControlPlanes

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT
from ansible_collections.gpu.kubernetes.tests.unit.roles.kube_scheduler_extender.control_planes import (
    FAILS,
    INTERRUPTED,
    MANIFEST,
    extender,
)

ARMED = "Have the control plane restore the present files if this run ends"


def test_rollback_restores_each_byte_and_hides_keys(plane, apply, tmp_path) -> None:
    """Also where the files are links, and one of them is JSON."""
    api = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    config = json.dumps({**api, "clientConnection": {"kubeconfig": "/etc/kubernetes/scheduler.conf"}}) + "\n"
    flag, mount = f"    - --config={plane.config}\n", f"    - mountPath: {plane.config}\n      name: config\n"
    volume = f"  - hostPath:\n      path: {plane.config}\n    name: config\n"
    text = MANIFEST.replace("    - kube-scheduler\n", f"    - kube-scheduler\n{flag}")
    text = text.replace("    volumeMounts:\n", f"    volumeMounts:\n{mount}").replace(
        "  volumes:\n", f"  volumes:\n{volume}"
    )
    for link, content in ((plane.manifest, text), (plane.config, config)):
        real = tmp_path / f"real-{link.name}"
        real.write_text(content)
        real.chmod(0o640)
        link.unlink(missing_ok=True)
        link.symlink_to(real)
    key = base64.b64encode(b"a secret key of a client").decode()
    variables = {**FAILS, "extenders": [extender("broken", tlsConfig={"keyData": key})]}
    code, _changes, output = apply(plane, "-vvv", **variables)
    assert code != 0
    assert "It works again." in output
    assert (plane.manifest.read_text(), plane.config.read_text()) == (text, config)
    for link in (plane.manifest, plane.config):
        assert (link.is_symlink(), link.stat().st_mode & 0o777) == (True, 0o640)
    assert key not in output
    shown = [base64.b64decode(word + "===") for word in re.findall(r"[A-Za-z0-9+/]{40,}", output)]
    assert not [each for each in shown if b"clientConnection" in each or b"kube-scheduler" in each]


def test_failed_rollback_reports_both_causes(plane, apply) -> None:
    """The new scheduler schedules nothing, and the former one does not start."""
    api = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    unmanaged = [{**extender("broken"), "managedResources": [{"name": "example.com/dead"}]}]
    former = yaml.safe_dump({**api, "clientConnection": {"kubeconfig": "/x"}, "extenders": unmanaged})
    plane.config.write_text(former)
    pod = yaml.safe_load(MANIFEST)
    container = pod["spec"]["containers"][0]
    container["command"].append(f"--config={plane.config}")
    container["volumeMounts"].append({"name": "unmanaged", "mountPath": str(plane.config)})
    pod["spec"]["volumes"].append({"name": "unmanaged", "hostPath": {"path": str(plane.config)}})
    plane.manifest.write_text(yaml.safe_dump(pod))
    variables = {**FAILS, "extenders": ["dead"], "kube_scheduler_extender_probe": True}
    code, _changes, output = apply(plane, **variables)
    assert (code != 0, plane.config.read_text(), plane.record.exists()) == (True, former, True)
    cause = "so the former one was restored: cp1: no pod was scheduled (the leader is cp1):"
    assert cause in output
    assert "does not work with the former one either (cp1: pod kube-scheduler-cp1 is not Ready" in output
    assert "Still pending: cp1; the next run resumes there." in output


def test_control_plane_restores_its_files_if_the_run_ends_after_the_change(plane, apply, tmp_path) -> None:
    """The test runs the command of the timer."""
    tasks = yaml.safe_load((ROOT / "roles" / "kube_scheduler_extender" / "tasks" / "change.yml").read_text())
    names = [task["name"] for task in tasks]
    assert names.index(f"Change | {ARMED}") < names.index(f"Change | {INTERRUPTED[-1]} and the manifest")
    calls = tmp_path / "calls"
    for name in ("systemd-run", "systemctl"):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f'#!/bin/sh\n[ "${{0##*/}}" = systemctl ] || printf "%s\\n" "$@" > {calls}\n')
        program.chmod(0o755)
    code, _changes, output = apply(
        plane,
        parts=[*INTERRUPTED[:-1], ARMED, INTERRUPTED[-1]],
        environment={"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"},
        _restore_timer_systemd_dir=str(tmp_path),
    )
    assert (code, plane.manifest.read_text() == MANIFEST, plane.config.exists()) == (0, False, True), output
    # The next run has to verify the change.
    assert apply(plane, "--check", kube_scheduler_extender_keep=False)[:2] == (0, {"cp1": 1})
    *words, archive, plan = calls.read_text().splitlines()
    assert "--unit=gpu-kubernetes-restore-kube-scheduler" in words
    subprocess.run([sys.executable, "-E", "-s", archive, plan], check=True, capture_output=True)
    assert (plane.manifest.read_text(), plane.config.exists()) == (MANIFEST, False)


def test_unreadable_log_does_not_stop_the_rollback() -> None:
    log = ROOT / "roles" / "kube_scheduler_extender" / "tasks" / "log.yml"
    assert [task["failed_when"] for task in yaml.safe_load(log.read_text())] == [False, False, False, False]


@pytest.mark.thorough
def test_failed_control_plane_is_rolled_back_and_the_next_not_started(tmp_path, apply) -> None:
    planes = ControlPlanes(tmp_path, MANIFEST, "cp1", "cp2", "cp3")
    planes.failing_names = {"cp2"}
    with serve_in_thread(planes.cluster):
        code, changes, output = apply(planes, kube_scheduler_extender_timeout=1)
    manifests = {name: (folder / "manifests" / "kube-scheduler.yaml") for name, folder in planes.folders.items()}
    assert code != 0, output
    assert {name: path.read_text() == MANIFEST for name, path in manifests.items()} == {
        "cp1": False,
        "cp2": True,
        "cp3": True,
    }
    assert "cp2: the scheduler does not work with the new configuration, so the former one was restored" in output
    assert "It works again. Not begun: cp3." in output
    assert (planes.kubeadm, changes.get("cp3", 0)) == (KUBEADM, 0)
