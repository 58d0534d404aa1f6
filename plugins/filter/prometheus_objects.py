# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter prometheus_objects."""

from __future__ import annotations

DOCUMENTATION = r"""
name: prometheus_objects
short_description: Build the objects of the Prometheus Operator for GPUs
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
positional: _input, namespace
options:
  _input:
    description: The targets by host, as the filter P(gpu.kubernetes.prometheus_target#filter) returns them. Empty for hosts without one.
    type: dict
    required: true
  state:
    description: V(absent) needs only the names of the hosts.
    type: str
    choices: [present, absent]
    default: present
  existing:
    description: The ScrapeConfigs of all hosts, which keep what they share from its removal.
    type: list
    elements: dict
    default: []
  namespace:
    description: The namespace of the objects.
    type: str
    required: true
  labels:
    description: Labels of the objects, by which the operator's Prometheus selects them.
    type: dict
    default: {}
  alerts:
    description: What replaces the values of alerts.
    type: dict
    default: {}
  runbook_url:
    description: Address of the page of runbooks.
    type: str
    default: ""
  options:
    description: More options of each ScrapeConfig.
    type: dict
    default: {}
  pods:
    description: Exporters in pods, with C(namespace), C(labels), C(port) and C(exporter), and C(expected_gpus) if it is known. Empty without them.
    type: dict
    default: {}
  prometheuses:
    description: The objects of kind Prometheus, to compare their selectors.
    type: list
    elements: dict
    default: []
"""

RETURN = r"""
_value:
  description:
    - C(owned), the objects to apply or to remove, C(stale), those of former targets and pods to remove where the others are applied, and C(unselected), a
      sentence for each object that no Prometheus selects.
  type: dict
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible.utils.unsafe_proxy import wrap_var


def prometheus_objects(
    targets: Mapping[str, Any],
    namespace: str,
    state: str = "present",
    labels: Mapping[str, str] | None = None,
    alerts: Mapping[str, Any] | None = None,
    runbook_url: str = "",
    options: Mapping[str, Any] | None = None,
    pods: Mapping[str, Any] | None = None,
    prometheuses: Sequence[Mapping[str, Any]] = (),
    existing: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Return the objects; input of another form raises AnsibleFilterError."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._config.controller import to_plain
    from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
    from ansible_collections.gpu.kubernetes.plugins.module_utils._monitoring.objects import (
        build_objects,
        build_scrape_config,
        find_unselected,
        name_pod_monitor,
    )

    try:
        plain = to_plain(
            [targets, labels or {}, alerts or {}, options or {}, pods or {}], "a variable of gpu_prometheus"
        )
        shared = build_objects(str(namespace), plain[1], plain[2], str(runbook_url), plain[4])
        configs = {
            host: build_scrape_config(host, target, str(namespace), plain[1], plain[3])
            for host, target in plain[0].items()
        }
        hosts = [config for host, config in configs.items() if plain[0][host] or state == "absent"]
        unused = [] if plain[4] else [name_pod_monitor(str(namespace))]
        stale = [*unused, *(config for config in configs.values() if config not in hosts)]
        own = {item["metadata"]["name"] for item in hosts}
        is_needed = state == "present" or all(item["metadata"]["name"] in own for item in existing)
        owned = [*([*shared, *(unused if state == "absent" else [])] if is_needed else []), *hosts]
        unselected = find_unselected(owned, prometheuses) if prometheuses else []
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise AnsibleFilterError(f"prometheus_objects cannot read its input ({error!r}).") from error
    except ConfigError as error:
        raise AnsibleFilterError(str(error)) from error
    # The texts have placeholders of Prometheus, which look like Jinja.
    found: dict[str, Any] = wrap_var({"owned": owned, "stale": stale, "unselected": unselected})
    return found


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"prometheus_objects": prometheus_objects}
