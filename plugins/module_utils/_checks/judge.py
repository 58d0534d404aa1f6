# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judges observations by the checks, so that one fault is one root cause.

Observations come from nodes: each text is bounded and printable in the report, and an observation that a check cannot read is unknown.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, Mapping, Sequence

from .._config.redact import mask_text
from .._kube_error import shorten
from .model import (
    CLUSTER,
    FAIL,
    HOST,
    INFO,
    PASS,
    UNKNOWN,
    VERDICTS,
    WARN,
    Check,
    Finding,
    Observation,
    UnobservedError,
)
from .registry import CHECKS
from .vendors import VENDOR_CHECKS, serves_nvidia

SCHEMA = "gpu.kubernetes/doctor/v1"
#: The layers of what hosts need for GPUs of NVIDIA, and the check of its runtime.
NVIDIA_LAYERS = ("hardware", "kernel", "driver", "library", "toolkit")
HANDLER = "rt.handler"
#: Findings of one check on one host, of which the rest is counted.
MAX_FINDINGS = 8
#: What an exit status of the report means.
OK, WARNED, FAILED, NOT_EXAMINED = 0, 1, 2, 3
FAIL_ON: Mapping[str, tuple[str, ...]] = {"fail": (FAIL,), "warn": (FAIL, WARN), "never": ()}

Result = Dict[str, Any]
Report = Dict[str, Any]


def judge(
    observations: Sequence[Observation],
    cluster: Mapping[str, Any] | None = None,
    checks: Iterable[Check] = CHECKS,
    errors: Sequence[str] = (),
    fail_on: str = FAIL,
) -> Report:
    """Return the report of hosts and the cluster.

    An observation has ``host`` and ``node`` and the parts of gather.py, or ``unreachable`` with the reason; ``cluster`` is what cluster.py returns, or
    None. Nodes with GPUs that only the cluster knows are judged by what it reports. ``errors`` are sentences on what could not be read.
    """
    run = _Run(tuple(checks), _join(observations, cluster or {}), cluster)
    of_cluster = run.judge_cluster()
    of_hosts = [run.judge_host(number) for number in range(len(run.observations))]
    hosts = [
        {
            "host": shorten(each["host"]),
            "node": shorten(each.get("node")),
            "examined": _is_examined(each),
            **_separate_passed(results),
        }
        for each, results in zip(run.observations, of_hosts)
    ]
    found = [*of_cluster, *(result for results in of_hosts for result in results)]
    counts = {verdict: sum(result["verdict"] == verdict for result in found) for verdict in VERDICTS}
    examined = bool(cluster) or any(host["examined"] for host in hosts)
    complete = examined and all(host["examined"] for host in hosts)
    status = _decide_status(counts, complete)
    return {
        "schema": SCHEMA,
        "status": status,
        "exit_code": _decide_exit(status, fail_on),
        "summary": {"hosts": len(hosts), "checks": counts},
        "causes": _list_causes(found),
        "cluster": _separate_passed(of_cluster),
        "hosts": hosts,
        "errors": [shorten(mask_text(str(error))) for error in [*errors, *_list_unreachable(observations)]],
    }


def is_failure(report: Report, fail_on: str) -> bool:
    """Return whether a run fails by the report: by a verdict of *fail_on*, or because something could not be examined."""
    return bool(FAIL_ON[fail_on]) and (report["status"] in FAIL_ON[fail_on] or report["status"] == UNKNOWN)


def _separate_passed(results: Sequence[Result]) -> dict[str, Any]:
    """Return the ids of what passed, and the other results: a fleet has hundreds of thousands of verdicts, and most of them pass."""
    return {
        "passed": [result["id"] for result in results if result["verdict"] == PASS],
        "checks": [result for result in results if result["verdict"] != PASS],
    }


def _decide_status(counts: Mapping[str, int], complete: bool) -> str:
    if counts[FAIL]:
        return FAIL
    if not complete:
        return UNKNOWN
    return WARN if counts[WARN] else PASS


def _decide_exit(status: str, fail_on: str) -> int:
    if status == WARN:
        return WARNED if fail_on == WARN else OK
    return {FAIL: FAILED, UNKNOWN: NOT_EXAMINED}.get(status, OK)


def _list_causes(results: Iterable[Result]) -> list[Result]:
    """Return what failed or warns, the worst and lowest first, with the hosts of each; the details are of the first host."""
    order = {check.id: number for number, check in enumerate(CHECKS)}
    causes: dict[tuple[str, str], Result] = {}
    for result in results:
        if result["verdict"] in (FAIL, WARN):
            key = (result["id"], result["verdict"])
            cause = causes.setdefault(key, {**result, "hosts": []})
            cause["hosts"].append(result["host"])
    ranked = sorted(causes.values(), key=lambda each: (-VERDICTS.index(each["verdict"]), order[each["id"]]))
    return [{name: value for name, value in cause.items() if name not in ("host", "because")} for cause in ranked]


def _list_unreachable(observations: Iterable[Observation]) -> list[str]:
    return [f"{each['host']}: {each['unreachable']}" for each in observations if each.get("unreachable")]


def _is_examined(observation: Observation) -> bool:
    """Return whether the node or the cluster has reported anything of the host."""
    node = observation.get("kubernetes") or {}
    return bool(node.get("known")) or any(observation.get(part) for part in ("nvml", "pci", "log", "kubelet"))


def _join(observations: Sequence[Observation], cluster: Mapping[str, Any]) -> list[Observation]:
    """Return the observations with what the cluster reports on their nodes, and one for each other node with GPUs."""
    nodes: Mapping[str, Any] = cluster.get("nodes") or {}
    known = {each.get("node") for each in observations}
    others = [{"host": name, "node": name} for name in sorted(nodes) if name not in known]
    tests = {test.get("node"): test for test in cluster.get("smoke_tests") or ()}

    def join(observation: Observation) -> Observation:
        name = str(observation.get("node"))
        # The name of an unreachable host's node is a guess.
        missing = None if observation.get("unreachable") else {"known": False}
        shared = {"cluster": cluster, "kubernetes": nodes.get(name) or missing} if "nodes" in cluster else {}
        return {**observation, **shared, "smoke_test": tests.get(name)}

    return [join(each) for each in [*observations, *others]]


class _Run:
    """The verdicts of one report, each decided once."""

    def __init__(
        self, checks: Sequence[Check], observations: Sequence[Observation], cluster: Mapping[str, Any] | None
    ) -> None:
        self.observations = observations
        self._checks = {check.id: check for check in checks}
        self._cluster: Observation = {"cluster": cluster}
        self._results: dict[tuple[str, int], Result] = {}

    def judge_host(self, number: int) -> list[Result]:
        return [self._decide(check, number) for check in self._checks.values() if check.scope == HOST]

    def judge_cluster(self) -> list[Result]:
        return [self._decide(check, -1) for check in self._checks.values() if check.scope == CLUSTER]

    def _decide(self, check: Check, number: int) -> Result:
        key = (check.id, -1 if check.scope == CLUSTER else number)
        if key not in self._results:
            self._results[key] = self._judge(check, key[1])
        return self._results[key]

    def _judge(self, check: Check, number: int) -> Result:
        observation = self.observations[number] if number >= 0 else self._cluster
        host = str(observation["host"]) if number >= 0 else ""
        causes = (self._find_cause(self._checks[need], number) for need in check.needs if need in self._checks)
        cause = next(filter(None, causes), None)
        if number >= 0 and _concerns_nvidia(check) and not serves_nvidia(observation):
            return _build_result(check, host, UNKNOWN, ["the host has no GPU of NVIDIA"])
        if cause:
            return _build_result(check, host, UNKNOWN, [f"because {cause}"], cause)
        return _build_result(check, host, *_observe(check, observation))

    def _find_cause(self, check: Check, number: int) -> str:
        """Return the id of the failed check below, or an empty text."""
        result = self._decide(check, number)
        return str(result["because"] or (result["id"] if result["verdict"] == FAIL else ""))


def _concerns_nvidia(check: Check) -> bool:
    """Return whether a check of a host is of what GPUs of NVIDIA alone need."""
    return (check.layer in NVIDIA_LAYERS and check not in VENDOR_CHECKS) or check.id == HANDLER


def _observe(check: Check, observation: Observation) -> tuple[str, list[str]]:
    """Return (verdict, details). What was found before a part could not be read counts."""
    found: list[Finding] = []
    reason = ""
    try:
        found.extend(check.observe(observation))
    except UnobservedError as error:
        reason = str(error)
    except (AttributeError, IndexError, KeyError, OverflowError, RecursionError, TypeError, ValueError):
        reason = "the observation has another form than expected"
    if reason and not found:
        return UNKNOWN, [reason]
    found.sort(key=lambda finding: -VERDICTS.index(finding[0]))
    return (found[0][0] if found else PASS), [detail for _verdict, detail in found]


def _build_result(check: Check, host: str, verdict: str, details: Sequence[str], because: str = "") -> Result:
    rest = len(details) - MAX_FINDINGS
    bad = verdict in (INFO, WARN, FAIL)
    return {
        "host": shorten(host),
        "id": check.id,
        "layer": check.layer,
        "verdict": verdict,
        "title": check.title,
        "details": [
            *(shorten(mask_text(str(detail))) for detail in details[:MAX_FINDINGS]),
            *([f"and {rest} more"] if rest > 0 else []),
        ],
        "because": because,
        "cause": check.cause if bad else "",
        "remedy": check.remedy if bad else "",
        "docs": check.anchor,
    }
