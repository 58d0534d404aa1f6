# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role on control planes with fake kubelets, schedulers and API server, and real files."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys

import pytest
import yaml
from fakes.loopback_api import serve_in_thread, write_kubeconfig
from fakes.scheduler_machine import KUBEADM, ControlPlanes

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT, find_task

if os.geteuid() != 0:
    pytest.skip("only root gives files to root", allow_module_level=True)

MANIFEST = (
    ROOT / "tests" / "unit" / "plugins" / "module_utils" / "_scheduler" / "fixtures" / "kubeadm-1.34.4.yaml"
).read_text()
# What an interrupted run has done before the verification: files of the role, and tasks of the file "change".
INTERRUPTED = ("preflight", "Read the scheduler's pod", "record", "Write the configuration")
ARMED = "Have the control plane restore the present files if this run ends"
RECORD_PATH = "state/kube-scheduler-change.json"
# Variables of a run that fails, with a short wait.
FAILS = {"kube_scheduler_extender_keep": False, "kube_scheduler_extender_timeout": 1}
LOCAL = {"ansible_connection": "local", "ansible_become": False}


def extender(name: str, **more):
    url = f"http://127.0.0.1:1/{name}"
    return {"urlPrefix": url, "filterVerb": "filter", "managedResources": [{"name": f"example.com/{name}"}], **more}


@pytest.fixture
def planes(tmp_path):
    found = ControlPlanes(tmp_path, MANIFEST, "cp1", "cp2")
    with serve_in_thread(found.cluster):
        yield found


@pytest.fixture
def plane(tmp_path):
    found = ControlPlanes(tmp_path, MANIFEST, "cp1")
    found.manifest = tmp_path / "cp1" / "manifests" / "kube-scheduler.yaml"
    found.config = tmp_path / "scheduler.yaml"
    found.record = tmp_path / "cp1" / RECORD_PATH
    with serve_in_thread(found.cluster):
        yield found


@pytest.fixture
def apply(run, tmp_path):
    """Run the role on control planes: exit code, changes by host, output in one line."""

    def play(planes, *options, extenders=("one",), parts=(), **variables):
        hosts = {
            name: {
                **LOCAL,
                "gpu_node_name": name,
                "kube_scheduler_extender_manifest": str(folder / "manifests" / "kube-scheduler.yaml"),
                "kube_scheduler_extender_state_dir": str(folder),
            }
            for name, folder in planes.folders.items()
        }
        role = "gpu.kubernetes.kube_scheduler_extender"
        tasks = [
            find_task("kube_scheduler_extender", "change", part)
            if " " in part
            else {"ansible.builtin.include_role": {"name": role, "tasks_from": part, "public": True}}
            for part in parts or ["main"]
        ]
        plays = [{"hosts": "all", "serial": 1, "any_errors_fatal": True, "gather_facts": False, "tasks": tasks}]
        playbook = tmp_path / "play.yml"
        playbook.write_text(json.dumps(plays))
        role_variables = {
            "kube_scheduler_extender_extenders": [
                extender(each) if isinstance(each, str) else each for each in extenders
            ],
            "kube_scheduler_extender_config_path": str(tmp_path / "scheduler.yaml"),
            "kube_scheduler_extender_health_url": f"{planes.cluster.url}/healthz",
            "kube_scheduler_extender_probe": False,
            "kube_scheduler_extender_timeout": 300,
            "__kube_scheduler_extender_delay": 0,
            "gpu_kubeconfig": str(write_kubeconfig(planes.cluster.url, tmp_path / "kubeconfig")),
            **variables,
        }
        code, output = run({"all": {"hosts": hosts}}, playbook, *options, **role_variables)
        changes = dict(re.findall(r"^(\S+) +: ok=\d+ +changed=(\d+)", output, re.MULTILINE))
        return code, {name: int(count) for name, count in changes.items()}, " ".join(output.split())

    return play


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


@pytest.mark.thorough
def test_failed_rollback_does_not_hide_the_first_cause(plane, apply) -> None:
    plane.config.write_text("")
    plane.manifest.write_text(
        MANIFEST.replace("    - kube-scheduler\n", f"    - kube-scheduler\n    - --config={plane.config}\n")
        .replace("    volumeMounts:\n", f"    volumeMounts:\n    - mountPath: {plane.config}\n      name: unmanaged\n")
        .replace("  volumes:\n", f"  volumes:\n  - hostPath:\n      path: {plane.config}\n    name: unmanaged\n")
    )

    def break_configuration(_cluster) -> None:
        if plane.config.is_file():
            plane.reconcile()
            if "broken" in plane.config.read_text():
                plane.config.unlink()
                plane.config.mkdir()

    plane.cluster.before_read = plane.cluster.react = break_configuration
    code, _changes, output = apply(plane, extenders=["broken"], **FAILS)
    assert (code != 0, plane.record.exists()) == (True, True)
    assert "so the former one was restored: cp1: pod kube-scheduler-cp1 is not Ready" in output
    assert re.search(r"does not work with the former one either \([^)]*dir", output), output


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
    *words, archive, plan = calls.read_text().splitlines()
    assert "--unit=gpu-kubernetes-restore-kube-scheduler" in words
    subprocess.run([sys.executable, "-E", "-s", archive, plan], check=True, capture_output=True)
    assert (plane.manifest.read_text(), plane.config.exists()) == (MANIFEST, False)


def test_unreadable_log_does_not_stop_the_rollback() -> None:
    log = ROOT / "roles" / "kube_scheduler_extender" / "tasks" / "log.yml"
    assert [task["failed_when"] for task in yaml.safe_load(log.read_text())] == [False, False, False, False]


def list_tasks(tasks):
    for task in tasks:
        yield task
        yield from list_tasks([*task.get("block", []), *task.get("always", [])])


def test_node_restores_after_all_waits_of_the_verification(evaluate_role) -> None:
    """On each control plane from the host on, since the last one verifies the change of the first one."""
    folder = ROOT / "roles" / "kube_scheduler_extender" / "tasks"
    verify, probe = (
        list(list_tasks(yaml.safe_load((folder / f"{name}.yml").read_text()))) for name in ("verify", "api_probe")
    )
    (health,) = (task for task in verify if "until" in task)
    waits = {
        "health": [health["retries"], health["delay"], health["ansible.builtin.uri"]["timeout"]],
        "probe": [task["timeout"] for task in probe if "timeout" in task],
    }
    expression = (
        "{'sum': __kube_scheduler_extender_verify_seconds, 'waits': "
        + re.sub(r"['\"]?[{]{2}|[}]{2}['\"]?", "", str(waits))
        + "}"
    )
    hosts = {name: {"kube_scheduler_extender_timeout": 180} for name in ("cp1", "cp2", "cp3")}
    found = evaluate_role("kube_scheduler_extender", hosts, expression)
    retries, delay, timeout = map(int, found["cp3"]["waits"]["health"])
    # A request for the pod that begins at the end of its wait lasts up to 100 seconds.
    expected = 180 + 100 + (retries + 1) * (delay + timeout) + sum(map(int, found["cp3"]["waits"]["probe"]))
    assert expected <= int(found["cp3"]["sum"]) <= expected + 60
    assert [int(found[name]["sum"]) / int(found["cp3"]["sum"]) for name in hosts] == [3, 2, 1]


def test_kubernetes_version_of_a_survey_is_left_out_read_or_refused(evaluate_role) -> None:
    """YAML reads an empty answer as nothing, and a version of two numbers as a decimal."""
    name = "kube_scheduler_extender_kubernetes_version"
    answers = {"nothing": None, "empty": "", "text": "1.34.4", "number": 1.3}
    hosts = {host: {name: answer} for host, answer in answers.items()}
    found = evaluate_role("kube_scheduler_extender", hosts, f"__{name} | default('left out', true)")
    assert f"{name} is 1.3, a number that may have lost its last digits" in found.pop("number")
    assert found == {"nothing": "left out", "empty": "left out", "text": "1.34.4"}


DOCKER_LOG = f"/var/lib/docker/containers/{'a' * 64}/{'a' * 64}-json.log"


def test_log_that_is_a_link_to_another_file_is_not_read(evaluate_role) -> None:
    """A pod that may write to /var/log chooses the target of the link."""
    states = {
        "file": ({"exists": True, "isreg": True, "path": "/var/log/pods/a/0.log"}, "/var/log/pods/a/0.log"),
        "docker": ({"exists": True, "isreg": False, "lnk_source": DOCKER_LOG}, DOCKER_LOG),
        "secret": ({"exists": True, "isreg": False, "lnk_source": "/etc/kubernetes/admin.conf"}, ""),
        "near": ({"exists": True, "isreg": False, "lnk_source": f"{DOCKER_LOG}/../../x"}, ""),
        "fifo": ({"exists": True, "isreg": False}, ""),
        "gone": ({"exists": False}, ""),
    }
    hosts = {name: {"__kube_scheduler_extender_log": {"stat": state}} for name, (state, _path) in states.items()}
    hosts["failed"] = {"__kube_scheduler_extender_log": {"msg": "no"}}
    found = evaluate_role("kube_scheduler_extender", hosts, "__kube_scheduler_extender_log_path")
    assert found == {**{name: path for name, (_state, path) in states.items()}, "failed": ""}


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


@pytest.mark.thorough
def test_rollback_keeps_an_upgraded_manifest(plane, apply) -> None:
    """The upgrade follows an interrupted run. Before it, the next run has to verify the change."""
    code, _changes, output = apply(plane, parts=INTERRUPTED, kube_scheduler_extender_keep=False)
    assert (code, plane.record.exists(), plane.config.exists()) == (0, True, True), output
    assert apply(plane, "--check", kube_scheduler_extender_keep=False)[:2] == (0, {"cp1": 1})
    upgraded = MANIFEST.replace("v1.34.4", "v1.34.5")
    plane.manifest.write_text(upgraded)
    code, _changes, output = apply(plane, extenders=["broken"], **FAILS)
    assert (code != 0, plane.manifest.read_text()) == (True, upgraded), output
    assert "It works again." in output


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
