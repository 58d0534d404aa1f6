#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_maintenance
short_description: Cordon and drain a node of GPU pods, and uncordon it
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - With O(state=begin), cordons the node, waits for jobs, and evicts the pods that hold GPUs, or all. Disruption budgets
    are respected. With O(state=end), the node is uncordoned if it was schedulable before, and only then.
  - One patch sets the cordon and the annotation C(gpu-kubernetes/maintenance), which records whether the node was schedulable before. An
    interrupted run can be repeated, also by another controller; it resumes where it stopped. Two concurrent
    runs share one maintenance; the playbooks of this collection refuse the second one.
  - A node that an administrator had cordoned stays cordoned. To keep a node cordoned that was schedulable before, set
    C(was_schedulable) in its annotation to V(false), since a cordon of a cordoned node leaves no trace.
  - If someone uncordons the node or ends its maintenance during the drain, the module fails and evicts no more pods. If someone uncordoned it
    later, O(state=begin) cordons it again, and O(state=end) leaves it schedulable.
  - Pods of DaemonSets, static pods and finished pods are never evicted.
  - Pods that use GPUs without requesting a resource are not recognized, such as those with C(NVIDIA_VISIBLE_DEVICES) under a default
    runtime, with host paths or with resource claims (DRA). Use O(scope=all) for them.
options:
  node:
    description: The node's name in Kubernetes.
    type: str
    required: true
  state:
    description:
      - With V(begin), the node is cordoned and drained.
      - With V(end), it is uncordoned. A node without the annotation is not changed; a node that is not in the cluster gives a warning.
    type: str
    choices: [begin, end]
    required: true
  reason:
    description:
      - What the maintenance is for, recorded in the annotation. The default of O(state=begin) is
        V(maintenance by the collection gpu.kubernetes).
      - With O(state=end), only a maintenance that was begun for this reason is ended; by default any.
    type: str
  scope:
    description:
      - With V(gpu), pods with one of O(resources) are evicted.
      - With V(all), all pods are evicted, as before a reboot. The content of C(emptyDir) volumes is deleted either way.
      - With V(none), no pod is evicted, and the node is only cordoned.
    type: str
    choices: [gpu, all, none]
    default: gpu
  resources:
    description:
      - Shell patterns of the extended resources that make a pod a GPU pod.
      - Left out, the resources below C(nvidia.com), of all sharing strategies of this collection, of GPUs of AMD and Intel, and of Tencent's and Volcano's
        device plugins.
    type: list
    elements: str
  jobs_timeout:
    description:
      - Seconds to wait for pods that end by themselves before anything is evicted. These are pods of Jobs, and all others with the
        C(restartPolicy) V(Never) or V(OnFailure).
      - With V(0), the module does not wait for them. The time starts again with each run.
    type: int
    default: 3600
  evict_timeout:
    description: Seconds for all evictions together, with the pods' grace periods and the wait for budgets.
    type: int
    default: 300
  grace_period:
    description: Seconds that evicted pods get to end; by default each pod's own.
    type: int
  force:
    description:
      - Whether pods without a controller, which nothing would start again, are evicted too.
      - Otherwise such a pod blocks the drain. One that ends by itself blocks after O(jobs_timeout), another one at once, before anything is
        evicted.
    type: bool
    default: false
extends_documentation_fragment:
  - gpu.kubernetes.k8s_auth
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.api
attributes:
  check_mode:
    support: full
    details:
      - Nothing is patched and nothing evicted. Jobs that a run would wait for are in RV(waited_for), and do not count as a change. A pod that
        would block fails in check mode too. A dry run of the eviction, which needs the same right, shows whether a disruption budget protects
        a pod; a run waits O(evict_timeout) for the budget to allow it.
  diff_mode:
    support: full
  idempotent:
    support: full
requirements:
  - kubernetes >= 24.2.0
seealso:
  - module: kubernetes.core.k8s_drain
  - module: gpu.kubernetes.nvidia_kernel_modules
"""

EXAMPLES = r"""
- name: Drain the GPU pods of a node, and wait two hours for jobs
  gpu.kubernetes.node_maintenance:
    node: worker-1
    state: begin
    reason: driver 580
    jobs_timeout: 7200

- name: Drain all pods of a node before a reboot
  gpu.kubernetes.node_maintenance:
    node: worker-1
    state: begin
    reason: reboot for driver 580
    scope: all

- name: End the maintenance
  gpu.kubernetes.node_maintenance:
    node: worker-1
    state: end
"""

RETURN = r"""
was_schedulable:
  description: Whether the node was schedulable before its maintenance; V(null) if it is not in maintenance.
  returned: always, unless the node could not be read
  type: bool
schedulable:
  description: Whether the node is schedulable now, or would be after a run in check mode.
  returned: always, unless the node could not be read
  type: bool
resumed:
  description: Whether the maintenance had begun already. Always V(false) with O(state=end).
  returned: always, unless the node could not be read
  type: bool
since:
  description: When the maintenance began, by the clock of the controller that began it; V(null) without a maintenance.
  returned: always, unless the node could not be read
  type: str
  sample: "2026-08-23T07:00:00Z"
reason:
  description: What it was begun for, which is not O(reason) if an earlier run had another one; V(null) without a maintenance.
  returned: always, unless the node could not be read
  type: str
evicted:
  description: The pods that this run evicted, or would evict in check mode, as C(namespace/name).
  returned: always, unless the node could not be read
  type: list
  elements: str
  sample: [default/inference-7c9fd-x2x8q]
waited_for:
  description: The pods that the module waited for because they end by themselves. Those that did not end in time are in RV(evicted) too.
  returned: always, unless the node could not be read
  type: list
  elements: str
left:
  description: Pods that hold a GPU and are not evicted, because their DaemonSet or the kubelet would start them again.
  returned: always, unless the node could not be read
  type: list
  elements: str
blockers:
  description: The pods that block the drain.
  returned: failure because of pods
  type: list
  elements: dict
  contains:
    pod:
      description: The pod as C(namespace/name).
      type: str
    reason:
      description: Why it blocks the drain.
      type: str
    remedy:
      description: What to do about it.
      type: str
  sample:
    - pod: default/inference-7c9fd-x2x8q
      reason: is protected by a PodDisruptionBudget (The disruption budget inference needs 2 healthy pods and has 2 currently)
      remedy: add replicas or lower the minimum of the budget, or delete the pod yourself
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_api import AUTH_ARG_SPEC, connect
from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.drain.plan import (
    GPU_RESOURCES,
    MaintenanceError,
    Rules,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.drain.runner import (
    Blocked,
    DrainParams,
    Outcome,
    begin_maintenance,
    build_diff,
    end_maintenance,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._module import Module, build_module

ARGUMENTS: dict[str, Any] = {
    **AUTH_ARG_SPEC,
    "node": {"type": "str", "required": True},
    "state": {"type": "str", "choices": ["begin", "end"], "required": True},
    "reason": {"type": "str"},
    "scope": {"type": "str", "choices": ["gpu", "all", "none"], "default": "gpu"},
    "resources": {"type": "list", "elements": "str"},
    "jobs_timeout": {"type": "int", "default": 3600},
    "evict_timeout": {"type": "int", "default": 300},
    "grace_period": {"type": "int"},
    "force": {"type": "bool", "default": False},
}


def _read_params(params: dict[str, Any]) -> DrainParams:
    reason = params["reason"] or ("maintenance by the collection gpu.kubernetes" if params["state"] == "begin" else "")
    resources = GPU_RESOURCES if params["resources"] is None else params["resources"]
    rules = Rules([] if params["scope"] == "none" else resources, params["scope"] == "all", params["force"])
    same = ("node", "jobs_timeout", "evict_timeout", "grace_period")
    return DrainParams(reason=reason, rules=rules, **{name: params[name] for name in same})


def _build_result(outcome: Outcome) -> dict[str, Any]:
    if outcome.plan is None:
        return {"changed": False}
    record = outcome.plan.after or outcome.plan.before
    return {
        "changed": outcome.changed,
        "diff": build_diff(outcome),
        "was_schedulable": record.was_schedulable if record else None,
        "schedulable": not outcome.plan.cordoned,
        "resumed": outcome.resumed,
        "since": record.since if record else None,
        "reason": record.reason if record else None,
        "evicted": outcome.evicted,
        "waited_for": outcome.waited_for,
        "left": outcome.left,
    }


def run(module: Module) -> None:
    """Begin or end the maintenance."""
    params = module.params
    negative = [name for name in ("jobs_timeout", "evict_timeout", "grace_period") if (params[name] or 0) < 0]
    if negative:
        module.fail_json(msg=f"Times must not be negative; correct {', '.join(negative)}.")
    cluster, outcome = connect(module), Outcome()
    try:
        if params["state"] == "begin":
            begin_maintenance(cluster, _read_params(params), outcome, check_mode=module.check_mode)
        else:
            end_maintenance(cluster, _read_params(params), outcome, check_mode=module.check_mode)
        for warning in outcome.warnings:
            module.warn(warning)
    except Blocked as error:
        module.fail_json(msg=str(error), blockers=[item.as_dict() for item in error.blockers], **_build_result(outcome))
    except MaintenanceError as error:
        module.fail_json(msg=str(error), **_build_result(outcome))
    except ApiError as error:
        begun = params["state"] == "begin" and outcome.plan is not None and not module.check_mode
        stays = f" Node {params['node']} stays cordoned; run again, which resumes the drain." if begun else ""
        module.fail_json(msg=f"{error}{stays}", **_build_result(outcome))
    module.exit_json(**_build_result(outcome))


def main() -> None:
    """Run the module."""
    run(build_module(AnsibleModule, ARGUMENTS))


if __name__ == "__main__":
    main()
