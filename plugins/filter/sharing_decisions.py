# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter sharing_decisions."""

from __future__ import annotations

DOCUMENTATION = r"""
name: sharing_decisions
short_description: Decide how the GPUs of hosts are shared, and whether that changes
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Compares the sharing strategy that each host declares with what its node has now, for all hosts of a play at once.
  - The role P(gpu.kubernetes.gpu_sharing#role) collects the input, fails with the errors and exports the rest.
positional: _input
options:
  _input:
    description:
      - One entry for each host. C(host) is its name in the inventory and C(node) its name in Kubernetes.
      - C(strategy) is the declared strategy, empty where the host keeps the one that it has, and C(migrate) whether GPU pods may be evicted for a
        change.
      - C(config) is the configuration of NVIDIA's device plugin, C(resource_name) the resource that it registers, and C(programs_kept) whether
        programs of the host are kept because nano-gpu has replaced them.
    type: list
    elements: dict
    required: true
  nodes:
    description: The rows C(nodes) that M(gpu.kubernetes.gpu_nodes_info) returns for the nodes of the hosts.
    type: list
    elements: dict
    required: true
  run_tags:
    description: The tags of this run, of V(device_plugin), V(gpushare), V(nano_gpu) and V(scheduler). With none of them, the run changes no strategy.
    type: list
    elements: str
    default: []
  check_allocated:
    description: Whether a change is refused while pods hold GPUs of the node.
    type: bool
    default: true
  second_scheduler:
    description: The strategy that has a kube-scheduler of its own; empty if none has.
    type: str
    default: ""
seealso:
  - plugin: gpu.kubernetes.sharing_conflicts
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Show how a host's GPUs are shared
  ansible.builtin.debug:
    msg: "{{ ([{'host': 'a', 'node': 'a'}] | gpu.kubernetes.sharing_decisions(nodes=gpus.nodes)).hosts.a.decided }}"
"""

RETURN = r"""
_value:
  description: The decisions.
  type: dict
  contains:
    hosts:
      description:
        - One entry for each host, by its name in the inventory.
        - C(decided) is the strategy. C(returns) is whether the node is cordoned for the change and uncordoned after it, with C(reason) noted on the
          node, and C(empties) whether it is drained of GPU pods between the two.
        - C(leaves_gpushare) and C(leaves_nano_gpu) are whether that strategy leaves the node, C(has_gpushare) and C(has_nano_gpu) whether anything of
          it is there, and C(extended_by) the strategies with a scheduler extender that come to the node or leave it.
        - C(error) is why the host is refused, in one sentence, or empty.
      type: dict
    error:
      description: Why the whole run is refused, in one sentence, or empty.
      type: str
  sample:
    hosts:
      a:
        decided: gpushare
        empties: false
        returns: true
        reason: change of how GPUs are shared
        extended_by: [gpushare]
        has_gpushare: false
        leaves_gpushare: false
        has_nano_gpu: false
        leaves_nano_gpu: false
        error: ""
    error: ""
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.decision import decide

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


def sharing_decisions(
    requests: Iterable[Mapping[str, Any]],
    nodes: Iterable[Mapping[str, Any]],
    run_tags: Sequence[str] = (),
    check_allocated: bool = True,
    second_scheduler: str = "",
) -> dict[str, Any]:
    """Return the decisions by host, and the error of the whole run; input of another form raises AnsibleFilterError."""
    try:
        return decide(requests, nodes, run_tags, check_allocated, second_scheduler)
    except (AttributeError, KeyError, TypeError) as error:
        raise AnsibleFilterError(
            f"sharing_decisions cannot read its input ({error!r}); see its documentation."
        ) from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"sharing_decisions": sharing_decisions}
