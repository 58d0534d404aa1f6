# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects of the Prometheus Operator, from the same rows as the files."""

from __future__ import annotations

import re
from typing import Any, Iterable, Mapping

from .rules import build_groups
from .series import JOB

API = "monitoring.coreos.com"
#: The kinds that the operator has to know, with their versions.
KINDS = {"PrometheusRule": "v1", "PodMonitor": "v1", "ScrapeConfig": "v1alpha1"}
NAME = "gpu-kubernetes"
#: Of a ScrapeConfig, to find those of all hosts.
TARGET_LABEL = "gpu-kubernetes/target"
_MANAGED = {"app.kubernetes.io/managed-by": "gpu.kubernetes", "app.kubernetes.io/name": "gpu-prometheus"}


def build_objects(
    namespace: str,
    labels: Mapping[str, str],
    alerts: Mapping[str, Any],
    runbook_url: str = "",
    pods: Mapping[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """Return the PrometheusRule and, for exporters in pods, the PodMonitor: *pods* is {namespace, labels, port, exporter, [expected_gpus]}."""
    rules = _object("PrometheusRule", NAME, namespace, labels, {"groups": build_groups(alerts, runbook_url)})
    return [rules, *([_object("PodMonitor", NAME, namespace, labels, _pod_monitor(pods))] if pods else [])]


def build_scrape_config(
    host: str, target: Mapping[str, Any], namespace: str, labels: Mapping[str, str], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the ScrapeConfig for one host (see `scrape.build_target`; empty to name the object), with more *options* of its specification."""
    name = re.sub(r"[^a-z0-9.]+", "-", host.lower()).strip("-.")
    spec = {
        **options,
        "scheme": target.get("scheme", "http").upper(),
        "staticConfigs": [{"targets": [target.get("address", "")], "labels": dict(target.get("labels", {}))}],
        "relabelings": [{"targetLabel": "job", "replacement": JOB}],
    }
    return _object("ScrapeConfig", f"{NAME}-{name}", namespace, {**labels, TARGET_LABEL: "true"}, spec)


def name_pod_monitor(namespace: str) -> dict[str, Any]:
    """Return the PodMonitor without a specification, for its removal."""
    return _object("PodMonitor", NAME, namespace, {}, {})


def _pod_monitor(pods: Mapping[str, Any]) -> dict[str, Any]:
    relabelings: list[dict[str, Any]] = [
        {"targetLabel": "job", "replacement": JOB},
        {"targetLabel": "exporter", "replacement": pods["exporter"]},
        {"sourceLabels": ["__meta_kubernetes_pod_node_name"], "targetLabel": "node"},
    ]
    if pods.get("expected_gpus"):
        relabelings.append({"targetLabel": "gpu_expected", "replacement": str(pods["expected_gpus"])})
    # The labels of a GPU's pod are the exporter's, not those of the exporter's own pod.
    endpoint = {"port": pods["port"], "honorLabels": True, "relabelings": relabelings}
    return {
        "namespaceSelector": {"matchNames": [pods["namespace"]]},
        "selector": {"matchLabels": dict(pods["labels"])},
        "podMetricsEndpoints": [endpoint],
    }


def _object(kind: str, name: str, namespace: str, labels: Mapping[str, str], spec: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": f"{API}/{KINDS[kind]}",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "labels": {**labels, **_MANAGED}},
        "spec": dict(spec),
    }


def find_unselected(objects: Iterable[Mapping[str, Any]], prometheuses: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each object that no Prometheus of the operator selects by its labels. Namespaces are not compared."""
    found = []
    known = list(prometheuses)
    for item in objects:
        field = (
            f"{item['kind'][0].lower()}{item['kind'][1:]}Selector"
            if item["kind"] != "PrometheusRule"
            else "ruleSelector"
        )
        selectors = [each.get("spec", {}).get(field) for each in known]
        if not any(_selects(selector, item["metadata"]["labels"]) for selector in selectors):
            wanted = sorted(
                f"{key}: {value}"
                for selector in selectors
                for key, value in ((selector or {}).get("matchLabels") or {}).items()
            )
            found.append(
                f"{item['kind']} {item['metadata']['name']} is selected by no Prometheus of the cluster"
                f" (their {field}: {', '.join(dict.fromkeys(wanted)) or 'none'}); add the labels to gpu_prometheus_object_labels."
            )
    return found


def _selects(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Whether a selector of labels selects an object; a missing one selects nothing, an empty one everything."""
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_meets(each, labels) for each in selector.get("matchExpressions") or [])


def _meets(requirement: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value, values = labels.get(requirement["key"]), requirement.get("values") or []
    return {
        "In": value in values,
        "NotIn": value not in values,
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }.get(requirement["operator"], False)
