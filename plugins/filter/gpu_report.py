# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter gpu_report."""

from __future__ import annotations

DOCUMENTATION = r"""
name: gpu_report
short_description: Build the report on the GPUs of a cluster
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Compares observations of each GPU node with the API server's reports, and lists problems with remedies.
  - The result holds nothing that changes from run to run on an unchanged cluster, neither a time nor a mark of which
    run saw what.
  - The role P(gpu.kubernetes.gpu_verify#role) collects the input.
positional: _input
options:
  _input:
    description:
      - One entry for each host, with C(host), C(node), C(require_gpu), the facts C(nvml), the name C(daemon) of its container
        runtime, the result C(runtime) of M(gpu.kubernetes.container_runtime_health_info), and the result C(configuration) of the check
        mode of M(gpu.kubernetes.containerd_config), M(gpu.kubernetes.crio_config) or M(gpu.kubernetes.docker_daemon_config).
    type: list
    elements: dict
    required: true
  cluster:
    description:
      - What concerns all hosts, with C(error), C(resource_name), C(nodes) and C(others_in_maintenance) of M(gpu.kubernetes.gpu_nodes_info),
        C(plugin_images), C(runtime_classes), the results C(smoke) of M(gpu.kubernetes.gpu_smoke_test) and C(smoke_error).
      - C(runtime_classes) has C(needed), a list of dictionaries with the name as C(key) and the handler as C(value), and C(found), the RuntimeClasses
        of the cluster.
      - C(hosts) has all hosts of the run. A host without an entry in the input is a problem.
      - C(left_out) has the unreachable hosts that the run accepts. They are listed, and are not problems.
      - C(limited) says that these are a part of the hosts only.
    type: dict
    required: true
  notes:
    description: Sentences to print with the report.
    type: list
    elements: str
    default: []
  earlier:
    description:
      - The report of an earlier run, as the text of its file or as data. Anything else, such as an empty or incomplete file, is ignored.
      - A node that was not tested in this run keeps its earlier smoke test, passed or failed, as long as its GPUs, driver and
        runtime are what they were.
      - Hosts that a limited run left out keep their entry, problems and notes. Otherwise they are dropped.
    type: raw
    default: ""
"""

EXAMPLES = r"""
- name: Build the report
  ansible.builtin.debug:
    msg: "{{ observations | gpu.kubernetes.gpu_report(cluster=cluster) }}"
"""

RETURN = r"""
_value:
  description:
    - The report, with C(ok), C(summary), C(nodes), C(problems), C(left_out), C(notes) and C(fakes).
    - Each problem has C(host), empty if it is the cluster's, C(code), C(cause), C(remedy), and all of it as C(sentence).
  type: dict
"""

import json
from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ansible_collections.gpu.kubernetes.plugins.module_utils._report.build import Report


def gpu_report(
    observations: Iterable[Mapping[str, Any]],
    cluster: Mapping[str, Any],
    notes: Iterable[str] = (),
    earlier: Any = "",
) -> Report:
    """Build the report; a shape that does not fit is named."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._report.build import build_report
    from ansible_collections.gpu.kubernetes.plugins.module_utils._report.checks import choose_runtime_class

    try:
        classes = cluster.get("runtime_classes") or {}
        chosen = choose_runtime_class(classes.get("needed") or (), classes.get("found") or ())
        return build_report(list(observations), {**cluster, "runtime_class": chosen}, notes, _report(earlier))
    except (AttributeError, KeyError, TypeError) as error:
        raise AnsibleFilterError(
            f"gpu_report cannot read what it was given ({error!r}); see its documentation, or remove the earlier report."
        ) from error


def _report(earlier: Any) -> Mapping[str, Any] | None:
    """The report in a file's text; None if there is none. Some versions of Ansible have read the text already."""
    if isinstance(earlier, str):
        try:
            earlier = json.loads(earlier)
        except ValueError:
            return None
    return earlier if isinstance(earlier, dict) else None


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Any]:
        """Return it by name."""
        return {"gpu_report": gpu_report}
