# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Prometheus' HTTP API reports of itself and of the exporters, for the checks of the doctor."""

from __future__ import annotations

from typing import Any, Iterable, Mapping
from urllib.parse import quote

from .rules import GROUPS
from .series import JOB

#: What is read, and its path. The groups are named, since a server may have thousands of rules; a server before 2.44 returns all.
PATHS: Mapping[str, str] = {
    "targets": f"/api/v1/query?query={quote(f'up{{job={chr(34)}{JOB}{chr(34)}}}')}",
    "failing": f"/api/v1/query?query={quote('gpu:collection:success == 0')}",
    # Of a Prometheus that scrapes itself.
    "refused": f"/api/v1/query?query={quote('prometheus_config_last_reload_successful == 0')}",
    "rules": "/api/v1/rules?" + "&".join(f"rule_group[]={name}" for name in GROUPS),
}


def read_answers(answers: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the checks read, of the bodies of the answers by the names of PATHS; only ``error`` if one is not an answer of Prometheus.

    ``targets`` are those of the exporters by node, ``failing`` the nodes whose exporter cannot read the GPUs, ``refused`` is whether the last configuration was
    refused, and ``missing`` are the groups of rules that are not loaded.
    """
    try:
        data = {name: answers[name]["data"] for name in PATHS}
        loaded = {group["name"] for group in data["rules"]["groups"]}
        return {
            "targets": _collect_targets(data["targets"]["result"]),
            "failing": sorted({str(row["metric"].get("node")) for row in data["failing"]["result"]}),
            "refused": bool(data["refused"]["result"]),
            "missing": [name for name in GROUPS if name not in loaded],
        }
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        return {"error": f"Prometheus did not answer as expected ({error!r:.80})"}


def _collect_targets(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return address and state by node. Of several exporters of a node, one that answers counts."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        node, up = str(row["metric"].get("node") or ""), row["value"][1] == "1"
        if node and (up or node not in found):
            found[node] = {"instance": str(row["metric"].get("instance") or ""), "up": up}
    return found
