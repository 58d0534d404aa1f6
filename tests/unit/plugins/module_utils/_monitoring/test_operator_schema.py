# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects by the schema that the Prometheus Operator publishes, from which these models are generated."""

from __future__ import annotations

from typing import Any

import pytest

models = pytest.importorskip("cloudcoil.models.prometheus_operator")

from ansible_collections.gpu.kubernetes.plugins.module_utils._monitoring import alerts, objects  # noqa: E402

KINDS = {
    "PrometheusRule": models.v1.PrometheusRule,
    "PodMonitor": models.v1.PodMonitor,
    "ScrapeConfig": models.v1alpha1.ScrapeConfig,
}
EVERY_ALERT = {name: {"enabled": True} for name in alerts.NAMES}
PODS = {"namespace": "kube-system", "labels": {"a": "b"}, "port": "metrics", "exporter": "x", "expected_gpus": 8}


def fits(item: dict[str, Any]) -> bool:
    """Whether the API server would accept the object and keep each of its fields; it drops unknown ones without a message."""
    try:
        found = KINDS[item["kind"]].model_validate(item)
    except ValueError:
        return False
    return bool(found.model_dump(by_alias=True, exclude_unset=True, mode="json") == item)


def build_scrape_config(scheme: str = "https", **options: Any) -> dict[str, Any]:
    target = {"address": "10.0.0.11:9835", "scheme": scheme, "labels": {"node": "gpu1"}}
    return objects.build_scrape_config("gpu1", target, "monitoring", {"release": "p"}, options)


def test_objects_fit_the_published_schema() -> None:
    built = objects.build_objects("monitoring", {"release": "p"}, EVERY_ALERT, "https://example.com/page", PODS)
    built += [build_scrape_config(), build_scrape_config("http", scrapeInterval="30s", scrapeTimeout="10s")]
    assert {item["kind"] for item in built} == set(KINDS) == set(objects.KINDS)
    assert [item["kind"] for item in built if not fits(item)] == []


def test_objects_with_a_fault_do_not_fit() -> None:
    assert not fits(build_scrape_config("gopher"))
    assert not fits(build_scrape_config(scrapeInterval="soon"))
    assert not fits(build_scrape_config(lables={}))
    _rules, pods = objects.build_objects("monitoring", {}, {}, pods={**PODS, "port": 9400})
    assert not fits(pods)
