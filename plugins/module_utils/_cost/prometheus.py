# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the hours from Prometheus: what kube-scheduler reports of pods, and the normalised series of GPUs.

``kube_pod_resource_request`` of kube-scheduler's ``/metrics/resources`` has each pod with a node until it ends. All kube-schedulers report all pods, so that
the largest value of a pod counts, and not the sum. A Prometheus that has labels of its own for namespace, pod or node renames those of the series to
``exported_*``. A query has a value for each step; it counts for the step that ends there.
"""

from __future__ import annotations

import json
import math
from typing import Any, Callable, Iterable, Iterator, List, Mapping, NamedTuple, Sequence, Tuple
from urllib.parse import urlencode

from .._sharing.catalogue import GPU_PATTERNS
from .errors import CostError
from .integrate import Held, Segment, State
from .shares import Shares, name_product
from .times import DAY

REQUESTS = "kube_pod_resource_request"
# The GPUs of NVIDIA, of which pods request the resources above.
PRESENT, LOAD = 'gpu:present{gpu_uuid=~"GPU-.*"}', "gpu:utilization:ratio"
#: A query is of at most this many steps.
STEPS = 100
#: The answer to one query has at most this many bytes.
MAX_BYTES = 256 * 1024 * 1024

# Labels of a series, and its values by time.
Series = Tuple[Mapping[str, str], List[Tuple[float, float]]]
# Returns the answer to a path with a query. Raises CostError.
Read = Callable[[str], bytes]


class Window(NamedTuple):
    """The first and the last second, which are multiples of the step in seconds."""

    start: int
    end: int
    step: int


def align_window(start: int, end: int, step: int) -> Window:
    """Return the window with both ends rounded down to steps. Raises CostError if nothing is left, or the step is longer than a day."""
    first, last = start // step * step, end // step * step
    if first >= last or step > DAY:
        raise CostError(
            f"The step of {step} seconds is too long for the window; set gpu_cost_step to a shorter one, such as 5m."
        )
    return Window(first, last, step)


def _build_pattern() -> str:
    """Return a regular expression of the resources that pods request for GPUs."""
    special = {"*": ".*", "?": ".", ".": "[.]"}
    return "|".join("".join(special.get(char, char) for char in pattern) for pattern in GPU_PATTERNS)


def build_queries(step: int, threshold: float) -> dict[str, str]:
    """Return the queries by name. *threshold* is the ratio from which a GPU has a load."""
    renamed = f'{REQUESTS}{{resource=~"{_build_pattern()}"}}'
    for label in ("namespace", "pod", "node"):
        renamed = f'label_replace({renamed}, "{label}", "$1", "exported_{label}", "(.+)")'
    load = f"max by (node, gpu_uuid) (avg_over_time({LOAD}[{step}s]))"
    kept = "namespace, node, exported_node, resource"
    return {
        "covered": f"count({REQUESTS})",
        "held": f"sum by ({kept}) (max by ({kept}, pod) ({renamed}))",
        "gpus": f"count by (node, model) (max by (node, gpu_uuid, model) ({PRESENT}))",
        "measured": f"count by (node) ({load})",
        "busy": f"count by (node) ({load} >= {threshold!r})",
    }


def list_segments(read: Read, window: Window, threshold: float, timeout: int, shares: Shares) -> Iterator[Segment]:
    """Yield the segments of the window in which Prometheus knew the pods. Raises CostError."""
    queries = build_queries(window.step, threshold)
    for start in range(window.start, window.end, STEPS * window.step):
        part = Window(start + window.step, min(start + STEPS * window.step, window.end), window.step)

        def query(name: str, part: Window = part) -> list[Series]:
            return query_range(read, queries[name], part, timeout)

        # What an answer has is collected before the next query, since answers of large clusters fill much memory.
        times = sorted({time for _labels, values in query("covered") for time, value in values if value})
        held, gpus = _collect_held(query("held"), shares), _collect_gpus(query("gpus"))
        measured, busy = _collect_by_node(query("measured")), _collect_by_node(query("busy"))
        for time in times:
            load = {node: (count, busy.get(time, {}).get(node, 0.0)) for node, count in measured.get(time, {}).items()}
            yield Segment(time - window.step, time, State(gpus.get(time, {}), held.get(time, []), load))


def query_range(read: Read, query: str, window: Window, timeout: int) -> list[Series]:
    """Return the series of a query from the first second to the last one, both included. Raises CostError."""
    options = {"query": query, "start": window.start, "end": window.end, "step": window.step, "timeout": f"{timeout}s"}
    return parse_answer(read(f"/api/v1/query_range?{urlencode(options)}"))


def parse_answer(answer: bytes) -> list[Series]:
    """Return the series of an answer, without values that are no numbers. Raises CostError."""
    try:
        data = json.loads(answer)["data"]
        if data["resultType"] != "matrix":
            raise ValueError(data["resultType"])
        return [
            ({str(name): str(value) for name, value in series["metric"].items()}, list(_read_values(series["values"])))
            for series in data["result"]
        ]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise CostError(
            f"The answer is not one of Prometheus ({error!r:.80}); check gpu_cost_prometheus_url, which ends before /api/v1."
        ) from error


def _read_values(values: Iterable[Sequence[Any]]) -> Iterator[tuple[float, float]]:
    for time, text in values:
        value = float(text)
        if math.isfinite(value) and value >= 0:
            yield float(time), value


def _collect_gpus(found: Sequence[Series]) -> dict[float, dict[str, dict[str, float]]]:
    collected: dict[float, dict[str, dict[str, float]]] = {}
    for labels, values in found:
        node, product = labels.get("node", ""), name_product(labels.get("model", ""))
        for time, value in values:
            of_node = collected.setdefault(time, {}).setdefault(node, {})
            of_node[product] = of_node.get(product, 0.0) + value
    return collected


def _collect_held(found: Sequence[Series], shares: Shares) -> dict[float, list[Held]]:
    # If labels were renamed, a pod without the renamed one has no node yet, and the label node is that of kube-scheduler.
    is_renamed = any(labels.get("exported_node") for labels, _values in found)
    collected: dict[float, list[Held]] = {}
    for labels, values in found:
        node = labels.get("exported_node" if is_renamed else "node", "")
        one = shares.hold(labels.get("namespace", ""), node, labels.get("resource", ""), 1.0) if node else None
        if one is not None:
            rows = {
                value: one._replace(units=one.units * value, gpus=one.gpus * value)
                for value in {value for _time, value in values}
            }
            for time, value in values:
                collected.setdefault(time, []).append(rows[value])
    return collected


def _collect_by_node(found: Sequence[Series]) -> dict[float, dict[str, float]]:
    collected: dict[float, dict[str, float]] = {}
    for labels, values in found:
        for time, value in values:
            collected.setdefault(time, {})[labels.get("node", "")] = value
    return collected
