# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Four hours of a cluster, as kube-scheduler's metrics and the normalised series of GPUs: the samples, and the hours that they mean.

Two kube-schedulers report the same pods. For the last hour, none is scraped.
"""

from __future__ import annotations

MINUTE, HOUR = 60, 3600
START = 1792886400  # 2026-10-25T00:00:00Z; in that night, clocks in Europe go back
END = START + 4 * HOUR
A100, T4 = "NVIDIA A100-SXM4-40GB", "Tesla T4"


def _sample(first: int, last: int, value: float) -> list[tuple[int, float]]:
    """Return a value for each minute from the first to the last one."""
    return [(START + minute * MINUTE, value) for minute in range(first, last + 1)]


def _name_series(scheduler: str, renamed: bool, **labels: str) -> str:
    """Return the series of a pod; *renamed* as with a Prometheus whose labels of the target have the same names."""
    own = {"namespace": "kube-system", "pod": f"kube-scheduler-{scheduler}", "node": scheduler} if renamed else {}
    given = {f"exported_{name}" if name in own else name: value for name, value in labels.items() if value}
    every = {"instance": f"{scheduler}:10259", **own, **given}
    return "kube_pod_resource_request{" + ",".join(f'{name}="{value}"' for name, value in every.items()) + "}"


def build_samples(renamed: bool = False) -> dict[str, list[tuple[int, float]]]:
    """Return the samples by series."""
    samples: dict[str, list[tuple[int, float]]] = {}
    for scheduler in ("cp1", "cp2"):
        pods = [
            ("team-a", "train-0", "n1", "nvidia.com/gpu", 4, 0, 180),
            # A pod of a StatefulSet, which moves to another node after two hours.
            ("team-b", "web-0", "n1", "nvidia.com/gpu", 1, 0, 120),
            ("team-b", "web-0", "n2", "nvidia.com/gpu", 1, 121, 180),
            ("team-c", "share-0", "w1", "aliyun.com/gpu-mem", 8, 0, 180),
            # Pending, and so without a node.
            ("team-d", "big-0", "", "nvidia.com/gpu", 8, 0, 180),
            ("team-a", "train-0", "n1", "cpu", 16, 0, 180),
        ]
        for namespace, pod, node, resource, amount, first, last in pods:
            series = _name_series(scheduler, renamed, namespace=namespace, pod=pod, node=node, resource=resource)
            samples[series] = _sample(first, last, amount)
    for node, model, count, first in (("n1", A100, 8, 0), ("n2", T4, 1, 0), ("w1", A100, 1, 0), ("n2", T4, 2, 121)):
        for index in range(count):
            series = f'gpu:present{{node="{node}",gpu_uuid="GPU-{node}-{index}",model="{model}"}}'
            samples.setdefault(series, _sample(first, 240, 1))
    # A GPU of another vendor, of which no pod requests one of these resources.
    samples['gpu:present{node="amd1",gpu_uuid="aa",model="MI300X"}'] = _sample(0, 240, 1)
    for index in range(8):
        series = f'gpu:utilization:ratio{{node="n1",gpu_uuid="GPU-n1-{index}"}}'
        # One has little load, but more than the threshold.
        samples[series] = _sample(0, 240, (0.9, 0.9, 0.9, 0.06, 0.04, 0, 0, 0)[index])
    samples['gpu:utilization:ratio{node="w1",gpu_uuid="GPU-w1-0"}'] = _sample(0, 240, 0.01)
    return samples


#: Hours by node: of GPUs, allocated, idle, wasted and without load data.
NODE_HOURS = {
    "n1": [24, 14, 10, 2, 0],
    "n2": [4, 1, 3, 0, 1],
    "w1": [3, 1.5, 1.5, 1.5, 0],
}
#: Allocated and wasted hours by namespace. Without load is one GPU of the five that two namespaces held for two hours.
NAMESPACE_HOURS = {"team-a": [12, 1.6], "team-b": [3, 0.4], "team-c": [1.5, 1.5]}
COVERED = 3
