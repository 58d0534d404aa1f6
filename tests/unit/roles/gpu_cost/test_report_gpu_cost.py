# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook report_gpu_cost on a fake API server, with snapshots and a fake Prometheus."""

from __future__ import annotations

import json
import time

import pytest
import yaml
from fakes.gpushare import share_node, share_pod
from fakes.loopback_api import LoopbackApi, encode_list, serve_in_thread, write_kubeconfig
from fakes.prometheus import FakePrometheus

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

PLAYBOOK = ROOT / "playbooks" / "report_gpu_cost.yml"
NODE = share_node("w1")
NODE["metadata"]["labels"] = {"nvidia.com/gpu.product": "Tesla-T4"}
PODS = [share_pod("a", amounts=(8,)), share_pod("b", amounts=(4,), namespace="team-b")]
PRICES = {"gpu_cost_prices": {"*T4": 2}, "gpu_cost_currency": "EUR"}


@pytest.fixture
def cluster(tmp_path):
    """The kubeconfig of a cluster."""
    with serve_in_thread(
        LoopbackApi({"/api/v1/nodes": encode_list([NODE]), "/api/v1/pods": encode_list(PODS)})
    ) as server:
        yield str(write_kubeconfig(server.url, tmp_path / "kubeconfig"))


@pytest.fixture
def report(run, cluster, tmp_path):
    """Run the playbook on the cluster: exit code and output. The snapshots are in the folder of the test."""

    def play(*options, **variables):
        environment = {"PWD": str(tmp_path), "AWX_HOST": ""}
        inventory = "[gpu_nodes]\nunreachable.invalid\n"
        given = {"gpu_kubeconfig": cluster, **variables}
        return run(inventory, PLAYBOOK, *options, environment=environment, **given)

    return play


def make_older(path, seconds):
    """Move the only snapshot of the file to the past."""
    snapshot = json.loads(path.read_text())
    snapshot["time"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - seconds))
    path.write_text(json.dumps(snapshot) + "\n")


def test_snapshots_become_hours_and_are_removed(report, tmp_path):
    snapshots, table, values = (tmp_path / name for name in ("gpu-cost-snapshots.jsonl", "cost.txt", "opencost.yml"))
    code, output = report()
    assert code == 0, output
    assert "changed=1 " in output
    assert "Hours need two snapshots within 2h; run this playbook regularly." in output
    assert snapshots.stat().st_mode & 0o777 == 0o600

    make_older(snapshots, 3600)
    files = {"gpu_cost_path": str(table), "gpu_cost_opencost_values_path": str(values)}
    code, output = report(**files, **PRICES)
    assert code == 0, output
    assert len(snapshots.read_text().splitlines()) == 2
    lines = table.read_text().splitlines()
    # It is printed as it is.
    assert set(lines) <= set(output.splitlines())
    hours = {
        cells[0]: float(cells[1]) for cells in map(str.split, lines) if cells and cells[0] in ("default", "team-b")
    }
    assert hours == {"default": pytest.approx(0.5, abs=0.1), "team-b": pytest.approx(0.2, abs=0.1)}
    assert any(line.startswith("aliyun.com/gpu-mem  GiB   ") for line in lines)
    assert table.stat().st_mode & 0o777 == 0o600
    assert yaml.safe_load(values.read_text())["opencost"]["customPricing"]["costModel"]["GPU"] == "2"

    code, output = report(gpu_cost_state="absent", **files)
    assert (code, snapshots.exists(), values.exists()) == (0, False, False), output
    assert "changed=2 " in output


#: Variables of a host, and a part of the message.
REFUSED = {
    "format": ({"gpu_cost_format": "xml"}, "value of gpu_cost_format must be one of: table, json, csv"),
    "values-of-others": (
        {"gpu_cost_opencost_values_path": "{{ gpu_kubeconfig }}", **PRICES},
        "was not written by this role; remove it, or set gpu_cost_opencost_values_path to another file",
    ),
    "snapshots-of-others": (
        {"gpu_cost_state": "absent", "gpu_cost_snapshot_path": "{{ gpu_kubeconfig }}"},
        "is not a file of snapshots; set gpu_cost_snapshot_path to another file",
    ),
}


def test_unsuitable_variables_are_refused(refusals, cluster, tmp_path):
    """One play for each host."""
    common = {"gpu_cost_snapshot_path": str(tmp_path / "snapshots.jsonl")}
    plays = [{host: {**common, **variables}} for host, (variables, _words) in REFUSED.items()]
    found = refusals("gpu_cost", ["main"], *plays, extra={"gpu_kubeconfig": cluster})
    for host, (_variables, words) in REFUSED.items():
        assert words in " ".join(found[host].split()), found[host]
    assert json.loads((tmp_path / "kubeconfig").read_text())["kind"] == "Config"


def test_token_of_prometheus_is_in_no_output(report):
    with serve_in_thread(FakePrometheus()) as server:
        code, output = report("-vvv", gpu_cost_prometheus_url=server.url, gpu_cost_prometheus_token="opensesame")
        assert code != 0
        assert "has no kube_pod_resource_request in this time" in " ".join(output.split())
        assert server.requests[0][1]["Authorization"] == "Bearer opensesame"
    assert "opensesame" not in output
