# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook on a machine whose systemd, journal and API server are fakes, with a file that is real."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.kubelet_machine import Machine
from fakes.loopback_api import serving, write_kubeconfig

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.node import answer
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubelet import controller
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubelet.node import read
from ansible_collections.gpu.kubernetes.plugins.plugin_utils._yaml import RoundTrip
from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

if os.geteuid() != 0:
    pytest.skip("only root gives files to root", allow_module_level=True)

FIXTURES = ROOT / "tests" / "unit" / "plugins" / "module_utils" / "_kubelet" / "fixtures"
KUBEADM = (FIXTURES / "kubeadm-1.34.4.yaml").read_text()
LOCAL = "ansible_connection=local ansible_become=false"
INVENTORY = f"[gpu_nodes]\nhost {LOCAL} gpu_node_name=node\n"
ASKED = {"cpu": "500m", "memory": "1Gi"}
BUSY = {
    "metadata": {"name": "busy", "namespace": "default"},
    "spec": {"nodeName": "node", "containers": [{"name": "c", "resources": {"requests": {"cpu": "7800m"}}}]},
    "status": {"phase": "Running"},
}


TOO_MUCH = (
    "much: kubeReserved, systemReserved and evictionHard together would reserve on node node 500.1Gi of memory, of which it has"
    " 16Gi, and its kubelet would not start; reserve less."
)
CROWDED = (
    "busy: the pods of node node request 7.8 of cpu, of which 7.5 would be left, and a restarted kubelet stops pods that do not fit; move"
    " some away, reserve less, or set kubelet_reserved_interrupt to true."
)


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path, KUBEADM)


@pytest.fixture
def apply(run, machine, tmp_path):
    """Run the playbook: exit code, count of changes, what was said in one line."""

    def play(*options, pods=(), **variables):
        given = {
            "kubelet_reserved_kube_reserved": ASKED,
            "kubelet_reserved_state_dir": str(tmp_path / "state"),
            "kubelet_reserved_ready_timeout": 300,
            "__kubelet_reserved_pause": 0,
            "__kubelet_reserved_steady": 1,
            **variables,
        }
        with serving(machine.api(list(pods))) as server:
            kubeconfig = str(write_kubeconfig(server.url, tmp_path / "kubeconfig"))
            playbook = ROOT / "playbooks" / "reserve_node_resources.yml"
            code, said = run(
                INVENTORY, playbook, *options, environment=machine.environment, gpu_kubeconfig=kubeconfig, **given
            )
        changed = re.search(r"^host .* changed=(\d+)", said, re.MULTILINE)
        return code, int(changed[1]) if changed else 0, " ".join(said.split())

    return play


@pytest.fixture
def apply_role(run, machine, tmp_path):
    """Run the role on hosts that are all the same machine: exit code, what was said."""

    def play(hosts, pods=()):
        variables = {
            "ansible_connection": "local",
            "gpu_node_name": "node",
        }
        playbook = tmp_path / "play.yml"
        playbook.write_text(
            json.dumps([{"hosts": "all", "gather_facts": False, "roles": ["gpu.kubernetes.kubelet_reserved"]}])
        )
        with serving(machine.api(list(pods))) as server:
            kubeconfig = str(write_kubeconfig(server.url, tmp_path / "kubeconfig"))
            inventory = {"all": {"hosts": hosts, "vars": variables}}
            return run(inventory, playbook, environment=machine.environment, gpu_kubeconfig=kubeconfig)

    return play


def left_behind(folder: Path) -> list[str]:
    """What is kept of a change, apart from backups and locks."""
    files = (path for path in (folder / "state").rglob("*") if path.is_file())
    return [path.name for path in files if not {"backups", "lock"} & set(path.parts)]


def cut_off(config: Path, folder: Path, **kept: str) -> None:
    """Leave what a run leaves that is killed before the kubelet is proved."""
    given = {"path": str(config), "state_dir": str(folder / "state"), "values": {"kubeReserved": kept}}
    given.update(state="present", keep_former=True)

    def ask(request):
        return answer(request, False, functools.partial(read, run=lambda _command: (1, "")))

    assert controller.run(given, RoundTrip(), ask, False, False)["changed"]


def test_run_again_and_back(machine, apply, tmp_path):
    code, changed, said = apply()
    assert (code, changed > 1, machine.starts) == (0, True, 1), said
    assert machine.config.read_text() == KUBEADM + "kubeReserved:\n  cpu: '500m'\n  memory: '1Gi'\n"
    assert machine.node["status"]["allocatable"]["cpu"] == "7500m"
    code, changed, said = apply()
    assert (code, changed, machine.starts) == (0, 0, 1), said
    code, changed, said = apply(kubelet_reserved_state="absent")
    assert (code, changed > 1, machine.starts, machine.config.read_text()) == (0, True, 2, KUBEADM), said
    assert left_behind(tmp_path) == []


def test_node_restores_its_configuration_if_the_run_ends_before_the_verification(machine, apply, tmp_path):
    """The controller is killed as soon as the kubelet has restarted; the timer then does what it was armed with."""
    systemd = {"_restore_timer_systemd_dir": str(tmp_path)}
    (tmp_path / "ends").touch()
    code, _changed, said = apply(**systemd)
    assert (code < 0, machine.starts) == (True, 1), said
    assert machine.config.read_text() != KUBEADM
    ((*words, archive, plan),) = machine.timers
    assert {"--unit=gpu-kubernetes-restore-kubelet", "--on-active=720"} <= set(words)
    subprocess.run([sys.executable, "-E", "-s", archive, plan], check=True, capture_output=True)
    assert (machine.starts, machine.config.read_text()) == (2, KUBEADM)
    # Nobody takes over: the process of that run exists no more.
    code, changed, said = apply(**systemd)
    assert (code, changed > 0, machine.starts) == (0, True, 3), said
    assert f"RESTORED: host: the node restored {machine.config} itself at 20" in said
    assert "because the run ended between the change of kubelet at 20" in said
    assert machine.config.read_text() == KUBEADM + "kubeReserved:\n  cpu: '500m'\n  memory: '1Gi'\n"
    assert len(machine.timers) == 2
    assert not (tmp_path / "state" / "restore").exists()
    code, changed, said = apply(**systemd)
    assert (code, changed, "RESTORED" in said) == (0, 0, False), said


@pytest.mark.thorough
def test_check_run_cut_off_run_drift_and_back(machine, apply, tmp_path):
    code, changed, said = apply("--check")
    assert (code, changed, machine.starts) == (0, 1, 0), said
    assert machine.config.read_text() == KUBEADM
    code, changed, said = apply()
    assert (code, changed > 1, machine.starts) == (0, True, 1), said
    assert machine.config.read_text() == KUBEADM + "kubeReserved:\n  cpu: '500m'\n  memory: '1Gi'\n"
    assert machine.node["status"]["allocatable"]["cpu"] == "7500m"
    [record] = left_behind(tmp_path)
    assert record.endswith(".json")
    # other values, which nobody has proved, and then none to change
    cut_off(machine.config, tmp_path, cpu="250m", memory="2Gi")
    cut_off(machine.config, tmp_path, **ASKED)
    code, changed, said = apply()
    assert (code, changed > 0, machine.starts, len(left_behind(tmp_path))) == (0, True, 2, 1), said
    code, changed, said = apply()
    assert (code, changed, machine.starts) == (0, 0, 2), said
    # as where somebody put the file right, and did not restart the kubelet
    node = machine.node
    node["status"]["allocatable"]["cpu"] = "8"
    machine.node = node
    code, changed, said = apply("--check")
    assert (code, changed) == (0, 1), said
    assert "the node reports 8 of cpu instead of 7.5" in said
    code, changed, said = apply(kubelet_reserved_state="absent")
    assert (code, changed > 1, machine.starts, machine.config.read_text()) == (0, True, 3, KUBEADM), said
    assert left_behind(tmp_path) == []


def test_what_is_refused_is_refused_before_anything_is_written(machine, apply_role, tmp_path):
    """Each of these hosts is the same machine."""
    sick = {"type": "Ready", "status": "False", "message": "no CNI"}
    machine.others["sick"] = {**machine.node, "status": {**machine.node["status"], "conditions": [sick]}}
    hosts = {
        "much": ({"kubelet_reserved_kube_reserved": {"memory": "500Gi"}}, TOO_MUCH),
        "nonsense": (
            {"kubelet_reserved_eviction_hard": {"memory.available": "nonsense"}},
            'evictionHard."memory.available" is nonsense: give',
        ),
        "other": ({"gpu_node_name": "other"}, "other: the cluster has no node other; join"),
        "sick": ({"gpu_node_name": "sick"}, "sick: node sick is not Ready (no CNI), so that the kubelet's restart"),
        "busy": ({}, CROWDED),
    }
    given = {"kubelet_reserved_kube_reserved": ASKED, "kubelet_reserved_state_dir": str(tmp_path / "state")}
    _code, said = apply_role({name: {**given, **own} for name, (own, _words) in hosts.items()}, [BUSY])
    said = " ".join(said.split())
    for _own, words in hosts.values():
        assert words in said, said
    assert (machine.starts, machine.config.read_text(), left_behind(tmp_path)) == (0, KUBEADM, [])


def test_a_host_that_has_left_the_cluster_gets_its_file_back(machine, apply_role, tmp_path):
    """With what the kubelet had, or without; the restart that nobody could prove is left out, also where one is due."""
    hosts = {}
    for name in ("deleted", "reset"):
        config = tmp_path / name / "config.yaml"
        config.parent.mkdir()
        config.write_text(KUBEADM)
        cut_off(config, tmp_path / name, **ASKED)
        hosts[name] = {
            "gpu_node_name": name,
            "kubelet_reserved_config_path": str(config),
            "kubelet_reserved_state_dir": str(tmp_path / name / "state"),
            "kubelet_reserved_state": "absent",
        }
    (tmp_path / "reset" / "config.yaml").unlink()
    code, said = apply_role(hosts)
    assert (code, machine.starts) == (0, 0), said
    assert "WARNING: deleted: the cluster has no node deleted, so the kubelet" in " ".join(said.split())
    assert (tmp_path / "deleted" / "config.yaml").read_text() == KUBEADM
    assert [left_behind(tmp_path / name) for name in hosts] == [[], []]


def test_a_kubelet_that_does_not_come_back_gets_its_former_file(machine, apply, tmp_path):
    """Also the one of a control plane that is alone, where nobody can be asked before it is back."""
    (tmp_path / "alone").touch()
    code, _changed, said = apply(kubelet_reserved_kube_reserved={"cpu": "250m", "ephemeral-storage": "1Ti"})
    assert code != 0
    assert "does not keep running (it is activating, auto-restart, and systemd has restarted it 2 times)" in said
    told = said.partition("The kubelet's last log lines: ")[2]
    assert told.startswith(
        '"Failed to start ContainerManager" err="invalid Node Allocatable configuration" It works again.'
    )
    assert (machine.config.read_text(), machine.node["status"]["allocatable"]["cpu"]) == (KUBEADM, "8000m")
    assert left_behind(tmp_path) == []


@pytest.mark.thorough
def test_a_kubelet_that_a_cut_off_run_left_down_comes_back_with_what_is_asked_for(machine, apply, tmp_path):
    (tmp_path / "alone").touch()
    cut_off(machine.config, tmp_path, **{"ephemeral-storage": "1Ti"})
    machine.start()
    code, _changed, said = apply()
    assert (code, machine.node["status"]["allocatable"]["cpu"]) == (0, "7500m"), said


@pytest.mark.thorough
def test_a_node_that_offers_something_else_gets_its_former_file(machine, apply, tmp_path):
    (tmp_path / "lies").touch()
    code, _changed, said = apply(kubelet_reserved_ready_timeout=4)
    assert code != 0
    assert "the node reports 7.499 of cpu instead of 7.5." in said
    assert (machine.config.read_text(), left_behind(tmp_path)) == (KUBEADM, [])
    # where others edit meanwhile, both causes are told
    (tmp_path / "meddles").touch()
    code, _changed, said = apply(kubelet_reserved_ready_timeout=4)
    assert code != 0
    told = said.partition("host: the kubelet does not work as expected: ")[2]
    why = "host: after 4 seconds the node reports 7.499 of cpu instead of 7.5. The kubelet's last log lines:"
    assert told.startswith(why)
    assert (
        f"Its former configuration was not restored: {machine.config} is not as this collection wrote it last" in told
    )
    assert "# theirs" in machine.config.read_text()


@pytest.mark.thorough
def test_preparing_and_removing_take_along_hosts_that_declare_something_or_have_something_of_ours(
    machine, run, tmp_path
):
    """The other host cannot be reached: whoever asked it anything would fail."""
    declared = {
        "ansible_connection": "local",
        "gpu_node_name": "node",
        "kubelet_reserved_kube_reserved": ASKED,
        "kubelet_reserved_state_dir": str(tmp_path / "state"),
        "__kubelet_reserved_pause": 0,
        "__kubelet_reserved_steady": 1,
    }
    undeclared = {**declared, "kubelet_reserved_kube_reserved": {}}
    without = {**undeclared, "kubelet_reserved_state_dir": str(tmp_path / "none")}
    silent = {"ansible_host": "127.0.0.1", "ansible_port": 1, "kubelet_reserved_eviction_hard": {}}

    def play(name, hosts, **extra):
        with serving(machine.api([])) as server:
            if "gpu_nodes_have_cluster" not in extra:
                extra["gpu_kubeconfig"] = str(write_kubeconfig(server.url, tmp_path / "kubeconfig"))
            inventory = {"gpu_nodes": {"hosts": hosts, "vars": {"ansible_become": False}}}
            playbook = ROOT / "playbooks" / f"{name}.yml"
            return run(inventory, playbook, "--tags", "reserve", environment=machine.environment, **extra)

    code, said = play(
        "prepare_gpu_nodes",
        {"silent": silent, "host": declared},
        gpu_nodes_have_cluster=False,
        gpu_nodes_connected=True,
    )
    assert (code, machine.starts) == (0, 0), said
    code, said = play("prepare_gpu_nodes", {"without": without, "host": declared})
    assert (code, machine.starts, machine.node["status"]["allocatable"]["cpu"]) == (0, 1, "7500m"), said
    code, said = play("remove_gpu_nodes", {"without": without, "host": undeclared})
    assert (code, machine.starts, machine.config.read_text()) == (0, 2, KUBEADM), said
    assert re.search(r"^without .* changed=0 ", said, re.MULTILINE), said
    assert left_behind(tmp_path) == []
