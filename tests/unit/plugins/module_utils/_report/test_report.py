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
        "hosts": [],
        "limited": False,
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
            "worker-1: no run has confirmed a restart of containerd since its configuration changed; run prepare_gpu_nodes.",
        ),
        (
            host(daemon="crio", configuration={"restart_required": True}),
            cluster(),
            ["restart_due"],
            "worker-1: no run has confirmed a restart of CRI-O since its configuration changed; run prepare_gpu_nodes.",
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
            cluster(hosts=["worker-1", "worker-9"]),
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
    assert report["nodes"][0]["smoke_test"] == {"result": "skipped", "reason": "cordoned"}


def test_a_stand_in_that_was_tested_with_is_named_until_another_test() -> None:
    image = "lab.local/stand-in/cuda-sample@sha256:12"
    passed = [{"node": "worker-1", "passed": True, "skipped": False, "image": image}]
    report = build.build([host()], cluster(smoke=passed))
    assert (report["stand_ins"], report["nodes"][0]["smoke_test"]) == ([image], {"result": "passed", "image": image})
    assert build.build([host()], cluster(smoke=[]), earlier=from_file(report))["stand_ins"] == [image]
    assert build.build([host()], cluster(), earlier=from_file(report))["stand_ins"] == []


def test_a_failed_smoke_test_tells_its_last_lines() -> None:
    failed = [{"node": "worker-1", "passed": False, "skipped": False, "reason": "x", "log_tail": ["no CUDA device"]}]
    assert build.build([host()], cluster(smoke=failed))["nodes"][0]["smoke_test"] == {
        "result": "failed",
        "reason": "x",
        "log_tail": ["no CUDA device"],
    }


def test_each_problem_is_one_line_with_host_cause_and_remedy() -> None:
    broken = host(runtime={"ok": False, "cause": "line 1\nline 2", "remedy": "do\n this.", "log": []})
    report = build.build([broken], cluster(smoke_error="no\nresults"))
    assert [problem["sentence"] for problem in report["problems"]] == [
        "cluster: no results; run it alone to see why.",
        "worker-1: line 1 line 2; do this.",
    ]


PASSED = [{"node": "worker-1", "passed": True, "skipped": False}]
SKIPPED = [{"node": "worker-1", "passed": False, "skipped": True, "reason": "busy"}]
FAILED = [{"node": "worker-1", "passed": False, "skipped": False, "reason": "exit code 1; read", "log_tail": ["bad"]}]


def from_file(report: dict[str, Any]) -> dict[str, Any]:
    """Return the report as the next run reads it."""
    told: dict[str, Any] = json.loads(json.dumps(report))
    return told


@pytest.mark.parametrize("smoke", [PASSED, SKIPPED, FAILED, []])
def test_site_verify_site_write_the_same_file(smoke: list[dict[str, Any]]) -> None:
    hosts = [host(), host("worker-2")]
    site = build.build(hosts, cluster(smoke=smoke))
    verify = build.build(hosts, cluster(smoke=[]), earlier=from_file(site))
    again = build.build(hosts, cluster(smoke=smoke), earlier=from_file(verify))
    assert json.dumps(site) == json.dumps(verify) == json.dumps(again)


def test_a_smoke_test_of_this_run_counts_and_not_the_earlier_one() -> None:
    earlier = from_file(build.build([host()], cluster(smoke=FAILED)))
    report = build.build([host()], cluster(smoke=PASSED), earlier=earlier)
    assert (report["ok"], report["nodes"][0]["smoke_test"]) == (True, {"result": "passed"})


@pytest.mark.parametrize(
    "seen",
    [
        host(nvml={"driver_version": "580.65.06"}),
        host(gpus=[gpu(), gpu(1)]),
        host(runtime={"runtime_version": "2.5.0"}),
        {**host(), "node": "another"},
    ],
)
def test_what_became_another_node_is_not_proved_any_more(seen: dict[str, Any]) -> None:
    earlier = from_file(build.build([host()], cluster()))
    report = build.build([seen], cluster(smoke=[]), earlier=earlier)
    assert report["nodes"][0]["smoke_test"] == {"result": "not run"}


def test_a_limited_run_leaves_the_other_hosts_as_they_were() -> None:
    ill = host("worker-2", nvml={"gpus": [], "source": "none"})
    told = cluster(smoke=[{"node": "worker-2", "passed": False, "skipped": True, "reason": "busy"}])
    full = build.build([host(), ill], {**told, "hosts": ["worker-1", "worker-2", "worker-9"]})
    limited = build.build([host()], cluster(smoke=[], hosts=["worker-1"], limited=True), earlier=from_file(full))
    assert json.dumps(limited) == json.dumps(full)
    assert [problem["host"] for problem in limited["problems"]] == ["worker-2", "worker-9"]
    assert limited["notes"] == ["worker-2: smoke test skipped, busy"]
    assert limited["summary"] == {"nodes": 2, "gpus": 1, "problems": 2}


def test_a_host_looked_at_in_vain_does_not_keep_its_entry() -> None:
    earlier = from_file(build.build([host(), host("worker-2")], cluster()))
    told = cluster(hosts=["worker-1", "worker-2"], limited=True)
    report = build.build([host()], told, earlier=earlier)
    assert [node["host"] for node in report["nodes"]] == ["worker-1"]
    assert [problem["code"] for problem in report["problems"]] == ["unreachable"]


def test_a_full_run_drops_hosts_that_left() -> None:
    earlier = from_file(build.build([host(), host("worker-2", nvml=MISMATCH)], cluster()))
    report = build.build([host()], cluster(), earlier=earlier)
    assert json.dumps(report) == json.dumps(build.build([host()], cluster()))


@pytest.mark.parametrize("earlier", [None, {}, {"schema": "other", "nodes": 3}])
def test_what_is_no_report_is_ignored(earlier: Any) -> None:
    told = cluster(smoke=[], limited=True)
    assert build.build([host()], told, earlier=earlier) == build.build([host()], told)


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


def test_what_is_of_an_earlier_run_bears_a_star() -> None:
    report = build.build([host(), host("worker-2"), host("worker-3", nvml=MISMATCH)], cluster())
    rendered = [text for text, _tone in render.lines(report, hosts=["worker-1", "worker-2"], tested=[])]
    assert [text.split()[-2:] for text in rendered[3:6]] == [["passed*", "ok"], ["run", "ok"], ["run", "problem*"]]
    assert rendered[6] == "* as of an earlier run"
    assert not any("*" in text for text, _tone in render.lines(report))


def test_the_whole_report() -> None:
    seen = host(configuration={"reasons": ["x"], "diff": {"before": "a", "after": "b"}})
    report = build.build([seen], cluster(hosts=["worker-1", "worker-9"]), ["A note."])
    rendered = render.lines(report, "/tmp/report.json")
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
