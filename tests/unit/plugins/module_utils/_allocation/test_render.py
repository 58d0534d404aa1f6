# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An allocation as a table, with bars, as JSON and as CSV."""

from __future__ import annotations

import csv
import json
from typing import Any

import pytest
from fakes.gpushare import share_node, share_pod

from ansible_collections.gpu.kubernetes.plugins.module_utils._allocation.allocation import allocate
from ansible_collections.gpu.kubernetes.plugins.module_utils._allocation.extract import read_dump
from ansible_collections.gpu.kubernetes.plugins.module_utils._allocation.render import (
    NOTE,
    NOTHING,
    draw_bar,
    render_lines,
    render_text,
)


def cluster(*objects: dict[str, Any]) -> dict[str, Any]:
    return allocate(*read_dump(list(objects)))


MANY = cluster(
    share_node("w2", 16, 1, address=""),
    share_node("w1", 32, 2),
    share_pod("a"),
    share_pod("b", amounts=(5,)),
    share_pod("c", index=1, amounts=(16,)),
    share_pod("d", on="w2", index=None, phase="Pending", amounts=(2,)),
    share_pod("e", on="w2", index=9, amounts=(1,), namespace="other"),
)
FINDING = "Pod other/e is on GPU 9 of node w2, which has 1; restart the pod."


def test_render_text_as_table() -> None:
    assert render_text(MANY).splitlines() == [
        "NAME  IPADDRESS  GPU0(Allocated/Total)  GPU1(Allocated/Total)  PENDING(Allocated)  GPU Memory(GiB)",
        "w1    10.0.0.1   8/16                   16/16                                      24/32",
        "w2    unknown    0/16                   0/0                    2                   3/16",
        "--------------------------------------------------------------------------------------------------",
        "Allocated/Total GPU Memory In Cluster:",
        "27/48 (56%)",
        "",
        "Findings",
        f"  - {FINDING}",
        "",
        NOTE,
    ]


def test_render_text_with_details() -> None:
    assert render_text(MANY, details=True).splitlines()[:-5] == [
        "NAME:       w1",
        "IPADDRESS:  10.0.0.1",
        "",
        "NAME  NAMESPACE  GPU0(Allocated)  GPU1(Allocated)",
        "a     default    3                0",
        "b     default    5                0",
        "c     default    0                16",
        "Allocated : 24 (75%)",
        "Total :     32",
        "-------------------------------------------------",
        "",
        "NAME:       w2",
        "IPADDRESS:  unknown",
        "",
        "NAME  NAMESPACE  GPU0(Allocated)  Pending(Allocated)",
        "d     default    0                2",
        "e     other      0                0",
        "Allocated : 3 (18%)",
        "Total :     16",
        "----------------------------------------------------",
        "",
        "Allocated/Total GPU Memory In Cluster: 27/48 (56%)",
    ]


def test_render_text_with_bars() -> None:
    written = render_text(MANY, bars=True)
    assert written.startswith(render_text(MANY).partition("\n\n")[0])
    assert written.partition("\n\n")[2].splitlines()[:5] == [
        "GPUs, each with its GiB allocated",
        "  w1  GPU0  ##########..........  8/16   50%",
        "  w1  GPU1  ####################  16/16  100%",
        "  w2  GPU0  ....................  0/16   0%",
        "  w2  GPU9  #...................  1/16   6%",
    ]


@pytest.mark.parametrize(
    ("part", "whole", "expected"),
    [(0, 100, "...."), (1, 100, "#..."), (50, 100, "##.."), (99, 100, "###."), (100, 100, "####"), (300, 100, "####"),
     (5, 0, "#..."), (0, 0, "....")],
)  # fmt: skip
def test_draw_bar_of_each_part(part: int, whole: int, expected: str) -> None:
    assert draw_bar(part, whole, 4) == expected


def test_render_lines_tones_show_problems() -> None:
    over = cluster(share_node("w1"), share_node("w2"), share_pod("p", amounts=(17,)))
    tones = {line.split()[0]: tone for line, tone in render_lines(over, bars=False) if line}
    assert (tones["w1"], tones["w2"], tones["-"], tones["gpushare"]) == ("bad", "plain", "bad", "weak")


def test_render_text_with_index_beyond_gpus_adds_no_column() -> None:
    many = {"scheduler.framework.gpushare.allocation": json.dumps({"0": {str(index): 1 for index in range(500)}})}
    found = cluster(share_node("w1", 32, 2), share_pod("p", annotations=many))
    assert "GPU2" not in render_text(found).splitlines()[0]
    assert render_text(found).splitlines()[1].split() == ["w1", "10.0.0.1", "1/16", "1/16", "500/32"]


@pytest.mark.parametrize(("gpu_mem", "total"), [(15, "0/1"), (5, "0/0")])
def test_render_text_with_unhealthy_gpus_has_all_columns(gpu_mem: int, total: str) -> None:
    head, row = render_text(cluster(share_node("w1", gpu_mem, 8))).splitlines()[:2]
    assert [f"GPU{index}(Allocated/Total)" in head for index in (0, 7, 8)] == [True, True, False]
    assert row.split() == ["w1", "10.0.0.1", *[total] * 8, f"0/{gpu_mem}"]


@pytest.mark.parametrize("form", ["table", "csv"])
def test_render_text_with_details_requires_pods(form: str) -> None:
    without = {
        **MANY,
        "nodes": [{key: value for key, value in node.items() if key != "pods"} for node in MANY["nodes"]],
    }
    assert render_text(without, form)
    with pytest.raises(KeyError, match="pods"):
        render_text(without, form, details=True)


@pytest.mark.parametrize("details", [False, True])
def test_render_text_without_gpus_says_so(details: bool) -> None:
    found = cluster(share_node("w1", None, None))
    assert render_text(found, details=details, bars=True) == f"{NOTHING}\n"


def test_render_text_as_json_is_the_allocation() -> None:
    assert json.loads(render_text({**MANY, "changed": False}, "json")) == MANY


def records(form: dict[str, Any], **options: Any) -> list[dict[str, str]]:
    return list(csv.DictReader(render_text(form, "csv", **options).splitlines()))


def test_render_text_as_csv_has_record_for_each_gpu() -> None:
    found = records(MANY)
    assert [(each["node"], each["gpu"], each["allocated"], each["total"], each["percent"]) for each in found] == [
        ("w1", "0", "8", "16", "50"),
        ("w1", "1", "16", "16", "100"),
        ("w2", "0", "0", "16", "0"),
        ("w2", "9", "1", "16", "6"),
        ("w2", "pending", "2", "", ""),
    ]
    assert {each["unit"] for each in found} == {"GiB"}
    assert sum(int(each["allocated"]) for each in found) == MANY["cluster"]["allocated"]


def test_render_text_as_csv_with_details_has_record_for_each_pod() -> None:
    found = records(MANY, details=True)
    assert [(each["node"], each["namespace"], each["pod"], each["gpu"], each["allocated"]) for each in found] == [
        ("w1", "default", "a", "0", "3"),
        ("w1", "default", "b", "0", "5"),
        ("w1", "default", "c", "1", "16"),
        ("w2", "default", "d", "pending", "2"),
        ("w2", "other", "e", "9", "1"),
    ]
    assert found[3]["phase"] == "Pending"
    assert found[3]["terminating"] == "false"


@pytest.mark.parametrize("form", ["table", "json", "csv"])
@pytest.mark.parametrize("details", [False, True])
def test_render_text_ends_with_one_line_feed(form: str, details: bool) -> None:
    written = render_text(MANY, form, details)
    assert written.endswith("\n")
    assert not written.endswith("\n\n")
