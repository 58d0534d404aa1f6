# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the page of the report shows."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.gpushare import share_node, share_pod

from ansible_collections.gpu.kubernetes.plugins.module_utils._allocation.allocation import allocate
from ansible_collections.gpu.kubernetes.plugins.module_utils._allocation.extract import read_dump
from ansible_collections.gpu.kubernetes.plugins.module_utils._report import node_rows, page, shares, versions
from ansible_collections.gpu.kubernetes.plugins.module_utils._report.build import build_report
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._report.fleet import (
    A100,
    cards,
    make_allocation,
    make_cost,
    make_earlier,
    make_healthy,
    make_report,
    pod,
    resource,
)
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._report.observations import cluster, host


def problem(host: str, code: str, cause: str = "c", remedy: str = "r") -> dict[str, Any]:
    return {"host": host, "code": code, "cause": cause, "remedy": remedy, "sentence": ""}


def test_counts_of_a_fleet_with_problems() -> None:
    built = page.build_page(make_report())
    assert built["counts"] == {
        "nodes": 4,
        "nodes_ok": 1,
        "gpus": 10,
        "offered": 9,
        "problems": 5,
        "hosts": 3,
        "smoke": 3,
        "smoke_ok": 1,
        "worst": "unreachable",
    }
    assert (built["ok"], built["unexamined"]["entries"]) == (False, ["gpu4"])
    assert [group["code"] for group in built["groups"]["entries"]] == [
        "unreachable",
        "gpu_lost",
        "node",
        "smoke_test",
        "drift",
    ]


def test_counts_without_the_api_server_have_no_offered_gpus() -> None:
    built = page.build_page(make_report(error="refused", nodes=[]))
    assert built["counts"]["offered"] is None
    assert built["groups"]["entries"][0]["code"] == "api"
    assert built["groups"]["entries"][0]["hosts"] == {
        "entries": [{"host": "", "anchor": "", "causes": []}],
        "missing": 0,
    }


@pytest.mark.parametrize(
    ("problems", "groups"),
    [
        ([], []),
        # worst first, then that of most hosts, and unknown codes last
        (
            [problem("a", "drift"), problem("b", "new"), problem("c", "gpu_lost"), problem("d", "drift", remedy="x")],
            [("gpu_lost", "c", ["c"]), ("drift", "c", ["a"]), ("drift", "c", ["d"]), ("new", "c", ["b"])],
        ),
        (
            [problem("a", "drift"), problem("b", "drift", remedy="x"), problem("c", "drift", remedy="x")],
            [("drift", "c", ["b", "c"]), ("drift", "c", ["a"])],
        ),
        # one remedy, different causes
        ([problem("a", "node", "x"), problem("b", "node", "y"), problem("b", "node", "z")], [("node", "", ["a", "b"])]),
    ],
)
def test_group_problems_by_cause(problems: Any, groups: Any) -> None:
    found = page.group_problems(problems, {"a": "n0"})
    assert [
        (each["code"], each["cause"], [host["host"] for host in each["hosts"]["entries"]]) for each in found
    ] == groups


def test_group_with_different_causes_has_them_at_its_hosts() -> None:
    [found] = page.group_problems(
        [problem("a", "node", "x"), problem("b", "node", "y"), problem("b", "node", "z")], {"a": "n0"}
    )
    assert found["hosts"]["entries"] == [
        {"host": "a", "anchor": "n0", "causes": ["x"]},
        {"host": "b", "anchor": "", "causes": ["y", "z"]},
    ]


def test_group_of_many_hosts_says_how_many_it_does_not_name() -> None:
    [found] = page.group_problems([problem(f"h{number:04}", "node") for number in range(page.MAX_HOSTS + 3)], {})
    assert (found["number"], len(found["hosts"]["entries"]), found["hosts"]["missing"]) == (
        page.MAX_HOSTS + 3,
        page.MAX_HOSTS,
        3,
    )


def test_group_drift_of_equal_differences() -> None:
    nodes = [{"host": name, "runtime": {"drift": drift}} for name, drift in (("a", ["-x"]), ("b", []), ("c", ["+y"]))]
    nodes.append({"host": "d", "runtime": {"drift": ["+y"]}})
    found = page.group_drift(nodes, {})
    assert [(each["lines"]["entries"], each["number"]) for each in found] == [(["+y"], 2), (["-x"], 1)]


def node(host: str, driver: str, product: str = A100, gpus: int = 8, runtime: str = "2.1") -> dict[str, Any]:
    return {
        "host": host,
        "driver": {"version": driver, "cuda_version": "12.8"},
        "gpus": {"count": gpus, "products": [{"name": product, "count": gpus}]},
        "runtime": {"name": "containerd", "version": runtime, "toolkit_version": None},
    }


@pytest.mark.parametrize(
    ("nodes", "rows"),
    [
        ([], []),
        (
            [node("a", "570"), node("b", "570"), node("c", "535", gpus=4)],
            [(A100, "570", 2, 16, []), (A100, "535", 1, 4, ["c"])],
        ),
        # no version is that of most nodes
        ([node("a", "570"), node("b", "535")], [(A100, "535", 1, 8, []), (A100, "570", 1, 8, [])]),
        # another product may have another driver
        (
            [node("a", "570"), node("b", "570"), node("c", "535", "Tesla T4")],
            [(A100, "570", 2, 16, []), ("Tesla T4", "535", 1, 8, [])],
        ),
    ],
)
def test_count_products_finds_outliers(nodes: Any, rows: Any) -> None:
    found = versions.count_products(nodes)
    assert [(row["subject"], row["versions"][0], row["nodes"], row["gpus"], row["outliers"]) for row in found] == rows


def test_count_software_names_some_of_many_outliers() -> None:
    few = [node(f"a{number:03}", "570", runtime="1.7") for number in range(25)]
    rows = versions.count_software([*few, *(node(f"b{number}", "570") for number in range(26))])
    assert [(row["versions"], row["nodes"], len(row["outliers"]), row["missing"]) for row in rows] == [
        (["2.1", ""], 26, 0, 0),
        (["1.7", ""], 25, 20, 5),
    ]


@pytest.mark.parametrize(
    ("name", "unit", "strategies"),
    [
        ("nvidia.com/gpu", "GPUs", ["exclusive"]),
        ("nvidia.com/gpu", "replicas", ["time_slicing", "mps"]),
        ("nvidia.com/mig-1g.5gb", "slices", ["mig"]),
        ("nvidia.com/gpu", "devices", []),
        ("aliyun.com/gpu-mem", "GiB", ["gpushare"]),
        ("nano-gpu/gpu-percent", "percent", ["nano_gpu"]),
    ],
)
def test_strategies_of_a_resource(name: str, unit: str, strategies: list[str]) -> None:
    assert list(shares.name_strategies(name, unit)) == strategies


def test_count_shares_sums_resources_and_units() -> None:
    memory = {**resource("gpu5", 8, 32), "gpus": []}
    del memory["resource"], memory["unit"]
    found = shares.count_shares(make_report(), make_allocation(nodes=[memory], unit="GiB"))
    assert [(each["resource"], each["unit"], each["allocated"], each["total"], each["percent"]) for each in found] == [
        ("aliyun.com/gpu-mem", "GiB", 8, 32, 25),
        ("nvidia.com/gpu", "GPUs", 3, 7, 42),
        ("nvidia.com/gpu", "replicas", 2, 8, 25),
    ]


def test_count_shares_without_an_allocation_has_what_nodes_offer() -> None:
    [found] = shares.count_shares(make_report(), None)
    assert (found["resource"], found["allocated"], found["total"], found["percent"]) == (
        "nvidia.com/gpu",
        None,
        16,
        None,
    )


def test_sum_namespaces_of_pods() -> None:
    rows = [resource("a", 4, 8, pods=[pod("x", 1), pod("y", 1), pod("z", 2, "team-b"), pod("w", 3, "team-c")])]
    found = shares.sum_namespaces(make_allocation(resources=rows))
    assert [(each["namespace"], each["allocated"], each["pods"]) for each in found] == [
        ("team-c", 3, 1),
        ("team-a", 2, 2),
        ("team-b", 2, 1),
    ]
    assert shares.sum_namespaces(None) == []


def test_sum_cost_by_namespace_and_product() -> None:
    found = page.sum_cost(make_cost())
    assert [(row["namespace"][:6], row["cost"], row["allocated_hours"]) for row in found["entries"]] == [
        ("<scrip", 99.0, 12.5),
        ("team-a", 50.0, 25.0),
    ]
    assert (found["currency"], found["total"]["cost"], found["total"]["wasted_hours"]) == ("EUR", 149.0, 3.75)


def test_sum_cost_without_utilisation_and_prices_leaves_numbers_unknown() -> None:
    row = {
        "namespace": "a",
        "product": A100,
        "allocated_hours": 2.0,
        "idle_hours": 0.0,
        "wasted_hours": None,
        "cost": None,
    }
    idle = {**row, "namespace": "", "allocated_hours": 0.0, "idle_hours": 6.0}
    found = page.sum_cost({"currency": "", "rows": [row, idle, {**row, "product": "T4", "cost": 1.5}]})
    assert [(each["product"], each["namespace"], each["cost"]) for each in found["entries"]] == [
        ("T4", "a", 1.5),
        (A100, "", None),
        (A100, "a", None),
    ]
    assert found["total"] == {"cost": 1.5, "allocated_hours": 4.0, "idle_hours": 6.0, "wasted_hours": None}


def test_page_lists_the_changes_since_an_earlier_report() -> None:
    kinds = [change["kind"] for change in page.build_page(make_report(), earlier=make_earlier())["changes"]["entries"]]
    assert {"problem_new", "node_removed", "driver", "smoke_test"} <= set(kinds)
    assert page.build_page(make_report())["changes"] is None


def test_gpu_with_memory_errors_is_sick_and_its_problem_comes_early() -> None:
    broken = cards(2)
    broken[1] = {**broken[1], "pci_address": "0000:af:00.0", "ecc": {"uncorrected_volatile": 3}}
    report = build_report([host("gpu1", broken), host("gpu2", cards(1), toolkit={"usable": False})], cluster())
    built = page.build_page(report)
    assert [group["code"] for group in built["groups"]["entries"]] == ["hw.ecc", "toolkit"]
    assert built["nodes"][0]["states"] == ["unknown", "sick"]


@pytest.mark.parametrize(
    ("number", "sick", "detailed"),
    [(500, [], 500), (501, [], 0), (501, [7], 1), (1200, list(range(600)), 500)],
)
def test_details_of_many_nodes_are_of_those_with_problems(number: int, sick: list[int], detailed: int) -> None:
    hosts = [f"h{place}" for place in range(number)]
    chosen = node_rows.choose_detailed(hosts, {f"h{place}" for place in sick})
    assert len(chosen) == len(set(chosen.values())) == detailed


def test_page_of_many_healthy_nodes_has_all_in_the_map() -> None:
    built = page.build_page(make_healthy(501))
    assert (built["ok"], len(built["nodes"]), built["details"], built["details_missing"]) == (True, 501, [], 501)


def test_details_of_a_node() -> None:
    built = page.build_page(make_report(), make_allocation())
    second = built["details"][1]
    assert (second["node"], second["anchor"], second["smoke"], second["smoke_reason"]) == (
        "gpu2",
        "n1",
        "failed",
        "it hangs",
    )
    assert [each["state"] for each in second["gpus"]] == ["free", "free", "sick", "free"]
    assert (second["gpus"][0]["gib"], second["gpus"][2]["uuid"]) == ("40", "B-2")
    assert [each["name"] for each in built["details"][2]["pods"]["entries"]] == ["c"]


def test_allocation_of_the_api_server_is_placed_on_the_gpus_that_it_names() -> None:
    """The rows are those of show_gpu_allocation: 4 GPUs of 80 GiB, pods on the second and the third."""
    pods = [share_pod("a", on="gpu1", index="1", amounts=(80,)), share_pod("b", on="gpu1", index="2", amounts=(5,))]
    allocation = allocate(*read_dump([share_node("gpu1", 320, 4)], pods))
    first = page.build_page(make_report(), allocation)["details"][0]
    assert [each["state"] for each in first["gpus"]] == ["free", "used", "shared", "free"]
    assert [(each["name"], each["amount"], each["gpus"]) for each in first["pods"]["entries"]] == [
        ("a", 80, "1"),
        ("b", 5, "2"),
    ]
