# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report from observations."""

from __future__ import annotations

import copy
import json
from typing import Any, Sequence

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._report import build, checks, render
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._report.observations import (
    cluster,
    from_file,
    gpu,
    host,
)


def test_build_report_without_problems_is_ok() -> None:
    report = build.build_report([host()], cluster())
    assert report["ok"] is True
    assert report["problems"] == []
    assert report["fakes"] == []
    assert report["notes"] == []
    assert report["summary"] == {"nodes": 1, "gpus": 1, "problems": 0}
    (node,) = report["nodes"]
    assert node["runtime"]["handlers"] == ["nvidia", "runc"]
    assert node["kubernetes"]["allocatable"] == 1
    assert node["smoke_test"] == {"result": "passed"}


def test_build_report_with_hosts_left_out_lists_them_and_is_ok() -> None:
    report = build.build_report([host()], cluster(hosts=["worker-1"], left_out=["worker-3", "worker-2"]))
    assert (report["ok"], report["problems"], report["left_out"]) == (True, [], ["worker-2", "worker-3"])
    rendered = [text for text, _tone in render.render_lines(report)]
    assert rendered[0] == "GPU report: 1 node, 1 GPU, all well, 2 hosts left out"
    assert "  - worker-2: unreachable; restore its connection, and run again." in rendered


def devices(*vendors: str, problems: Sequence[str] = ()) -> dict[str, Any]:
    """The result of gpu_devices_info on a host with a GPU of AMD."""
    row = {"vendor": "amd", "model": "AMD Instinct MI210", "device_id": "740f", "memory_bytes": 64 << 30}
    return {"vendors": list(vendors), "devices": [row], "problems": {"amd": list(problems)}}


NO_GPU = {"source": "none", "gpus": [], "error": None}
AMD_ENTRY = {"expected": 1, "allocatable": 1, "gpu_resources": {}}


def test_build_report_of_a_mixed_node_has_the_problems_of_both_plugins() -> None:
    entries = cluster()["nodes"]
    other = {**entries[0], "ok": False, "reason": "0 of 1 amd.com/gpu allocatable: no plugin pod; deploy it"}
    report = build.build_report([host(devices=devices("amd", "nvidia"))], cluster(nodes=[*entries, other]))
    assert [problem["code"] for problem in report["problems"]] == ["node"]
    [node] = report["nodes"]
    assert node["gpus"]["count"] == 1 + len(node["gpus"]["devices"])
    assert node["gpus"]["products"][-1] == {"name": "AMD Instinct MI210", "count": 1, "memory_total_bytes": 64 << 30}
    assert node["kubernetes"]["expected"] == entries[0]["expected"]


def test_build_report_of_a_host_with_other_gpus_alone_needs_nothing_of_nvidia() -> None:
    entries = cluster()["nodes"]
    nodes = [{**entries[0], "expected": 0, "allocatable": 0}, {**entries[0], **AMD_ENTRY}]
    bare = {"nvml": NO_GPU, "toolkit": {"usable": False}, "configuration": {}}
    report = build.build_report([host(devices=devices("amd"), **bare)], cluster(nodes=nodes))
    assert report["problems"] == []
    assert report["nodes"][0]["kubernetes"]["expected"] == 1
    assert report["notes"] == ["worker-1: its GPUs are of AMD, so it gets no driver, toolkit and runtime of NVIDIA"]
    broken = devices(
        "amd", problems=["GPU 0000:63:00.0 has no driver, because amdgpu is not loaded; load it (modprobe)"]
    )
    report = build.build_report([host(devices=broken, **bare)], cluster(nodes=nodes))
    assert [problem["sentence"] for problem in report["problems"]] == [
        "worker-1: GPU 0000:63:00.0 has no driver, because amdgpu is not loaded; load it (modprobe)."
    ]


@pytest.mark.parametrize(
    ("tests", "result"),
    [
        ([{"passed": True}, {"passed": False, "reason": "no GPU"}], "failed"),
        ([{"passed": False, "reason": "no GPU"}, {"passed": True}], "failed"),
        ([{"passed": True}, {"skipped": True, "reason": "busy"}], "skipped"),
        ([{"passed": True}, {"passed": True}], "passed"),
    ],
)
def test_build_report_of_several_tests_of_a_node_has_the_worst(tests: list[dict[str, Any]], result: str) -> None:
    smoke = [{"node": "worker-1", **test} for test in tests]
    [node] = build.build_report([host()], cluster(smoke=smoke))["nodes"]
    assert node["smoke_test"]["result"] == result


def test_build_report_is_plain_and_deterministic() -> None:
    hosts = [host("worker-2"), host("worker-1")]
    first = json.dumps(build.build_report(hosts, cluster()))
    warmer = copy.deepcopy(hosts[::-1])
    warmer[0]["nvml"]["gpus"][0].update(temperature_celsius=90, memory_used_bytes=5, power_draw_watts=250.0)
    warmer[0]["runtime"]["waited_seconds"] = 9.9
    assert json.dumps(build.build_report(warmer, cluster())) == first


def test_build_report_of_offline_edge_node_has_notes_and_no_problem() -> None:
    [entry] = cluster()["nodes"]
    offline = {
        **entry,
        "ok": False,
        "judged": False,
        "edge": "superedge",
        "reason": "is not judged, because it is offline",
    }
    report = build.build_report([host()], cluster(nodes=[offline]))
    assert (report["ok"], report["problems"]) == (True, [])
    assert report["notes"][0] == "worker-1: is not judged, because it is offline"
    assert all(note.startswith("SuperEdge: ") for note in report["notes"][1:])
    assert len(report["notes"]) > 1
    judged = build.build_report([host()], cluster(nodes=[{**offline, "judged": True}]))
    assert [problem["code"] for problem in judged["problems"]] == ["node"]


def test_build_report_of_lesser_fault_of_a_gpu_has_a_note() -> None:
    lesser = gpu(pcie={"width": 8, "width_max": 16}, clocks={"event_reasons": ["hw_thermal_slowdown"]})
    report = build.build_report([host(gpus=[lesser])], cluster())
    remedy = "reseat the GPU and its riser, and check the bifurcation in the BIOS"
    note = f"worker-1: the PCIe link of GPU 0 at 0000:40:00.0 has 8 of 16 lanes; {remedy}"
    assert (report["ok"], report["notes"]) == (True, [note])


@pytest.mark.parametrize(
    ("reason", "parts"),
    [
        ("", ("", "")),
        ("one", ("one", "")),
        ("cause; remedy", ("cause", "remedy")),
        ("a; b; remedy", ("a; b", "remedy")),
    ],
)
def test_split_reason_at_last_semicolon(reason: str, parts: tuple[str, str]) -> None:
    assert checks.split_reason(reason) == parts


@pytest.mark.parametrize(
    ("mode", "license_of_gpu", "noted"),
    [
        ("vgpu", {"licensed": False}, True),
        ("vgpu", {"licensed": True}, False),
        ("vgpu", None, False),  # a driver that does not report it
        ("passthrough", {"licensed": False}, False),
        ("none", None, False),
    ],
)
def test_build_report_notes_unlicensed_vgpus(mode: str, license_of_gpu: dict[str, Any] | None, noted: bool) -> None:
    values = {"virtualization_mode": mode, "vgpu_license": license_of_gpu}
    gpus = [gpu(0, **values), gpu(1), gpu(2, **values)]
    report = build.build_report([host(gpus=gpus)], cluster())
    sentence = (
        "worker-1: the vGPU licence of GPU 0, 2 is missing, without which the driver slows the GPU down; set "
        "nvidia_driver_vgpu_license_token, or read the log of nvidia-gridd"
    )
    assert report["notes"] == ([sentence] if noted else [])


def test_build_report_lists_notes_and_fakes() -> None:
    fakes = ["lab.local/fake/plugin:v1"]
    skipped = [{"node": "worker-1", "passed": False, "skipped": True, "reason": "cordoned"}]
    result = cluster(plugin_images=fakes, smoke=skipped, node={"reason": "cordoned, but all GPUs are offered"})
    report = build.build_report([host()], result, ["NVML is simulated."])
    assert report["ok"] is True
    assert report["fakes"] == fakes
    assert report["notes"] == [
        "NVML is simulated.",
        "worker-1: cordoned, but all GPUs are offered",
        "worker-1: smoke test skipped, cordoned",
    ]
    assert report["nodes"][0]["smoke_test"] == {"result": "skipped", "reason": "cordoned"}


def test_build_report_names_fake_of_earlier_test() -> None:
    image = "lab.local/fake/cuda-sample@sha256:12"
    passed = [{"node": "worker-1", "passed": True, "skipped": False, "image": image}]
    report = build.build_report([host()], cluster(smoke=passed))
    assert (report["fakes"], report["nodes"][0]["smoke_test"]) == ([image], {"result": "passed", "image": image})
    assert build.build_report([host()], cluster(smoke=[]), earlier=from_file(report))["fakes"] == [image]
    assert build.build_report([host()], cluster(), earlier=from_file(report))["fakes"] == []


def test_build_report_with_failed_smoke_test_has_log_tail() -> None:
    failed = [{"node": "worker-1", "passed": False, "skipped": False, "reason": "x", "log_tail": ["no CUDA device"]}]
    assert build.build_report([host()], cluster(smoke=failed))["nodes"][0]["smoke_test"] == {
        "result": "failed",
        "reason": "x",
        "log_tail": ["no CUDA device"],
    }


LEFT = {
    "since": "2026-08-23T07:00:00Z",
    "reason": "driver",
    "was_schedulable": True,
    "message": "is cordoned since then; run again",
}


@pytest.mark.parametrize(
    ("node", "codes", "notes"),
    [
        ({"schedulable": False, "maintenance": LEFT, "reason": LEFT["message"]}, ["maintenance"], []),
        (
            {"schedulable": False, "maintenance": LEFT, "ok": False, "reason": "1 of 2; look"},
            ["node", "maintenance"],
            [],
        ),
        ({"schedulable": False, "maintenance": {**LEFT, "was_schedulable": None}}, ["maintenance"], []),
        # It was cordoned before, or is schedulable.
        (
            {"schedulable": False, "maintenance": {**LEFT, "was_schedulable": False}, "reason": LEFT["message"]},
            [],
            ["worker-1: is cordoned since then; run again"],
        ),
        (
            {"maintenance": LEFT, "ok": False, "reason": "1 of 2; look"},
            ["node"],
            ["worker-1: is cordoned since then; run again"],
        ),
        ({"maintenance": None}, [], []),
    ],
)
def test_build_report_of_node_in_maintenance_names_it(node: Any, codes: list[str], notes: list[str]) -> None:
    report = build.build_report([host()], cluster(node=node))
    assert [problem["code"] for problem in report["problems"]] == codes
    assert report["notes"] == notes
    if "maintenance" in codes:
        assert report["problems"][-1]["sentence"] == "worker-1: node worker-1 is cordoned since then; run again."


def test_build_report_notes_nodes_outside_the_run_that_are_left_cordoned() -> None:
    """An unreachable host that the run leaves out, and a node in another group of the same run."""
    others = [
        {"name": "worker-7", "schedulable": False, "maintenance": LEFT},
        {"name": "worker-1", "schedulable": False, "maintenance": LEFT},
        {"name": "worker-5", "schedulable": False, "maintenance": {**LEFT, "was_schedulable": False}},
        {"name": "worker-4", "schedulable": True, "maintenance": LEFT},
    ]
    report = build.build_report([host()], cluster(left_out=["worker-7"], others_in_maintenance=others * 2))
    assert (report["ok"], report["left_out"]) == (True, ["worker-7"])
    assert report["notes"] == ["node worker-7, which is not in this run, is cordoned since then; run again"]


def test_build_report_problem_has_no_control_characters() -> None:
    report = build.build_report([host(nvml={"error": "\x1b[2Jbroken; \x07reboot"})], cluster())
    assert report["problems"][0]["sentence"] == "worker-1: \\x1b[2Jbroken; \\x07reboot."


def test_build_report_problem_is_one_sentence() -> None:
    broken = host(runtime={"ok": False, "cause": "line 1\nline 2", "remedy": "do\n this.", "log": []})
    report = build.build_report([broken], cluster(smoke_error="no\nresults"))
    assert [problem["sentence"] for problem in report["problems"]] == [
        "cluster: no results; run it alone to see why.",
        "worker-1: line 1 line 2; do this.",
    ]


OWN, SHARED = {"key": "nvidia", "value": "nvidia"}, {"key": "shared", "value": "other"}


@pytest.mark.parametrize(
    ("needed", "found", "state"),
    [
        ([OWN, SHARED], {"nvidia": "nvidia", "shared": "other"}, ("nvidia", True, "nvidia", "nvidia")),
        ([OWN, SHARED], {"nvidia": "nvidia"}, ("shared", False, None, "other")),
        ([OWN, SHARED], {"nvidia": "nvidia", "shared": "runc"}, ("shared", True, "runc", "other")),
        ([{"key": "nvidia", "value": ""}], {"nvidia": "odd"}, ("nvidia", True, "odd", None)),
        ([], {}, ("", False, None, None)),
    ],
)
def test_choose_runtime_class_returns_the_first_wrong_one(
    needed: list[Any], found: dict[str, str], state: tuple[Any, ...]
) -> None:
    classes = [{"metadata": {"name": name}, "handler": handler} for name, handler in found.items()]
    assert tuple(checks.choose_runtime_class(needed, classes).values()) == state
