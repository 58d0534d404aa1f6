# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook on an API server and nothing else."""

from __future__ import annotations

import json

import pytest
from fakes.gpushare import share_node, share_pod
from fakes.loopback_api import LoopbackApi, listed, serving, write_kubeconfig

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

PLAYBOOK = ROOT / "playbooks" / "show_gpu_allocation.yml"
NODES = [share_node("w1"), share_node("w2", 320, 4)]
PODS = [share_pod("a"), share_pod("b", amounts=(5,)), share_pod("lost", on="w2", index=None)]
HEAD = "NAME  IPADDRESS  GPU0(Allocated/Total)"


@pytest.fixture
def show(run, tmp_path):
    """Run the playbook on a cluster: exit code and lines."""
    with serving(LoopbackApi({"/api/v1/nodes": listed(NODES), "/api/v1/pods": listed(PODS)})) as server:
        kubeconfig = str(write_kubeconfig(server.url, tmp_path / "kubeconfig"))

        def play(*options, inventory="", **variables):
            code, said = run(inventory, PLAYBOOK, *options, gpu_kubeconfig=kubeconfig, **variables)
            return code, said.splitlines()

        yield play


def test_the_table_is_printed_as_it_is(show):
    """No host of the inventory is asked."""
    code, said = show(inventory="[gpu_nodes]\nunreachable.invalid\n")
    assert code == 0, said
    first = next(number for number, line in enumerate(said) if line.startswith(HEAD))
    assert said[first + 1].split() == ["w1", "10.0.0.1", "8/16", "0/0", "0/0", "0/0", "8/16"]
    assert said[first + 2].split() == ["w2", "10.0.0.1", "0/80", "0/80", "0/80", "0/80", "3", "3/320"]
    assert said[first + 5] == "11/336 (3%)"
    assert "  w1  GPU0  ##########..........  8/16  50%" in said
    assert any(line.startswith("  - Pod default/lost runs with aliyun.com/gpu-mem 3 on no known GPU") for line in said)
    assert not any("changed=1" in line for line in said)


def test_details_and_one_node(show):
    code, said = show(gpushare_report_details=True, gpushare_report_node="w1", gpushare_report_bars=False)
    assert code == 0, said
    assert "a     default    3" in said
    assert "Allocated : 8 (50%)" in said
    assert not any("w2" in line or "###" in line for line in said)


def test_json_is_printed_and_written(show, tmp_path):
    path = tmp_path / "allocation.json"
    wanted = {"gpushare_report_format": "json", "gpushare_report_path": str(path), "gpushare_report_details": True}
    code, said = show("--check", **wanted)
    assert (code, path.exists()) == (0, False), said
    code, said = show(**wanted)
    assert code == 0, said
    written = path.read_text(encoding="utf-8")
    found = json.loads(written)
    # ansible-core 2.18 makes data of a text that looks like data, and writes them in its own way.
    whole = "\n".join(said)
    assert json.JSONDecoder().raw_decode(whole[whole.index("{") :])[0] == found
    assert found["cluster"] == {"allocated": 11, "total": 336, "percent": 3}
    assert [pod["name"] for node in found["nodes"] for pod in node["pods"]] == ["a", "b", "lost"]


def test_csv_without_printing(show, tmp_path):
    path = tmp_path / "allocation.csv"
    code, said = show(gpushare_report_format="csv", gpushare_report_path=str(path), gpushare_report_show=False)
    assert code == 0, said
    assert "w1,10.0.0.1" not in "\n".join(said)
    assert path.read_text(encoding="utf-8").splitlines()[:2] == [
        "node,address,gpu,allocated,total,percent,unit",
        "w1,10.0.0.1,0,8,16,50,GiB",
    ]


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"gpushare_report_node": "w9"}, "There is no node w9 in the cluster; correct the name"),
        ({"gpushare_report_fail": True}, "Pod default/lost runs with aliyun.com/gpu-mem 3 on no known GPU"),
        ({"gpushare_report_format": "xml"}, "value of gpushare_report_format must be one of: table, json, csv"),
    ],
    ids=["node", "finding", "format"],
)
def test_what_fails_the_run(show, variables, words):
    code, said = show(**variables)
    assert code != 0
    assert words in " ".join(" ".join(said).split())
