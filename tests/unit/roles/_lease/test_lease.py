# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two runs at once: the second one is refused with one sentence, and an interrupted one does not block the next."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from datetime import datetime, timezone

import pytest
from fakes.loopback_api import serve_in_thread, write_kubeconfig
from fakes.small_cluster import SmallCluster

from ansible_collections.gpu.kubernetes.plugins.module_utils._lease.decide import encode_time
from ansible_collections.gpu.kubernetes.plugins.module_utils._lease.holder import describe_holder

ROLE = "gpu.kubernetes._lease"
WORK = "{{ inventory_hostname }} is changed now"
OTHER_RUN = "eve@elsewhere/7.8.b.9"


@pytest.fixture
def cluster():
    with serve_in_thread(SmallCluster()) as server:
        yield server


def put_lease(cluster, node, holder, seconds=3600):
    now = encode_time(datetime.now(timezone.utc))
    cluster.put(
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": f"gpu-kubernetes-{node}",
                "namespace": "kube-system",
                "labels": {"app.kubernetes.io/managed-by": "gpu.kubernetes"},
            },
            "spec": {
                "holderIdentity": holder,
                "acquireTime": now,
                "renewTime": now,
                "leaseDurationSeconds": seconds,
            },
        }
    )


def list_holders(cluster):
    return {item["metadata"]["name"]: item["spec"]["holderIdentity"] for item in cluster.all("Lease")}


@pytest.fixture
def play(run, cluster, tmp_path):
    """Hold the leases of nodes, and release them unless the play keeps them: exit code and output in one line."""
    kubeconfig = str(write_kubeconfig(cluster.url, tmp_path / "kubeconfig"))

    def run_play(*options, nodes=("w1", "w2"), keep=False, **variables):
        include = {"ansible.builtin.include_role": {"name": ROLE}}
        release = {"ansible.builtin.include_role": {"name": ROLE, "tasks_from": "release"}}
        work = {
            "ansible.builtin.assert": {
                "that": "inventory_hostname not in failing | default([]) and lease_lock.refused is defined",
                "success_msg": WORK,
            }
        }
        tasks = [{"block": [include, work], "always": [] if keep else [release]}]
        playbook = tmp_path / "play.yml"
        playbook.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": tasks}]))
        hosts = {name: {"gpu_node_name": name, "gpu_kubeconfig": kubeconfig} for name in nodes}
        inventory = {"all": {"hosts": hosts, "vars": {"ansible_connection": "local", "ansible_become": False}}}
        code, output = run(inventory, playbook, *options, **variables)
        return code, " ".join(output.split())

    return run_play


@pytest.fixture
def ended_run():
    """The holder of a run on this controller whose process has ended."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        holder = describe_holder(process.pid)
        process.kill()
        process.wait()
    return holder


def test_refused_hosts_are_not_changed_and_the_others_release_their_leases(play, cluster, ended_run, tmp_path):
    """The first host fails; nodes w2 to w4 have the leases of another run, of one of this controller that runs, and of one that has ended."""
    running = describe_holder(os.getpid())
    for node, holder in {"w2": OTHER_RUN, "w3": running, "w4": ended_run}.items():
        put_lease(cluster, node, holder)
    code, output = play(nodes=("w1", "w2", "w3", "w4"), failing=["w1"])
    assert code != 0
    assert "w2: another run changes node w2: that of eve@elsewhere, since 20" in output
    assert "set gpu_take_over to true" in output
    assert "w3: another run changes node w3" in output
    assert [name for name in ("w1", "w2", "w3", "w4") if f"{name} is changed now" in output] == ["w4"]
    assert list_holders(cluster) == {"gpu-kubernetes-w2": OTHER_RUN, "gpu-kubernetes-w3": running}
    assert list((tmp_path / "run").glob("*.json")) == []
    assert not re.search("changed=[1-9]", output)


def test_leases_are_taken_over_on_request(play, cluster, ended_run):
    put_lease(cluster, "w1", OTHER_RUN)
    put_lease(cluster, "w2", ended_run)
    code, output = play("-e", "gpu_take_over=true", keep=True)
    assert code == 0, output
    assert "The lease of node w1 was taken over from eve@elsewhere" in output
    # The waits for jobs and evictions, and an hour for the one round of hosts.
    assert {item["spec"]["leaseDurationSeconds"] for item in cluster.all("Lease")} == {3600 + 300 + 3600}
    assert {holder.partition("/")[0] for holder in list_holders(cluster).values()} == {ended_run.partition("/")[0]}


def test_lock_is_removed_where_the_next_control_plane_keeps_the_lease(play, cluster, tmp_path):
    code, output = play(_lease_keep=True, _lease_subject="kube-scheduler")
    assert code == 0, output
    assert list(list_holders(cluster)) == ["gpu-kubernetes.kube-scheduler"]
    assert list((tmp_path / "run").glob("*.json")) == []


def test_check_mode_warns_and_holds_nothing(play, cluster):
    put_lease(cluster, "w1", OTHER_RUN)
    code, output = play("--check")
    assert code == 0, output
    assert "WARNING: w1: a run would be refused now: another run changes node w1" in output
    assert list_holders(cluster) == {"gpu-kubernetes-w1": OTHER_RUN}


def test_second_run_without_an_api_server_is_refused_by_the_lock_on_the_host(play, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    now = encode_time(datetime.now(timezone.utc))
    lock = folder / "run-node.json"
    lock.write_text(json.dumps({"holder": OTHER_RUN, "since": now, "renewed": now, "seconds": 600}))
    code, output = play(gpu_nodes_have_cluster=False)
    assert code != 0
    assert "w1: another run changes this host: that of eve@elsewhere" in output
    assert json.loads(lock.read_text())["holder"] == OTHER_RUN
