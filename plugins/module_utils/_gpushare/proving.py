# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Proving that pods share GPUs: step by step on all nodes at once, with one list of pods for all, and a clean floor after.

An image that runs for a moment has ended before the next pod comes, and ended pods hold nothing. The allocation is that of the
moment all the same, but for the pods of the test itself: one that has ended well counts as if it still ran.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence

from .._kubernetes.api import ApiError, run_parallel
from .._kubernetes.objects import Object, get_full_name, get_name
from .._kubernetes.pod_failures import Evidence
from .._kubernetes.smoke import Smoke, labels_for
from .._kubernetes.smoking import LOG_LINES, Outcome, Pace, conduct, create, remove_pods, wait
from .._kubernetes.survey import collect_evidence
from .extract import PodShare, extract_pod
from .placing import has_run, has_trouble, is_placed, is_refused, judge_end, judge_step, judge_too_much
from .query import query_allocation
from .room import Row
from .sharing import NAME, Fault, Share, Sharing, SharingResult, Trial, too_large, trial_of

if TYPE_CHECKING:
    from .._kube_api import Cluster


def run_sharing_test(
    cluster: Cluster, sharing: Sharing, nodes: Sequence[str], pace: Pace | None = None, check_mode: bool = False
) -> Outcome[SharingResult]:
    """Try the pods on each node and judge where they land. Raises ApiError, after cleaning up what it can."""
    pace = pace or Pace()
    known = {get_name(node): node for node in cluster.nodes()}
    allocation = query_allocation(cluster, unit=sharing.unit)
    sharing, rows = sharing.in_units(allocation["unit"]), _rows(allocation)
    trials = {name: trial_of(name, known.get(name), rows.get(name), sharing) for name in nodes}

    def check(name: str) -> SharingResult | None:
        return None if trials[name].goes_on else trials[name].result

    def test(ready: Sequence[str], run: str) -> dict[str, SharingResult]:
        _Run(cluster, sharing, [trials[name] for name in ready], run, pace).go()
        return {name: trials[name].result for name in ready}

    return conduct(cluster, sharing.pod(0), nodes, check, lambda name: trials[name].result, test, pace, check_mode)


def remove_sharing_pods(
    cluster: Cluster, namespace: str, pace: Pace | None = None, check_mode: bool = False
) -> Outcome[SharingResult]:
    """Remove all pods of the test in the namespace, whatever their age, and wait until they are gone. Raises ApiError."""
    return remove_pods(cluster, namespace, labels_for(NAME), pace, check_mode)


def _rows(allocation: Mapping[str, Any]) -> dict[str, Row]:
    return {row["name"]: row for row in allocation["nodes"]}


class _Run:
    """One test of nodes that can be tried. A node that fails in a step takes no part in the next ones, and none of their time."""

    def __init__(self, cluster: Cluster, sharing: Sharing, trials: Sequence[Trial], run: str, pace: Pace) -> None:
        self._cluster = cluster
        self._sharing = sharing
        self._trials = trials
        self._label = run
        self._pace = pace
        self._printed: set[str] = set()

    def go(self) -> None:
        """Go through all steps; the results of the trials have the verdicts then."""
        for amount in self._sharing.amounts:
            self._share(amount)
        if self._sharing.too_much:
            self._ask_too_much()
        self._end()
        for trial in self._going:
            trial.result.passed = True

    @property
    def _going(self) -> list[Trial]:
        return [trial for trial in self._trials if trial.goes_on]

    def _share(self, amount: int) -> None:
        """Have a pod of this amount on each node, and judge where it is."""
        pods = self._create(self._going, lambda _trial: amount)
        if not pods:
            return
        for trial, name in pods:
            trial.result.pods.append(Share(name, amount))
        seen = self._wait([name for _trial, name in pods], is_placed)
        rows, ended = self._look(seen), {get_full_name(pod) for pod in seen.values() if _has_ended_well(pod)}
        evidence = self._evidence(seen, [name for name, pod in seen.items() if has_trouble(pod)])
        for trial, _name in pods:
            _end(trial, judge_step(trial, seen, self._sharing, rows.get(trial.node), ended, evidence))

    def _ask_too_much(self) -> None:
        """Have a pod on each node that no GPU is large enough for, and judge whether it stays Pending."""
        pods = self._create(self._going, too_large)
        seen = self._wait([name for _trial, name in pods], is_refused)
        for trial, name in pods:
            smoke = self._sharing.pod(too_large(trial))
            _end(trial, judge_too_much(trial, name, seen.get(name), smoke))

    def _end(self) -> None:
        """Wait until the pods have run, and judge them by their logs."""
        names = [share.name for trial in self._going for share in trial.result.pods]
        seen = self._wait(names, lambda pod: has_run(pod, self._has_printed(pod)))
        evidence = self._evidence(seen, names)
        for trial in self._going:
            _end(trial, judge_end(trial, seen, evidence, self._printed, self._sharing))

    def _create(self, trials: Sequence[Trial], amount_of: Callable[[Trial], int]) -> list[tuple[Trial, str]]:
        """Create a pod on each node; return the nodes with their pod's names, without those where it is refused."""

        def make(trial: Trial) -> tuple[str, str]:
            smoke = self._sharing.pod(amount_of(trial))
            return create(self._cluster, smoke, trial.node, self._label)

        made = list(zip(trials, run_parallel(make, trials)))
        for trial, (_name, why) in made:
            _end(trial, Fault(why) if why else None)
        return [(trial, name) for trial, (name, why) in made if not why]

    def _wait(self, names: Sequence[str], is_over: Callable[[Object], bool]) -> dict[str, Object]:
        """Wait until all these pods are over with it, or gone, or time is up; return all pods of the run by name."""
        if not names:
            return {}

        def enough(pods: Mapping[str, Object]) -> bool:
            return all(run_parallel(is_over, [pods[name] for name in names if name in pods]))

        return wait(self._cluster, self._smoke, self._label, enough, self._pace)

    @property
    def _smoke(self) -> Smoke:
        return self._sharing.smoke

    def _look(self, seen: Mapping[str, Object]) -> dict[str, Row]:
        """Return the rows of all nodes now."""
        own = [share for share in map(_counted, seen.values()) if share is not None]
        return _rows(query_allocation(self._cluster, counted=own))

    def _evidence(self, seen: Mapping[str, Object], names: Sequence[str]) -> dict[str, Evidence]:
        return collect_evidence(
            self._cluster, self._smoke.namespace, [seen[name] for name in names if name in seen], LOG_LINES
        )

    def _has_printed(self, pod: Object) -> bool:
        """Say whether a running pod has printed what it should; once is enough."""
        name, wanted = get_name(pod), self._smoke.expected_output
        if wanted and name not in self._printed and (pod.get("status") or {}).get("phase") == "Running":
            try:
                log = self._cluster.pod_log(self._smoke.namespace, name, LOG_LINES)
            except ApiError:
                log = ""  # there is none yet, or the verdict tells why it cannot be read
            if wanted in log:
                self._printed.add(name)
        return name in self._printed


def _end(trial: Trial, fault: Fault | None) -> None:
    if fault:
        trial.end(fault)


def _has_ended_well(pod: Mapping[str, Any]) -> bool:
    return (pod.get("status") or {}).get("phase") == "Succeeded"


def _counted(pod: Object) -> PodShare | None:
    """Return what a pod of the test holds, also after it has ended well."""
    return extract_pod({**pod, "status": {**pod["status"], "phase": "Running"}} if _has_ended_well(pod) else pod)
