# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pods of one run in the cluster: create them, wait for all of them together, and delete them."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Callable, Mapping, Sequence

from ..._kube_error import ApiError
from ..api import run_parallel
from ..objects import Object, get_name
from ..pod_failures import Evidence
from ..retries import Timing
from ..survey import collect_evidence
from .pod import RUN_LABEL, SmokeTest, build_manifest
from .verdict import explain_refusal

if TYPE_CHECKING:
    from ..._kube_api import Cluster

LOG_LINES = 200
#: Seconds between two polls.
INTERVAL = 0.5
#: Seconds before another pod for a node whose first one came too early.
REPLACE_SECONDS = 2
CLEANUP_SECONDS = 30


@dataclass(frozen=True)
class Created:
    """A pod that was created, or the *reason* why the API server refused it."""

    pod: str = ""
    reason: str = ""


class Session:
    """The pods of one run, which have a label of their own."""

    def __init__(self, cluster: Cluster, namespace: str, timing: Timing) -> None:
        self.cluster = cluster
        self.timing = timing
        self._namespace = namespace
        self._run = uuid.uuid4().hex[:12]

    def create(self, test: SmokeTest, node: str, former: str = "") -> Created:
        """Create a pod for the node.

        If the server does not answer for a moment, the *former* pod is returned if there is one; otherwise raises ApiError.
        """
        manifest = build_manifest(test, node, self._run)
        try:
            return Created(get_name(self.cluster.create_pod(self._namespace, manifest)))
        except ApiError as error:
            if former and error.is_transient:
                return Created(former)
            if not error.status:
                raise
            return Created(reason=explain_refusal(test, str(error)))

    def delete(self, name: str) -> None:
        """Delete one pod of the run. Raises ApiError."""
        self.cluster.delete_pod(self._namespace, name)

    def wait(self, deadline: float, is_enough: Callable[[Mapping[str, Object]], bool]) -> dict[str, Object]:
        """Poll with one list of the run's pods until *is_enough* or the deadline; return them by name. Raises ApiError."""
        while True:
            late = self.timing.clock() >= deadline
            try:
                pods = {get_name(pod): pod for pod in self.cluster.pods(self._namespace, {RUN_LABEL: self._run})}
            except ApiError as error:
                if late or not error.is_transient:
                    raise
            else:
                if late or is_enough(pods):
                    return pods
            self.timing.sleep(INTERVAL)

    def collect(self, pods: Sequence[Object]) -> dict[str, Evidence]:
        """Return logs and events of these pods, by name."""
        return collect_evidence(self.cluster, self._namespace, pods, LOG_LINES)

    def end(self) -> list[str]:
        """Delete all pods of the run; return warnings."""
        return delete_pods(self.cluster, self._namespace, {RUN_LABEL: self._run}, self.timing)


def delete_pods(cluster: Cluster, namespace: str, labels: Mapping[str, str], timing: Timing) -> list[str]:
    """Delete the pods with the labels and wait until they are gone, also those whose creation was never confirmed; return warnings."""
    deadline = timing.clock() + CLEANUP_SECONDS
    while True:
        left = cluster.pods(namespace, labels)
        if not left:
            return []
        if timing.clock() >= deadline:
            names = ", ".join(get_name(pod) for pod in left)
            return [f"Pods {names} in namespace {namespace} were deleted, but their kubelet has not released them yet."]
        remaining = [get_name(pod) for pod in left if not (pod.get("metadata") or {}).get("deletionTimestamp")]
        run_parallel(lambda name: cluster.delete_pod(namespace, name), remaining)
        timing.sleep(INTERVAL)
