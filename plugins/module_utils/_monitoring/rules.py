# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The groups of rules, for a rule file and for a PrometheusRule."""

from __future__ import annotations

import re
from typing import Any, Iterable, Mapping

from .._config.errors import ConfigError
from .alerts import ALERTS, NAMES, SEVERITIES, Alert
from .series import CLUSTER_SERIES, GPU_SERIES, build_recording_rules

#: The names of the groups.
GROUPS = ("gpu_series", "gpu_cluster_series", "gpu_alerts")

_DURATION = re.compile(r"(?:\d+(?:ms|s|m|h|d|w|y))+|0")
_OVERRIDES = {"enabled": bool, "for": str, "severity": str}


def check_overrides(overrides: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what replaces a row's own values, by the name of the alert: {enabled, for, severity}. Raises ConfigError."""
    for name, values in overrides.items():
        if name not in NAMES:
            raise ConfigError(f"gpu_prometheus_alerts: there is no alert {name}; the alerts are {', '.join(NAMES)}.")
        for key, value in values.items() if isinstance(values, dict) else [("", values)]:
            if key not in _OVERRIDES or not isinstance(value, _OVERRIDES[key]):
                raise ConfigError(
                    f"gpu_prometheus_alerts: {name} has {key or value!r}: a mapping with enabled (true or false), for (such as 5m) and"
                    f" severity ({', '.join(SEVERITIES)}) is expected."
                )
        if values.get("severity", SEVERITIES[0]) not in SEVERITIES:
            raise ConfigError(f"gpu_prometheus_alerts: the severity of {name} is not one of {', '.join(SEVERITIES)}.")
        if not _DURATION.fullmatch(values.get("for", "0")):
            raise ConfigError(f"gpu_prometheus_alerts: for of {name} is not a duration such as 5m or 1h30m.")
    return {name: dict(values) for name, values in overrides.items()}


def build_groups(overrides: Mapping[str, Any] | None = None, runbook_url: str = "") -> list[dict[str, Any]]:
    """Return the groups, with the alerts that are enabled. *runbook_url* is the page of the runbooks; empty if there is none. Raises ConfigError."""
    replaced = check_overrides(overrides or {})
    rules = (
        build_recording_rules(GPU_SERIES),
        build_recording_rules(CLUSTER_SERIES),
        list(_build_alerts(ALERTS, replaced, runbook_url)),
    )
    return [{"name": name, "rules": found} for name, found in zip(GROUPS, rules)]


def _build_alerts(
    rows: Iterable[Alert], replaced: Mapping[str, Mapping[str, Any]], page: str
) -> Iterable[dict[str, Any]]:
    for row in rows:
        own = replaced.get(row.name, {})
        if not own.get("enabled", row.enabled):
            continue
        yield {
            "alert": row.name,
            "expr": row.expression,
            "for": own.get("for", row.hold),
            "labels": {"severity": own.get("severity", row.severity), **row.labels},
            "annotations": {
                "summary": row.summary,
                "description": row.cause,
                "remedy": row.remedy,
                **({"runbook_url": f"{page}#{row.name.lower()}"} if page else {}),
            },
        }
