# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue of rules. To add one is to add a row and its function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Iterator

from . import rules_cluster as cluster
from . import rules_pod as pod
from .model import Context, Problem


@dataclass(frozen=True)
class Rule:
    """One rule. ``needs`` are the fields of the context without which it is skipped; ``find`` takes a document if ``of_object``, else a workload."""

    number: str
    severity: str
    title: str
    find: Callable[[Any, Context], Iterator[Problem]]
    needs: tuple[str, ...] = ()
    of_object: bool = False


_NODES, _CLASSES = ("nodes",), ("nodes", "runtime_classes")
# Found by no function, but where one fails.
MALFORMED = Rule("GPU000", "error", "Field of a wrong type", lambda _target, _context: iter(()))
RULES = (
    MALFORMED,
    Rule("GPU001", "error", "Request without a limit", pod.find_request_without_limit),
    Rule("GPU002", "error", "Request that differs from the limit", pod.find_other_request),
    Rule("GPU003", "error", "Part of a GPU", pod.find_fraction),
    Rule("GPU004", "warning", "Unknown resource name", pod.find_unknown_name),
    Rule("GPU005", "warning", "Zero or fewer GPUs", pod.find_zero),
    Rule("GPU006", "error", "GPU for the pod as a whole", pod.find_pod_level),
    Rule("GPU007", "error", "Two strategies or vendors in one pod", pod.find_several_strategies),
    Rule("GPU008", "warning", "GPUs chosen by hand", pod.find_own_choice),
    Rule("GPU009", "warning", "GPU image without a resource", pod.find_no_resource),
    Rule("GPU010", "error", "Taint that is not tolerated", cluster.find_taints, _NODES),
    Rule("GPU011", "error", "No RuntimeClass", cluster.find_no_runtime_class, ("runtime_classes", "default_runtime")),
    Rule("GPU012", "error", "Unknown RuntimeClass", cluster.find_unknown_runtime_class, _CLASSES),
    Rule("GPU013", "error", "No node to run on", cluster.find_no_node, _NODES),
    Rule("GPU014", "error", "More than a node has", cluster.find_too_many, _NODES),
    Rule("GPU015", "warning", "GPU memory that is not counted", pod.find_uncounted_memory),
    Rule("GPU016", "warning", "CUDA newer than the driver", cluster.find_newer_cuda, _NODES),
    Rule("GPU017", "warning", "Devices past the device plugin", pod.find_bypass),
    Rule("GPU018", "error", "Quota or default that is not counted", cluster.find_wrong_quota, of_object=True),
    Rule("GPU019", "warning", "Devices that cannot be opened", cluster.find_no_group, ("device_ownership",)),
    Rule("GPU020", "note", "Rollout without room", cluster.find_stuck_surge, ("nodes", "pods"), of_object=True),
    Rule("GPU021", "warning", "Other driver of Intel", cluster.find_other_driver, _NODES),
)
