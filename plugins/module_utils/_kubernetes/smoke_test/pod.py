# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parameters of a smoke test, and the manifest of its pods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping, Sequence

from ..._sharing.catalogue import CONTAINER, SharedResource
from ..._vendors import SERVED, vendor_of
from ..objects import Object

NAME = "gpu-smoke-test"
LABELS = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/managed-by": "gpu.kubernetes"}
RUN_LABEL = "gpu-kubernetes/smoke-test-run"

# The pod outlives the wait by this many seconds, so that its state can be read; then the kubelet ends it.
GRACE_SECONDS = 60

CORDON_TOLERATION = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}


@dataclass(frozen=True)
class SmokeTest:
    """The parameters of a test. ``timeout`` is in seconds, ``count`` in units of ``resource``; ``cordoned`` nodes are tested or skipped.

    With ``shared`` resources, each of several pods requests one of the ``shares``, in per cent of a GPU, instead of ``count``.
    Without ``scheduler_name`` the cluster's default scheduler places the pods. ``subject`` is how messages name a pod.
    Without ``needs_log``, a pod that has succeeded and whose log cannot be read has passed.
    """

    image: str
    namespace: str = "default"
    command: Sequence[str] = ()
    args: Sequence[str] = ()
    expected_output: str = ""
    runtime_class: str = ""
    resource: str = "nvidia.com/gpu"
    count: int = 1
    timeout: int = 300
    run_as_user: int = 65534
    supplemental_groups: Sequence[int] = ()
    memory_limit: str = "2Gi"
    image_pull_policy: str = "IfNotPresent"
    image_pull_secrets: Sequence[str] = ()
    tolerations: Sequence[Mapping[str, Any]] = ()
    cordoned: bool = False
    scheduler_name: str = ""
    shared: Sequence[SharedResource] = ()
    shares: Sequence[int] = (20, 30)
    subject: str = "the pod"
    needs_log: bool = True

    @property
    def all_tolerations(self) -> list[Object]:
        """The vendor's taint is always tolerated, a cordon if cordoned nodes are tested; the caller's tolerations follow."""
        vendor = vendor_of(self.resource)
        taint = {"key": SERVED.resource if vendor is SERVED else self.resource, "operator": "Exists"}
        own: list[Object] = [taint, *([dict(CORDON_TOLERATION)] if self.cordoned else [])]
        return [*own, *(dict(toleration) for toleration in self.tolerations)]


def build_manifest(test: SmokeTest, node: str, run: str) -> Object:
    """Return a pod for one node, as users write theirs.

    It goes through the scheduler (an affinity to the node's name, never ``nodeName``). It gets its GPU from the device plugin alone:
    with ``NVIDIA_VISIBLE_DEVICES`` of its own it would bypass the plugin. It has no rights that it does not need.
    """
    spec: Object = {
        "restartPolicy": "Never",
        # Pods that share a GPU are created one after another, and each of them may wait for the whole timeout.
        "activeDeadlineSeconds": test.timeout * (len(test.shares) if test.shared else 1) + GRACE_SECONDS,
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "affinity": {"nodeAffinity": _only_on(node)},
        "tolerations": test.all_tolerations,
        "securityContext": _user(test),
        "containers": [_container(test)],
    }
    if not test.shared:
        # Scheduler extenders of 2019 write whole pods back and lose these fields, which the API server rejects.
        spec["enableServiceLinks"] = False
        spec["securityContext"]["seccompProfile"] = {"type": "RuntimeDefault"}
    if test.scheduler_name:
        spec["schedulerName"] = test.scheduler_name
    if test.runtime_class:
        spec["runtimeClassName"] = test.runtime_class
    if test.image_pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in test.image_pull_secrets]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": f"{NAME}-", "namespace": test.namespace, "labels": {**LABELS, RUN_LABEL: run}},
        "spec": spec,
    }


def _only_on(node: str) -> Object:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}


def _user(test: SmokeTest) -> Object:
    uid = test.run_as_user
    groups = {"supplementalGroups": list(test.supplemental_groups)} if test.supplemental_groups else {}
    return {"runAsNonRoot": True, "runAsUser": uid, "runAsGroup": uid, **groups} if uid else {"runAsUser": 0, **groups}


def _container(test: SmokeTest) -> Object:
    container: Object = {
        "name": CONTAINER,
        "image": test.image,
        "imagePullPolicy": test.image_pull_policy,
        "resources": {
            "limits": {test.resource: str(test.count), "memory": test.memory_limit},
            "requests": {"cpu": "50m", "memory": "64Mi"},
        },
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    if test.command:
        container["command"] = list(test.command)
    if test.args:
        container["args"] = list(test.args)
    return container
