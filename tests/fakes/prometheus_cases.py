# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases of the rules, for promtool: series of each exporter, what they are normalised to, and which alerts fire.

Names, labels and units are those of the exporters' documentation; the values are made up.
"""

from __future__ import annotations

import typing as t

Series = tuple[str, str]

#: The identity of one GPU, as each exporter writes it, and as it is normalised.
SMI = 'node="n1",uuid="aa"'
DCGM = 'node="n1",UUID="GPU-aa",gpu="0",Hostname="n1"'
AMD = 'node="n1",serial_number="bb",gpu_id="0",card_model="MI300X"'
INTEL = 'node="n1",pci_bdf="0000:3b:00.0"'
NVIDIA = {"node": "n1", "gpu_uuid": "GPU-aa"}
OTHERS = {"amd": {"node": "n1", "gpu_uuid": "bb"}, "intel": {"node": "n1", "gpu_uuid": "0000:3b:00.0"}}


def smi(name: str, values: object, more: str = "") -> Series:
    """A series of nvidia_gpu_exporter."""
    return f"nvidia_smi_{name}{{{SMI}{more}}}", f"{values}+0x70"


def dcgm(name: str, values: object, more: str = "") -> Series:
    """A series of dcgm-exporter."""
    prefix = "" if name.startswith("DCGM_") else "DCGM_FI_DEV_"
    return f"{prefix}{name}{{{DCGM}{more}}}", f"{values}+0x70"


def amd(name: str, values: object) -> Series:
    """A series of AMD's exporter."""
    return f"{name}{{{AMD}}}", f"{values}+0x70"


def intel(name: str, values: object, more: str = "") -> Series:
    """A series of Intel's exporter."""
    return f"{name}{{{INTEL}{more}}}", f"{values}+0x70"


class Normalised(t.NamedTuple):
    """Series of one exporter, and the normalised series that they become, at the second minute."""

    exporter: str
    name: str
    raw: tuple[Series, ...]
    value: float
    more: t.Mapping[str, str] = {}


_DRIVER = {"model": "A100", "driver_version": "580.1"}
NORMALISED: tuple[Normalised, ...] = (
    Normalised(
        "smi",
        "gpu:present",
        (smi("gpu_info", 1, ',name="A100",gpu_expected="2"'),),
        1,
        {"model": "A100", "gpu_expected": "2"},
    ),
    Normalised("dcgm", "gpu:present", (dcgm("GPU_TEMP", 40, ',modelName="A100"'),), 1, {"model": "A100"}),
    Normalised("dcgm49", "gpu:present", (dcgm("GPU_TEMP_CELSIUS", 40, ',modelName="A100"'),), 1, {"model": "A100"}),
    Normalised("amd", "gpu:present", (amd("gpu_total_vram", 192000),), 1, {"model": "MI300X"}),
    Normalised("intel", "gpu:present", (intel("hw_gpu_info", 1, ',hw_model="B580"'),), 1, {"model": "B580"}),
    Normalised("smi", "gpu:utilization:ratio", (smi("utilization_gpu_ratio", 0.95),), 0.95),
    Normalised("dcgm", "gpu:utilization:ratio", (dcgm("GPU_UTIL", 95),), 0.95),
    Normalised("dcgm49", "gpu:utilization:ratio", (dcgm("GPU_UTIL_RATIO", 0.95),), 0.95),
    Normalised("amd", "gpu:utilization:ratio", (amd("amd_gpu_gfx_activity", 95),), 0.95),
    Normalised(
        "intel",
        "gpu:utilization:ratio",
        (
            intel("hw_gpu_utilization_ratio", 0.95, ',hw_gpu_task="compute_single"'),
            intel("hw_gpu_utilization_ratio", 0.1, ',hw_gpu_task="copy_single"'),
        ),
        0.95,
    ),
    # The load of the memory controller is not the used memory.
    Normalised(
        "smi",
        "gpu:memory_used:ratio",
        (smi("utilization_memory_ratio", 0.07), smi("memory_used_bytes", 25), smi("memory_total_bytes", 100)),
        0.25,
    ),
    Normalised(
        "dcgm", "gpu:memory_used:ratio", (dcgm("FB_USED", 25), dcgm("FB_FREE", 65), dcgm("FB_RESERVED", 10)), 0.25
    ),
    Normalised("dcgm", "gpu:memory_used:ratio", (dcgm("FB_USED", 25), dcgm("FB_FREE", 75)), 0.25),
    Normalised("dcgm49", "gpu:memory_used:ratio", (dcgm("FB_USED_BYTES", 25), dcgm("FB_CAPACITY_BYTES", 100)), 0.25),
    Normalised("amd", "gpu:memory_used:ratio", (amd("gpu_used_vram", 48), amd("gpu_total_vram", 192)), 0.25),
    Normalised("intel", "gpu:memory_used:ratio", (intel("hw_memory_utilization_ratio", 0.25),), 0.25),
    Normalised("smi", "gpu:temperature:celsius", (smi("temperature_gpu", 70),), 70),
    Normalised("dcgm", "gpu:temperature:celsius", (dcgm("GPU_TEMP", 70),), 70),
    Normalised("dcgm49", "gpu:temperature:celsius", (dcgm("GPU_TEMP_CELSIUS", 70),), 70),
    Normalised("amd", "gpu:temperature:celsius", (amd("gpu_junction_temperature", 70),), 70),
    Normalised(
        "intel",
        "gpu:temperature:celsius",
        (intel("hw_temperature_celsius", 70), intel("hw_temperature_celsius", 60, ',sensor="m"')),
        70,
    ),
    Normalised("smi", "gpu:temperature_margin:celsius", (smi("temperature_gpu_tlimit", 12),), 12),
    Normalised("dcgm", "gpu:temperature_margin:celsius", (dcgm("GPU_TEMP_LIMIT", 12),), 12),
    Normalised("dcgm49", "gpu:temperature_margin:celsius", (dcgm("GPU_TEMP_MARGIN_CELSIUS", 12),), 12),
    Normalised("smi", "gpu:power:watts", (smi("power_draw_watts", 300),), 300),
    Normalised("dcgm", "gpu:power:watts", (dcgm("POWER_USAGE", 300),), 300),
    Normalised("dcgm49", "gpu:power:watts", (dcgm("BOARD_POWER_WATTS", 300),), 300),
    Normalised("amd", "gpu:power:watts", (amd("gpu_package_power", 300),), 300),
    Normalised("intel", "gpu:power:watts", (intel("hw_power_watts", 300),), 300),
    Normalised("smi", "gpu:throttled", (smi("clocks_event_reasons_hw_thermal_slowdown", 1),), 1, {"why": "thermal"}),
    Normalised("smi", "gpu:throttled", (smi("clocks_throttle_reasons_hw_thermal_slowdown", 1),), 1, {"why": "thermal"}),
    Normalised("dcgm_any", "gpu:throttled", (dcgm("CLOCK_THROTTLE_REASONS", 0x45),), 1, {"why": "thermal"}),
    Normalised("dcgm_any", "gpu:throttled", (dcgm("CLOCKS_EVENT_REASONS", 0x81),), 1, {"why": "power_brake"}),
    Normalised(
        "smi", "gpu:throttled", (smi("clocks_event_reasons_hw_power_brake_slowdown", 1),), 1, {"why": "power_brake"}
    ),
    Normalised("smi", "gpu:throttled_by_software", (smi("clocks_event_reasons_sw_thermal_slowdown", 1),), 1),
    Normalised("smi", "gpu:throttled_by_software", (smi("clocks_throttle_reasons_sw_thermal_slowdown", 1),), 1),
    Normalised("dcgm_any", "gpu:throttled_by_software", (dcgm("CLOCKS_EVENT_REASONS", 0x21),), 1),
    Normalised("smi", "gpu:xid:recent", (smi("xid_last_timestamp_seconds", 100, ',xid="79"'),), 1, {"xid": "79"}),
    Normalised("dcgm_any", "gpu:xid:recent", (dcgm("DCGM_EXP_XID_ERRORS_COUNT", 1, ',xid="79"'),), 1, {"xid": "79"}),
    # The counter is there from the first Xid on.
    Normalised("dcgm_any", "gpu:xid:recent", (dcgm("DCGM_EXP_XID_ERRORS_TOTAL", 1, ',xid="79"'),), 1, {"xid": "79"}),
    Normalised("smi", "gpu:recovery_action", (smi("gpu_recovery_action", 2),), 2),
    Normalised("dcgm", "gpu:recovery_action", (dcgm("GET_GPU_RECOVERY_ACTION", 2),), 2),
    Normalised("dcgm49", "gpu:recovery_action", (dcgm("GPU_RECOVERY_ACTION", 2),), 2),
    Normalised("smi", "gpu:ecc_uncorrected:since_load", (smi("ecc_errors_uncorrected_volatile_total", 3),), 3),
    Normalised("dcgm_any", "gpu:ecc_uncorrected:since_load", (dcgm("ECC_DBE_VOL_TOTAL", 3),), 3),
    Normalised("amd", "gpu:ecc_uncorrected:since_load", (amd("gpu_ecc_uncorrect_total", 3),), 3),
    Normalised(
        "intel", "gpu:ecc_uncorrected:since_load", (intel("hw_errors_total", 3, ',error_type="uncorrectable"'),), 3
    ),
    Normalised(
        "smi", "gpu:sram_threshold_exceeded", (smi("ecc_errors_uncorrected_aggregate_sram_threshold_exceeded", 1),), 1
    ),
    Normalised("dcgm", "gpu:sram_threshold_exceeded", (dcgm("THRESHOLD_SRM", 1),), 1),
    Normalised("dcgm49", "gpu:sram_threshold_exceeded", (dcgm("SRAM_EXCEEDED", 1),), 1),
    Normalised("smi", "gpu:row_remap_failed", (smi("remapped_rows_failure", 1),), 1),
    Normalised("dcgm", "gpu:row_remap_failed", (dcgm("ROW_REMAP_FAILURE", 1),), 1),
    Normalised("dcgm49", "gpu:row_remap_failed", (dcgm("ROW_REMAP_FAILED", 1),), 1),
    Normalised("smi", "gpu:row_remap_pending", (smi("remapped_rows_pending", 1),), 1),
    Normalised("dcgm_any", "gpu:row_remap_pending", (dcgm("ROW_REMAP_PENDING", 1),), 1),
    Normalised(
        "smi", "gpu:pcie_link_width:ratio", (smi("pcie_link_width_current", 8), smi("pcie_link_width_max", 16)), 0.5
    ),
    Normalised(
        "dcgm_any", "gpu:pcie_link_width:ratio", (dcgm("PCIE_LINK_WIDTH", 8), dcgm("PCIE_MAX_LINK_WIDTH", 16)), 0.5
    ),
    Normalised("smi", "gpu:fabric_state", (smi("fabric_state", 1),), 1),
    Normalised("smi", "gpu:persistence_mode", (smi("persistence_mode", 1),), 1),
    Normalised("smi", "gpu:mode_pending", (smi("mig_mode_pending", 1), smi("mig_mode_current", 0)), 1, {"mode": "mig"}),
    Normalised("smi", "gpu:mode_pending", (smi("ecc_mode_pending", 0), smi("ecc_mode_current", 1)), 1, {"mode": "ecc"}),
    Normalised("smi", "gpu:driver", (smi("gpu_info", 1, ',name="A100",driver_version="580.1"'),), 1, _DRIVER),
    Normalised(
        "dcgm", "gpu:driver", (dcgm("GPU_TEMP", 40, ',modelName="A100",DCGM_FI_DRIVER_VERSION="580.1"'),), 1, _DRIVER
    ),
    Normalised(
        "dcgm49",
        "gpu:driver",
        (dcgm("GPU_TEMP_CELSIUS", 40, ',modelName="A100",DCGM_FI_SYSTEM_DRIVER_VERSION="580.1"'),),
        1,
        _DRIVER,
    ),
)


class Case(t.NamedTuple):
    """What fires once it has held long enough, by its labels without the severity; an alert that is silent has no labels."""

    alert: str
    raw: tuple[Series, ...]
    fires: tuple[t.Mapping[str, str], ...] = ()


UP = ('up{job="gpu",instance="n1:9835",node="n1",gpu_expected="2"}', "1+0x70")
DOWN = ('up{job="gpu",instance="n1:9835",node="n1",gpu_expected="2"}', "0+0x70")
_FIRST = ('nvidia_smi_gpu_info{node="n1",uuid="aa",name="A100",gpu_expected="2"}', "1+0x70")
_SECOND = ('nvidia_smi_gpu_info{node="n1",uuid="bb",name="A100",gpu_expected="2"}', "1+0x70")
_TWO = {"node": "n1", "gpu_expected": "2"}


def _pod(name: str, node: str, values: str = "1+0x70", scheduler: str = "a") -> Series:
    labels = (
        f'namespace="ml",pod="{name}",node="{node}",resource="nvidia.com/gpu",unit="integer",instance="{scheduler}"'
    )
    return f"kube_pod_resource_request{{{labels}}}", values


def _node(kind: str, value: int, resource: str = "nvidia_com_gpu") -> Series:
    return f'kube_node_status_{kind}{{node="n1",resource="{resource}",unit="integer"}}', f"{value}+0x70"


def _driver(node: str, model: str, version: str) -> Series:
    labels = f'node="{node}",uuid="{node}",name="{model}",driver_version="{version}"'
    return f"nvidia_smi_gpu_info{{{labels}}}", "1+0x70"


def _xid(xid: int, remedy: str) -> dict[str, str]:
    return {**NVIDIA, "xid": str(xid), "remedy": remedy}


def _on_gpu(
    alert: str, series: str, fires: object, silent: object, more: t.Mapping[str, str] = {}
) -> tuple[Case, Case]:
    return (
        Case(alert, (smi(series, fires),), ({**NVIDIA, **more},)),
        Case(alert, (smi(series, silent),)),
    )


CASES: tuple[Case, ...] = (
    Case("GpuExporterAbsent", (_FIRST,), ({"job": "gpu"},)),
    Case("GpuExporterAbsent", (UP,)),
    Case("GpuExporterAbsent", (DOWN,)),
    Case("GpuExporterDown", (DOWN,), ({"node": "n1", "instance": "n1:9835"},)),
    Case("GpuExporterDown", (UP,)),
    Case("GpuCollectionFailing", (('nvidia_smi_last_collect_success{node="n1"}', "0+0x70"),), ({"node": "n1"},)),
    Case("GpuCollectionFailing", (('nvidia_smi_command_exit_code{node="n1"}', "9+0x70"),), ({"node": "n1"},)),
    Case("GpuCollectionFailing", (('nvidia_smi_command_exit_code{node="n1"}', "0+0x70"),)),
    Case("GpuCollectionFailing", (('nvidia_smi_last_collect_success{node="n1"}', "1+0x70"),)),
    Case(
        "GpuCollectionStale",
        (('nvidia_smi_last_collect_success_timestamp_seconds{node="n1"}', "300+0x70"),),
        ({"node": "n1"},),
    ),
    Case("GpuCollectionStale", (('nvidia_smi_last_collect_success_timestamp_seconds{node="n1"}', "720+0x70"),)),
    # It has never succeeded, which GpuCollectionFailing reports.
    Case("GpuCollectionStale", (('nvidia_smi_last_collect_success_timestamp_seconds{node="n1"}', "0+0x70"),)),
    Case("GpuMissing", (UP, _FIRST), (_TWO,)),
    Case("GpuMissing", (UP,), (_TWO,)),
    Case("GpuMissing", (UP, _FIRST, _SECOND)),
    Case("GpuMissing", (DOWN,)),
    Case("GpuMissing", (UP, ('nvidia_smi_last_collect_success{node="n1"}', "0+0x70"))),
    # A second target of the same exporter has no number.
    Case(
        "GpuMissing",
        (UP, _FIRST, _SECOND, *((name.replace(',gpu_expected="2"', ""), of) for name, of in (_FIRST, _SECOND))),
    ),
    # The targets of others have no number.
    Case(
        "GpuMissing",
        (('up{job="gpu",node="other"}', "1+0x70"), ('nvidia_smi_gpu_info{node="other",uuid="cc",name="T4"}', "1+0x70")),
    ),
    Case("GpuXid", (smi("xid_last_timestamp_seconds", 700, ',xid="119"'),), (_xid(119, "reset_gpu"),)),
    Case("GpuXid", (smi("xid_last_timestamp_seconds", 700, ',xid="79"'),), (_xid(79, "reboot"),)),
    Case("GpuXid", (smi("xid_last_timestamp_seconds", 700, ',xid="74"'),), (_xid(74, "inspect"),)),
    Case("GpuXid", (dcgm("DCGM_EXP_XID_ERRORS_COUNT", 2, ',xid="63"'),), (_xid(63, "reset_when_idle"),)),
    Case("GpuXid", (dcgm("DCGM_EXP_XID_ERRORS_COUNT", 1, ',xid="170"'),), (_xid(170, "unknown"),)),
    # Not in the table: a number of a later driver.
    Case("GpuXid", (dcgm("DCGM_EXP_XID_ERRORS_COUNT", 1, ',xid="999"'),), (_xid(999, "unknown"),)),
    # Older than the window; a counter that does not grow; an error of a program.
    Case("GpuXid", (smi("xid_last_timestamp_seconds", 300, ',xid="79"'),)),
    Case("GpuXid", (dcgm("DCGM_EXP_XID_ERRORS_TOTAL", 3, ',xid="79"'),)),
    Case("GpuXid", (smi("xid_last_timestamp_seconds", 700, ',xid="31"'),)),
    # The last Xid never goes back to 0, so that an alert on it would stay.
    Case("GpuXid", (dcgm("XID_ERRORS", 79),)),
    *_on_gpu("GpuRecoveryActionNeeded", "gpu_recovery_action", 1, 0),
    *_on_gpu("GpuUncorrectedEcc", "ecc_errors_uncorrected_volatile_total", 1, 0),
    *_on_gpu("GpuRowRemapFailed", "remapped_rows_failure", 1, 0),
    *_on_gpu("GpuSramThresholdExceeded", "ecc_errors_uncorrected_aggregate_sram_threshold_exceeded", 1, 0),
    *_on_gpu("GpuRowRemapPending", "remapped_rows_pending", 1, 0),
    *_on_gpu("GpuThrottled", "clocks_event_reasons_hw_thermal_slowdown", 1, 0, {"why": "thermal"}),
    Case("GpuThrottled", (dcgm("CLOCKS_EVENT_REASONS", 0x80),), ({**NVIDIA, "why": "power_brake"},)),
    # The software's power cap is how a GPU under load works.
    Case("GpuThrottled", (dcgm("CLOCKS_EVENT_REASONS", 0x04),)),
    *_on_gpu("GpuTemperatureMarginLow", "temperature_gpu_tlimit", 4, 5),
    # 85 degrees Celsius are in order for many models.
    Case("GpuTemperatureMarginLow", (smi("temperature_gpu", 85), smi("temperature_gpu_tlimit", 8))),
    Case("GpuPcieLinkNarrow", (smi("pcie_link_width_current", 8), smi("pcie_link_width_max", 16)), (NVIDIA,)),
    Case(
        "GpuPcieLinkNarrow",
        (smi("pcie_link_width_current", 16), smi("pcie_link_width_max", 16), smi("pcie_link_gen_current", 1)),
    ),
    *_on_gpu("GpuFabricNotReady", "fabric_state", 1, 3),
    Case("GpuFabricNotReady", (smi("fabric_state", 2),), (NVIDIA,)),
    Case("GpuFabricNotReady", (smi("fabric_state", 0),)),
    Case(
        "GpuAllocatableBelowCapacity",
        (_node("capacity", 8), _node("allocatable", 7)),
        ({"node": "n1", "resource": "nvidia.com/gpu"},),
    ),
    Case("GpuAllocatableBelowCapacity", (_node("capacity", 8), _node("allocatable", 8))),
    Case("GpuPluginAbsent", (_FIRST, _SECOND, ('kube_node_info{node="n1"}', "1+0x70")), ({"node": "n1"},)),
    Case(
        "GpuPluginAbsent", (_FIRST, _node("allocatable", 0), ('kube_node_info{node="n1"}', "1+0x70")), ({"node": "n1"},)
    ),
    Case("GpuPluginAbsent", (_FIRST, _node("allocatable", 2), ('kube_node_info{node="n1"}', "1+0x70"))),
    Case(
        "GpuPluginAbsent",
        (_FIRST, _node("allocatable", 2, "nvidia_com_a100"), ('kube_node_info{node="n1"}', "1+0x70")),
    ),
    Case(
        "GpuPluginAbsent",
        (_FIRST, _node("allocatable", 2, "volcano_sh_vgpu_number"), ('kube_node_info{node="n1"}', "1+0x70")),
    ),
    Case(
        "GpuPluginAbsent",
        (_FIRST, _node("allocatable", 2, "nvidia_com_hostdev"), ('kube_node_info{node="n1"}', "1+0x70")),
        ({"node": "n1"},),
    ),
    # A machine that is not in the cluster.
    Case("GpuPluginAbsent", (_FIRST,)),
    Case("GpuPodPending", (_pod("p", ""),), ({"namespace": "ml", "pod": "p", "resource": "nvidia.com/gpu"},)),
    Case("GpuPodPending", (_pod("p", "n1"),)),
    Case("GpuIdleButAllocated", (_pod("p", "n1"), smi("utilization_gpu_ratio", 0)), ({"node": "n1"},)),
    Case("GpuIdleButAllocated", (_pod("p", "n1"), smi("utilization_gpu_ratio", 0.5))),
    Case("GpuIdleButAllocated", (_pod("p", ""), smi("utilization_gpu_ratio", 0))),
    Case("GpuMemoryNearlyFull", (smi("memory_used_bytes", 97), smi("memory_total_bytes", 100)), (NVIDIA,)),
    # The seed of this alert read the load of the memory controller.
    Case(
        "GpuMemoryNearlyFull",
        (smi("utilization_memory_ratio", 0.99), smi("memory_used_bytes", 20), smi("memory_total_bytes", 100)),
    ),
    *_on_gpu("GpuUtilizationHigh", "utilization_gpu_ratio", 0.95, 0.9),
    *_on_gpu("GpuThrottledBySoftware", "clocks_event_reasons_sw_thermal_slowdown", 1, 0),
    # The hardware's own slowdown has an alert of its own, and the reverse.
    Case("GpuThrottledBySoftware", (dcgm("CLOCKS_EVENT_REASONS", 0x40),)),
    Case("GpuThrottled", (dcgm("CLOCKS_EVENT_REASONS", 0x20),)),
    *_on_gpu("GpuPersistenceModeOff", "persistence_mode", 0, 1),
    Case("GpuModePending", (smi("mig_mode_pending", 1), smi("mig_mode_current", 0)), ({**NVIDIA, "mode": "mig"},)),
    Case("GpuModePending", (smi("ecc_mode_pending", 1), smi("ecc_mode_current", 0)), ({**NVIDIA, "mode": "ecc"},)),
    Case("GpuModePending", (smi("ecc_mode_pending", 1), smi("ecc_mode_current", 1))),
    Case("GpuDriverVersionsDiffer", (_driver("n1", "A100", "1"), _driver("n2", "A100", "2")), ({"model": "A100"},)),
    Case("GpuDriverVersionsDiffer", (_driver("n1", "A100", "1"), _driver("n2", "A100", "1"))),
    # Another model may need another branch, and an exporter may not report the version.
    Case("GpuDriverVersionsDiffer", (_driver("n1", "A100", "1"), _driver("n2", "T4", "2"))),
    Case("GpuDriverVersionsDiffer", (_driver("n1", "A100", "1"), _driver("n2", "A100", ""))),
)


#: The minute at which alerts are compared whose series have a time in them; others after they have held long enough, and one minute before.
MINUTES = {"GpuCollectionStale": 12, "GpuXid": 12}
#: Alerts about several nodes together: their cases cannot share a test.
GLOBAL = ("GpuExporterAbsent", "GpuDriverVersionsDiffer")


class Recorded(t.NamedTuple):
    """What the rules about pods and nodes record at the second minute."""

    expression: str
    raw: tuple[Series, ...]
    labels: t.Mapping[str, str]
    value: float


def _ksm(container: str, value: int, resource: str = "nvidia_com_gpu") -> Series:
    labels = f'namespace="ml",pod="p",container="{container}",node="n1",resource="{resource}",unit="integer"'
    return f"kube_pod_container_resource_requests{{{labels}}}", f"{value}+0x70"


_P = {"namespace": "ml", "pod": "p", "node": "n1"}
RECORDED: tuple[Recorded, ...] = (
    # Each replica of kube-scheduler reports all pods, and so does kube-state-metrics.
    Recorded(
        "gpu:requested:by_pod",
        (_pod("p", "n1", "2+0x70"), _pod("p", "n1", "2+0x70", "b"), _ksm("c", 2)),
        {**_P, "resource": "nvidia.com/gpu"},
        2,
    ),
    # Without honor_labels, namespace and pod are those of kube-scheduler.
    Recorded(
        "gpu:requested:by_pod",
        (
            (
                'kube_pod_resource_request{namespace="kube-system",pod="s",exported_namespace="ml",exported_pod="p",node="n1",resource="nvidia.com/gpu"}',
                "2+0x70",
            ),
        ),
        {**_P, "resource": "nvidia.com/gpu"},
        2,
    ),
    Recorded("gpu:requested:by_pod", (_ksm("c", 1, "nvidia_com_a100"),), {**_P, "resource": "nvidia.com/a100"}, 1),
    Recorded(
        "gpu:requested:by_pod",
        (_ksm("c", 1, "volcano_sh_vgpu_number"),),
        {**_P, "resource": "volcano.sh/vgpu-number"},
        1,
    ),
    Recorded("gpu:requested:by_pod", (_ksm("c", 2), _ksm("d", 1)), {**_P, "resource": "nvidia.com/gpu"}, 3),
    Recorded(
        "gpu:requested:by_pod", (_ksm("c", 4, "aliyun_com_gpu_mem"),), {**_P, "resource": "aliyun.com/gpu-mem"}, 4
    ),
    Recorded(
        "gpu:requested:by_pod", (_ksm("c", 50, "nano_gpu_gpu_percent"),), {**_P, "resource": "nano-gpu/gpu-percent"}, 50
    ),
    Recorded(
        "gpu:requested:by_pod", (_ksm("c", 1, "nvidia_com_mig_1g_5gb"),), {**_P, "resource": "nvidia.com/mig-1g.5gb"}, 1
    ),
    Recorded(
        "gpu:allocated:by_namespace",
        (_pod("p", "n1"), _pod("q", "n2"), _pod("r", "")),
        {"namespace": "ml", "resource": "nvidia.com/gpu"},
        2,
    ),
)
#: A pod that has ended holds nothing.
ENDED = (_ksm("c", 2), ('kube_pod_status_phase{namespace="ml",pod="p",phase="Succeeded"}', "1+0x70"))

#: Faults of the rules: what is replaced, by what, and the alert or series whose cases find it.
MUTANTS: tuple[tuple[str, str, str], ...] = (
    ("max by (namespace, pod, node, resource)", "sum by (namespace, pod, node, resource)", "gpu:requested:by_pod"),
    ("DCGM_FI_DEV_GPU_UTIL / 100", "DCGM_FI_DEV_GPU_UTIL", "gpu:utilization:ratio"),
    ("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS) / 64", "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS) / 128", "gpu:throttled"),
    ("GPU-$1", "$1", "gpu:power:watts"),
    (
        "nvidia_smi_memory_used_bytes / nvidia_smi_memory_total_bytes",
        "nvidia_smi_utilization_memory_ratio",
        "GpuMemoryNearlyFull",
    ),
    ("gpu:utilization:ratio > 0.9", "gpu:utilization:ratio > 90", "GpuUtilizationHigh"),
    ("gpu:temperature_margin:celsius < 5", "gpu:temperature:celsius > 80", "GpuTemperatureMarginLow"),
    ("nvidia_smi_xid_last_timestamp_seconds < 300", "nvidia_smi_xid_last_timestamp_seconds < 3000", "GpuXid"),
    ("DCGM_EXP_XID_ERRORS_COUNT > 0", "DCGM_FI_DEV_XID_ERRORS > 0", "GpuXid"),
    ("absent(up", "count(up", "GpuExporterAbsent"),
    (' or max by (node, gpu_expected) (up{job=\\"gpu\\", gpu_expected!=\\"\\"} == 1) * 0', "", "GpuMissing"),
    (" (group by (node, gpu_uuid) (gpu:present))", " (gpu:present)", "GpuMissing"),
    ('gpu:requested:by_pod{node=\\"\\"} > 0', "gpu:requested:by_pod > 0", "GpuPodPending"),
    ("gpu:pcie_link_width:ratio < 1", "gpu:pcie_link_width:ratio < 0.5", "GpuPcieLinkNarrow"),
    (" and on (node) gpu:node:in_cluster", "", "GpuPluginAbsent"),
    ("or gpu:fabric_state == 2", "", "GpuFabricNotReady"),
    (
        "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS) / 32",
        "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS) / 64",
        "gpu:throttled_by_software",
    ),
    ("gpu:persistence_mode == 0", "gpu:persistence_mode == 1", "GpuPersistenceModeOff"),
    ("nvidia_smi_ecc_mode_pending != bool", "nvidia_smi_ecc_mode_pending == bool", "GpuModePending"),
    ("count by (model, driver_version)", "count by (model, node)", "GpuDriverVersionsDiffer"),
    ('{driver_version!=\\"\\"}', "", "GpuDriverVersionsDiffer"),
    ('"for": "15m"', '"for": "3h"', "GpuPodPending"),
    ('"for": "5m"', '"for": "0s"', "GpuMissing"),
)
