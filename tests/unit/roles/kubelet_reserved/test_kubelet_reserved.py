# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook on a machine with fake systemd, journal and API server, and a real file."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.kubelet_machine import DropInMachine, Machine
from fakes.loopback_api import serve_in_thread, write_kubeconfig

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.node import answer
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubelet import controller
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubelet.node import read
from ansible_collections.gpu.kubernetes.plugins.plugin_utils._yaml import RoundTrip
from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

if os.geteuid() != 0:
    pytest.skip("only root gives files to root", allow_module_level=True)

FIXTURES = ROOT / "tests" / "unit" / "plugins" / "module_utils" / "_kubelet" / "fixtures"
KUBEADM = (FIXTURES / "kubeadm-1.34.4.yaml").read_text()
DEFAULTS = (FIXTURES / "00-k3s-defaults.conf").read_text()
LOCAL = "ansible_connection=local ansible_become=false"
INVENTORY = f"[gpu_nodes]\nhost {LOCAL} gpu_node_name=node\n"
REQUESTED = {"cpu": "500m", "memory": "1Gi"}
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
    """Run the playbook: exit code, number of changes, output in one line."""

    def play(*options, pods=(), **variables):
        role_variables = {
            "kubelet_reserved_kube_reserved": REQUESTED,
            "kubelet_reserved_state_dir": str(tmp_path / "state"),
            "kubelet_reserved_ready_timeout": 300,
            "__kubelet_reserved_delay": 0,
            "__kubelet_reserved_stable_after": 1,
            **variables,
        }
        with serve_in_thread(machine.api(list(pods))) as server:
            kubeconfig = str(write_kubeconfig(server.url, tmp_path / "kubeconfig"))
            playbook = ROOT / "playbooks" / "reserve_node_resources.yml"
            code, output = run(
                INVENTORY,
                playbook,
                *options,
                environment=machine.environment,
                gpu_kubeconfig=kubeconfig,
                **role_variables,
            )
        changed = re.search(r"^host .* changed=(\d+)", output, re.MULTILINE)
        return code, int(changed[1]) if changed else 0, " ".join(output.split())

    return play


@pytest.fixture
def apply_role(run, machine, tmp_path):
    """Run the role on hosts that are all the same machine, or *another*: exit code, output."""

    def play(hosts, pods=(), another=None):
        variables = {
            "ansible_connection": "local",
            "gpu_node_name": "node",
        }
        playbook = tmp_path / "play.yml"
        playbook.write_text(
            json.dumps([{"hosts": "all", "gather_facts": False, "roles": ["gpu.kubernetes.kubelet_reserved"]}])
        )
        used = another or machine
        with serve_in_thread(used.api(list(pods))) as server:
            kubeconfig = str(write_kubeconfig(server.url, tmp_path / "kubeconfig"))
            inventory = {"all": {"hosts": hosts, "vars": variables}}
            return run(inventory, playbook, environment=used.environment, gpu_kubeconfig=kubeconfig)

    return play


def list_remaining_files(folder: Path) -> list[str]:
    """The files of a change that remain, apart from backups and locks."""
    files = (path for path in (folder / "state").rglob("*") if path.is_file())
    return [path.name for path in files if not {"backups", "lock"} & set(path.parts)]


def leave_interrupted_change(config: Path, folder: Path, **reserved: str) -> None:
    """Leave the files of a run that is killed before it verifies the kubelet."""
    arguments = {"path": str(config), "state_dir": str(folder / "state"), "values": {"kubeReserved": reserved}}
    arguments.update(state="present", keep_former=True)

    def send_request(request):
        return answer(request, False, functools.partial(read, run=lambda _command: (1, "")))

    assert controller.run(arguments, RoundTrip(), send_request, False, False)["changed"]


def test_node_restores_its_configuration_if_the_run_ends_before_the_verification(machine, apply, tmp_path):
    """The controller is killed after the kubelet's restart; the test runs the command of the timer. The next run changes the file again, and is undone."""
    systemd = {"_restore_timer_systemd_dir": str(tmp_path)}
    (tmp_path / "ends").touch()
    code, _changes, output = apply(**systemd)
    assert (code < 0, machine.starts) == (True, 1), output
    assert machine.config.read_text() != KUBEADM
    ((*words, archive, plan),) = machine.timers
    assert {"--unit=gpu-kubernetes-restore-kubelet", "--on-active=1060"} <= set(words)
    subprocess.run([sys.executable, "-E", "-s", archive, plan], check=True, capture_output=True)
    assert (machine.starts, machine.config.read_text()) == (2, KUBEADM)
    # No take-over is required: the process of that run has ended.
    code, changes, output = apply(**systemd)
    assert (code, changes > 0, machine.starts) == (0, True, 3), output
    assert f"RESTORED: host: the node restored {machine.config} itself at 20" in output
    assert "because the change of kubelet at 20" in output
    assert machine.config.read_text() == KUBEADM + "kubeReserved:\n  cpu: '500m'\n  memory: '1Gi'\n"
    assert len(machine.timers) == 2
    assert not (tmp_path / "state" / "restore").exists()
    [record] = list_remaining_files(tmp_path)
    assert record.endswith(".json")
    # As if someone had corrected the file and not restarted the kubelet.
    node = machine.node
    node["status"]["allocatable"]["cpu"] = "8"
    machine.node = node
    code, changes, output = apply("--check", **systemd)
    assert (code, changes, machine.starts, "RESTORED" in output) == (0, 1, 3, False), output
    assert "the node reports 8 of cpu instead of 7.5" in output
    code, changes, output = apply(**systemd, kubelet_reserved_state="absent")
    assert (code, changes > 1, machine.starts, machine.config.read_text()) == (0, True, 4, KUBEADM), output
    assert list_remaining_files(tmp_path) == []


def test_refused_hosts_are_not_changed(machine, apply_role, tmp_path):
    """Each of these hosts is the same machine."""
    unready = {"type": "Ready", "status": "False", "message": "no CNI"}
    machine.others["unready"] = {**machine.node, "status": {**machine.node["status"], "conditions": [unready]}}
    hosts = {
        "much": ({"kubelet_reserved_kube_reserved": {"memory": "500Gi"}}, TOO_MUCH),
        "nonsense": (
            {"kubelet_reserved_eviction_hard": {"memory.available": "nonsense"}},
            'evictionHard."memory.available" is nonsense: give',
        ),
        "other": ({"gpu_node_name": "other"}, "other: the cluster has no node other; join"),
        "unready": (
            {"gpu_node_name": "unready"},
            "unready: node unready is not Ready (no CNI), so that the kubelet's restart",
        ),
        "busy": ({}, CROWDED),
    }
    common = {"kubelet_reserved_kube_reserved": REQUESTED, "kubelet_reserved_state_dir": str(tmp_path / "state")}
    _code, output = apply_role({name: {**common, **own} for name, (own, _words) in hosts.items()}, [BUSY])
    output = " ".join(output.split())
    for _own, words in hosts.values():
        assert words in output, output
    assert (machine.starts, machine.config.read_text(), list_remaining_files(tmp_path)) == (0, KUBEADM, [])


def test_undo_on_a_host_outside_the_cluster_restores_its_file(machine, apply_role, tmp_path):
    """With the file of the kubelet or without. The kubelet is not restarted, since nothing could verify it."""
    hosts = {}
    for name in ("deleted", "reset"):
        config = tmp_path / name / "config.yaml"
        config.parent.mkdir()
        config.write_text(KUBEADM)
        leave_interrupted_change(config, tmp_path / name, **REQUESTED)
        hosts[name] = {
            "gpu_node_name": name,
            "kubelet_reserved_config_path": str(config),
            "kubelet_reserved_state_dir": str(tmp_path / name / "state"),
            "kubelet_reserved_state": "absent",
        }
    (tmp_path / "reset" / "config.yaml").unlink()
    code, output = apply_role(hosts)
    assert (code, machine.starts) == (0, 0), output
    assert "WARNING: deleted: the cluster has no node deleted, so the kubelet" in " ".join(output.split())
    assert (tmp_path / "deleted" / "config.yaml").read_text() == KUBEADM
    assert [list_remaining_files(tmp_path / name) for name in hosts] == [[], []]


def test_kubelet_that_does_not_start_gets_its_former_file(machine, apply, tmp_path):
    """Also on a single control plane, whose API server does not answer before the kubelet runs."""
    (tmp_path / "alone").touch()
    code, _changes, output = apply(kubelet_reserved_kube_reserved={"cpu": "250m", "ephemeral-storage": "1Ti"})
    assert code != 0
    assert "does not keep running (it is activating, auto-restart, and systemd has restarted it 2 times)" in output
    log = output.partition("The kubelet's last log lines: ")[2]
    assert log.startswith(
        '"Failed to start ContainerManager" err="invalid Node Allocatable configuration" It works again.'
    )
    assert (machine.config.read_text(), machine.node["status"]["allocatable"]["cpu"]) == (KUBEADM, "8000m")
    assert list_remaining_files(tmp_path) == []


def test_drop_in_of_a_distribution_is_rolled_back_applied_once_and_undone(apply_role, tmp_path):
    """The fake kubelet merges the drop-ins of its folder, and the unit of the distribution is restarted."""
    machine = DropInMachine(tmp_path / "own", DEFAULTS)
    shared = {
        "kubelet_reserved_state_dir": str(tmp_path / "state"),
        "__kubelet_reserved_delay": 0,
        "__kubelet_reserved_stable_after": 1,
    }

    def apply(**reserved):
        state = "present" if reserved else "absent"
        variables = {**shared, "kubelet_reserved_kube_reserved": reserved, "kubelet_reserved_state": state}
        return apply_role({"host": variables}, another=machine)

    code, output = apply(**{"ephemeral-storage": "1Ti"})
    assert code != 0
    assert "so its former configuration was restored" in " ".join(output.split()), output
    assert (machine.config.exists(), machine.units) == (False, ["k3s-agent"] * 2)
    code, output = apply(**REQUESTED)
    assert code == 0, output
    assert machine.config.read_text().endswith("kubeReserved:\n  cpu: '500m'\n  memory: '1Gi'\n")
    # The distribution's file has thresholds, and none for memory.
    assert machine.node["status"]["allocatable"] == {"cpu": "7500m", "memory": str(15 << 30)}
    code, output = apply(**REQUESTED)
    assert (code, machine.starts) == (0, 3), output
    assert re.search(r"^host .* changed=0 ", output, re.MULTILINE), output
    code, output = apply()
    assert (code, machine.config.exists(), machine.units) == (0, False, ["k3s-agent"] * 4), output
    assert machine.node["status"]["allocatable"] == {"cpu": "8000m", "memory": str(16 << 30)}
    assert list_remaining_files(tmp_path) == []


@pytest.mark.thorough
def test_kubelet_that_an_interrupted_run_left_down_starts_as_requested(machine, apply, tmp_path):
    (tmp_path / "alone").touch()
    leave_interrupted_change(machine.config, tmp_path, **{"ephemeral-storage": "1Ti"})
    machine.start()
    code, _changes, output = apply()
    assert (code, machine.node["status"]["allocatable"]["cpu"]) == (0, "7500m"), output


@pytest.mark.thorough
def test_rollback_of_a_file_that_others_edited_reports_both_causes(machine, apply, tmp_path):
    (tmp_path / "lies").touch()
    (tmp_path / "meddles").touch()
    code, _changes, output = apply(kubelet_reserved_ready_timeout=4)
    assert code != 0
    message = output.partition("host: the kubelet does not work as expected: ")[2]
    cause = "host: after 4 seconds the node reports 7.499 of cpu instead of 7.5. The kubelet's last log lines:"
    assert message.startswith(cause)
    assert (
        f"Its former configuration was not restored: {machine.config} is not as this collection wrote it last"
        in message
    )
    assert "# theirs" in machine.config.read_text()


@pytest.mark.thorough
def test_prepare_and_remove_include_hosts_with_requested_or_managed_values(machine, run, tmp_path):
    """The other host is unreachable: each task on it would fail."""
    declared = {
        "ansible_connection": "local",
        "gpu_node_name": "node",
        "kubelet_reserved_kube_reserved": REQUESTED,
        "kubelet_reserved_state_dir": str(tmp_path / "state"),
        "__kubelet_reserved_delay": 0,
        "__kubelet_reserved_stable_after": 1,
    }
    undeclared = {**declared, "kubelet_reserved_kube_reserved": {}}
    without = {**undeclared, "kubelet_reserved_state_dir": str(tmp_path / "none")}
    silent = {"ansible_host": "127.0.0.1", "ansible_port": 1, "kubelet_reserved_eviction_hard": {}}

    def play(name, hosts, **extra):
        with serve_in_thread(machine.api([])) as server:
            if "gpu_nodes_have_cluster" not in extra:
                extra["gpu_kubeconfig"] = str(write_kubeconfig(server.url, tmp_path / "kubeconfig"))
            inventory = {"gpu_nodes": {"hosts": hosts, "vars": {"ansible_become": False}}}
            playbook = ROOT / "playbooks" / f"{name}.yml"
            return run(inventory, playbook, "--tags", "reserve", environment=machine.environment, **extra)

    code, output = play(
        "prepare_gpu_nodes",
        {"silent": silent, "host": declared},
        gpu_nodes_have_cluster=False,
        gpu_devices={"vendors": ["nvidia"], "served": True},
    )
    assert (code, machine.starts) == (0, 0), output
    code, output = play("prepare_gpu_nodes", {"without": without, "host": declared})
    assert (code, machine.starts, machine.node["status"]["allocatable"]["cpu"]) == (0, 1, "7500m"), output
    code, output = play("remove_gpu_nodes", {"without": without, "host": undeclared})
    assert (code, machine.starts, machine.config.read_text()) == (0, 2, KUBEADM), output
    assert re.search(r"^without .* changed=0 ", output, re.MULTILINE), output
    assert list_remaining_files(tmp_path) == []
