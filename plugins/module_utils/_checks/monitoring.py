# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of the monitoring, by what Prometheus reports. They warn: GPUs work without it."""

from __future__ import annotations

from typing import Any, Iterator, Mapping

from .model import CLUSTER, WARN, Check, Finding, Observation, UnobservedError, read_part


def _read_monitoring(observation: Observation) -> Mapping[str, Any]:
    found = read_part(observation, "cluster").get("monitoring")
    if found is None:
        raise UnobservedError("gpu_doctor_prometheus_url is not set")
    if found.get("error"):
        raise UnobservedError(str(found["error"]))
    return dict(found)


def _find_unloaded_rules(observation: Observation) -> Iterator[Finding]:
    found = _read_monitoring(observation)
    if found["refused"]:
        yield WARN, "Prometheus has refused its configuration at the last reload, and uses the former one"
    if found["missing"]:
        yield WARN, f"Prometheus has not loaded the groups of rules {', '.join(found['missing'])}"


def _find_no_target(observation: Observation) -> Iterator[Finding]:
    node = str(observation.get("node"))
    if node not in _read_monitoring(observation)["targets"]:
        yield WARN, f"the job gpu of Prometheus has no target with the label node={node}"


def _find_silent_exporter(observation: Observation) -> Iterator[Finding]:
    found, node = _read_monitoring(observation), str(observation.get("node"))
    target = found["targets"].get(node)
    if target is None:
        raise UnobservedError("Prometheus has no target for the node")
    if not target["up"]:
        yield WARN, f"Prometheus cannot read the exporter at {target['instance']}"
    elif node in found["failing"]:
        yield WARN, f"the exporter at {target['instance']} cannot read the GPUs"


MONITORING: tuple[Check, ...] = (
    Check(
        "mon.rules",
        "monitoring",
        "Rules of Prometheus",
        _find_unloaded_rules,
        ("no alert fires", "error loading config", "Loading configuration file failed"),
        "the rules were not deployed, or another part of the configuration is wrong",
        "run promtool check config on the host of Prometheus, then the playbook deploy_gpu_monitoring",
        (),
        CLUSTER,
    ),
    Check(
        "mon.scraped",
        "monitoring",
        "Target of the node",
        _find_no_target,
        ("dashboards are empty", "No data"),
        "the node was added after the last run, or its file of targets or its ScrapeConfig is gone",
        "run the playbook deploy_gpu_monitoring without --limit, or with the host",
    ),
    Check(
        "mon.exporter",
        "monitoring",
        "Exporter of the node",
        _find_silent_exporter,
        ("/metrics … connection refused", "/metrics … context deadline exceeded", "nvidia_smi_last_collect_success 0"),
        "the exporter does not run, a firewall is before it, or it was started before the driver was replaced",
        "read the log of the exporter's service or pod, and run the playbook deploy_gpu_monitoring",
        ("lib.answers", "kl.ready"),
    ),
)
