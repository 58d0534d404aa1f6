# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter scheduler_pods."""

from __future__ import annotations

DOCUMENTATION = r"""
name: scheduler_pods
short_description: Compare the configurations of the cluster's kube-schedulers
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
  - The role P(gpu.kubernetes.kube_scheduler_extender#role) decides with it when kubeadm writes a configuration for all control planes.
positional: _input, own
options:
  _input:
    description: The pods of kube-scheduler. Pods other than mirror pods are left out.
    type: list
    elements: dict
    required: true
  own:
    description: The name of the pod whose configuration is compared with the others.
    type: str
    required: true
"""

RETURN = r"""
_value:
  description:
    - C(managed) has the nodes whose kube-scheduler has a managed configuration.
    - C(without) has the nodes whose kube-scheduler has no managed configuration, or another file than the own pod.
  type: dict
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


MIRROR = "kubernetes.io/config.mirror"
CHECKSUM = "gpu-kubernetes/scheduler-config-checksum"


def scheduler_pods(pods: Iterable[Mapping[str, Any]], own: str) -> dict[str, list[str]]:
    """Return the nodes; input of another form raises AnsibleFilterError."""
    try:
        mirrors = [pod for pod in pods if MIRROR in _read_annotations(pod)]
        files = [path for pod in mirrors if pod["metadata"]["name"] == own for path in _find_files(pod)]
        managed = [pod for pod in mirrors if CHECKSUM in _read_annotations(pod)]
        same = [pod for pod in managed if files and files[0] in _find_files(pod)]
        return {
            "managed": [pod["spec"]["nodeName"] for pod in managed],
            "without": [pod["spec"]["nodeName"] for pod in mirrors if pod not in same],
        }
    except (AttributeError, KeyError, TypeError) as error:
        raise AnsibleFilterError(f"scheduler_pods cannot read its input ({error!r}); see its documentation.") from error


def _read_annotations(pod: Mapping[str, Any]) -> Mapping[str, str]:
    return pod["metadata"].get("annotations") or {}


def _find_files(pod: Mapping[str, Any]) -> list[str]:
    """Return the values of --config in the pod's containers, which may be items of their own."""
    found = []
    for container in pod["spec"]["containers"]:
        items = [*(container.get("command") or []), *(container.get("args") or [])]
        for item, following in zip(items, [*items[1:], ""], strict=True):
            name, equals, value = item.partition("=")
            if name == "--config":
                found.append(value if equals else following)
    return found


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"scheduler_pods": scheduler_pods}
