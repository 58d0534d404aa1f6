# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report as text."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._report import build, render
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._report.observations import (
    GIB,
    MISMATCH,
    cluster,
    from_file,
    gpu,
    host,
)


def test_count_products_separates_different_gpus() -> None:
    gpus = [gpu(0), gpu(1, "A100", 40 * GIB), gpu(2), gpu(3, "A100", 80 * GIB)]
    assert [(product["name"], product["count"]) for product in build.count_products(gpus)] == [
        ("Tesla T4", 2),
        ("A100", 1),
        ("A100", 1),
    ]
    assert render.format_gpus(build.count_products(gpus)) == [
        "2 x Tesla T4 15 GiB",
        "1 x A100 40 GiB",
        "1 x A100 80 GiB",
    ]
    assert render.format_gpus([]) == ["none"]
    assert render.format_gpus([{"name": None, "count": 1, "memory_total_bytes": None}]) == ["1 x unknown"]


def test_render_difference_of_each_file() -> None:
    result = {"before": "a\nb\n", "after": "a\nc\n", "before_header": "/x"}
    lines = ["--- /x as it is", "+++ /x as declared", "@@ -2 +2 @@", "-b", "+c"]
    assert build.render_difference({"diff": result}) == lines
    assert build.render_difference({"diff": [result, {**result, "before_header": "/y"}]}) == [
        *lines,
        *(line.replace("/x", "/y") for line in lines),
    ]
    assert build.render_difference({}) == []


def test_render_table_of_two_nodes() -> None:
    mixed = host("worker-1", [gpu(0), gpu(1, "NVIDIA A100", 40 * GIB)])
    report = build.build_report([mixed, host("node-b")], cluster(node={"expected": 2, "allocatable": 2}))
    assert [text for text, _tone in render.render_table(report)] == [
        "NODE      GPUS                    DRIVER      CUDA  RUNTIME           DEFAULT  ALLOCATABLE  SMOKE    STATUS",
        "node-b    1 x Tesla T4 15 GiB     570.124.06  12.8  containerd 2.4.2  runc     -/1          not run  ok",
        "worker-1  1 x Tesla T4 15 GiB     570.124.06  12.8  containerd 2.4.2  runc     2/2          passed   ok",
        "          1 x NVIDIA A100 40 GiB",
    ]


def mig(index: int, *profiles: str, **values: Any) -> dict[str, Any]:
    devices = [{"index": number, "name": f"NVIDIA A100 MIG {name}"} for number, name in enumerate(profiles)]
    return gpu(index, "NVIDIA A100", 80 * GIB, mig_mode="enabled", mig_devices=devices, **values)


A100 = gpu(1, "NVIDIA A100", 80 * GIB, mig_mode="disabled")


@pytest.mark.parametrize(
    ("gpus", "resources", "lines"),
    [
        ([gpu(0), gpu(1)], {"nvidia.com/gpu": 2}, []),
        ([gpu(0), gpu(1)], {"nvidia.com/gpu": 1}, []),
        ([gpu(0), gpu(1)], {}, []),
        ([gpu(0), gpu(1)], {"nvidia.com/gpu": 2, "nvidia.com/gpu.shared": 0, "nvidia.com/hostdev": 8}, []),
        ([gpu(0), gpu(1)], {"nvidia.com/gpu": 8}, ["  worker-1    8 nvidia.com/gpu allocatable of 2 GPUs"]),
        (
            [gpu(0)],
            {"nvidia.com/gpu": 0, "nvidia.com/gpu.shared": 4},
            ["  worker-1    4 nvidia.com/gpu.shared allocatable of 1 GPU"],
        ),
        ([gpu(0)], {"aliyun.com/gpu-mem": 15}, ["  worker-1    15 aliyun.com/gpu-mem allocatable of 1 GPU"]),
        ([gpu(0)], {"nano-gpu/gpu-percent": 100}, ["  worker-1    100 nano-gpu/gpu-percent allocatable of 1 GPU"]),
        (
            [mig(0, *["1g.10gb"] * 7)],
            {"nvidia.com/gpu": 7},
            ["  worker-1  GPU0  7 x 1g.10gb", "  worker-1        7 nvidia.com/gpu allocatable of 1 GPU"],
        ),
        (
            [mig(0, "3g.40gb", "1g.10gb", "1g.10gb"), A100, mig(2), mig(3, lost=True)],
            {"nvidia.com/gpu": 1, "nvidia.com/mig-1g.10gb": 2, "nvidia.com/mig-3g.40gb": 1},
            [
                "  worker-1  GPU0  1 x 3g.40gb, 2 x 1g.10gb",
                "  worker-1  GPU1  whole",
                "  worker-1  GPU2  no slices",
                "  worker-1        1 nvidia.com/gpu, 2 nvidia.com/mig-1g.10gb, 1 nvidia.com/mig-3g.40gb allocatable of 4 GPUs",
            ],
        ),
    ],
)
def test_render_lines_of_slices_and_shares(gpus: list[Any], resources: dict[str, int], lines: list[str]) -> None:
    report = build.build_report([host(gpus=gpus)], cluster(node={"gpu_resources": resources}))
    texts = [text for text, _tone in render.render_lines(from_file(report))]
    title = "Slices and shares of GPUs"
    found = texts[texts.index(title) + 1 :][: len(lines)] if title in texts else []
    assert found == lines


def test_render_table_marks_earlier_results() -> None:
    report = build.build_report([host(), host("worker-2"), host("worker-3", nvml=MISMATCH)], cluster())
    rendered = [text for text, _tone in render.render_lines(report, hosts=["worker-1", "worker-2"], tested=[])]
    assert [text.split()[-2:] for text in rendered[3:6]] == [["passed*", "ok"], ["run", "ok"], ["run", "problem*"]]
    assert rendered[6] == "* as of an earlier run"
    assert not any("*" in text for text, _tone in render.render_lines(report))


def test_render_lines_of_whole_report() -> None:
    observation = host(configuration={"reasons": ["x"], "diff": {"before": "a", "after": "b"}})
    report = build.build_report([observation], cluster(hosts=["worker-1", "worker-9"]), ["A note."])
    rendered = render.render_lines(report, "/tmp/report.json")
    texts = [text for text, _tone in rendered]
    assert rendered[0] == ("GPU report: 1 node, 1 GPU, 2 problems", "bad")
    assert texts[-1] == "As JSON: /tmp/report.json"
    for text in (
        "Problems",
        "Notes",
        "  - A note.",
        "Drift of the container runtime's configuration on worker-1",
        "  -a",
        "  +b",
    ):
        assert text in texts
    assert "Fakes of vendors' programs" not in texts
    assert {tone for _text, tone in rendered} <= {"plain", "strong", "good", "bad", "weak"}


def test_render_lines_without_problems_says_all_well() -> None:
    rendered = render.render_lines(build.build_report([host()], cluster()))
    assert rendered[0] == ("GPU report: 1 node, 1 GPU, all well", "good")
    assert "RuntimeClass   nvidia (handler nvidia)" in [text for text, _tone in rendered]


def test_render_table_of_host_without_facts_has_dashes() -> None:
    nothing = dict.fromkeys(host()["runtime"])
    observation = host(nvml={"gpus": [], "source": "none", "driver_version": None, "cuda_driver_version": None})
    observation["runtime"] = {**nothing, "ok": False}
    report = build.build_report([observation], cluster(nodes=[], plugin_images=[], runtime_class={}, smoke=[]))
    row = render.render_table(report)[1]
    assert row == ("worker-1  none  -       -     -        -        -/0          not run  problem", "bad")
