# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Samples of the normalised series: four nodes in the two hours before NOW. On Python 3.8, too.

gpu01 is busy and has each finding, gpu02 and gpu04 are allocated and idle, gpu03 is free and has lost one of its two GPUs half an hour ago. A second
job, which is not the inventory's, reports GPU-0 as well.
"""

from __future__ import annotations

NOW = 1_700_000_000  # seconds since 1970
MINUTES = 120
A100, T4 = "NVIDIA A100-SXM4-80GB", "Tesla T4"
#: Node and UUID of each GPU with its model, utilization, memory, temperature margin, temperature and watts.
GPUS = {
    ("gpu01", "GPU-0"): (A100, 0.9, 0.8, 3, 88, 390),
    ("gpu01", "GPU-1"): (A100, 0.7, 0.6, 20, 65, 300),
    ("gpu02", "GPU-2"): (T4, 0, 0.1, 40, 40, 12),
    ("gpu02", "GPU-3"): (T4, 0, 0.1, 41, 39, 11),
    ("gpu03", "GPU-4"): (T4, 0, 0, 42, 38, 10),
    ("gpu03", "GPU-5"): (T4, 0, 0, 43, 37, 10),
    ("gpu04", "GPU-6"): (T4, 0, 0.5, 44, 36, 10),
}
GONE, GONE_MINUTE = ("gpu03", "GPU-5"), 90
#: Findings by GPU, and what a GPU without one has.
FINDINGS = {
    "gpu:recovery_action": ("GPU-0", 2),
    "gpu:row_remap_failed": ("GPU-1", 1),
    "gpu:row_remap_pending": ("GPU-1", 1),
    "gpu:ecc_uncorrected:since_load": ("GPU-1", 4),
    'gpu:throttled,why="thermal"': ("GPU-0", 1),
    'gpu:throttled,why="power_brake"': ("", 0),
}
#: Namespace, pod, node (empty while the pod is pending) and units of a resource.
PODS = (
    ("team-a", "train", "gpu01", "nvidia.com/gpu", 2),
    ("team-b", "notebook", "gpu02", "nvidia.com/gpu", 1),
    ("team-c", "notebook", "gpu04", "nvidia.com/gpu", 1),
    ("team-b", "waiting", "", "nvidia.com/gpu", 4),
)


def _add(found: dict[str, dict[str, float]], name: str, labels: dict[str, str], value: float) -> None:
    name, _comma, more = name.partition(",")
    parts = [*(f'{key}="{text}"' for key, text in labels.items() if text), *([more] if more else [])]
    found.setdefault(name, {})[f"{name}{{{','.join(parts)}}}"] = value


def list_series() -> dict[str, dict[str, float]]:
    """Return the value of each series, by its name and its labels."""
    found: dict[str, dict[str, float]] = {}
    for (node, uuid), (model, utilization, memory, margin, temperature, watts) in GPUS.items():
        labels = {"node": node, "gpu_uuid": uuid}
        _add(found, "gpu:present", {**labels, "model": model, "gpu_expected": "2"}, 1)
        _add(found, "gpu:utilization:ratio", labels, utilization)
        _add(found, "gpu:memory_used:ratio", labels, memory)
        _add(found, "gpu:temperature_margin:celsius", labels, margin)
        _add(found, "gpu:temperature:celsius", labels, temperature)
        _add(found, "gpu:power:watts", labels, watts)
        _add(found, "gpu:pcie_link_width:ratio", labels, 0.5 if uuid == "GPU-0" else 1)
        for name, (sick, value) in FINDINGS.items():
            _add(found, name, labels, value if uuid == sick else 0)
    _add(found, "gpu:present", {"node": "gpu01", "gpu_uuid": "GPU-0", "model": "A100-SXM4-80GB"}, 1)
    _add(found, "gpu:xid:recent", {"node": "gpu01", "gpu_uuid": "GPU-0", "xid": "79"}, 1)
    for namespace, pod, node, resource, units in PODS:
        labels = {"namespace": namespace, "pod": pod, "node": node, "resource": resource}
        _add(found, "gpu:requested:by_pod", labels, units)
        if node:
            _add(found, "gpu:allocated:by_namespace", {"namespace": namespace, "resource": resource}, units)
    return found


def list_samples() -> dict[str, list[tuple[int, float]]]:
    """Return of each series, by its name with labels, the second and the value of one sample a minute."""
    found = {}
    for series in list_series().values():
        for labels, value in series.items():
            last = GONE_MINUTE if f'gpu_uuid="{GONE[1]}"' in labels else MINUTES
            found[labels] = [(NOW - 60 * (MINUTES - minute), value) for minute in range(last + 1)]
    return found
