# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import copy
from typing import Any

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._checks.judge import is_failure, judge
from ansible_collections.gpu.kubernetes.plugins.module_utils._checks.registry import (
    BY_ID,
    CHECKS,
    UnknownCheckError,
    select_checks,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._checks.xids import BUCKETS, find_bucket
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._checks.healthy import VERSION, build, put

DEEP: list[Any] = []
for _level in range(3000):
    DEEP = [DEEP]
ERROR = "The NVIDIA driver did not answer within 30 seconds; reboot the node."
# id of the only check that fails -> what the node (n/) or the cluster (c/) reports instead
NO_DRIVER = {
    "n/nvml/driver/module_version": None,
    "n/nvml/driver/library_version": None,
    "n/nvml/source": "pci",
    "n/nvml/error": "The NVIDIA kernel module is not loaded; load it.",
    "n/libraries/versions": [],
    "n/devices/files": [],
    "c/nodes/gpu1/capacity": {},
    "c/nodes/gpu1/allocatable": {},
    "c/nodes/gpu1/plugin_problems": ["kube-system/plugin crashed 3 times"],
    "c/smoke_tests/0": {"node": "gpu1", "passed": False, "reason": "no GPU"},
}
LOST_GPU = {
    "n/nvml/gpus/1/lost": True,
    "n/nvml/error": "1 of 2 GPUs are lost to the driver (0000:af:00.0); reboot the node.",
    "c/nodes/gpu1/allocatable": {"nvidia.com/gpu": 1},
    "n/container_cli/error": "driver rpc error: timed out",
}
NO_TOOLKIT = {
    "n/toolkit/runtime": {"path": None, "version": None, "usable": False},
    "n/runtime/handlers": {"runc": {}},
}
FAULTS: list[tuple[str, dict[str, Any]]] = [
    ("hw.pci_count", {"n/pci": [], **NO_DRIVER, "n/nvml/gpus": []}),
    ("hw.pci_count", {"n/expected_gpus": 3}),
    (
        "hw.pci_alive",
        {"n/pci/1/alive": False, **LOST_GPU, "n/log/lines": {"fallen": ["NVRM: GPU has fallen off the bus."]}},
    ),
    (
        "hw.bar",
        {"n/pci/1/bar1_missing": True, **LOST_GPU, "n/log/lines": {"probe_failed": ["NVRM: RmInitAdapter failed!"]}},
    ),
    (
        "hw.ecc",
        {
            "n/nvml/gpus/0/ecc/uncorrected_volatile": 2,
            "n/log/xids": [{"xid": 48, "pci_address": "0000:3b:00.0"}],
            "n/nvml/gpus/0/recovery_action": "gpu_reset",
        },
    ),
    (
        "hw.remap",
        {"n/nvml/gpus/0/row_remapping/failed": True, "n/log/xids": [{"xid": 64, "pci_address": "0000:3b:00.0"}]},
    ),
    ("hw.recovery", {"n/nvml/gpus/1/recovery_action": "node_reboot"}),
    ("hw.fabric", {"n/nvml/gpus/0/fabric/state": "in_progress", "n/nvml/gpus/1/fabric/state": "in_progress"}),
    ("hw.fabric", {"n/nvml/gpus/0/fabric/status": 15}),
    (
        "hw.fabric",  # of a machine whose GPUs report no fabric
        {
            "n/nvml/gpus/0/fabric": None,
            "n/nvml/gpus/1/fabric": None,
            "n/fabric_manager": {"running": False, "unit": "inactive"},
        },
    ),
    ("kernel.conflict", {**NO_DRIVER, "n/nvml/driver/nouveau_loaded": True}),
    ("kernel.conflict", {**NO_DRIVER, "n/pci/0/driver": "vfio-pci", "n/pci/1/driver": "vfio-pci"}),
    (
        "kernel.secure_boot",
        {**NO_DRIVER, "n/log/lines": {"key_rejected": ["Loading of module with unavailable key is rejected"]}},
    ),
    ("kernel.module_built", {**NO_DRIVER, "n/nvml/driver/installed_module_version": None}),
    ("kernel.module_loaded", NO_DRIVER),
    (
        "kernel.mismatch",
        {
            "n/nvml/driver/library_version": "580.82.07",
            "n/nvml/driver/installed_module_version": "580.82.07",
            "n/nvml/error": "NVIDIA driver/library version mismatch; reboot.",
            "n/libraries/versions": ["580.82.07"],
            "n/cdi/0/versions": ["580.82.07"],
            "n/container_cli/error": "nvml error",
        },
    ),
    (
        "kernel.flavour",
        {
            "n/log/lines": {
                "open_only": ["NVRM: GPU is not supported by open nvidia.ko"],
                "probe_failed": ["NVRM: probe routine failed"],
            },
            **LOST_GPU,
        },
    ),
    (
        "kernel.legacy",
        {
            "n/log/lines": {
                "legacy": ["supported through the NVIDIA 470.xx Legacy drivers"],
                "probe_failed": ["NVRM: No NVIDIA devices probed."],
            },
            **LOST_GPU,
        },
    ),
    ("kernel.probe_failed", {"n/log/lines": {"probe_failed": ["NVRM: RmInitAdapter failed!"]}, **LOST_GPU}),
    (
        "kernel.xid",
        {
            "n/log/xids": [{"xid": 79, "pci_address": "0000:af:00.0"}],
            **LOST_GPU,
            "n/nvml/gpus/1/recovery_action": None,
            "n/log/lines": {"fallen": ["NVRM: Xid 79, GPU has fallen off the bus"]},
        },
    ),
    ("kernel.fallen", {"n/log/lines": {"fallen": ["NVRM: fallen off the bus and is not responding"]}, **LOST_GPU}),
    ("kernel.sxid", {"n/log/lines": {"sxid": ["nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30"]}}),
    (
        "kernel.dstate",
        {
            "n/blocked": [{"pid": "42", "command": "nvidia-smi"}],
            "n/nvml/error": ERROR,
            "n/nvml/source": "pci",
            "n/container_cli": None,
        },
    ),
    (
        "kernel.dstate",
        {
            "n/blocked": [{"pid": "42", "command": "python"}],
            "n/log/lines": {"hung": ["INFO: task python:42 blocked for more than 120 seconds."]},
        },
    ),
    ("kernel.nodes", {"n/devices/files": [{"name": "nvidiactl", "major": 195}, {"name": "nvidia0", "major": 195}]}),
    ("kernel.nodes", {"n/devices/files/3/major": 507, "c/smoke_tests/0": {"node": "gpu1", "passed": False}}),
    (
        "lib.fm_version",
        {"n/packages/driver/nvidia-fabricmanager/version": "580.82.07-1", "n/nvml/gpus/0/fabric/state": "not_started"},
    ),
    (
        "lib.present",
        {
            "n/libraries/versions": [],
            "n/nvml/error": "libnvidia-ml.so.1 cannot be loaded; install the driver.",
            "n/nvml/driver/library_version": None,
            "n/container_cli": None,
        },
    ),
    ("lib.twice", {"n/libraries/versions": ["570.124.06", VERSION]}),
    (
        "lib.answers",
        {
            "n/nvml/error": ERROR,
            "n/nvml/source": "pci",
            "n/container_cli": None,
            "c/nodes/gpu1/plugin_problems": ["kube-system/plugin is not ready"],
        },
    ),
    ("lib.serves", LOST_GPU),
    ("lib.cuda", {"c/nodes/gpu1/events": {"cuda": ["default/job: unsatisfied condition: cuda>=13.0"]}}),
    ("tk.binary", {"n/toolkit/runtime": {"path": None, "version": None, "usable": False}}),
    ("tk.binary", {**NO_TOOLKIT, "c/nodes/gpu1/capacity": {}, "c/nodes/gpu1/allocatable": {}}),
    (
        "tk.root",
        {
            "n/toolkit/root": {"path": "/run/nvidia/driver", "has_library": False},
            "n/container_cli/error": "load library failed",
        },
    ),
    ("tk.cdi", {"n/cdi/0/versions": ["570.124.06"]}),
    ("tk.cdi", {"n/cdi/0/missing": ["/usr/lib/x86_64-linux-gnu/libcuda.so.570.124.06"]}),
    ("tk.rpc", {"n/container_cli/error": "driver rpc error: timed out"}),
    (
        "rt.answers",
        {
            "n/runtime/error": "/run/containerd/containerd.sock: Connection refused",
            "n/runtime/handlers": {},
            "c/nodes/gpu1/ready": False,
        },
    ),
    (
        "rt.handler",
        {
            "n/runtime/handlers": {"runc": {}},
            "c/nodes/gpu1/plugin_problems": ["kube-system/plugin is being created"],
            "c/nodes/gpu1/capacity": {},
            "c/nodes/gpu1/allocatable": {},
        },
    ),
    ("rt.cgroup", {"n/runtime/handlers/nvidia/systemd_cgroup": False}),
    ("kl.ready", {"n/kubelet/running": False, "c/nodes/gpu1/ready": False, "c/nodes/gpu1/lease_age_seconds": 300.0}),
    ("kl.ready", {"c/nodes/gpu1/lease_age_seconds": 120.0}),
    ("kl.socket", {"n/kubelet/sockets": ["kubelet.sock"], "c/nodes/gpu1/capacity": {}, "c/nodes/gpu1/allocatable": {}}),
    (
        "kl.socket",
        {
            "c/nodes/gpu1/plugin_folders": ["/data/kubelet/device-plugins"],
            "c/nodes/gpu1/capacity": {},
            "c/nodes/gpu1/allocatable": {},
        },
    ),
    (
        "kl.checkpoint",
        {
            "c/nodes/gpu1/events": {
                "allocation": ["default/job: Allocate failed due to requested number of devices unavailable"],
                "preferred": ["default/job: UnexpectedAdmissionError"],
            },
            "n/kubelet/checkpoint/pods": ["uid-1", "uid-gone"],
        },
    ),
    (
        "kl.unhealthy",
        {
            "c/nodes/gpu1/allocatable": {"nvidia.com/gpu": 1},
            "c/pending": [
                {
                    "name": "default/job",
                    "kind": "free",
                    "message": "Insufficient",
                    "requests": {"nvidia.com/gpu": 2},
                    "free": {"nvidia.com/gpu": 1},
                    "most_free": {"nvidia.com/gpu": 1},
                    "node": "gpu1",
                }
            ],
        },
    ),
    (
        "pl.daemonset",
        {
            "c/nodes/gpu1/plugins": [],
            "c/nodes/gpu1/plugins_ready": False,
            "c/nodes/gpu1/plugin_folders": [],
            "c/nodes/gpu1/capacity": {},
            "c/nodes/gpu1/allocatable": {},
        },
    ),
    (
        # For five minutes, the kubelet reports the devices of a plugin that has left as unhealthy.
        "pl.daemonset",
        {
            "c/nodes/gpu1/plugins": [],
            "c/nodes/gpu1/plugins_ready": False,
            "c/nodes/gpu1/plugin_folders": [],
            "c/nodes/gpu1/allocatable": {},
        },
    ),
    (
        "pl.log",
        {
            "c/nodes/gpu1/plugin_log": "No devices found. Waiting indefinitely.",
            "c/nodes/gpu1/capacity": {},
            "c/nodes/gpu1/allocatable": {},
        },
    ),
    ("pl.twice", {"c/nodes/gpu1/plugins": ["gpu-operator/nvidia-device-plugin", "kube-system/nvidia-device-plugin"]}),
    ("pl.count", {"c/nodes/gpu1/capacity": {"nvidia.com/gpu": 1}, "c/nodes/gpu1/allocatable": {"nvidia.com/gpu": 1}}),
    (
        "pl.preferred",
        {"c/nodes/gpu1/events": {"preferred": ["default/job: GetPreferredAllocation rpc failed: GPU is lost"]}},
    ),
    ("sc.extender", {"c/events/extender": ["default/job: failed to run extender: connection refused"]}),
    (
        "pod.runtime_class",
        {
            "c/runtime_classes": {},
            "c/nodes/gpu1/plugins": [],
            "c/nodes/gpu1/plugin_folders": [],
            "c/nodes/gpu1/capacity": {},
            "c/nodes/gpu1/allocatable": {},
        },
    ),
    ("pod.smoke", {"c/smoke_tests/0": {"node": "gpu1", "passed": False, "reason": "CUDA error"}}),
]
WARNINGS: list[tuple[str, dict[str, Any]]] = [
    ("hw.pci_link", {"n/nvml/gpus/1/pcie/width": 8}),
    ("hw.remap", {"n/nvml/gpus/0/row_remapping/pending": True}),
    ("hw.remap", {"n/nvml/gpus/0/retired_pages/pending": True}),
    ("hw.throttle", {"n/nvml/gpus/0/clocks/event_reasons": ["hw_power_brake_slowdown"]}),
    ("hw.nvlink", {"n/nvml/gpus/0/nvlinks/0/active": False}),
    ("hw.mig_pending", {"n/nvml/gpus/0/mig_mode_pending": "enabled"}),
    ("hw.mig_pending", {"n/nvml/gpus/0/ecc/mode_pending": "disabled"}),
    ("kernel.mismatch", {"n/nvml/driver/installed_module_version": "580.82.07"}),
    (
        "kernel.dstate",
        {
            "n/blocked": [{"pid": "42", "command": "python"}],
            "n/log/lines": {"hung": ["INFO: task nfsd:7 blocked for more than 120 seconds."]},
        },
    ),
    ("kernel.xid", {"n/log/xids": [{"xid": 119, "pci_address": "0000:3b:00.0"}]}),
    ("kernel.xid", {"n/log/xids": [{"xid": 999, "pci_address": "0000:3b:00.0"}]}),
    ("kernel.nodes", {"n/devices/files/3": {"name": "nvidia-caps", "major": 500}}),
    ("lib.held", {"n/packages/driver/nvidia-driver/held": False}),
    ("mon.rules", {"c/monitoring/refused": True}),
    ("mon.rules", {"c/monitoring/missing": ["gpu_alerts"]}),
    ("mon.scraped", {"c/monitoring/targets": {"gpu2": {"instance": "10.0.0.12:9835", "up": True}}}),
    ("mon.exporter", {"c/monitoring/targets/gpu1/up": False}),
    ("mon.exporter", {"c/monitoring/failing": ["gpu1"]}),
    ("rt.drift", {"n/drift": [{"path": "/etc/containerd/config.toml", "settings": ["imports"], "error": ""}]}),
    ("rt.drift", {"n/drift": [{"path": "/etc/docker/daemon.json", "settings": [], "error": "it is not JSON"}]}),
    ("rt.restart_due", {"n/runtime/changed_files": ["/etc/containerd/config.toml"]}),
    (
        "kl.topology",
        {"c/nodes/gpu1/events": {"topology": ["default/job: Resources cannot be allocated with Topology locality"]}},
    ),
    (
        "sc.free",
        {
            "c/pending": [
                {
                    "name": "default/job",
                    "kind": "free",
                    "message": "",
                    "requests": {"nvidia.com/gpu": 2},
                    "free": {"nvidia.com/gpu": 2},
                    "most_free": {"nvidia.com/gpu": 1},
                    "node": "gpu1",
                }
            ]
        },
    ),
    ("sc.maintenance", {"c/nodes/gpu1/maintenance": "is cordoned, and in maintenance by this collection"}),
    (
        "sc.taint",
        {
            "c/pending": [
                {
                    "name": "default/job",
                    "kind": "taint",
                    "message": "1 node(s) had untolerated taint",
                    "requests": {"nvidia.com/gpu": 1},
                }
            ]
        },
    ),
    ("sc.other", {"c/pending": [{"name": "default/job", "kind": "other", "message": "1 Insufficient cpu"}]}),
    ("sc.quota", {"c/events/quota": ["default/job: exceeded quota: gpus"]}),
    ("pod.bypass", {"c/bypassing": ["default/miner"]}),
]


OTHER_DEVICE = {
    "vendor": "amd",
    "pci_address": "0000:63:00.0",
    "driver": "amdgpu",
    "numa_node": 0,
    "render": "renderD128",
    "partitions": 1,
    "partition_style": "spx_nps1",
}
#: Of a host with GPUs of AMD alone.
OTHERS = {
    "vendors": ["amd"],
    "devices": [OTHER_DEVICE],
    "drivers": {
        "amdgpu": {"loaded": True, "version": "", "kfd": True},
        "i915": {"loaded": False, "version": ""},
        "xe": {"loaded": False, "version": ""},
    },
    "error": "",
    "inotify_instances": 8192,
}
#: Nothing of NVIDIA is there.
OTHERS_ALONE = {
    **NO_DRIVER,
    **NO_TOOLKIT,
    "n/pci": [],
    "n/nvml/gpus": [],
    "n/nvml/error": None,
    "n/nvml/source": "none",
    "n/nvml/driver/installed_module_version": None,
    "n/cdi": [],
    "n/others": OTHERS,
    "c/nodes/gpu1/plugin_problems": [],
    "c/nodes/gpu1/labelled": False,
    "c/smoke_tests": [],
    "c/runtime_classes": {},
    "c/class_users": {},
}


def change_device(**values: Any) -> dict[str, Any]:
    return {**OTHERS, "devices": [{**OTHER_DEVICE, **values}]}


def test_judge_of_a_host_with_other_gpus_alone_finds_nothing_of_nvidia_missing() -> None:
    report = examine(OTHERS_ALONE)
    assert (select(report, "fail"), select(report, "warn")) == ([], [])
    details = {result["id"]: result["details"] for result in report["hosts"][0]["checks"]}
    assert details["hw.pci_count"] == details["rt.handler"] == ["the host has no GPU of NVIDIA"]
    assert {"kernel.other_driver", "kernel.other_files", "rt.answers"} <= set(report["hosts"][0]["passed"])


@pytest.mark.parametrize(
    ("expected", "others", "verdict"),
    [
        ("kernel.other_driver", change_device(driver=""), "fail"),
        ("kernel.other_files", change_device(numa_node=None), "fail"),
        ("kernel.other_files", change_device(render=""), "fail"),
        (
            "kernel.other_files",
            {**OTHERS, "drivers": {**OTHERS["drivers"], "amdgpu": {"loaded": True, "version": "", "kfd": False}}},
            "fail",
        ),
        (
            "kernel.partitions",
            {
                **OTHERS,
                "error": "different",
                "devices": [OTHER_DEVICE, {**OTHER_DEVICE, "partition_style": "cpx_nps4"}],
            },
            "fail",
        ),
        ("kernel.inotify", {**OTHERS, "inotify_instances": 128}, "warn"),
    ],
)
def test_judge_of_a_fault_of_other_gpus_names_its_check(expected: str, others: dict[str, Any], verdict: str) -> None:
    assert select(examine({**OTHERS_ALONE, "n/others": others}), verdict) == [expected]
    # On a mixed host, and not if its device plugin is left out.
    mixed = {**others, "vendors": ["amd", "nvidia"]}
    assert select(examine({"n/others": mixed}), verdict) == [expected]
    assert select(examine({"n/others": {**others, "vendors": ["nvidia"]}}), verdict) == []


def test_judge_of_monitoring_that_was_not_read_says_why() -> None:
    for monitoring, reason in (
        (None, "gpu_doctor_prometheus_url is not set"),
        ({"error": "Prometheus did not answer"}, "Prometheus did not answer"),
    ):
        report = examine({"c/monitoring": monitoring})
        found = {
            result["id"]: result["details"] for result in report["hosts"][0]["checks"] + report["cluster"]["checks"]
        }
        assert {found[name][0] for name in ("mon.rules", "mon.scraped", "mon.exporter")} == {reason}
        assert report["status"] == "pass"


def test_judge_of_failed_driver_explains_the_exporter() -> None:
    report = examine({"n/nvml/error": ERROR, "n/nvml/source": "pci", "c/monitoring/failing": ["gpu1"]})
    results = {result["id"]: result for result in report["hosts"][0]["checks"]}
    assert results["mon.exporter"]["because"] == "lib.answers"


@pytest.mark.parametrize("part", [None, [], {"vendors": "amd"}, {"vendors": ["amd"], "devices": 3}])
def test_judge_of_unreadable_other_gpus_is_unknown(part: Any) -> None:
    assert "kernel.other_driver" in select(examine({"n/others": part}), "unknown")


def examine(fault: dict[str, Any]) -> dict[str, Any]:
    host, cluster = build()
    for path, value in fault.items():
        put(host if path.startswith("n/") else cluster, path[2:], copy.deepcopy(value))
    return judge([host], cluster)


def select(report: dict[str, Any], verdict: str) -> list[str]:
    groups = [report["cluster"], *report["hosts"]]
    return [result["id"] for group in groups for result in group["checks"] if result["verdict"] == verdict]


def test_judge_of_healthy_node_passes_each_check() -> None:
    report = judge([build()[0]], build()[1])
    assert (report["status"], report["exit_code"], report["causes"], report["errors"]) == ("pass", 0, [], [])
    unread = [result for group in (report["cluster"], *report["hosts"]) for result in group["checks"]]
    assert [result["id"] for result in unread] == ["pl.log"], unread
    assert sum(report["summary"]["checks"].values()) == len(CHECKS)


@pytest.mark.parametrize(
    ("expected", "fault"), FAULTS, ids=[f"{name}-{number}" for number, (name, _fault) in enumerate(FAULTS)]
)
def test_judge_of_one_fault_finds_one_cause(expected: str, fault: dict[str, Any]) -> None:
    report = examine(fault)
    assert select(report, "fail") == [expected], report["causes"]
    assert (report["status"], report["exit_code"]) == ("fail", 2)
    assert report["causes"][0]["id"] == expected
    assert report["causes"][0]["details"]


@pytest.mark.parametrize(
    ("expected", "fault"), WARNINGS, ids=[f"{name}-{number}" for number, (name, _fault) in enumerate(WARNINGS)]
)
def test_judge_of_lesser_fault_warns(expected: str, fault: dict[str, Any]) -> None:
    report = examine(fault)
    assert (select(report, "fail"), select(report, "warn")) == ([], [expected])
    assert (report["status"], report["exit_code"]) == ("warn", 0)


@pytest.mark.parametrize(
    ("active", "nvswitches", "names"),
    [
        ([4, 4, 0], 0, []),
        ([4, 2, 0], 0, ["GPU 1"]),
        ([0, 0, 0], 0, []),
        ([18, 18, 0], 4, ["GPU 2"]),
    ],
)
def test_judge_of_nvlinks_compares_gpus_that_are_joined(active: list[int], nvswitches: int, names: list[str]) -> None:
    host, cluster = build()
    links = [[{"link": link, "active": link < count} for link in range(18)] for count in active]
    host["nvml"]["gpus"] = [{"index": place, "nvlinks": each} for place, each in enumerate(links)]
    host["nvml"]["nvswitches"] = nvswitches
    report = judge([host], cluster, select_checks(["hw.nvlink"]))
    assert [text.partition(" has ")[0] for each in report["causes"] for text in each["details"]] == names


def test_judge_of_machine_without_fabric_reports_passes_by_its_fabric_manager() -> None:
    healthy = {"n/nvml/gpus/0/fabric": None, "n/nvml/gpus/1/fabric": None}
    assert "hw.fabric" in examine(healthy)["hosts"][0]["passed"]
    assert "hw.fabric" in select(examine({**healthy, "n/fabric_manager": {}}), "unknown")


def test_judge_of_failed_need_names_it() -> None:
    report = examine(NO_DRIVER)
    results = {result["id"]: result for result in report["hosts"][0]["checks"]}
    assert results["kernel.mismatch"]["because"] == "kernel.module_loaded"
    # Through others.
    assert results["tk.rpc"]["because"] == "kernel.module_loaded"
    assert results["tk.rpc"]["details"] == ["because kernel.module_loaded"]
    assert "tk.binary" in report["hosts"][0]["passed"]


def test_judge_without_api_server_leaves_layers_of_the_cluster_unknown() -> None:
    host = build()[0]
    report = judge([host], None, errors=["The API server cannot be reached."])
    assert (report["status"], report["errors"]) == ("pass", ["The API server cannot be reached."])
    assert set(select(report, "unknown")) > {"pl.daemonset", "sc.free", "pod.runtime_class"}
    assert "kl.ready" in report["hosts"][0]["passed"]


def test_judge_of_unreachable_host_reads_the_cluster() -> None:
    host = {"host": "gpu1", "node": "gpu1", "unreachable": "no route to host"}
    cluster = build()[1]
    put(cluster, "nodes/gpu1/ready", False)
    report = judge([host], cluster)
    assert select(report, "fail") == ["kl.ready"]
    assert report["errors"] == ["gpu1: no route to host"]


@pytest.mark.parametrize(("unreachable", "verdicts"), [("", ["kl.ready"]), ("no route to host", [])])
def test_judge_of_host_without_node_fails_unless_its_name_is_a_guess(unreachable: str, verdicts: list[str]) -> None:
    host = {"host": "other", "node": "other", "unreachable": unreachable}
    report = judge([host], build()[1])
    assert select(report, "fail") == verdicts
    assert [each["host"] for each in report["hosts"]] == ["other", "gpu1"]
    assert report["status"] == ("fail" if verdicts else "unknown")


def test_judge_without_hosts_reports_nodes_of_the_cluster() -> None:
    report = judge([], build()[1])
    assert [host["host"] for host in report["hosts"]] == ["gpu1"]
    assert report["status"] == "pass"


@pytest.mark.parametrize("observations", [[], [{"host": "gpu1", "node": "gpu1", "unreachable": "away"}]])
def test_judge_without_any_observation_is_not_a_pass(observations: list[dict[str, Any]]) -> None:
    report = judge(observations, None)
    assert (report["status"], report["exit_code"]) == ("unknown", 3)
    assert is_failure(report, "fail")
    assert not is_failure(report, "never")


def test_judge_keeps_what_was_found_before_a_missing_part() -> None:
    host, cluster = build()
    put(host, "nvml/gpus/0/row_remapping/failed", True)
    for gpu in host["nvml"]["gpus"]:
        gpu["retired_pages"] = None
    assert select(judge([host], cluster), "fail") == ["hw.remap"]


@pytest.mark.parametrize(("sockets", "verdict"), [(["kubelet.sock"], "pass"), ([], "unknown"), (None, "unknown")])
def test_judge_of_kubelet_within_another_program_guesses_no_folder(sockets: list[str] | None, verdict: str) -> None:
    host, cluster = build()
    host["kubelet"].update(running=None, sockets=sockets)
    cluster["nodes"]["gpu1"]["plugin_folders"] = ["/var/snap/kubelet/device-plugins"]
    report = judge([host], cluster)
    found = {result["id"]: result["verdict"] for result in report["hosts"][0]["checks"]}
    assert found.get("kl.socket", "pass") == verdict
    assert report["status"] == "pass"


def test_judge_of_node_that_hides_its_hardware_believes_the_driver() -> None:
    host, cluster = build()
    host["pci"], host["devices"], host["libraries"] = [], {"majors": {}, "files": []}, {"versions": []}
    host["nvml"]["driver"] = {"module_version": None, "installed_module_version": None, "library_version": VERSION}
    report = judge([host], cluster)
    assert (report["status"], report["causes"]) == ("pass", [])
    assert "hw.pci_count" in report["hosts"][0]["passed"]


def test_judge_of_node_that_offers_gpus_without_the_toolkit_remarks_it() -> None:
    report = examine({**NO_TOOLKIT, "c/class_users": {}, "c/runtime_classes": {}})
    assert (report["status"], select(report, "info")) == ("pass", ["tk.binary", "rt.handler"])


def test_judge_of_many_hosts_groups_causes() -> None:
    hosts = []
    for number in range(3):
        host = build()[0]
        host.update(host=f"gpu{number}", node=f"gpu{number}")
        put(host, "nvml/gpus/0/ecc/uncorrected_volatile", number)
        hosts.append(host)
    report = judge(hosts, None)
    assert [(cause["id"], cause["hosts"]) for cause in report["causes"]] == [("hw.ecc", ["gpu1", "gpu2"])]


@pytest.mark.parametrize(("fail_on", "code", "fails"), [("fail", 0, False), ("warn", 1, True), ("never", 0, False)])
def test_is_failure_of_warning_depends_on_fail_on(fail_on: str, code: int, fails: bool) -> None:
    host, cluster = build()
    put(host, "nvml/gpus/1/pcie/width", 8)
    report = judge([host], cluster, fail_on=fail_on)
    assert (report["exit_code"], is_failure(report, fail_on)) == (code, fails)


@pytest.mark.parametrize(
    "part",
    [
        "nvml",
        "pci",
        "log",
        "blocked",
        "devices",
        "libraries",
        "packages",
        "toolkit",
        "cdi",
        "container_cli",
        "runtime",
        "kubelet",
    ],
)
@pytest.mark.parametrize("value", ["text", 7, [1], {"gpus": "text"}, {"lines": 1}, [{"command": DEEP, "pid": 1}], None])
def test_judge_of_hostile_types_is_unknown(part: str, value: Any) -> None:
    host, cluster = build()
    host[part] = value
    assert judge([host], cluster)["schema"]


def test_judge_bounds_and_escapes_texts_of_nodes() -> None:
    bad = "\x1b[2J\u202e" + "x" * 100_000
    host, cluster = build()
    host["blocked"] = [{"pid": "1", "command": bad}] * 1000
    host["runtime"]["changed_files"] = [bad] * 1000
    cluster["nodes"]["gpu1"]["reason"] = bad
    cluster["nodes"]["gpu1"]["ready"] = False
    text = str(judge([host], cluster))
    assert text.isprintable()
    assert "\\\\x1b[2J" in text
    assert len(text) < 60_000


def test_judge_masks_credentials() -> None:
    host, cluster = build()
    host["runtime"]["error"] = "cannot pull from https://me:hunter22@registry.invalid/x"
    lost = {"host": "gpu2", "node": "gpu2", "unreachable": "proxy https://me:hunter22@proxy.invalid/ refused"}
    report = judge([host, lost], cluster, errors=["https://me:hunter22@api.invalid/ is not reachable"])
    assert len(report["errors"]) == 2
    assert "hunter22" not in str(report)


@pytest.mark.parametrize(("pods", "verdicts"), [(["uid-1"], []), (["uid-1", "uid-gone"], ["kl.checkpoint"])])
def test_judge_of_failed_allocation_requires_devices_of_pods_that_are_gone(
    pods: list[str], verdicts: list[str]
) -> None:
    event = "default/job: Allocate failed due to requested number of devices unavailable"
    fault = {"c/nodes/gpu1/events": {"allocation": [event]}, "n/kubelet/checkpoint/pods": pods}
    assert select(examine(fault), "fail") == verdicts


def test_checks_need_known_checks_without_a_circle() -> None:
    def walk(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, path
        for need in BY_ID[name].needs:
            walk(need, (*path, name))

    assert len(BY_ID) == len(CHECKS) >= 50
    for check in CHECKS:
        walk(check.id, ())
        # One broken node of a fleet does not hide the verdicts on the cluster.
        assert check.scope == "host" or not any(BY_ID[need].scope == "host" for need in check.needs)
        assert check.words
        assert not check.cause.endswith(".")
        assert not check.remedy.endswith(".")


def test_select_checks_takes_ids_and_layers() -> None:
    assert {check.id for check in select_checks(["hw.ecc", "scheduler"], ["sc.free"])} == {
        "hw.ecc",
        "sc.taint",
        "sc.other",
        "sc.maintenance",
        "sc.quota",
        "sc.extender",
    }
    with pytest.raises(UnknownCheckError, match=r"no check or layer hw\.nothing"):
        select_checks(["hw.nothing"])


def test_judge_of_selected_checks_ignores_other_needs() -> None:
    host, cluster = build()
    put(host, "pci/0/alive", False)
    put(host, "nvml/gpus/0/ecc/uncorrected_volatile", 1)
    assert select(judge([host], cluster, select_checks(["hw.ecc"])), "fail") == ["hw.ecc"]


@pytest.mark.parametrize(
    ("xid", "action", "verdict"),
    [
        (48, None, "fail"),
        (48, "none", "warn"),
        (94, None, "warn"),
        (94, "none", "info"),
        (13, None, "info"),
        (165, "none", "warn"),
    ],
)
def test_judge_of_xid_is_milder_once_the_driver_requires_nothing(xid: int, action: str | None, verdict: str) -> None:
    host, cluster = build()
    host["nvml"]["gpus"][0]["recovery_action"] = action
    host["log"]["xids"] = [{"xid": xid, "pci_address": "0000:3b:00.0"}] * 2
    (result,) = [each for each in judge([host], cluster)["hosts"][0]["checks"] if each["id"] == "kernel.xid"]
    assert result["verdict"] == verdict
    assert result["details"][0].startswith(f"Xid {xid} of the GPU at 0000:3b:00.0 2 times")


def test_each_xid_of_the_catalogue_has_one_bucket() -> None:
    for xid in range(1, 173):
        found = [bucket for bucket in BUCKETS.values() if xid in bucket.xids]
        assert (found or [BUCKETS["unknown"]]) == [find_bucket(xid)], xid
    assert {xid for bucket in BUCKETS.values() for xid in bucket.xids} <= set(range(1, 173))
    assert {xid: find_bucket(xid) for xid in (46, 79, 48, 63, 154, 13, 37, 2, 173)} == {
        46: BUCKETS["reset_gpu"],
        79: BUCKETS["reboot"],
        48: BUCKETS["inspect"],
        63: BUCKETS["reset_when_idle"],
        154: BUCKETS["software"],
        13: BUCKETS["restart_application"],
        37: BUCKETS["ignore"],
        # The catalogue does not list these.
        2: BUCKETS["unknown"],
        173: BUCKETS["unknown"],
    }
