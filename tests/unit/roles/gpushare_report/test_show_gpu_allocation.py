# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook show_gpu_allocation on a fake API server."""

from __future__ import annotations

import json

import pytest
from fakes.gpushare import share_node, share_pod
from fakes.loopback_api import LoopbackApi, encode_list, serve_in_thread, write_kubeconfig

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

PLAYBOOK = ROOT / "playbooks" / "show_gpu_allocation.yml"
SLICE = "nvidia.com/mig-1g.10gb"
NODES = [
    share_node("w1"),
    share_node("w2", 320, 4),
    share_node("w3", None, None, allocatable={SLICE: "7"}, capacity={SLICE: "7"}),
]
PODS = [share_pod("a"), share_pod("b", amounts=(5,)), share_pod("lost", on="w2", index=None)]
HOLDER = share_pod("slice", on="w3", amounts=(None,), index=None)
HOLDER["spec"]["containers"][0]["resources"] = {"limits": {SLICE: "7"}}
HEAD = "NAME  IPADDRESS  GPU0(Allocated/Total)"


@pytest.fixture
def show(run, tmp_path):
    """Run the playbook on a cluster: exit code and lines."""
    with serve_in_thread(
        LoopbackApi({"/api/v1/nodes": encode_list(NODES), "/api/v1/pods": encode_list([*PODS, HOLDER])})
    ) as server:
        kubeconfig = str(write_kubeconfig(server.url, tmp_path / "kubeconfig"))

        def play(*options, inventory="", **variables):
            code, output = run(inventory, PLAYBOOK, *options, gpu_kubeconfig=kubeconfig, **variables)
            return code, output.splitlines()

        yield play


def test_table_is_printed_unchanged(show):
    """No host of the inventory is contacted."""
    code, output = show(inventory="[gpu_nodes]\nunreachable.invalid\n")
    assert code == 0, output
    first = next(number for number, line in enumerate(output) if line.startswith(HEAD))
    assert output[first + 1].split() == ["w1", "10.0.0.1", "8/16", "0/0", "0/0", "0/0", "8/16"]
    assert output[first + 2].split() == ["w2", "10.0.0.1", "0/80", "0/80", "0/80", "0/80", "3", "3/320"]
    assert output[first + 5] == "11/336 (3%)"
    assert "  w1  GPU0  ##########..........  8/16  50%" in output
    assert any(
        line.startswith("  - Pod default/lost runs with aliyun.com/gpu-mem 3 on no known GPU") for line in output
    )
    assert f"w3    {SLICE}  ####################  7/7              100%  slices" in output
    assert not any("changed=1" in line for line in output)


def test_details_of_one_node_are_printed(show):
    code, output = show(gpushare_report_details=True, gpushare_report_node="w1", gpushare_report_bars=False)
    assert code == 0, output
    assert "a     default    3" in output
    assert "Allocated : 8 (50%)" in output
    assert not any("w2" in line or "w3" in line or "###" in line for line in output)


def test_details_list_who_holds_slices(show):
    code, output = show(gpushare_report_details=True, gpushare_report_node="w3")
    assert code == 0, output
    assert f"slice  default    w3    {SLICE}  7" in output
    assert not any(line.startswith("NAME:") for line in output)


def test_json_is_printed_and_written(show, tmp_path):
    path = tmp_path / "allocation.json"
    variables = {"gpushare_report_format": "json", "gpushare_report_path": str(path), "gpushare_report_details": True}
    code, output = show("--check", **variables)
    assert (code, path.exists()) == (0, False), output
    code, output = show(**variables)
    assert code == 0, output
    written = path.read_text(encoding="utf-8")
    found = json.loads(written)
    # ansible-core 2.18 converts text that looks like data, and formats the data differently.
    text = "\n".join(output)
    assert json.JSONDecoder().raw_decode(text[text.index("{") :])[0] == found
    assert found["cluster"] == {"allocated": 11, "total": 336, "percent": 3}
    assert [pod["name"] for node in found["nodes"] for pod in node["pods"]] == ["a", "b", "lost"]
    assert [(row["resource"], [pod["name"] for pod in row["pods"]]) for row in found["resources"]] == [
        (SLICE, ["slice"])
    ]
    assert found["totals"] == [{"resource": SLICE, "allocated": 7, "total": 7, "percent": 100}]


def test_csv_is_written_without_printing(show, tmp_path):
    path = tmp_path / "allocation.csv"
    code, output = show(gpushare_report_format="csv", gpushare_report_path=str(path), gpushare_report_show=False)
    assert code == 0, output
    assert "w1,10.0.0.1" not in "\n".join(output)
    assert path.read_text(encoding="utf-8").splitlines()[:2] == [
        "node,address,gpu,allocated,total,percent,unit,resource",
        "w1,10.0.0.1,0,8,16,50,GiB,aliyun.com/gpu-mem",
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
def test_unknown_node_finding_or_format_fails_the_run(show, variables, words):
    code, output = show(**variables)
    assert code != 0
    assert words in " ".join(" ".join(output).split())
