#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_maintenance
short_description: Cordon a node and empty it of GPU pods, and give it back as it was
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - With O(state=begin), cordons the node, waits for jobs, and evicts the pods that hold GPUs, or all. Disruption budgets
    are respected. With O(state=end), the node is uncordoned if it was schedulable before, and only then.
  - That the node is in maintenance, and whether it was schedulable before, is written to its annotation
    C(gpu-kubernetes/maintenance) together with the cordon, in one patch. A run that was cut off anywhere is gone on
    with by the next one, which may be another module's or another controller's; two at once end in one maintenance.
  - A node that an administrator had cordoned stays cordoned. To keep one cordoned that was schedulable before, set
    C(was_schedulable) in its annotation to V(false), since a cordon of a cordoned node leaves no trace.
  - If somebody uncordons the node or ends its maintenance while it is being emptied, the module fails and evicts no
    more. If somebody uncordoned it later, O(state=begin) cordons it again, and O(state=end) leaves it schedulable.
  - Pods of DaemonSets, static pods and finished pods are never evicted.
  - Pods that use GPUs without asking for a resource, such as those with C(NVIDIA_VISIBLE_DEVICES) under a default
    runtime, those with host paths and those with resource claims (DRA), are not known to hold any. Use O(scope=all) there.
options:
  node:
    description: The node's name in Kubernetes.
    type: str
    required: true
  state:
    description:
      - With V(begin), the node is cordoned and emptied.
      - With V(end), it is given back. Where there is no annotation, there is nothing to do; of a node that is not in the cluster
        any more, a warning tells.
    type: str
    choices: [begin, end]
    required: true
  reason:
    description:
      - What the maintenance is for, kept in the annotation for whoever looks at the node. Left out, with O(state=begin), it is
        V(maintenance by the collection gpu.kubernetes).
      - With O(state=end), only a maintenance that was begun for this reason is ended; left out, any is.
    type: str
  scope:
    description:
      - With V(gpu), pods with one of O(resources) are evicted.
      - With V(all), all pods are, as before a reboot. What they keep in C(emptyDir) volumes goes with them either way.
      - With V(none), none is, and the node is cordoned alone.
    type: str
    choices: [gpu, all, none]
    default: gpu
  resources:
    description:
      - Shell patterns of the extended resources that make a pod a GPU pod.
      - Left out, the resources below C(nvidia.com), of all sharing strategies of this collection, and of Tencent's and Volcano's device plugins.
    type: list
    elements: str
  jobs_timeout:
    description:
      - Seconds for which pods that run to an end are left to finish before anything is evicted. These are pods of Jobs,
        and all others with the C(restartPolicy) V(Never) or V(OnFailure).
      - With V(0) they are not waited for. Each run waits anew.
    type: int
    default: 3600
  evict_timeout:
    description: Seconds for all evictions together, the pods' own grace periods and the waiting for budgets included.
    type: int
    default: 300
  grace_period:
    description: Seconds that evicted pods get to end. Left out, each has its own.
    type: int
  force:
    description:
      - Whether pods without a controller, which nobody would start again, are evicted too.
      - Otherwise such a pod blocks. One that runs to an end is waited for during O(jobs_timeout) first; one that does not
        blocks at once, before anything is evicted.
    type: bool
    default: false
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.api
attributes:
  check_mode:
    support: full
    details:
      - Nothing is patched and nothing evicted. Jobs that would be waited for are told in RV(waited_for), and not counted
        as a change. A pod that would block fails in check mode too. Whether a disruption budget keeps one is asked of the API server
        by a dry run of its eviction, which takes the same right; a run waits O(evict_timeout) for the budget to allow it.
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
- name: Empty a node of GPU pods, and give jobs two hours
  gpu.kubernetes.node_maintenance:
    node: worker-1
    state: begin
    reason: driver 580
    jobs_timeout: 7200

- name: Empty a node of all pods before a reboot
  gpu.kubernetes.node_maintenance:
    node: worker-1
    state: begin
    reason: reboot for driver 580
    scope: all

- name: Give it back
  gpu.kubernetes.node_maintenance:
    node: worker-1
    state: end
"""

RETURN = r"""
was_schedulable:
  description: Whether the node was schedulable before its maintenance; V(null) where it is in none.
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
  description: When the maintenance began, by the clock of the controller that began it; V(null) where there is none.
  returned: always, unless the node could not be read
  type: str
  sample: "2026-08-23T07:00:00Z"
reason:
  description: What it was begun for, which is not O(reason) if an earlier run gave another one; V(null) where there is none.
  returned: always, unless the node could not be read
  type: str
evicted:
  description: The pods that this run evicted, or would evict in check mode, as C(namespace/name).
  returned: always, unless the node could not be read
  type: list
  elements: str
  sample: [default/inference-7c9fd-x2x8q]
waited_for:
  description: The pods that were waited for because they run to an end. Those that did not end in time are in RV(evicted) too.
  returned: always, unless the node could not be read
  type: list
  elements: str
left:
  description: Pods that hold a GPU and are not evicted, because their DaemonSet or the node itself would start them again.
  returned: always, unless the node could not be read
  type: list
  elements: str
blockers:
  description: The pods that are in the way.
  returned: failure for the sake of pods
  type: list
  elements: dict
  contains:
    pod:
      description: The pod as C(namespace/name).
      type: str
    reason:
      description: Why it is in the way.
      type: str
    remedy:
      description: What to do about it.
      type: str
  sample:
    - pod: default/inference-7c9fd-x2x8q
      reason: is kept by a PodDisruptionBudget (The disruption budget inference needs 2 healthy pods and has 2 currently)
      remedy: let the budget allow one to go, with more replicas or a lower minimum, or delete the pod yourself
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_api import AUTH_ARG_SPEC, connect
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.api import ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.maintaining import (
    Blocked,
    Outcome,
    Wish,
    begin,
    diff_of,
    end,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.maintenance import (
    GPU_RESOURCES,
    MaintenanceError,
    Rules,
)

ARGUMENT_SPEC: dict[str, Any] = {
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


def _wish(params: dict[str, Any]) -> Wish:
    reason = params["reason"] or ("maintenance by the collection gpu.kubernetes" if params["state"] == "begin" else "")
    resources = GPU_RESOURCES if params["resources"] is None else params["resources"]
    rules = Rules([] if params["scope"] == "none" else resources, params["scope"] == "all", params["force"])
    same = ("node", "jobs_timeout", "evict_timeout", "grace_period")
    return Wish(reason=reason, rules=rules, **{name: params[name] for name in same})


def _told(outcome: Outcome) -> dict[str, Any]:
    if outcome.plan is None:
        return {"changed": False}
    record = outcome.plan.after or outcome.plan.before
    return {
        "changed": outcome.changed,
        "diff": diff_of(outcome),
        "was_schedulable": record.was_schedulable if record else None,
        "schedulable": not outcome.plan.cordoned,
        "resumed": outcome.resumed,
        "since": record.since if record else None,
        "reason": record.reason if record else None,
        "evicted": outcome.evicted,
        "waited_for": outcome.waited_for,
        "left": outcome.left,
    }


def main() -> None:
    module = AnsibleModule(argument_spec={**AUTH_ARG_SPEC, **ARGUMENT_SPEC}, supports_check_mode=True)
    params = module.params
    negative = [name for name in ("jobs_timeout", "evict_timeout", "grace_period") if (params[name] or 0) < 0]
    if negative:
        module.fail_json(msg=f"No time is shorter than 0 seconds; correct {', '.join(negative)}.")
    cluster, outcome = connect(module), Outcome()
    try:
        if params["state"] == "begin":
            begin(cluster, _wish(params), outcome, check_mode=module.check_mode)
        else:
            end(cluster, _wish(params), outcome, check_mode=module.check_mode)
        for words in outcome.warnings:
            module.warn(words)
    except Blocked as error:
        module.fail_json(msg=str(error), blockers=[item.as_dict() for item in error.blockers], **_told(outcome))
    except MaintenanceError as error:
        module.fail_json(msg=str(error), **_told(outcome))
    except ApiError as error:
        begun = params["state"] == "begin" and outcome.plan is not None and not module.check_mode
        stays = f" Node {params['node']} stays cordoned; run again, which goes on from there." if begun else ""
        module.fail_json(msg=f"{error}{stays}", **_told(outcome))
    module.exit_json(**_told(outcome))


if __name__ == "__main__":
    main()
