# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role on control planes whose kubelets, schedulers and API server are fakes, with files that are real."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil

import pytest
import yaml
from fakes.loopback_api import serving, write_kubeconfig
from fakes.scheduler_machine import KUBEADM, ControlPlanes

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT, task_of

if os.geteuid() != 0:
    pytest.skip("only root gives files to root", allow_module_level=True)

MANIFEST = (
    ROOT / "tests" / "unit" / "plugins" / "module_utils" / "_scheduler" / "fixtures" / "kubeadm-1.34.4.yaml"
).read_text()
# What an interrupted run has done before the verification: files of the role, and tasks of the file "change".
INTERRUPTED = ("preflight", "Read the scheduler's pod", "record", "Write the configuration")
NOTE = "state/kube-scheduler-change.json"
# Of a run that fails: there is no use in waiting for what does not come.
FAILS = {"kube_scheduler_extender_keep": False, "kube_scheduler_extender_timeout": 1}
LOCAL = {"ansible_connection": "local", "ansible_become": False}


def extender(name: str, **more):
    url = f"http://127.0.0.1:1/{name}"
    return {"urlPrefix": url, "filterVerb": "filter", "managedResources": [{"name": f"example.com/{name}"}], **more}


@pytest.fixture
def planes(tmp_path):
    found = ControlPlanes(tmp_path, MANIFEST, "cp1", "cp2")
    with serving(found.cluster):
        yield found


@pytest.fixture
def plane(tmp_path):
    found = ControlPlanes(tmp_path, MANIFEST, "cp1")
    found.manifest = tmp_path / "cp1" / "manifests" / "kube-scheduler.yaml"
    found.config = tmp_path / "scheduler.yaml"
    found.note = tmp_path / "cp1" / NOTE
    with serving(found.cluster):
        yield found


@pytest.fixture
def apply(run, tmp_path):
    """Run the role on control planes: exit code, changes by host, what was said in one line."""

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
            task_of("kube_scheduler_extender", "change", part)
            if " " in part
            else {"ansible.builtin.include_role": {"name": role, "tasks_from": part, "public": True}}
            for part in parts or ["main"]
        ]
        plays = [{"hosts": "all", "serial": 1, "any_errors_fatal": True, "gather_facts": False, "tasks": tasks}]
        playbook = tmp_path / "play.yml"
        playbook.write_text(json.dumps(plays))
        given = {
            "kube_scheduler_extender_extenders": [
                extender(each) if isinstance(each, str) else each for each in extenders
            ],
            "kube_scheduler_extender_config_path": str(tmp_path / "scheduler.yaml"),
            "kube_scheduler_extender_health_url": f"{planes.cluster.url}/healthz",
            "kube_scheduler_extender_probe": False,
            "kube_scheduler_extender_timeout": 300,
            "__kube_scheduler_extender_pause": 0,
            "gpu_kubeconfig": str(write_kubeconfig(planes.cluster.url, tmp_path / "kubeconfig")),
            **variables,
        }
        code, said = run({"all": {"hosts": hosts}}, playbook, *options, **given)
        changes = dict(re.findall(r"^(\S+) +: ok=\d+ +changed=(\d+)", said, re.MULTILINE))
        return code, {name: int(count) for name, count in changes.items()}, " ".join(said.split())

    return play


@pytest.mark.thorough
def test_a_check_foresees_what_a_run_changes(plane, apply) -> None:
    code, foreseen, said = apply(plane, "--check")
    assert (code, plane.manifest.read_text(), plane.kubeadm) == (0, MANIFEST, KUBEADM), said
    assert foreseen == {"cp1": 2}


def test_run_again_and_back(plane, apply) -> None:
    """With the probe, whose scheduler leads, and which does not start at once."""
    plane.stumbles = 1
    code, _changes, said = apply(plane, kube_scheduler_extender_probe=True)
    assert (code, f"path: {plane.config}\n" in plane.manifest.read_text()) == (0, True), said
    assert "NOT THE LEADER" not in said
    assert f"value: {plane.config}" in plane.kubeadm
    assert apply(plane)[:2] == (0, {"cp1": 0})
    code, _changes, said = apply(plane, kube_scheduler_extender_state="absent")
    assert (code, plane.manifest.read_text(), plane.kubeadm) == (0, MANIFEST, KUBEADM), said
    assert not plane.config.exists()
    assert not plane.note.exists()


def test_a_second_manifest_beside_it_is_refused(plane, apply) -> None:
    """Whichever of the two the kubelet runs now, at its next scan it may be the other one."""
    copy = plane.manifest.with_name("kube-scheduler.yaml.bak")
    copy.write_text(MANIFEST)
    code, _changes, said = apply(plane)
    assert (code != 0, plane.manifest.read_text()) == (True, MANIFEST), said
    assert f"cp1: {copy} also defines a pod kube-scheduler" in said
    assert apply(plane, kube_scheduler_extender_state="absent")[:2] == (0, {"cp1": 0})


@pytest.mark.thorough
def test_a_manifest_that_stays_as_it_is(plane, apply, tmp_path) -> None:
    """An upgrade has taken the configuration out of it, or there is no manifest any more."""
    given = {"kube_scheduler_extender_keep": False}
    code, _changes, said = apply(plane, **given)
    assert code == 0, said
    config = plane.config.read_text()
    shutil.copytree(tmp_path / "cp1" / "state", tmp_path / "state")
    upgraded = MANIFEST.replace("v1.34.4", "v1.34.5")
    plane.manifest.write_text(upgraded)
    code, _changes, said = apply(plane, **given, kube_scheduler_extender_state="absent")
    assert (code, plane.manifest.read_text(), plane.config.exists()) == (0, upgraded, False), said
    shutil.copytree(tmp_path / "state", tmp_path / "cp1" / "state", dirs_exist_ok=True)
    plane.config.write_text(config)
    plane.manifest.unlink()
    code, _changes, said = apply(plane, **given, kube_scheduler_extender_state="absent")
    assert (code, plane.config.exists(), plane.note.exists()) == (0, False, False), said


def test_what_was_there_comes_back_to_the_byte_and_keys_stay_unseen(plane, apply, tmp_path) -> None:
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
    key = base64.b64encode(b"a key that nobody may see").decode()
    given = {**FAILS, "extenders": [extender("broken", tlsConfig={"keyData": key})]}
    code, _changes, said = apply(plane, "-vvv", **given)
    assert code != 0
    assert "It works again." in said
    assert (plane.manifest.read_text(), plane.config.read_text()) == (text, config)
    for link in (plane.manifest, plane.config):
        assert (link.is_symlink(), link.stat().st_mode & 0o777) == (True, 0o640)
    assert key not in said
    shown = [base64.b64decode(word + "===") for word in re.findall(r"[A-Za-z0-9+/]{40,}", said)]
    assert not [each for each in shown if b"clientConnection" in each or b"kube-scheduler" in each]


@pytest.mark.thorough
def test_both_causes_are_told_where_the_former_does_not_work_either(plane, apply) -> None:
    """The other one schedules nothing, and the former does not start."""
    api = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    theirs = [{**extender("broken"), "managedResources": [{"name": "example.com/dead"}]}]
    former = yaml.safe_dump({**api, "clientConnection": {"kubeconfig": "/x"}, "extenders": theirs})
    plane.config.write_text(former)
    pod = yaml.safe_load(MANIFEST)
    container = pod["spec"]["containers"][0]
    container["command"].append(f"--config={plane.config}")
    container["volumeMounts"].append({"name": "theirs", "mountPath": str(plane.config)})
    pod["spec"]["volumes"].append({"name": "theirs", "hostPath": {"path": str(plane.config)}})
    plane.manifest.write_text(yaml.safe_dump(pod))
    given = {**FAILS, "extenders": ["dead"], "kube_scheduler_extender_probe": True}
    code, _changes, said = apply(plane, **given)
    assert (code != 0, plane.config.read_text(), plane.note.exists()) == (True, former, True)
    first = "so the former one was restored: cp1: no pod was scheduled (the leader is cp1):"
    assert first in said
    assert "does not work with the former one either (cp1: pod kube-scheduler-cp1 is not Ready" in said


@pytest.mark.thorough
def test_what_cannot_be_put_back_does_not_hide_why(plane, apply) -> None:
    plane.config.write_text("")
    plane.manifest.write_text(
        MANIFEST.replace("    - kube-scheduler\n", f"    - kube-scheduler\n    - --config={plane.config}\n")
        .replace("    volumeMounts:\n", f"    volumeMounts:\n    - mountPath: {plane.config}\n      name: theirs\n")
        .replace("  volumes:\n", f"  volumes:\n  - hostPath:\n      path: {plane.config}\n    name: theirs\n")
    )

    def look(_cluster) -> None:
        if plane.config.is_file():
            plane.run()
            if "broken" in plane.config.read_text():
                plane.config.unlink()
                plane.config.mkdir()

    plane.cluster.look = plane.cluster.react = look
    code, _changes, said = apply(plane, extenders=["broken"], **FAILS)
    assert (code != 0, plane.note.exists()) == (True, True)
    assert "so the former one was restored: cp1: pod kube-scheduler-cp1 is not Ready" in said
    assert re.search(r"does not work with the former one either \([^)]*dir", said), said


def test_a_log_that_cannot_be_read_keeps_nothing_from_coming_back() -> None:
    log = ROOT / "roles" / "kube_scheduler_extender" / "tasks" / "log.yml"
    assert [task["failed_when"] for task in yaml.safe_load(log.read_text())] == [False, False, False, False]


DOCKER_LOG = f"/var/lib/docker/containers/{'a' * 64}/{'a' * 64}-json.log"


def test_log_that_is_a_link_to_another_file_is_not_read(made) -> None:
    """A pod that may write to /var/log decides where it leads."""
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
    found = made("kube_scheduler_extender", hosts, "__kube_scheduler_extender_log_path")
    assert found == {**{name: path for name, (_state, path) in states.items()}, "failed": ""}


#: Which control planes the run changes, and which of them keep the change.
BATCHES = {"dead": ("dead", set()), "alive": ("one", {"cp1", "cp2", "cp3"})}


@pytest.mark.parametrize("case", ["dead", pytest.param("alive", marks=pytest.mark.thorough)])
def test_a_change_is_proved_only_when_one_that_was_changed_leads(tmp_path, apply, case) -> None:
    """The first gives the lease up as it starts anew, and leads again once the second one does so."""
    name, kept = BATCHES[case]
    planes = ControlPlanes(tmp_path, MANIFEST, *(["cp1", "cp2"] if case == "dead" else ["cp1", "cp2", "cp3"]))
    planes.passes = True
    everybody = {**extender(name)}
    del everybody["managedResources"]
    given = {
        "extenders": [everybody],
        "kube_scheduler_extender_probe": True,
        "kube_scheduler_extender_config_path": "{{ kube_scheduler_extender_state_dir }}/scheduler.yaml",
        "kube_scheduler_extender_keep": False,
        **({} if kept else FAILS),
    }
    with serving(planes.cluster):
        code, _changes, said = apply(planes, **given)
    manifests = {name: (folder / "manifests" / "kube-scheduler.yaml") for name, folder in planes.folders.items()}
    assert {name for name, path in manifests.items() if path.read_text() != MANIFEST} == kept, said
    assert "NOT THE LEADER: cp1: " in said
    assert not [folder for folder in planes.folders.values() if (folder / NOTE).exists()]
    if kept:
        assert code == 0, said
    else:
        assert code != 0
        assert "so the former one was restored, also on cp1, whose change was not verified yet: cp2: no pod was" in said
        assert "(the leader is cp1)" in said
        assert "It works again." in said


@pytest.mark.thorough
def test_a_run_goes_on_with_what_nothing_has_proved(tmp_path, apply) -> None:
    """The second control plane is refused, so that the first one's change is left without a proof, and with its note."""
    planes = ControlPlanes(tmp_path, MANIFEST, "cp1", "cp2")
    planes.passes = True
    notes = [folder / NOTE for folder in planes.folders.values()]
    given = {
        "kube_scheduler_extender_probe": True,
        "kube_scheduler_extender_config_path": "{{ kube_scheduler_extender_state_dir }}/scheduler.yaml",
        "kube_scheduler_extender_keep": False,
    }
    second = planes.folders["cp2"] / "manifests" / "kube-scheduler.yaml"
    with serving(planes.cluster):
        second.with_name("copy").write_text(MANIFEST)
        code, _changes, said = apply(planes, **given)
        assert (code != 0, [note.exists() for note in notes]) == (True, [True, False]), said
        second.with_name("copy").unlink()
        code, _changes, said = apply(planes, **given)
        assert (code, [note.exists() for note in notes]) == (0, [False, False]), said


def test_a_host_that_is_no_node_is_refused_before_anything_changes(plane, apply) -> None:
    del plane.cluster.objects["Node", "", "cp1"]
    code, _changes, said = apply(plane)
    assert (code != 0, plane.manifest.read_text(), plane.note.exists()) == (True, MANIFEST, False), said
    assert "cp1: the cluster has no node cp1; join the host to the cluster, or set gpu_node_name" in said


@pytest.mark.thorough
def test_what_was_there_before_an_upgrade_does_not_come_back(plane, apply) -> None:
    """The upgrade came after a run that was cut off. Before it, the run that is to follow has to prove the change."""
    code, _changes, said = apply(plane, parts=INTERRUPTED, kube_scheduler_extender_keep=False)
    assert (code, plane.note.exists(), plane.config.exists()) == (0, True, True), said
    assert apply(plane, "--check", kube_scheduler_extender_keep=False)[:2] == (0, {"cp1": 1})
    upgraded = MANIFEST.replace("v1.34.4", "v1.34.5")
    plane.manifest.write_text(upgraded)
    code, _changes, said = apply(plane, extenders=["broken"], **FAILS)
    assert (code != 0, plane.manifest.read_text()) == (True, upgraded), said
    assert "It works again." in said


@pytest.mark.thorough
def test_a_second_control_plane_that_fails_is_put_back_and_the_third_not_begun(tmp_path, apply) -> None:
    planes = ControlPlanes(tmp_path, MANIFEST, "cp1", "cp2", "cp3")
    planes.sick = {"cp2"}
    with serving(planes.cluster):
        code, changes, said = apply(planes, kube_scheduler_extender_timeout=1)
    manifests = {name: (folder / "manifests" / "kube-scheduler.yaml") for name, folder in planes.folders.items()}
    assert code != 0, said
    assert {name: path.read_text() == MANIFEST for name, path in manifests.items()} == {
        "cp1": False,
        "cp2": True,
        "cp3": True,
    }
    assert "cp2: the scheduler does not work with the new configuration, so the former one was restored" in said
    assert "It works again." in said
    assert (planes.kubeadm, changes.get("cp3", 0)) == (KUBEADM, 0)


def test_a_flag_of_two_items_is_the_same_flag(planes, apply, tmp_path) -> None:
    """In the command of the first control plane, and in the arguments of the second."""
    theirs = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    theirs["clientConnection"] = {"kubeconfig": "/etc/kubernetes/scheduler.conf"}
    (tmp_path / "scheduler.yaml").write_text(yaml.safe_dump(theirs))
    for place, folder in zip(("command", "args"), planes.folders.values(), strict=True):
        pod = yaml.safe_load(MANIFEST)
        container = pod["spec"]["containers"][0]
        container.setdefault(place, []).extend(["--config", str(tmp_path / "scheduler.yaml")])
        container["volumeMounts"].append({"name": "theirs", "mountPath": str(tmp_path), "readOnly": True})
        pod["spec"]["volumes"].append({"name": "theirs", "hostPath": {"path": str(tmp_path)}})
        (folder / "manifests" / "kube-scheduler.yaml").write_text(yaml.safe_dump(pod))
    code, _changes, said = apply(planes)
    assert (code, "name: config" in planes.kubeadm) == (0, True), said
    # The first of them, which the second was still without.
    assert "NOT KEPT YET: cp1:" in said
    assert "NOT KEPT YET: cp2:" not in said
    code, _changes, said = apply(planes, "--check", "-lcp1", kube_scheduler_extender_state="absent")
    assert "not in this run: cp2. An" in said
    planes.kubeadm = planes.kubeadm.replace("gpu-kubernetes-scheduler-config", "theirs").replace(
        "scheduler.yaml", "x.yaml"
    )
    code, _changes, said = apply(planes, extenders=["two"])
    assert (code != 0, "two" in (planes.folders["cp1"].parent / "scheduler.yaml").read_text()) == (True, False)
    assert "make one of them the other" in said


def test_kubeadm_is_not_told_before_all_control_planes_have_it(planes, apply) -> None:
    """And who has scheduled the pod is told, where it is another."""
    planes.lead("cp2")
    code, _changes, said = apply(planes, "--limit", "cp1", kube_scheduler_extender_probe=True)
    assert (code, planes.kubeadm) == (0, KUBEADM), said
    assert re.search(r"NOT KEPT YET: cp1: .*these do not have it yet: cp2\.", said)
    assert "NOT THE LEADER: cp1: its scheduler is ready, but the leader cp2 scheduled the pod." in said
