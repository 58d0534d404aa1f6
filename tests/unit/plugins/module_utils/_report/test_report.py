# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what was seen to the report, and from the report to the table."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._report import build, problems, render

GIB = 1024**3


def gpu(index: int = 0, name: str = "Tesla T4", memory: int = 15 * GIB, **values: Any) -> dict[str, Any]:
    return {
        "index": index,
        "uuid": f"GPU-{index}",
        "name": name,
        "pci_address": f"0000:4{index}:00.0",
        "memory_total_bytes": memory,
        "mig_mode": None,
        "compute_capability": "7.5",
        "temperature_celsius": 31 + index,
        "memory_used_bytes": 1000 + index,
        "lost": False,
        **values,
    }


def host(name: str = "worker-1", gpus: list[dict[str, Any]] | None = None, **values: Any) -> dict[str, Any]:
    seen: dict[str, Any] = {
        "host": name,
        "node": name,
        "require_gpu": True,
        "nvml": {
            "source": "nvml",
            "driver_version": "570.124.06",
            "cuda_driver_version": "12.8",
            "gpus": [gpu()] if gpus is None else gpus,
            "error": None,
        },
        "runtime": {
            "ok": True,
            "cause": "",
            "remedy": "",
            "log": [],
            "runtime_name": "containerd",
            "runtime_version": "2.4.2+unknown",
            "default_runtime": "runc",
            "runtimes": {"runc": {}, "nvidia": {}},
            "waited_seconds": 0.1,
        },
        "toolkit": {"path": "/usr/bin/nvidia-container-runtime", "version": "1.17.8", "usable": True},
        "configuration": {"reasons": [], "restart_required": False},
    }
    for key, value in values.items():
        seen[key] = {**seen[key], **value} if isinstance(value, dict) else value
    return seen


def cluster(**values: Any) -> dict[str, Any]:
    node = {
        "name": "worker-1",
        "expected": 1,
        "capacity": 1,
        "allocatable": 1,
        "ready": True,
        "schedulable": True,
        "ok": True,
        "reason": "",
    }
    told: dict[str, Any] = {
        "error": "",
        "resource_name": "nvidia.com/gpu",
        "nodes": [node],
        "plugin_images": ["nvcr.io/nvidia/k8s-device-plugin:v0.20.0"],
        "runtime_class": {"name": "nvidia", "found": True, "handler": "nvidia", "expected_handler": "nvidia"},
        "smoke": [{"node": "worker-1", "passed": True, "skipped": False, "reason": "", "log_tail": ["Test PASSED"]}],
        "smoke_error": "",
        "smoke_image": "nvcr.io/nvidia/k8s/cuda-sample:vectoradd",
        "unreachable": [],
    }
    if "node" in values:
        told["nodes"] = [{**node, **values.pop("node")}]
    return {**told, **values}


def test_all_well() -> None:
    report = build.build([host()], cluster())
    assert report["ok"] is True
    assert report["problems"] == []
    assert report["stand_ins"] == []
    assert report["notes"] == []
    assert report["summary"] == {"nodes": 1, "gpus": 1, "problems": 0}
    (node,) = report["nodes"]
    assert node["runtime"]["handlers"] == ["nvidia", "runc"]
    assert node["kubernetes"]["allocatable"] == 1
    assert node["smoke_test"] == {"result": "passed"}


def test_the_report_is_plain_json_and_the_same_for_the_same_cluster() -> None:
    hosts = [host("worker-2"), host("worker-1")]
    first = json.dumps(build.build(hosts, cluster()))
    warmer = copy.deepcopy(hosts[::-1])
    warmer[0]["nvml"]["gpus"][0].update(temperature_celsius=90, memory_used_bytes=5, power_draw_watts=250.0)
    warmer[0]["runtime"]["waited_seconds"] = 9.9
    assert json.dumps(build.build(warmer, cluster())) == first


LOST = {"gpus": [gpu(), gpu(1, lost=True)], "error": "1 of 2 GPUs fell off the bus; reboot."}
MISMATCH = {"source": "pci", "error": "Driver/library version mismatch; reboot."}


@pytest.mark.parametrize(
    ("seen", "told", "codes", "sentence"),
    [
        (
            host(nvml={"gpus": [], "source": "none"}),
            cluster(),
            ["no_gpu"],
            "worker-1: no NVIDIA GPU; take the host out of the group of GPU nodes, or look at its slots and its hypervisor.",
        ),
        (host(nvml={"gpus": [], "source": "none"}, require_gpu=False), cluster(), [], None),
        (
            host(nvml={"source": "pci"}),
            cluster(),
            ["driver_missing"],
            "worker-1: 1 GPUs on the PCI bus but no NVIDIA driver; install the driver.",
        ),
        (host(nvml=MISMATCH), cluster(), ["driver_error"], "worker-1: Driver/library version mismatch; reboot."),
        (
            host(nvml=LOST),
            cluster(),
            ["gpu_lost"],
            "worker-1: GPU GPU-1 is lost; drain the node, reboot it and look for Xid errors in its log.",
        ),
        (
            host(toolkit={"usable": False, "path": None}),
            cluster(),
            ["toolkit"],
            "worker-1: nvidia-container-runtime is missing; run prepare_gpu_nodes.",
        ),
        (
            host(runtime={"ok": False, "cause": "it is failed", "remedy": "read", "log": ["a", "bad TOML"]}),
            cluster(),
            ["runtime"],
            "worker-1: it is failed [bad TOML]; read.",
        ),
        (
            host(configuration={"reasons": ["add the runtime"], "restart_required": True}),
            cluster(),
            ["drift"],
            (
                "worker-1: the configuration of containerd is not what was declared (to do: add the runtime); "
                "run prepare_gpu_nodes, and look for who else writes the file."
            ),
        ),
        # one cause, one problem: a daemon that answers lacks the runtime because its file does
        (
            host(runtime={"ok": False, "cause": "x"}, configuration={"reasons": ["add the runtime"]}),
            cluster(),
            ["drift"],
            None,
        ),
        (
            host(configuration={"restart_required": True}),
            cluster(),
            ["restart_due"],
            "worker-1: containerd was not restarted since its configuration changed; run prepare_gpu_nodes.",
        ),
        (
            {**host(), "configuration": {"msg": "line 3: invalid; correct it."}},
            cluster(),
            ["configuration"],
            "worker-1: line 3: invalid; correct it.",
        ),
        ({**host(), "configuration": {"skipped": True, "msg": "no"}}, cluster(), [], None),
        (
            host(),
            cluster(node={"ok": False, "allocatable": 0, "reason": "0 of 1: no plugin pod; deploy it"}),
            ["node"],
            "worker-1: 0 of 1: no plugin pod; deploy it.",
        ),
        (
            host(),
            cluster(smoke=[{"node": "worker-1", "passed": False, "skipped": False, "reason": "exit code 1; read"}]),
            ["smoke_test"],
            "worker-1: the smoke test failed: exit code 1; read.",
        ),
        (host(), cluster(smoke_error="forbidden"), ["smoke_test"], "cluster: forbidden; run it alone to see why."),
        (
            host(),
            cluster(error="the API server is away", runtime_class={}),
            ["api"],
            "cluster: the API server is away; check gpu_kubeconfig and the API server.",
        ),
        (
            host(),
            cluster(runtime_class={"name": "nvidia", "found": False}),
            ["runtime_class"],
            "cluster: there is no RuntimeClass nvidia; run deploy_device_plugin.",
        ),
        (
            host(),
            cluster(runtime_class={"name": "nvidia", "found": True, "handler": "old", "expected_handler": "nvidia"}),
            ["runtime_class"],
            None,
        ),
        (host(), cluster(runtime_class={"name": ""}), [], None),
        (
            host(),
            cluster(unreachable=["worker-9"]),
            ["unreachable"],
            "worker-9: the host could not be examined; look at its errors above.",
        ),
    ],
)
def test_problems(seen: dict[str, Any], told: dict[str, Any], codes: list[str], sentence: str | None) -> None:
    report = build.build([seen], told)
    assert [problem["code"] for problem in report["problems"]] == codes
    assert report["ok"] is not bool(codes)
    if sentence is not None:
        assert report["problems"][0]["sentence"] == sentence


@pytest.mark.parametrize(
    ("reason", "parts"),
    [
        ("", ("", "")),
        ("one", ("one", "")),
        ("cause; remedy", ("cause", "remedy")),
        ("a; b; remedy", ("a; b", "remedy")),
    ],
)
def test_split_reason(reason: str, parts: tuple[str, str]) -> None:
    assert problems.split_reason(reason) == parts


def test_notes_and_stand_ins() -> None:
    stand_ins = ["lab.local/stand-in/plugin:v1"]
    skipped = [{"node": "worker-1", "passed": False, "skipped": True, "reason": "cordoned"}]
    told = cluster(plugin_images=stand_ins, smoke=skipped, node={"reason": "cordoned, but all GPUs are offered"})
    report = build.build([host()], told, ["NVML is simulated."])
    assert report["ok"] is True
    assert report["stand_ins"] == stand_ins
    assert report["notes"] == [
        "NVML is simulated.",
        "worker-1: cordoned, but all GPUs are offered",
        "worker-1: smoke test skipped, cordoned",
    ]
    assert report["nodes"][0]["smoke_test"] == {"result": "skipped"}


def test_a_failed_smoke_test_tells_its_last_lines() -> None:
    failed = [{"node": "worker-1", "passed": False, "skipped": False, "reason": "x", "log_tail": ["no CUDA device"]}]
    assert build.build([host()], cluster(smoke=failed))["nodes"][0]["smoke_test"] == {
        "result": "failed",
        "reason": "x",
        "log_tail": ["no CUDA device"],
    }


def test_products_count_different_gpus_apart() -> None:
    gpus = [gpu(0), gpu(1, "A100", 40 * GIB), gpu(2), gpu(3, "A100", 80 * GIB)]
    assert [(product["name"], product["count"]) for product in build.products(gpus)] == [
        ("Tesla T4", 2),
        ("A100", 1),
        ("A100", 1),
    ]
    assert render.gpu_cells(build.products(gpus)) == ["2 x Tesla T4 15 GiB", "1 x A100 40 GiB", "1 x A100 80 GiB"]
    assert render.gpu_cells([]) == ["none"]
    assert render.gpu_cells([{"name": None, "count": 1, "memory_total_bytes": None}]) == ["1 x unknown"]


def test_difference() -> None:
    told = {"diff": {"before": "a\nb\n", "after": "a\nc\n"}}
    assert build.difference(told) == ["--- as it is", "+++ as declared", "@@ -1,2 +1,2 @@", " a", "-b", "+c"]
    assert build.difference({}) == []


def test_the_table() -> None:
    mixed = host("worker-1", [gpu(0), gpu(1, "NVIDIA A100", 40 * GIB)])
    report = build.build([mixed, host("node-b")], cluster(node={"expected": 2, "allocatable": 2}))
    assert [text for text, _tone in render.table(report)] == [
        "NODE      GPUS                    DRIVER      CUDA  RUNTIME           DEFAULT  OFFERED  SMOKE    STATUS",
        "node-b    1 x Tesla T4 15 GiB     570.124.06  12.8  containerd 2.4.2  runc     -/1      not run  ok",
        "worker-1  1 x Tesla T4 15 GiB     570.124.06  12.8  containerd 2.4.2  runc     2/2      passed   ok",
        "          1 x NVIDIA A100 40 GiB",
    ]


def test_the_whole_report() -> None:
    seen = host(configuration={"reasons": ["x"], "diff": {"before": "a", "after": "b"}})
    report = build.build([seen], cluster(unreachable=["worker-9"]), ["A note."])
    rendered = render.lines(report, "/tmp/report.json")
    texts = [text for text, _tone in rendered]
    assert rendered[0] == ("GPU report: 1 node, 1 GPU, 2 problems", "bad")
    assert texts[-1] == "Written to /tmp/report.json"
    for text in ("Problems", "Notes", "  - A note.", "Drift of containerd's configuration on worker-1", "  -a", "  +b"):
        assert text in texts
    assert "Stand-ins, which are not the real thing" not in texts
    assert {tone for _text, tone in rendered} <= {"plain", "strong", "good", "bad", "weak"}


def test_the_head_of_a_good_report() -> None:
    rendered = render.lines(build.build([host()], cluster()))
    assert rendered[0] == ("GPU report: 1 node, 1 GPU, all well", "good")
    assert "RuntimeClass   nvidia (handler nvidia)" in [text for text, _tone in rendered]


def test_a_host_of_which_nothing_answers_is_shown_with_dashes() -> None:
    nothing = dict.fromkeys(host()["runtime"])
    seen = host(nvml={"gpus": [], "source": "none", "driver_version": None, "cuda_driver_version": None})
    seen["runtime"] = {**nothing, "ok": False}
    report = build.build([seen], cluster(nodes=[], plugin_images=[], runtime_class={}, smoke=[]))
    row = render.table(report)[1]
    assert row == ("worker-1  none  -       -     -        -        -/0      not run  problem", "bad")
