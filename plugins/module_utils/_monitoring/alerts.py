# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The alerts, as rows: they read the normalised series alone. The rule file, the PrometheusRule and the page of runbooks are made from these rows."""

from __future__ import annotations

from typing import Mapping, NamedTuple

from . import xid
from .series import JOB

SEVERITIES = ("critical", "warning", "info")

#: Placeholders of Prometheus in the texts.
_GPU = "GPU {{ $labels.gpu_uuid }} of node {{ $labels.node }}"
_NODE = "Node {{ $labels.node }}"
#: How many GPUs the node has. Two targets may report the same GPU.
_COUNT = "count by (node) (group by (node, gpu_uuid) (gpu:present))"
_RESET = (
    "Drain the node and reset the GPU with nvidia-smi --gpu-reset, then restart the device plugin's pod on the node."
)


class Alert(NamedTuple):
    """One alert: expression, how long it has to hold, severity, and texts for people. *labels* are added to those of the expression.

    *check* is the id of the doctor's check that finds the same fault on the node; empty if there is none.
    """

    name: str
    expression: str
    hold: str
    severity: str
    summary: str
    cause: str
    remedy: str
    labels: Mapping[str, str] = {}
    enabled: bool = True
    check: str = ""


def _xid_alerts() -> tuple[Alert, ...]:
    return tuple(
        Alert(
            "GpuXid",
            f"gpu:xid:recent{{{xid.build_selector(bucket)}}}",
            "0s",
            bucket.severity,
            f"{_GPU}: Xid {{{{ $labels.xid }}}}",
            f"{bucket.cause}.",
            bucket.remedy,
            labels={"remedy": bucket.name},
            check="kernel.xid",
        )
        for bucket in xid.BUCKETS
        if bucket.severity
    )


_EXPORTERS: tuple[Alert, ...] = (
    Alert(
        "GpuExporterAbsent",
        f'absent(up{{job="{JOB}"}})',
        "10m",
        "critical",
        "Prometheus has no target with GPUs",
        f"The job {JOB} or its files of targets are gone from Prometheus' configuration, so that no other alert of GPUs can fire.",
        "Run the playbook deploy_gpu_monitoring, and look at the targets in Prometheus.",
        check="mon.scraped",
    ),
    Alert(
        "GpuExporterDown",
        f'max by (node, instance) (up{{job="{JOB}"}}) == 0',
        "5m",
        "warning",
        "The exporter of node {{ $labels.node }} ({{ $labels.instance }}) does not answer",
        "The node is down, the exporter is stopped, or a firewall is between it and Prometheus. nvidia_gpu_exporter 2 does not start without a driver.",
        "Check the node, then the service of the exporter and its log on the node.",
        check="mon.exporter",
    ),
    Alert(
        "GpuCollectionFailing",
        "gpu:collection:success == 0",
        "10m",
        "critical",
        f"{_NODE}: the exporter cannot read the GPUs",
        "The driver does not answer, or its kernel module and its libraries have different versions.",
        "Run nvidia-smi on the node; after an upgrade of the driver, reboot the node.",
        check="lib.answers",
    ),
    Alert(
        "GpuCollectionStale",
        "time() - gpu:collection:timestamp_seconds > 300",
        "0s",
        "critical",
        f"{_NODE}: the GPUs were last read {{{{ $value | humanizeDuration }}}} ago",
        "A read of the driver hangs, and the exporter serves old values.",
        "Look for processes in state D and for Xids in the kernel log of the node; a reboot ends a hang.",
        check="kernel.dstate",
    ),
    Alert(
        "GpuMissing",
        '(count by (node, gpu_expected) (group by (node, gpu_uuid, gpu_expected) (gpu:present{gpu_expected!=""}))'
        f' or max by (node, gpu_expected) (up{{job="{JOB}", gpu_expected!=""}} == 1) * 0)'
        f' unless on (node, gpu_expected) count_values by (node) ("gpu_expected", {_COUNT})'
        # GpuCollectionFailing reports a node of which no GPU can be read.
        " unless on (node) gpu:collection:success == 0",
        "5m",
        "critical",
        f"{_NODE} reports {{{{ $value }}}} of {{{{ $labels.gpu_expected }}}} GPUs",
        "A GPU has fallen off the bus, or the driver does not serve it. A different number also follows from GPUs that were added or removed on purpose.",
        "Look for the GPU with lspci and for Xid 79 in the kernel log; reboot the node. After a planned change, run deploy_gpu_monitoring again.",
        check="lib.serves",
    ),
)

_HEALTH: tuple[Alert, ...] = (
    *_xid_alerts(),
    Alert(
        "GpuRecoveryActionNeeded",
        "gpu:recovery_action > 0",
        "0s",
        "critical",
        f"{_GPU}: the driver requires recovery action {{{{ $value }}}}",
        "1 is a reset of the GPU, 2 a reboot of the node, 3 a drain of the peers, 4 a drain and a reset.",
        "Cordon and drain the node, take the action, and restart the device plugin's pod on the node.",
        check="hw.recovery",
    ),
    Alert(
        "GpuUncorrectedEcc",
        "gpu:ecc_uncorrected:since_load > 0",
        "0s",
        "warning",
        f"{_GPU}: {{{{ $value }}}} uncorrected memory errors since the driver was loaded",
        "The memory of the GPU has errors that its error correction cannot repair; programs on it may have ended.",
        f"{_RESET} If errors come back, replace the GPU.",
        check="hw.ecc",
    ),
    Alert(
        "GpuRowRemapFailed",
        "gpu:row_remap_failed > 0",
        "0s",
        "critical",
        f"{_GPU}: a defective row of memory could not be replaced",
        "The spare rows of the memory are used up.",
        "Drain the node and replace the GPU.",
        check="hw.remap",
    ),
    Alert(
        "GpuSramThresholdExceeded",
        "gpu:sram_threshold_exceeded > 0",
        "0s",
        "critical",
        f"{_GPU}: uncorrected SRAM errors exceed the threshold",
        "The caches or registers of the GPU are defective.",
        "Drain the node and replace the GPU.",
    ),
    Alert(
        "GpuRowRemapPending",
        "gpu:row_remap_pending > 0",
        "5m",
        "warning",
        f"{_GPU}: a row of memory waits for its replacement",
        "The GPU replaces a defective row at its next reset.",
        _RESET,
        check="hw.remap",
    ),
    Alert(
        "GpuThrottled",
        "gpu:throttled == 1",
        "5m",
        "warning",
        f"{_GPU} lowers its clocks: {{{{ $labels.why }}}}",
        "thermal: the cooling is not sufficient. power_brake: the power supply of the machine requires less.",
        "thermal: check fans, filters and air flow. power_brake: check the power supplies of the machine.",
        check="hw.throttle",
    ),
    Alert(
        "GpuTemperatureMarginLow",
        "gpu:temperature_margin:celsius < 5",
        "10m",
        "warning",
        f"{_GPU} is {{{{ $value }}}} degrees Celsius below its limit",
        "The cooling is hardly sufficient. The limit is that of the model, so that the alert holds for all models.",
        "Check fans, filters, air flow and the temperature of the room.",
    ),
    Alert(
        "GpuPcieLinkNarrow",
        "gpu:pcie_link_width:ratio < 1",
        "15m",
        "warning",
        f"{_GPU} uses {{{{ $value | humanizePercentage }}}} of its PCIe lanes",
        "The GPU or its riser is not seated well, or the slot has fewer lanes than the GPU.",
        "Drain the node, reseat GPU and riser, and compare the slot with the manual of the machine. Disable the alert for slots with fewer lanes.",
        check="hw.pci_link",
    ),
    Alert(
        "GpuFabricNotReady",
        "gpu:fabric_state == 1 or gpu:fabric_state == 2",
        "10m",
        "critical",
        f"{_GPU}: the NVLink fabric is not ready",
        "The fabric manager does not run or does not fit the driver; programs fail with the CUDA error 802.",
        "Start the service nvidia-fabricmanager in the version of the driver, and read its log.",
        check="hw.fabric",
    ),
)

_CLUSTER: tuple[Alert, ...] = (
    Alert(
        "GpuAllocatableBelowCapacity",
        "gpu:capacity:by_node - gpu:allocatable:by_node > 0",
        "15m",
        "warning",
        f"{_NODE}: {{{{ $value }}}} {{{{ $labels.resource }}}} are not allocatable",
        "The device plugin has marked devices as unhealthy. It does not take that back.",
        "Read the device plugin's log and the Xids of the node, recover the GPU, then restart the device plugin's pod on the node.",
        check="kl.unhealthy",
    ),
    Alert(
        "GpuPluginAbsent",
        f"{_COUNT} unless on (node) (sum by (node) (gpu:allocatable:by_node) > 0) and on (node) gpu:node:in_cluster",
        "15m",
        "critical",
        f"{_NODE} has {{{{ $value }}}} GPUs, and none is allocatable",
        "The device plugin does not run on the node, or it found no GPU when it started.",
        "Read the log of the device plugin's pod on the node, and run the playbook verify_gpu_cluster.",
        check="pl.daemonset",
    ),
    Alert(
        "GpuPodPending",
        'gpu:requested:by_pod{node=""} > 0',
        "15m",
        "warning",
        "Pod {{ $labels.namespace }}/{{ $labels.pod }} waits for {{ $value }} {{ $labels.resource }}",
        "No node has so many free GPUs, or a taint, a selector or a quota keeps the pod off the nodes that have.",
        "Read the pod's events, and run the playbook show_gpu_allocation.",
        check="sc.free",
    ),
    Alert(
        "GpuIdleButAllocated",
        'sum by (node) (gpu:requested:by_pod{node!=""}) > 0 and on (node) max by (node) (max_over_time(gpu:utilization:ratio[1h])) < 0.01',
        "1h",
        "info",
        f"{_NODE}: pods hold GPUs that do not compute",
        "A pod holds a GPU and has not used it for two hours, as a notebook that was left open does.",
        "Find the pod with the playbook show_gpu_allocation, and end it.",
    ),
)

#: Off unless ``gpu_prometheus_alerts`` enables them.
_OPTIONAL: tuple[Alert, ...] = (
    Alert(
        "GpuMemoryNearlyFull",
        "gpu:memory_used:ratio > 0.95",
        "10m",
        "info",
        f"{_GPU} uses {{{{ $value | humanizePercentage }}}} of its memory",
        "Programs hold nearly all memory. Many frameworks take all of it on purpose.",
        "Where several pods share the GPU, give them less memory, or fewer pods.",
        enabled=False,
    ),
    Alert(
        "GpuUtilizationHigh",
        "gpu:utilization:ratio > 0.9",
        "1h",
        "info",
        f"{_GPU} has computed {{{{ $value | humanizePercentage }}}} of the time",
        "The GPU is in use, as it is meant to be.",
        "None; where pods wait, add GPUs or share them.",
        enabled=False,
    ),
    Alert(
        "GpuThrottledBySoftware",
        "gpu:throttled_by_software == 1",
        "15m",
        "warning",
        f"{_GPU}: the driver lowers its clocks for heat",
        "The GPU or its memory is near its limit, and the driver slows it down before the hardware has to.",
        "Check fans, filters, air flow and the temperature of the room. Jobs are slower until then.",
        enabled=False,
    ),
    Alert(
        "GpuPersistenceModeOff",
        "gpu:persistence_mode == 0",
        "1h",
        "info",
        f"{_GPU}: persistence mode is off",
        "Without a program on the GPU, the driver unloads its state, so that the next program and nvidia-smi start some seconds later.",
        "Enable and start the service nvidia-persistenced on the node.",
        enabled=False,
        check="lib.persistence",
    ),
    Alert(
        "GpuModePending",
        "gpu:mode_pending == 1",
        "1h",
        "info",
        f"{_GPU}: the mode of {{{{ $labels.mode }}}} changes at the next reset",
        "Someone has changed the mode of MIG or ECC, and the GPU was not reset since.",
        _RESET,
        enabled=False,
        check="hw.mig_pending",
    ),
    Alert(
        "GpuDriverVersionsDiffer",
        'count by (model) (count by (model, driver_version) (gpu:driver{driver_version!=""})) > 1',
        "1h",
        "info",
        "GPUs of the model {{ $labels.model }} have {{ $value }} versions of the driver",
        "An upgrade has not reached all nodes, or has been done by hand on some. The same job can behave differently from node to node.",
        "Compare the versions with count by (driver_version, node) (gpu:driver), and run the playbook upgrade_nvidia_driver for the other nodes.",
        enabled=False,
    ),
)

ALERTS = (*_EXPORTERS, *_HEALTH, *_CLUSTER, *_OPTIONAL)
NAMES = tuple(dict.fromkeys(row.name for row in ALERTS))
