# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random annotations, labels, amounts and texts of a node and a pod, as a kubelet and the owner of a pod can write them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from typing import Any

from fakes.kubernetes_api import FakeCluster, node, pod

from ansible_collections.gpu.kubernetes.plugins.module_utils._allocation import extract, names, resources
from ansible_collections.gpu.kubernetes.plugins.module_utils._allocation.allocation import allocate
from ansible_collections.gpu.kubernetes.plugins.module_utils._allocation.render import render_lines
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.drain import plan as drain
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.labels.plan import Plan, plan_labels
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.labels.record import (
    RECORD_ANNOTATION,
    LabelError,
    Ownership,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.survey import read_sharing_state
from ansible_collections.gpu.kubernetes.plugins.module_utils._report.build import build_report
from ansible_collections.gpu.kubernetes.plugins.module_utils._report.render import render_lines as render_report
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.catalogue import STRATEGIES
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.node_state import Cluster
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.plan import plan_sharing, render_plan
from ansible_collections.gpu.kubernetes.plugins.module_utils._text import make_printable
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._report import observations

from .fuzz_inputs import Case, UndoDifference, Violation

OWNER, NODE, LONGEST = "gpu_node_labels", "w1", 4000
#: Labels that a kubelet must not choose, and others.
RESERVED = ("node-restriction.kubernetes.io/tenant", "node-role.kubernetes.io/control-plane")
LABELS = ("nvidia.com/gpu.count", "accelerator", "a", *RESERVED, "bad name")
ODD: list[Any] = [
    None,
    True,
    -1,
    0.5,
    10**400,
    "",
    "x" * 64,
    "x" * 5000,
    "\x1b[2J\x07",
    "\u202e",
    "\ud800",
    "a b\n",
    [],
    {},
    [{}] * 9,
]
AMOUNTS = ["0", "1", "8", "-3", "129", "2000000000", "9" * 40, "1E99", "1Ei", "x", "", "\x1b]0;\x07"]
DEEP = ("[" * 100000, '{"a":' * 50000, "[" * 300 + "]" * 300, "9" * 5000)
#: What programs write, by annotation of the node.
WRITTEN = {
    RECORD_ANNOTATION: {
        OWNER: {LABELS[0]: {"set": "8", "was": None}, LABELS[1]: {"set": "t4", "was": "k80"}},
        "gpushare": {},
    },
    drain.ANNOTATION: {
        "was_schedulable": True,
        "reason": "change of the sharing strategy: mps to mig",
        "since": "2026-08-23T07:00:00Z",
    },
}
ALLOCATION = {"main": {"0": 2, "1": 3}}
MEMORY, COUNT = names.GPU_MEM, names.GPU_COUNT
RESOURCES = sorted(
    {
        MEMORY,
        COUNT,
        *(name for row in STRATEGIES.values() for name in (*row.counted.values(), *row.in_capacity_until_removed)),
    }
)


def change(case: Case, value: Any) -> Any:
    """A copy of a value of JSON in which about one part is another one."""
    if case.happens(4) or not isinstance(value, (dict, list)):
        return case.random.choice([*ODD, *LABELS, *AMOUNTS]) if case.happens(12) else value
    if isinstance(value, list):
        return [change(case, part) for part in value]
    # A label as if this collection had set it, with a former value of the kubelet's choice.
    more = {case.random.choice(LABELS): {"set": case.random.choice((None, "8", "t4")), "was": "payments"}}
    return {
        key if case.happens(98) else str(case.random.choice(ODD)): change(case, part)
        for key, part in {**value, **(more if case.happens(30) else {})}.items()
    }


def make_text(case: Case, value: Any) -> str:
    """An annotation: JSON with changed parts, seldom with another character, truncated, or deep."""
    if case.happens(2):
        return case.random.choice(DEEP)
    text = json.dumps(change(case, value))
    at = case.random.randrange(len(text) + 1)
    if case.happens(10):
        text = (
            text[:at]
            + case.random.choice(['"', "}", "[", "\\", "\x00", "\ud800", "1e999"])
            + text[at + case.random.randrange(2) :]
        )
    return text[:at] if case.happens(4) else text


def make_amounts(case: Case) -> dict[str, str]:
    """Amounts of some resources."""
    return {name: case.random.choice(AMOUNTS) for name in RESOURCES if case.happens(30)}


def make_node(case: Case) -> dict[str, Any]:
    """The node."""
    annotations = {name: make_text(case, value) for name, value in WRITTEN.items() if case.happens(70)}
    texts = [*map(str, ODD), *AMOUNTS, *("8", "t4") * 9]
    labels = {
        name: case.random.choice(texts)
        for name in (*LABELS, *(key for row in STRATEGIES.values() for key in row.label))
        if case.happens(25)
    }
    item = node(NODE, labels=labels, annotations=annotations, ready=case.happens(80), unschedulable=case.happens(30))
    item["status"].update(capacity=make_amounts(case), allocatable=make_amounts(case))
    item["status"]["conditions"][0]["message"] = str(case.random.choice(ODD))
    return case.show(item)


def make_pod(case: Case) -> dict[str, Any]:
    """A pod on the node that holds GPUs, or a device plugin."""
    annotations = {
        "scheduler.framework.gpushare.allocation": make_text(case, ALLOCATION),
        "ALIYUN_COM_GPU_MEM_IDX": case.random.choice(AMOUNTS),
        "nano-gpu/container-main": ",".join(case.random.choices(AMOUNTS, k=case.random.choice((1, 2, 300)))),
    }
    message = str(case.random.choice(ODD))
    state = {"waiting": {"reason": message, "message": message}}
    return case.show(
        pod(
            "p",
            on=NODE,
            labels={"name": "nvidia-device-plugin-ds"} if case.happens(30) else {},
            annotations={name: text for name, text in annotations.items() if case.happens(60)},
            containers=[{"name": case.random.choice(("main", message)), "resources": {"limits": make_amounts(case)}}],
            status={
                "phase": case.random.choice(("Running", "Pending", message)),
                "containerStatuses": [{"name": message, "state": state}],
            },
        )
    )


def attempt(call: Callable[[], Any], refusal: type[Exception]) -> tuple[Any, bool]:
    """The result, and whether it was refused; the sentence of a refusal can be shown."""
    try:
        return call(), False
    except refusal as error:
        message = str(error)
    if not message.isprintable() or not 0 < len(message) < LONGEST:
        raise Violation(f"the refusal cannot be shown: {message[:200]!r}")
    return None, True


def check_labels(case: Case, item: dict[str, Any]) -> bool:
    """Set labels, and undo that; whether the record was refused. A record gives a label no value that its owner may not set."""
    desired: dict[str, Any] = {name: case.random.choice(("8", "t4", None)) for name in LABELS[:3] if case.happens(40)}
    patterns = case.random.choice((["*"], ["accelerator", "nvidia.com/gpu.*"], ["a"]))
    ownership = Ownership(patterns, frozenset(desired))
    plan, refused = attempt(lambda: plan_labels(item, desired, OWNER, ownership=ownership), LabelError)
    if refused:
        return True
    for label, value in plan.after.items():
        is_restored = value is not None and desired.get(label) != value
        if is_restored and (label in RESERVED or not any(fnmatch(label, each) for each in (*patterns, *desired))):
            raise Violation(f"a record sets {label} to {value!r}")
        if value is None and label not in desired and label in RESERVED:
            raise Violation(f"a record removes {label}")
    bare = {**item, "metadata": {**item["metadata"], "annotations": {}}}
    first, refused = attempt(lambda: plan_labels(bare, desired, OWNER, ownership=ownership), LabelError)
    if not refused:
        labelled = apply_patch(bare, first)
        undo, _refused = attempt(lambda: plan_labels(labelled, {}, OWNER, ownership=ownership), LabelError)
        left = apply_patch(labelled, undo)["metadata"] if undo else labelled["metadata"]
        invalid = any(len(value) > 63 for value in bare["metadata"]["labels"].values())
        if not invalid and undo and (left["labels"], left["annotations"]) != (bare["metadata"]["labels"], {}):
            raise UndoDifference(
                f"labels were {bare['metadata']['labels']} and are {left['labels']}, with {left['annotations']}"
            )
    return False


def apply_patch(item: dict[str, Any], plan: Plan) -> dict[str, Any]:
    """The node after the patch."""
    metadata = dict(item["metadata"])
    for part in ("labels", "annotations"):
        changed = {**metadata[part], **((plan.patch or {}).get("metadata", {}).get(part) or {})}
        metadata[part] = {key: value for key, value in changed.items() if value is not None}
    return {**item, "metadata": metadata}


def list_shown(case: Case, item: dict[str, Any], holder: dict[str, Any]) -> Iterator[str]:
    """What a plan, a report and the allocation show of the node and the pod."""
    strategy = case.show(case.random.choice(["", *STRATEGIES]))
    cluster: Any = FakeCluster([item], [holder])
    state = read_sharing_state(cluster, {NODE: strategy})
    requests = [{"host": NODE, "node": NODE, "strategy": strategy}]
    yield from render_plan(plan_sharing(requests, state.nodes, Cluster(state.labelled, schedulers=state.schedulers)))
    report = build_report([observations.host(NODE)], observations.cluster(nodes=state.nodes))
    yield from (problem["sentence"] for problem in report["problems"])
    yield from (make_printable(line) for line, _tone in render_report(report))  # as the action show_report
    share = extract.extract_pod(holder)
    allocation = allocate([extract.extract_node(item)], [share] if share else [])
    if any(len(row["gpus"]) > resources.MAX_GPUS + len(RESOURCES) for row in allocation["nodes"]):
        raise Violation("the allocation has more GPUs than a node can have")
    yield from (make_printable(line) for line, _tone in render_lines(allocation, details=True))
    yield from (found["message"] for found in allocation["findings"])


def fuzz_annotations(case: Case) -> bool:
    """Annotations, labels, status: only documented errors, no label that the owner does not set, and short texts without control characters."""
    item, holder = make_node(case), make_pod(case)
    refused = check_labels(case, item)
    refused |= attempt(lambda: drain.plan_begin(item, "driver", "2026-08-23T07:00:00Z"), drain.MaintenanceError)[1]
    refused |= attempt(lambda: drain.plan_end(item, "x"), drain.MaintenanceError)[1]
    for line in list_shown(case, item, holder):
        if not line.isprintable() or len(line) > LONGEST:
            raise Violation(f"a line cannot be shown: {line[:200]!r}")
    return refused
