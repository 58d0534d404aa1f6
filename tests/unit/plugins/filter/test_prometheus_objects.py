# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects of the Prometheus Operator that a change leaves behind."""

from __future__ import annotations

import pytest

from ansible_collections.gpu.kubernetes.plugins.filter.prometheus_objects import prometheus_objects

TARGET = {"address": "10.0.0.11:9835", "scheme": "https", "labels": {"node": "gpu1"}}
PODS = {"namespace": "gpu-operator", "labels": {"app": "x"}, "port": "metrics", "exporter": "dcgm_exporter"}


@pytest.mark.parametrize(
    ("targets", "options", "owned", "stale"),
    [
        ({"a": TARGET}, {}, ["PrometheusRule", "ScrapeConfig a"], ["PodMonitor"]),
        (
            {"a": TARGET, "b": {}},
            {"pods": PODS},
            ["PrometheusRule", "PodMonitor", "ScrapeConfig a"],
            ["ScrapeConfig b"],
        ),
        ({"a": {}}, {"state": "absent"}, ["PrometheusRule", "PodMonitor", "ScrapeConfig a"], None),
        ({"a": {}}, {"state": "absent", "pods": PODS}, ["PrometheusRule", "PodMonitor", "ScrapeConfig a"], None),
        (
            {"a": {}},
            {"state": "absent", "existing": [{"metadata": {"name": "gpu-kubernetes-b"}}]},
            ["ScrapeConfig a"],
            None,
        ),
    ],
)
def test_objects_of_former_targets_and_pods_are_removed(targets, options, owned, stale) -> None:
    def names(items) -> list[str]:
        return [
            f"{item['kind']} {item['metadata']['name'].removeprefix('gpu-kubernetes')[1:]}".strip() for item in items
        ]

    found = prometheus_objects(targets, "monitoring", **options)
    assert names(found["owned"]) == owned
    assert stale is None or names(found["stale"]) == stale
