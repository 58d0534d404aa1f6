# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The normalised series: recording rules that read the series of every exporter and of each generation of their names.

Alerts, dashboards and reports read these series alone. An expression of a source is written in the exporter's own names; the identity of its GPU
becomes the label ``gpu_uuid``. Names and units were compared with the exporters' documentation on 2026-11-26.
"""

from __future__ import annotations

from typing import Callable, Iterable, Mapping, NamedTuple

from .._sharing.catalogue import STRATEGIES
from .._vendors import OTHER_RESOURCES

#: The job that scrapes the exporters. Alerts name it.
JOB = "gpu"
#: Seconds for which a reported Xid counts as recent; the window of dcgm-exporter.
XID_WINDOW = 300


class Exporter(NamedTuple):
    """One exporter, or a generation of its names, and its labels for the GPU: (label, value of ``gpu_uuid``), and for the product; empty if none."""

    title: str
    uuid: tuple[str, str]
    model: str = ""


EXPORTERS: Mapping[str, Exporter] = {
    "smi": Exporter("nvidia_gpu_exporter 1.x and 2.x", ("uuid", "GPU-$1"), "name"),
    "dcgm": Exporter("dcgm-exporter before 4.9", ("UUID", "$1"), "modelName"),
    "dcgm49": Exporter("dcgm-exporter 4.9 and newer", ("UUID", "$1"), "modelName"),
    # What has the same name and unit in both generations.
    "dcgm_any": Exporter("dcgm-exporter", ("UUID", "$1"), "modelName"),
    "amd": Exporter("AMD device-metrics-exporter", ("serial_number", "$1"), "card_model"),
    "intel": Exporter("Intel xpumd", ("pci_bdf", "$1"), "hw_model"),
}


class Series(NamedTuple):
    """One normalised series: what it holds, the expression of each exporter, the labels that it keeps, and those that it adds.

    ``aggregate`` is ``max``, or ``group`` where the value is 1. Without an exporter (``""``) an expression is used as it is.
    """

    name: str
    help: str
    sources: tuple[tuple[str, str], ...]
    by: tuple[str, ...] = ("node", "gpu_uuid")
    aggregate: str = "max"
    labels: Mapping[str, str] = {}


def _smi(name: str) -> str:
    return f"nvidia_smi_{name}"


def _dcgm(name: str) -> str:
    return f"DCGM_FI_DEV_{name}"


def _amd(name: str) -> str:
    """Return a series of AMD's exporter, whose prefix is a setting of it."""
    return f'{{__name__=~"(amd_)?gpu_{name}"}}'


def _bit(value: int) -> str:
    """Return 1 where a bit of the clock event reasons is set; PromQL has no operator for it. Both names are of one field, and the first wins."""
    return f"floor((DCGM_FI_DEV_CLOCKS_EVENT_REASONS or DCGM_FI_DEV_CLOCK_THROTTLE_REASONS) / {value}) % 2"


def _simple(
    smi: str = "", dcgm: str = "", dcgm49: str = "", amd: str = "", intel: str = "", dcgm_any: str = ""
) -> tuple[tuple[str, str], ...]:
    """Return the sources of a series that each exporter has under one name, in one unit."""
    found = [
        ("smi", smi and _smi(smi)),
        ("dcgm", dcgm and _dcgm(dcgm)),
        ("dcgm49", dcgm49 and _dcgm(dcgm49)),
        ("dcgm_any", dcgm_any and _dcgm(dcgm_any)),
        ("amd", amd and _amd(amd)),
        ("intel", intel),
    ]
    return tuple((exporter, expression) for exporter, expression in found if expression)


def _throttled(why: str, reason: str, bit: int) -> Series:
    smi = f"{_smi(f'clocks_event_reasons_{reason}')} or {_smi(f'clocks_throttle_reasons_{reason}')}"
    return Series(
        "gpu:throttled",
        "1 while the hardware lowers the clocks: `thermal` for heat, `power_brake` for the power supply",
        (("smi", smi), ("dcgm_any", _bit(bit))),
        labels={"why": why},
    )


def _mode_pending(mode: str) -> Series:
    expression = f"{_smi(f'{mode}_mode_pending')} != bool {_smi(f'{mode}_mode_current')}"
    return Series(
        "gpu:mode_pending", "1 if the mode changes at the next reset", (("smi", expression),), labels={"mode": mode}
    )


def _label_driver(expression: str, label: str) -> str:
    return f'label_replace({expression}, "driver_version", "$1", "{label}", "(.+)")'


_GPU = ("node", "gpu_uuid")
_FB_USED, _FB_FREE, _FB_RESERVED = _dcgm("FB_USED"), _dcgm("FB_FREE"), _dcgm("FB_RESERVED")
_XID_TOTAL = "DCGM_EXP_XID_ERRORS_TOTAL"

#: By exporters, for each GPU or each node.
GPU_SERIES: tuple[Series, ...] = (
    Series(
        "gpu:present",
        "1 for each GPU that its exporter reports",
        _simple("gpu_info", "GPU_TEMP", "GPU_TEMP_CELSIUS", "total_vram", "hw_gpu_info"),
        by=(*_GPU, "model", "gpu_expected"),
        aggregate="group",
    ),
    Series(
        "gpu:utilization:ratio",
        "share of time in which the GPU computes, 0 to 1",
        (
            *_simple("utilization_gpu_ratio", dcgm49="GPU_UTIL_RATIO"),
            ("dcgm", f"{_dcgm('GPU_UTIL')} / 100"),
            ("amd", f"{_amd('gfx_activity')} / 100"),
            # Of its engines, the busiest.
            ("intel", "hw_gpu_utilization_ratio"),
        ),
    ),
    Series(
        "gpu:memory_used:ratio",
        "used share of the GPU's memory, 0 to 1",
        (
            ("smi", f"{_smi('memory_used_bytes')} / {_smi('memory_total_bytes')}"),
            ("dcgm", f"{_FB_USED} / ({_FB_USED} + {_FB_FREE} + ({_FB_RESERVED} or {_FB_FREE} * 0))"),
            ("dcgm49", f"{_dcgm('FB_USED_BYTES')} / {_dcgm('FB_CAPACITY_BYTES')}"),
            ("amd", f"{_amd('used_vram')} / {_amd('total_vram')}"),
            ("intel", "hw_memory_utilization_ratio"),
        ),
    ),
    Series(
        "gpu:temperature:celsius",
        "temperature of the GPU in degrees Celsius",
        _simple("temperature_gpu", "GPU_TEMP", "GPU_TEMP_CELSIUS", "junction_temperature", "hw_temperature_celsius"),
    ),
    Series(
        "gpu:temperature_margin:celsius",
        "degrees Celsius up to the temperature at which the GPU lowers its clocks",
        _simple("temperature_gpu_tlimit", "GPU_TEMP_LIMIT", "GPU_TEMP_MARGIN_CELSIUS"),
        aggregate="min",
    ),
    Series(
        "gpu:power:watts",
        "power that the GPU draws, in watts",
        _simple("power_draw_watts", "POWER_USAGE", "BOARD_POWER_WATTS", "package_power", "hw_power_watts"),
    ),
    _throttled("thermal", "hw_thermal_slowdown", 0x40),
    _throttled("power_brake", "hw_power_brake_slowdown", 0x80),
    Series(
        "gpu:throttled_by_software",
        "1 while the driver lowers the clocks for heat",
        (
            (
                "smi",
                f"{_smi('clocks_event_reasons_sw_thermal_slowdown')} or {_smi('clocks_throttle_reasons_sw_thermal_slowdown')}",
            ),
            ("dcgm_any", _bit(0x20)),
        ),
    ),
    Series(
        "gpu:xid:recent",
        f"1 for each Xid of the last {XID_WINDOW // 60} minutes",
        (
            ("smi", f"time() - {_smi('xid_last_timestamp_seconds')} < {XID_WINDOW}"),
            ("dcgm_any", "DCGM_EXP_XID_ERRORS_COUNT > 0"),
            ("dcgm_any", f"increase({_XID_TOTAL}[{XID_WINDOW}s]) > 0"),
            # A counter that begins above 0 has no increase yet.
            ("dcgm_any", f"{_XID_TOTAL} > 0 unless {_XID_TOTAL} offset {XID_WINDOW}s"),
        ),
        by=(*_GPU, "xid"),
        aggregate="group",
    ),
    Series(
        "gpu:recovery_action",
        "what the driver requires: 0 nothing, 1 reset, 2 reboot, 3 drain of peers, 4 drain and reset",
        _simple("gpu_recovery_action", "GET_GPU_RECOVERY_ACTION", "GPU_RECOVERY_ACTION"),
    ),
    Series(
        "gpu:ecc_uncorrected:since_load",
        "uncorrected memory errors since the driver was loaded",
        (
            *_simple("ecc_errors_uncorrected_volatile_total", dcgm_any="ECC_DBE_VOL_TOTAL", amd="ecc_uncorrect_total"),
            ("intel", 'hw_errors_total{error_type="uncorrectable"}'),
        ),
    ),
    Series(
        "gpu:sram_threshold_exceeded",
        "1 if the uncorrected SRAM errors exceed the manufacturer's threshold",
        _simple("ecc_errors_uncorrected_aggregate_sram_threshold_exceeded", "THRESHOLD_SRM", "SRAM_EXCEEDED"),
    ),
    Series(
        "gpu:row_remap_failed",
        "1 if a defective row of memory could not be replaced",
        _simple("remapped_rows_failure", "ROW_REMAP_FAILURE", "ROW_REMAP_FAILED"),
    ),
    Series(
        "gpu:row_remap_pending",
        "1 if a row of memory is replaced at the next reset",
        _simple("remapped_rows_pending", dcgm_any="ROW_REMAP_PENDING"),
    ),
    Series(
        "gpu:pcie_link_width:ratio",
        "lanes of the PCIe link that work, 0 to 1",
        (
            ("smi", f"{_smi('pcie_link_width_current')} / {_smi('pcie_link_width_max')}"),
            ("dcgm_any", f"{_dcgm('PCIE_LINK_WIDTH')} / {_dcgm('PCIE_MAX_LINK_WIDTH')}"),
        ),
    ),
    Series(
        "gpu:fabric_state",
        "state of the NVLink fabric: 0 not supported, 1 not started, 2 in progress, 3 completed",
        _simple("fabric_state"),
    ),
    Series("gpu:persistence_mode", "1 if the driver keeps the GPU initialized", _simple("persistence_mode")),
    _mode_pending("mig"),
    _mode_pending("ecc"),
    Series(
        "gpu:driver",
        "1 for each GPU, with the version of its driver",
        (
            *_simple("gpu_info"),
            ("dcgm", _label_driver(_dcgm("GPU_TEMP"), "DCGM_FI_DRIVER_VERSION")),
            ("dcgm49", _label_driver(_dcgm("GPU_TEMP_CELSIUS"), "DCGM_FI_SYSTEM_DRIVER_VERSION")),
        ),
        by=(*_GPU, "model", "driver_version"),
        aggregate="group",
    ),
    Series(
        "gpu:collection:success",
        "1 if the exporter could read the GPUs of the node",
        (("", f"{_smi('last_collect_success')} or {_smi('command_exit_code')} == bool 0"),),
        by=("node",),
    ),
    Series(
        "gpu:collection:timestamp_seconds",
        "when the exporter could last read the GPUs, seconds since 1970",
        (("", f"{_smi('last_collect_success_timestamp_seconds')} > 0"),),
        by=("node",),
    ),
)

#: A device plugin may give its resource another name below nvidia.com.
_PATTERNS = dict.fromkeys(
    [
        *(each for row in STRATEGIES.values() for each in row.resources if not each.startswith("nvidia.com/")),
        "nvidia.com/*",
        "volcano.sh/vgpu-number",
        *OTHER_RESOURCES,
    ]
)
#: No GPUs: of NVIDIA's network operator, and what a pod of HAMi requests besides its GPUs.
_OTHERS = (
    *("nvidia.com/hostdev*", "nvidia.com/*rdma*", "nvidia.com/*sriov*", "nvidia.com/*nic*", "nvidia.com/mlnx*"),
    *("nvidia.com/gpumem*", "nvidia.com/gpucores", "nvidia.com/priority"),
)


def _regex(patterns: Iterable[str]) -> str:
    """Return a regular expression for a label of PromQL, in quotes, from shell patterns."""
    escaped = (each.replace(".", r"\\.").replace("*", ".*").replace("?", ".") for each in patterns)
    return f'"{"|".join(escaped)}"'


def _select(write: Callable[[str], str]) -> str:
    """Return the matchers of the resources of GPUs, with names as *write* writes them."""
    return f"resource=~{_regex(map(write, _PATTERNS))}, resource!~{_regex(map(write, _OTHERS))}"


def _mangle(name: str) -> str:
    """Return the name of a resource as kube-state-metrics writes it."""
    return name.translate(str.maketrans("./-", "___"))


def _restore_names(expression: str) -> str:
    """Return the series with the names of resources as Kubernetes has them, where kube-state-metrics replaces characters."""
    known = dict.fromkeys(
        [*_PATTERNS, *(name for row in STRATEGIES.values() for name in (*row.resources, *row.counted.values()))]
    )
    rows = [(_mangle(name), name) for name in known if not set(name) & set("*?")]
    rows.append(("nvidia_com_mig_([0-9]+g)_([0-9]+gb)", "nvidia.com/mig-$1.$2"))
    rows.append(("nvidia_com_(.+)", "nvidia.com/$1"))
    for mangled, name in rows:
        expression = f'label_replace({expression}, "resource", "{name}", "resource", "{mangled}")'
    return expression


def _restore_pods(expression: str) -> str:
    """Return the series with the pods' names, where Prometheus kept those of kube-scheduler's own pod, without ``honor_labels``."""
    for name in ("namespace", "pod"):
        expression = f'label_replace({expression}, "{name}", "$1", "exported_{name}", "(.+)")'
    return expression


#: The resources by which pods get GPUs, as the API server, and as kube-state-metrics writes them.
RESOURCES = _select(str)
_MANGLED = _select(_mangle)
_FINISHED = 'kube_pod_status_phase{phase=~"Succeeded|Failed"} == 1'
_POD = ("namespace", "pod", "node", "resource")

#: By kube-scheduler and kube-state-metrics, for pods and nodes.
CLUSTER_SERIES: tuple[Series, ...] = (
    Series(
        "gpu:requested:by_pod",
        "what each pod requests, in units of the resource; `node` is empty while the pod is pending",
        (
            # Each replica of kube-scheduler reports all pods.
            ("", _restore_pods(f"kube_pod_resource_request{{{RESOURCES}}}")),
            (
                "",
                "sum by (namespace, pod, node, resource) (max by (namespace, pod, container, node, resource) ("
                + _restore_names(f"kube_pod_container_resource_requests{{{_MANGLED}}}")
                + f")) unless on (namespace, pod) ({_FINISHED})",
            ),
        ),
        by=_POD,
    ),
    Series(
        "gpu:allocated:by_namespace",
        "what the pods on nodes request, in units of the resource",
        (("", 'gpu:requested:by_pod{node!=""}'),),
        by=("namespace", "resource"),
        aggregate="sum",
    ),
    *(
        Series(
            f"gpu:{kind}:by_node",
            f"{kind} of the node, in units of the resource; needs kube-state-metrics",
            (("", _restore_names(f"kube_node_status_{kind}{{{_MANGLED}}}")),),
            by=("node", "resource"),
        )
        for kind in ("capacity", "allocatable")
    ),
    Series(
        "gpu:node:in_cluster",
        "1 for each node of the cluster; needs kube-state-metrics",
        (("", "kube_node_info"),),
        by=("node",),
        aggregate="group",
    ),
)

SERIES = (*GPU_SERIES, *CLUSTER_SERIES)


def build_expression(series: Series) -> str:
    """Return the expression of the recording rule."""
    parts = [_identify(exporter, expression, "model" in series.by) for exporter, expression in series.sources]
    if len(parts) > 1:
        parts = [f"({part})" if " " in part and not part.startswith("label_replace(") else part for part in parts]
    return f"{series.aggregate} by ({', '.join(series.by)}) ({' or '.join(parts)})"


def build_recording_rules(rows: Iterable[Series]) -> list[dict[str, object]]:
    """Return the recording rules of the rows, as a rule file has them."""
    return [
        {"record": row.name, "expr": build_expression(row), **({"labels": dict(row.labels)} if row.labels else {})}
        for row in rows
    ]


def _identify(exporter: str, expression: str, model: bool) -> str:
    """Return the expression with the labels ``gpu_uuid`` and, if requested, ``model``."""
    if not exporter:
        return expression
    row = EXPORTERS[exporter]
    if row.uuid[0]:
        expression = f'label_replace({expression}, "gpu_uuid", "{row.uuid[1]}", "{row.uuid[0]}", "(.+)")'
    if model and row.model:
        expression = f'label_replace({expression}, "model", "$1", "{row.model}", "(.+)")'
    return expression
