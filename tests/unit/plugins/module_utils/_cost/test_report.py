# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report, its prices and its renderings."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._cost.errors import CostError
from ansible_collections.gpu.kubernetes.plugins.module_utils._cost.integrate import Held, Segment, State, integrate
from ansible_collections.gpu.kubernetes.plugins.module_utils._cost.prices import find_price, parse_prices
from ansible_collections.gpu.kubernetes.plugins.module_utils._cost.render import LEGEND, render_text
from ansible_collections.gpu.kubernetes.plugins.module_utils._cost.report import Report, Request, build_report

A100, T4 = "NVIDIA-A100-SXM4-40GB", "Tesla-T4"
DAY = 86400
LOADED = {"n1": (8.0, 2.0), "n2": (1.0, 1.0)}


def hold(namespace: str, node: str, gpus: float) -> Held:
    return Held(namespace, node, "nvidia.com/gpu", "GPUs", gpus, gpus)


HELD = (hold("team-a", "n1", 4), hold("team-b", "n2", 1))


def report(
    held: Any = HELD,
    load: Any = None,
    prices: Any = None,
    gpus: Any = None,
    seconds: int = DAY,
) -> Report:
    state = State({"n1": {A100: 8}, "n2": {T4: 1}} if gpus is None else gpus, held, LOADED if load is None else load)
    usage = integrate([Segment(0, seconds, state)], 0, DAY)
    table = parse_prices(prices or {}, "EUR")
    return build_report(usage, Request("prometheus", 0, DAY, table, "EUR", {"step_seconds": 300}))


def pick(row: Any, *names: str) -> list[Any]:
    return [row[name] for name in names]


def test_report_has_hours_by_namespace_node_product_and_in_total() -> None:
    found = report()
    assert pick(found, "schema", "start", "end") == [
        "gpu.kubernetes/cost/v1",
        "1970-01-01T00:00:00Z",
        "1970-01-02T00:00:00Z",
    ]
    assert pick(found, "window_hours", "covered_hours", "currency", "notes") == [24, 24, "", []]
    hours = ("gpu_hours", "allocated_hours", "idle_hours", "wasted_hours", "unmeasured_hours")
    assert pick(found["totals"], *hours) == [216, 120, 96, 48, 0]
    assert [(row["name"], pick(row, *hours)) for row in found["nodes"]] == [
        ("n1", [192, 96, 96, 48, 0]),
        ("n2", [24, 24, 0, 0, 0]),
    ]
    assert [row["products"] for row in found["nodes"]] == [[A100], [T4]]
    assert [(row["name"], pick(row, *hours[1:2], *hours[3:])) for row in found["namespaces"]] == [
        ("team-a", [96, 48, 0]),
        ("team-b", [24, 0, 0]),
    ]
    assert "idle_hours" not in found["namespaces"][0]
    assert [(row["name"], row["price"]) for row in found["products"]] == [(A100, None), (T4, None)]
    assert found["resources"] == [{"name": "nvidia.com/gpu", "unit": "GPUs", "unit_hours": 120, "allocated_hours": 120}]
    assert json.loads(json.dumps(found)) == found


def test_costs_are_hours_times_the_price_of_the_product() -> None:
    found = report(prices={"*a100*": 2.5, T4: "0.4"})
    costs = ("allocated_cost", "idle_cost", "wasted_cost")
    assert found["currency"] == "EUR"
    assert [pick(row, *costs) for row in found["nodes"]] == [[240, 240, 120], [9.6, 0, 0]]
    assert pick(found["totals"], *costs) == [249.6, 240, 120]
    assert pick(found["namespaces"][0], "allocated_cost", "wasted_cost") == [240, 120]
    assert [row["price"] for row in found["products"]] == [2.5, 0.4]


def test_rows_are_by_namespace_and_product() -> None:
    found = report(prices={A100: 2.5}, held=[*HELD, hold("team-b", "n1", 2)])
    names = ("namespace", "product", "allocated_hours", "idle_hours", "wasted_hours", "cost")
    assert [pick(row, *names) for row in found["rows"]] == [
        ["", A100, 0, 48, 0, 120],
        ["", T4, 0, 0, 0, None],
        ["team-a", A100, 96, 0, 64, 240],
        ["team-b", A100, 48, 0, 32, 120],
        ["team-b", T4, 24, 0, 0, None],
    ]
    assert sum(row["cost"] or 0 for row in found["rows"]) == 8 * 24 * 2.5


def test_product_without_price_is_in_no_cost_and_noted() -> None:
    found = report(prices={T4: 1})
    assert [row["allocated_cost"] for row in found["nodes"]] == [None, 24]
    assert found["totals"]["allocated_cost"] == 24
    assert found["notes"] == [f"No price in gpu_cost_prices, so that their hours are in no cost: {A100}."]


def test_price_of_zero_is_a_price() -> None:
    found = report(prices={"*": 0})
    assert pick(found["totals"], "allocated_cost", "idle_cost") == [0, 0]
    assert found["notes"] == []


def test_unknown_values_are_none_and_noted() -> None:
    found = report(load={}, gpus={"n2": {T4: 1}}, seconds=DAY // 2)
    assert pick(found["nodes"][0], "gpu_hours", "idle_hours", "wasted_hours") == [None, None, None]
    assert pick(found["nodes"][0], "allocated_hours", "unmeasured_hours") == [48, 48]
    assert pick(found["totals"], "gpu_hours", "idle_hours", "wasted_hours") == [12, 0, None]
    starts = [
        "The source covers 12.0 of 24.0 hours;",
        "The number of GPUs is not known of n1,",
        "Wasted hours are not known:",
    ]
    assert [note.startswith(start) for note, start in zip(found["notes"], starts)] == [True] * 3
    assert report(load={}, gpus={})["totals"]["idle_hours"] is None


@pytest.mark.parametrize(
    ("missing", "notes"),
    [
        (0, []),
        (60, []),
        (
            DAY // 2,
            ["The number of GPUs is not known of n1 for 12.0 hours"],
        ),
    ],
)
def test_node_whose_gpus_are_known_for_a_part_is_noted(missing: int, notes: list[str]) -> None:
    held = [hold("team-a", "n1", 8)]
    known, unknown = (State(gpus, held, {"n1": (8, 8)}) for gpus in ({"n1": {A100: 8}}, {}))
    usage = integrate([Segment(0, DAY - missing, known), Segment(DAY - missing, DAY, unknown)], 0, DAY, {"n1": A100})
    found = build_report(usage, Request("prometheus", 0, DAY, {}, "", {}))
    assert found["totals"]["allocated_hours"] == 192
    assert [note.partition(", so that")[0] for note in found["notes"]] == notes


def test_report_without_hours_has_no_rows() -> None:
    found = report(seconds=0)
    assert pick(found, "namespaces", "nodes", "products", "resources") == [[], [], [], []]
    assert found["totals"]["allocated_hours"] == 0
    assert render_text(found).count("TOTAL") == 0


@pytest.mark.parametrize(
    ("product", "price"),
    [
        (A100, 3),
        ("NVIDIA A100-SXM4-40GB", 3),
        ("nvidia-a100-sxm4-80gb", 2),
        ("NVIDIA-A100-PCIE-40GB", 1),
        ("Tesla-T4", 0.5),
        ("L4", 5),
        ("NVIDIA-H100", None),
    ],
)
def test_find_price(product: str, price: float | None) -> None:
    prices = parse_prices(
        {"*A100*": 1, "*A100-SXM4*": 2, "NVIDIA A100-SXM4-40GB": 3, "Tesla T?": 0.5, "*L*4*": 6, "L4": 5}, "EUR"
    )
    assert find_price(prices, product) == price


@pytest.mark.parametrize(
    ("prices", "currency", "words"),
    [
        ({"T4": 1}, "", "needs gpu_cost_currency"),
        ({"T4": -1}, "EUR", "price of T4 in gpu_cost_prices is -1"),
        ({"T4": "free"}, "EUR", "is 'free'; write a number from 0"),
        ({"T4": "nan"}, "EUR", "write a number"),
        ({"T4": True}, "EUR", "is True"),
        ({"T4": None}, "EUR", "is None"),
    ],
)
def test_invalid_prices_fail(prices: Any, currency: str, words: str) -> None:
    with pytest.raises(CostError, match=words):
        parse_prices(prices, currency)


TABLE = f"""\
GPU hours from 1970-01-01T00:00:00Z to 1970-01-02T00:00:00Z, 24.0 of 24.0 hours known, source: prometheus

NAMESPACE  ALLOCATED  WASTED  NO LOAD DATA  ALLOCATED EUR  WASTED EUR
team-a     96.0       48.0    0.0           240.00         120.00
team-b     24.0       0.0     0.0           -              -
TOTAL      120.0      48.0    0.0           240.00         120.00

NODE   GPU HOURS  ALLOCATED  IDLE  WASTED  NO LOAD DATA  ALLOCATED EUR  IDLE EUR  WASTED EUR
n1     192.0      96.0       96.0  48.0    0.0           240.00         240.00    120.00
n2     24.0       24.0       0.0   0.0     0.0           -              -         -
TOTAL  216.0      120.0      96.0  48.0    0.0           240.00         240.00    120.00

PRODUCT                GPU HOURS  ALLOCATED  IDLE  WASTED  NO LOAD DATA  ALLOCATED EUR  IDLE EUR  WASTED EUR
NVIDIA-A100-SXM4-40GB  192.0      96.0       96.0  48.0    0.0           240.00         240.00    120.00
Tesla-T4               24.0       24.0       0.0   0.0     0.0           -              -         -
TOTAL                  216.0      120.0      96.0  48.0    0.0           240.00         240.00    120.00

RESOURCE        UNIT  UNIT HOURS  AS GPU HOURS
nvidia.com/gpu  GPUs  120.0       120.0

Notes
  - No price in gpu_cost_prices, so that their hours are in no cost: Tesla-T4.

{LEGEND}
"""


def test_table() -> None:
    assert render_text(report(prices={A100: 2.5})) == TABLE


def test_table_without_prices_has_no_costs() -> None:
    assert "EUR" not in render_text(report())


def test_json_is_the_report() -> None:
    assert json.loads(render_text(report(), "json")) == report()


def read_csv(found: Report) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(render_text(found, "csv"))))


def test_csv_has_a_record_for_each_row() -> None:
    rows = read_csv(report(prices={A100: 2.5}))
    assert [(row["group"], row["name"]) for row in rows] == [
        ("namespaces", "team-a"),
        ("namespaces", "team-b"),
        ("nodes", "n1"),
        ("nodes", "n2"),
        ("products", A100),
        ("products", T4),
        ("resources", "nvidia.com/gpu"),
        ("totals", ""),
    ]
    assert pick(rows[0], "allocated_hours", "gpu_hours", "allocated_cost", "currency") == ["96.0", "", "240.0", "EUR"]
    assert pick(rows[1], "allocated_cost", "start", "covered_hours") == ["", "1970-01-01T00:00:00Z", "24.0"]
    assert pick(rows[6], "unit", "unit_hours", "allocated_hours") == ["GPUs", "120.0", "120.0"]


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\\t=1"),
        ("\r=1", "'\\r=1"),
        ('a","b', 'a","b'),
        ("a\n=1,2", "a\\n=1,2"),
        ("a\x1b[31m", "a\\x1b[31m"),
        ("<script>", "<script>"),
        ("team-a", "team-a"),
    ],
)
def test_hostile_names_stay_text(name: str, cell: str) -> None:
    found = report(held=[hold(name, "n1", 1)])
    assert read_csv(found)[0]["name"] == cell
    lines = render_text(found).splitlines()
    assert all(line.isprintable() for line in lines)
    assert len(lines) == len(render_text(report(held=[hold("a", "n1", 1)])).splitlines())
    assert json.loads(render_text(found, "json"))["namespaces"][0]["name"] == name
