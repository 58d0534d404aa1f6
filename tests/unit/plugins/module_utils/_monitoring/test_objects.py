# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects of the Prometheus Operator, and which of them it does not select."""

from __future__ import annotations

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._monitoring import objects, rules

TARGET = {"address": "10.0.0.11:9835", "scheme": "https", "labels": {"node": "gpu1"}}
PODS = {"namespace": "gpu-operator", "labels": {"app": "x"}, "port": "metrics", "exporter": "dcgm_exporter"}


def test_rules_of_the_object_are_those_of_the_file() -> None:
    [found] = objects.build_objects("monitoring", {"release": "p"}, {"GpuXid": {"enabled": False}})
    assert found["spec"]["groups"] == rules.build_groups({"GpuXid": {"enabled": False}})
    assert (
        found["metadata"]["labels"].items()
        >= {"release": "p", "app.kubernetes.io/managed-by": "gpu.kubernetes"}.items()
    )


def test_targets_of_hosts_and_of_pods_have_the_job_that_alerts_read() -> None:
    host = objects.build_scrape_config("GPU_1.example.com", TARGET, "monitoring", {}, {"scrapeInterval": "5s"})
    assert host["metadata"]["name"] == "gpu-kubernetes-gpu-1.example.com"
    assert host["spec"] == {
        "scrapeInterval": "5s",
        "scheme": "HTTPS",
        "staticConfigs": [{"targets": ["10.0.0.11:9835"], "labels": {"node": "gpu1"}}],
        "relabelings": [{"targetLabel": "job", "replacement": "gpu"}],
    }
    _rules, pods = objects.build_objects("monitoring", {}, {}, pods=PODS)
    [endpoint] = pods["spec"]["podMetricsEndpoints"]
    assert endpoint["honorLabels"]
    assert {"targetLabel": "job", "replacement": "gpu"} in endpoint["relabelings"]
    assert {each["targetLabel"] for each in endpoint["relabelings"]} == {"job", "exporter", "node"}
    _rules, pods = objects.build_objects("monitoring", {}, {}, pods={**PODS, "expected_gpus": 8})
    [endpoint] = pods["spec"]["podMetricsEndpoints"]
    assert {"targetLabel": "gpu_expected", "replacement": "8"} in endpoint["relabelings"]


@pytest.mark.parametrize(
    ("selector", "is_selected"),
    [
        ({}, True),
        (None, False),
        ({"matchLabels": {"release": "p"}}, True),
        ({"matchLabels": {"release": "other"}}, False),
        ({"matchExpressions": [{"key": "release", "operator": "In", "values": ["p", "q"]}]}, True),
        ({"matchExpressions": [{"key": "release", "operator": "NotIn", "values": ["p"]}]}, False),
        ({"matchExpressions": [{"key": "release", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "release", "operator": "DoesNotExist"}]}, False),
    ],
)
def test_object_that_no_prometheus_selects_is_named(selector, is_selected: bool) -> None:
    found = objects.build_objects("monitoring", {"release": "p"}, {})
    spec = {} if selector is None else {"ruleSelector": selector}
    sentences = objects.find_unselected(found, [{"spec": {}}, {"spec": spec}])
    assert len(sentences) == (0 if is_selected else 1)
    assert all("PrometheusRule gpu-kubernetes is selected by no Prometheus" in each for each in sentences)
