#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_cost
short_description: Compute the GPU hours of a cluster and their cost
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Computes the GPU hours that pods held, that no pod held, and that pods held without load, by namespace, node, product and resource. Replicas, MIG slices,
    percents and memory of gpushare count as their part of a GPU.
  - With O(prometheus_url), reads what kube-scheduler has reported (C(kube_pod_resource_request)) and the series C(gpu:present) and
    C(gpu:utilization:ratio) of GPUs. Prometheus must have the series of one cluster only.
  - Without it, appends what nodes and pods have now to O(snapshot_path), and computes the hours between these snapshots. The load of GPUs is not known then.
  - A price table makes costs of hours. The module has no prices of its own.
  - Lists nodes once and, for a snapshot, pods once, by pages. It connects to no node.
options:
  state:
    description:
      - V(present) computes the hours.
      - V(absent) removes O(snapshot_path), and refuses a file that has no snapshots.
    type: str
    choices: [present, absent]
    default: present
  prometheus_url:
    description: Address of Prometheus, before C(/api/v1). It has no user name or password.
    type: str
    default: ""
  prometheus_token:
    description: Bearer token for Prometheus.
    type: str
    default: ""
  prometheus_username:
    description: User name for Prometheus.
    type: str
    default: ""
  prometheus_password:
    description: Password of O(prometheus_username).
    type: str
    default: ""
  prometheus_ca_path:
    description: Path of the certificate authority of Prometheus. Empty for those of the system.
    type: path
    default: ""
  prometheus_validate_certs:
    description: Whether the certificate of Prometheus is verified.
    type: bool
    default: true
  prometheus_timeout:
    description: Seconds for each query. There are five for every 100 steps.
    type: int
    default: 60
  window:
    description: How long before O(end) the report begins, such as V(12h), V(7d) or V(4w). A day has 24 hours.
    type: str
    default: 1d
  start:
    description: When the report begins, instead of O(window). A date, which is its midnight in UTC, or a time with its offset from UTC.
    type: str
    default: ""
  end:
    description: When the report ends, as O(start). Empty for now.
    type: str
    default: ""
  step:
    description: With O(prometheus_url), the length of the steps that are added up. A pod counts for whole steps.
    type: str
    default: 5m
  threshold:
    description: The ratio, as C(gpu:utilization:ratio) has it, from which the mean of a step is load.
    type: float
    default: 0.05
  snapshot_path:
    description: File of snapshots, with mode C(0600). Empty only with O(prometheus_url).
    type: path
    default: ""
  snapshot_limit:
    description: How many snapshots are kept, within 64 MiB. The oldest ones are removed.
    type: int
    default: 10000
  max_gap:
    description: The longest time between two snapshots that counts. What is further apart is not known.
    type: str
    default: 2h
  unit:
    description: The unit of C(aliyun.com/gpu-mem). By default it is guessed, as M(gpu.kubernetes.gpushare_info) does.
    type: str
    choices: [GiB, MiB]
  prices:
    description:
      - The price of a GPU hour by product, as in the node label C(nvidia.com/gpu.product). A name can be a shell pattern, such as V(*A100*).
      - The product itself comes before patterns, and a longer pattern before a shorter one. Case does not matter.
    type: dict
    default: {}
  currency:
    description: The currency of O(prices), such as V(EUR). Required with prices.
    type: str
    default: ""
  opencost_values:
    description: Whether to return RV(opencost_values). This needs a price for each GPU of the cluster.
    type: bool
    default: false
extends_documentation_fragment:
  - gpu.kubernetes.k8s_auth
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.api
attributes:
  check_mode:
    support: full
    details: The snapshot is in the report, and not in the file.
  diff_mode:
    support: none
    details: The file of snapshots grows by a line.
  idempotent:
    support: partial
    details: Each run adds a snapshot, which is a change. With O(prometheus_url), nothing changes.
requirements:
  - kubernetes >= 24.2.0
notes:
  - The account needs the right to list nodes and the pods of all namespaces, and no other.
seealso:
  - plugin: gpu.kubernetes.gpu_cost_render
    plugin_type: filter
  - module: gpu.kubernetes.gpushare_info
"""

EXAMPLES = r"""
- name: Add a snapshot, and compute the hours of a week
  gpu.kubernetes.gpu_cost:
    snapshot_path: /var/lib/reports/gpu-cost-snapshots.jsonl
    window: 7d

- name: Compute the cost of November
  gpu.kubernetes.gpu_cost:
    prometheus_url: https://prometheus.example.com
    prometheus_token: "{{ prometheus_token }}"
    start: "2026-11-01"
    end: "2026-12-01"
    step: 15m
    prices: "{{ price_by_product }}"
    currency: EUR
  register: november
"""

RETURN = r"""
report:
  description:
    - The hours and costs, C(gpu.kubernetes/cost/v1). It has C(source), C(start), C(end), C(window_hours), C(covered_hours), C(settings), C(currency),
      C(totals), C(namespaces), C(nodes), C(products), C(rows), C(resources) and C(notes).
    - Each row has C(name), C(gpu_hours), C(allocated_hours), C(idle_hours), C(wasted_hours), C(unmeasured_hours), C(allocated_cost), C(idle_cost) and
      C(wasted_cost), as far as it applies. What is not known is null.
    - Of C(rows), each has C(namespace), C(product), C(allocated_hours), C(idle_hours), C(wasted_hours) and C(cost). The idle hours of a product and their
      cost have an empty namespace.
  returned: if state is present
  type: dict
  sample:
    schema: gpu.kubernetes/cost/v1
    totals: {gpu_hours: 192.0, allocated_hours: 96.0, idle_hours: 96.0, wasted_hours: 12.0, unmeasured_hours: 0.0}
opencost_values:
  description: Values of OpenCost's chart as YAML.
  returned: if O(opencost_values) is true
  type: str
"""

import time
import urllib.error
from typing import Any
from urllib.parse import urlsplit

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.urls import open_url

from ansible_collections.gpu.kubernetes.plugins.module_utils._allocation.allocation import UNITS
from ansible_collections.gpu.kubernetes.plugins.module_utils._allocation.extract import extract_pod
from ansible_collections.gpu.kubernetes.plugins.module_utils._cost import opencost, prometheus, snapshots, times
from ansible_collections.gpu.kubernetes.plugins.module_utils._cost.errors import CostError
from ansible_collections.gpu.kubernetes.plugins.module_utils._cost.integrate import Usage, integrate
from ansible_collections.gpu.kubernetes.plugins.module_utils._cost.prices import parse_prices
from ansible_collections.gpu.kubernetes.plugins.module_utils._cost.report import Report, Request, build_report
from ansible_collections.gpu.kubernetes.plugins.module_utils._cost.shares import (
    NodeGpus,
    Shares,
    build_state,
    extract_gpus,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_api import AUTH_ARG_SPEC, Cluster, connect
from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import ApiError, shorten
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.objects import UNFINISHED
from ansible_collections.gpu.kubernetes.plugins.module_utils._module import build_module

CHUNK = 1024 * 1024
ERROR_BYTES = 4096

ARGUMENTS: dict[str, Any] = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "prometheus_url": {"type": "str", "default": ""},
    "prometheus_token": {"type": "str", "default": "", "no_log": True},
    "prometheus_username": {"type": "str", "default": ""},
    "prometheus_password": {"type": "str", "default": "", "no_log": True},
    "prometheus_ca_path": {"type": "path", "default": ""},
    "prometheus_validate_certs": {"type": "bool", "default": True},
    "prometheus_timeout": {"type": "int", "default": 60},
    "window": {"type": "str", "default": "1d"},
    "start": {"type": "str", "default": ""},
    "end": {"type": "str", "default": ""},
    "step": {"type": "str", "default": "5m"},
    "threshold": {"type": "float", "default": 0.05},
    "snapshot_path": {"type": "path", "default": ""},
    "snapshot_limit": {"type": "int", "default": 10000},
    "max_gap": {"type": "str", "default": "2h"},
    "unit": {"type": "str", "choices": list(UNITS)},
    "prices": {"type": "dict", "default": {}},
    "currency": {"type": "str", "default": ""},
    "opencost_values": {"type": "bool", "default": False},
}


def main() -> None:
    module = build_module(AnsibleModule, {**AUTH_ARG_SPEC, **ARGUMENTS})
    try:
        if module.params["state"] == "absent":
            path = module.params["snapshot_path"]
            module.exit_json(changed=bool(path) and snapshots.remove_snapshots(path, module.check_mode))
        _check_options(module.params)
        module.exit_json(**compute(module.params, connect(module), module.check_mode))
    except (ApiError, CostError) as error:
        module.fail_json(msg=str(error))


def _check_options(params: dict[str, Any]) -> None:
    if not params["prometheus_url"] and not params["snapshot_path"]:
        raise CostError(
            "There is no source of hours; set gpu_cost_prometheus_url, or gpu_cost_snapshot_path to a file on the controller."
        )
    parts = urlsplit(params["prometheus_url"])
    if params["prometheus_url"] and (parts.scheme not in ("http", "https") or not parts.hostname):
        raise CostError("gpu_cost_prometheus_url is not an address that begins with http:// or https://; correct it.")
    if "@" in parts.netloc:
        raise CostError(
            "gpu_cost_prometheus_url has a user name; set gpu_cost_prometheus_username and gpu_cost_prometheus_password."
        )
    if not 0 < params["threshold"] <= 1:
        raise CostError(
            f"gpu_cost_threshold is {params['threshold']}; write a ratio above 0, such as 0.05 for five percent."
        )


def compute(params: dict[str, Any], cluster: Cluster, check_mode: bool) -> dict[str, Any]:
    """Return the result of the module. Raises ApiError and CostError."""
    prices = parse_prices(params["prices"], params["currency"])
    start, end = times.select_window(params["start"], params["end"], params["window"], time.time())
    nodes = cluster.gather("nodes", extract_gpus)
    shares = Shares(nodes, params["unit"] or "")
    read = read_prometheus if params["prometheus_url"] else read_snapshots
    usage, request, notes = read(params, shares, cluster, (start, end, prices), check_mode)
    report: Report = build_report(usage, request, [*notes, *shares.list_notes()])
    result = {"changed": not params["prometheus_url"], "report": report}
    if params["opencost_values"]:
        result["opencost_values"] = opencost.render_values(
            _count_products(nodes), prices, params["currency"], params["prometheus_url"]
        )
    return result


def _count_products(nodes: list[NodeGpus]) -> dict[str, float]:
    found: dict[str, float] = {}
    for node in nodes:
        found[node.product] = found.get(node.product, 0) + node.gpus
    return found


def read_prometheus(
    params: dict[str, Any], shares: Shares, _cluster: Cluster, wanted: tuple[int, int, dict[str, float]], _check: bool
) -> tuple[Usage, Request, list[str]]:
    """Return the hours that Prometheus knows. Raises CostError."""
    step = times.parse_duration(params["step"], "gpu_cost_step")
    window = prometheus.align_window(wanted[0], wanted[1], step)
    segments = prometheus.list_segments(
        Reader(params).read, window, params["threshold"], params["prometheus_timeout"], shares
    )
    products = {name: node.product for name, node in shares.nodes.items()}
    usage = integrate(segments, window.start, window.end, products)
    if not usage.covered:
        raise CostError(
            f"Prometheus at {params['prometheus_url']} has no {prometheus.REQUESTS} in this time; let it scrape /metrics/resources of kube-scheduler, or"
            " leave gpu_cost_prometheus_url empty to use snapshots."
        )
    settings = {"step_seconds": step, "threshold": params["threshold"]}
    return usage, Request("prometheus", window.start, window.end, wanted[2], params["currency"], settings), []


def read_snapshots(
    params: dict[str, Any], shares: Shares, cluster: Cluster, wanted: tuple[int, int, dict[str, float]], check: bool
) -> tuple[Usage, Request, list[str]]:
    """Store a snapshot, and return the hours between the snapshots. Raises ApiError and CostError."""
    start, end, prices = wanted
    gap = times.parse_duration(params["max_gap"], "gpu_cost_max_gap")
    state = build_state(shares, cluster.gather("pods", extract_pod, UNFINISHED))
    snapshot = snapshots.Snapshot(int(time.time()), cluster.server, state)
    lines = snapshots.store_snapshot(params["snapshot_path"], snapshot, max(1, params["snapshot_limit"]), check)
    found, invalid = snapshots.read_snapshots(lines, start, end)
    usage = integrate(snapshots.list_segments(found, gap), start, end)
    notes = [f"{invalid} lines of {params['snapshot_path']} are not snapshots, and are ignored."] if invalid else []
    if not usage.covered:
        notes.append(f"Hours need two snapshots within {params['max_gap']}; run this playbook regularly.")
    return usage, Request("snapshots", start, end, prices, params["currency"], {"max_gap_seconds": gap}), notes


class Reader:
    """Reads from Prometheus. Each answer has a time limit and a largest size."""

    def __init__(self, params: dict[str, Any]) -> None:
        self.url = params["prometheus_url"].rstrip("/")
        self.timeout = params["prometheus_timeout"]
        token, name = params["prometheus_token"], params["prometheus_username"]
        self.options: dict[str, Any] = {
            "headers": {"Authorization": f"Bearer {token}"} if token else {},
            "validate_certs": params["prometheus_validate_certs"],
            "ca_path": params["prometheus_ca_path"] or None,
            # A token would be sent to the other server, too.
            "follow_redirects": "none",
            **({"url_username": name, "url_password": params["prometheus_password"]} if name else {}),
            "force_basic_auth": bool(name),
        }

    def read(self, path: str) -> bytes:
        """Return the answer to a path. Raises CostError."""
        deadline, found = time.monotonic() + self.timeout, bytearray()
        try:
            answer = open_url(f"{self.url}{path}", timeout=self.timeout, **self.options)
            while True:
                chunk = answer.read1(CHUNK)
                if not chunk:
                    return bytes(found)
                found += chunk
                if time.monotonic() > deadline:
                    raise TimeoutError(f"no whole answer within {self.timeout} s")
                if len(found) > prometheus.MAX_BYTES:
                    raise CostError(
                        f"An answer of Prometheus at {self.url} is too large; set gpu_cost_step to a longer one."
                    )
        except urllib.error.HTTPError as error:
            text = shorten(error.read(ERROR_BYTES).decode("utf-8", errors="replace")).rstrip(".")
            raise CostError(
                f"Prometheus at {self.url} answered {error.code}: {text or error.reason}. Check gpu_cost_prometheus_url and its credentials."
            ) from error
        except CostError:
            raise
        except Exception as error:
            raise CostError(
                f"Prometheus at {self.url} cannot be read ({shorten(error)}); check gpu_cost_prometheus_url, its certificate and gpu_cost_prometheus_timeout."
            ) from error


if __name__ == "__main__":
    main()
