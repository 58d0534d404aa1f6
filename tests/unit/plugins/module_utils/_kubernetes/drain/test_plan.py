# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of a node's maintenance: patches, evicted pods, and blockers with their messages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fakes.kubernetes_api import node, pod

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import MISSING_RIGHT, ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.drain.plan import (
    ANNOTATION,
    MAX_NAMED,
    Blocker,
    DrainPods,
    Maintenance,
    MaintenanceError,
    Rules,
    check_unchanged,
    describe_maintenance,
    explain_dry_run,
    explain_refusal,
    find_lost_pods,
    find_remaining,
    format_blockers,
    plan_begin,
    plan_end,
    read_maintenance,
    sort_pods,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.objects import get_name

NOW = "2026-08-23T07:00:00Z"
EARLIER = "2026-08-22T07:00:00Z"


def in_maintenance(was_schedulable: bool, cordoned: bool = True) -> dict[str, Any]:
    text = Maintenance(was_schedulable, "driver", EARLIER).as_text()
    return node("w1", annotations={ANNOTATION: text}, **({"unschedulable": True} if cordoned else {}))


def resources(**kinds: Any) -> list[dict[str, Any]]:
    return [{"name": "c", "resources": kinds}]


@pytest.mark.parametrize(
    ("before", "patched", "was_schedulable", "since"),
    [
        (node("w1"), {"spec", "annotation"}, True, NOW),
        (node("w1", unschedulable=True), {"annotation"}, False, NOW),
        (in_maintenance(True), set(), True, EARLIER),
        (in_maintenance(False), set(), False, EARLIER),
        (in_maintenance(True, cordoned=False), {"spec"}, True, EARLIER),
        # Someone uncordoned a node that was cordoned before the maintenance, so it becomes schedulable at the end.
        (in_maintenance(False, cordoned=False), {"spec", "annotation"}, True, EARLIER),
    ],
)
def test_plan_begin_of_each_state_cordons_and_records(
    before: Any, patched: set[str], was_schedulable: bool, since: str
) -> None:
    plan = plan_begin(before, "driver", NOW)
    assert plan.after == Maintenance(was_schedulable, "driver", since)
    assert (plan.changed, plan.cordoned) == (bool(patched), True)
    patch = plan.patch or {"metadata": {}}
    assert ("spec" in patch, "annotations" in patch["metadata"]) == ("spec" in patched, "annotation" in patched)
    if plan.patch:
        assert patch["metadata"]["resourceVersion"] == "1"
    if "spec" in patched:
        assert patch["spec"] == {"unschedulable": True}
    if "annotation" in patched:
        said = json.loads(patch["metadata"]["annotations"][ANNOTATION])
        assert said == {"was_schedulable": was_schedulable, "reason": "driver", "since": since}


@pytest.mark.parametrize(
    ("before", "patch", "cordoned"),
    [
        (node("w1"), None, False),
        (node("w1", unschedulable=True), None, True),
        (in_maintenance(True), {"spec": {"unschedulable": None}}, False),
        (in_maintenance(False), {}, True),
        (in_maintenance(True, cordoned=False), {}, False),
        (in_maintenance(False, cordoned=False), {}, False),
    ],
)
def test_plan_end_of_each_state_restores_schedulability(before: Any, patch: Any, cordoned: bool) -> None:
    plan = plan_end(before)
    if patch is not None:
        patch = {**patch, "metadata": {"annotations": {ANNOTATION: None}, "resourceVersion": "1"}}
    assert (plan.patch, plan.cordoned, plan.after) == (patch, cordoned, None)


@pytest.mark.parametrize("text", ["", "nonsense", "[]", "{}", '{"was_schedulable": "yes"}', "null", "7", "[" * 100000])
def test_read_maintenance_with_damaged_annotation_raises(text: str) -> None:
    broken = node("w1", annotations={ANNOTATION: text})
    for read in (read_maintenance, plan_end, check_unchanged, lambda item: plan_begin(item, "", NOW)):
        with pytest.raises(MaintenanceError, match=f"Node w1: annotation {ANNOTATION} cannot be read"):
            read(broken)


def test_read_maintenance_with_forged_reason_is_one_short_line() -> None:
    content = {"was_schedulable": True, "reason": "\x1b[2J\n" * 100000, "since": "\x1b[31mnow"}
    found = read_maintenance(node("w1", annotations={ANNOTATION: json.dumps(content)}))
    assert found is not None
    assert found.since == ""
    assert found.reason.isprintable()
    assert len(found.reason) <= 300


def test_plan_end_with_a_long_reason_ends_maintenance() -> None:
    """The annotation has only the beginning of the reason."""
    reason = "driver\t580 " * 100
    begun = plan_begin(node("w1"), reason, NOW)
    assert begun.patch is not None
    kept = node("w1", annotations=begun.patch["metadata"]["annotations"], unschedulable=True)
    assert plan_end(kept, reason).after is None
    assert plan_end(kept, "another").after == begun.after


@pytest.mark.parametrize(
    ("state", "was_schedulable", "words"),
    [
        (
            in_maintenance(True),
            True,
            ["is cordoned, and in maintenance by this collection since 2026-08-22T07:00:00Z for driver; "],
        ),
        (
            in_maintenance(True),
            True,
            [
                "run the playbook again if one was interrupted",
                "uncordon the node with the role gpu_node_maintenance (tasks_from: end)",
            ],
        ),
        (in_maintenance(False), False, ["stays cordoned as it was before"]),
        (in_maintenance(True, cordoned=False), True, ["is in maintenance by this collection since"]),
        (
            node("w1", annotations={ANNOTATION: '{"was_schedulable": true}'}, unschedulable=True),
            True,
            ["in maintenance by this collection for a reason that is not recorded; "],
        ),
        (node("w1", annotations={ANNOTATION: "{"}, unschedulable=True), None, ["cannot be read; remove it"]),
    ],
)
def test_describe_maintenance_names_time_reason_and_remedy(state: Any, was_schedulable: Any, words: list[str]) -> None:
    found = describe_maintenance(state)
    assert found is not None
    assert found["was_schedulable"] is was_schedulable
    for word in words:
        assert word in found["message"]
    assert found["message"].count("; ") == 1


@pytest.mark.parametrize("state", [node("w1"), node("w1", unschedulable=True)])
def test_describe_maintenance_of_other_nodes_is_none(state: Any) -> None:
    assert describe_maintenance(state) is None


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (in_maintenance(True), ""),
        (in_maintenance(False), ""),
        (in_maintenance(True, cordoned=False), "Node w1 was uncordoned during its drain"),
        (node("w1", unschedulable=True), "The maintenance of node w1 was ended during its drain"),
    ],
)
def test_check_unchanged_after_interference_raises(state: Any, words: str) -> None:
    if not words:
        check_unchanged(state)
        return
    with pytest.raises(MaintenanceError, match=words):
        check_unchanged(state)


GPU = {"nvidia.com/gpu": "1"}
JOB = {"owner": "j", "owner_kind": "Job", "restartPolicy": "Never"}
SET = {"owner": "r", "owner_kind": "ReplicaSet"}


@pytest.mark.parametrize(
    ("given", "everything", "place"),
    [
        (pod("p", gpus=1, **SET), False, "permanent"),
        (pod("p", **SET), False, None),
        (pod("p", **SET), True, "permanent"),
        (pod("p", containers=resources(requests={"nvidia.com/mig-1g.10gb": "1"}), **SET), False, "permanent"),
        (pod("p", containers=resources(limits={"aliyun.com/gpu-mem": 4}), **SET), False, "permanent"),
        (pod("p", containers=resources(limits={"nano-gpu/gpu-percent": "20"}), **SET), False, "permanent"),
        (pod("p", containers=resources(limits={"volcano.sh/vgpu-number": "1"}), **SET), False, "permanent"),
        (pod("p", containers=resources(limits={"nvidia.com/gpu": "0", "cpu": "1"}), **SET), False, None),
        (pod("p", containers=resources(limits={"amd.com/gpu": "1"}), **SET), False, "permanent"),
        (pod("p", containers=resources(limits={"amd.com/cpx_nps4": "1"}), **JOB), False, "finite"),
        (pod("p", containers=resources(limits={"gpu.intel.com/xe": "1"}), owner="d"), False, "left"),
        (
            pod("p", containers=resources(limits={"amd.com/nic": "1", "gpu.intel.com/i915_monitoring": "1"}), **SET),
            False,
            None,
        ),
        (pod("p", initContainers=resources(limits=GPU), **SET), False, "permanent"),
        (pod("p", gpus=1, **JOB), False, "finite"),
        (pod("p", gpus=1, owner="t", owner_kind="PyTorchJob", restartPolicy="OnFailure"), False, "finite"),
        (pod("p", gpus=1, restartPolicy="Never"), False, "finite"),
        (pod("p", gpus=1, restartPolicy="Always"), False, "permanent"),
        (pod("p", gpus=1, deleted=NOW, **JOB), False, "terminating"),
        (pod("p", gpus=1, deleted=NOW, status={"phase": "Failed"}, **JOB), False, None),
        (pod("p", gpus=1, status={"phase": "Succeeded"}, **JOB), True, None),
        (pod("p", gpus=1, status={"phase": "Pending"}, **SET), False, "permanent"),
        (pod("p", gpus=1, owner="d"), False, "left"),
        (pod("p", gpus=1, owner="d"), True, "left"),
        (pod("p", owner="d"), True, None),
        (pod("p", gpus=1, annotations={"kubernetes.io/config.mirror": "x"}), True, "left"),
        (pod("p", annotations={"kubernetes.io/config.mirror": "x"}), True, None),
    ],
)
def test_sort_pods_of_each_kind_selects_the_list(given: Any, everything: bool, place: str | None) -> None:
    found = sort_pods([given], Rules(everything=everything))
    assert [name for name in ("finite", "permanent", "terminating", "left") if getattr(found, name)] == [
        *filter(None, [place])
    ]


def test_sort_pods_with_pattern_returns_sorted_matches() -> None:
    own = resources(limits={"example.com/npu": "1"})
    pods = [pod("b", containers=own, **SET), pod("a", containers=own, **JOB), pod("c", gpus=1, **SET)]
    found = sort_pods(pods, Rules(("example.com/*",)))
    assert [get_name(item) for item in found.evictable] == ["a", "b"]


@pytest.mark.parametrize(
    ("given", "force", "waited", "reason"),
    [
        (pod("p"), False, 0, "has no controller that would start it again"),
        (pod("p"), False, 60, "has no controller"),
        (pod("p", restartPolicy="Never"), False, 60, "has not ended in 60 s, and has no controller"),
        (pod("p"), True, 0, None),
        (pod("p", **SET), False, 0, None),
    ],
)
def test_find_lost_pods_without_controller_reports_them(
    given: Any, force: bool, waited: int, reason: str | None
) -> None:
    found = find_lost_pods([given], Rules(force=force), waited)
    if reason is None:
        assert found == []
    else:
        assert [item.pod for item in found] == ["default/p"]
        assert found[0].reason.startswith(reason)


def test_find_lost_pods_with_owner_that_is_not_controller_reports_them() -> None:
    given = pod("p")
    given["metadata"]["ownerReferences"] = [{"kind": "Thing", "name": "t"}]
    assert find_lost_pods([given], Rules())


def test_find_remaining_after_timeout_explains_each_pod() -> None:
    with_finalizer = pod("a", deleted=NOW)
    with_finalizer["metadata"]["finalizers"] = ["example.com/keep"]
    tolerating = pod("c", tolerations=[{"operator": "Exists"}], **SET)
    found = DrainPods(permanent=[tolerating, pod("d", **SET), pod("b", **SET)], terminating=[with_finalizer])
    refused = {"uid-b": Blocker("default/b", "is kept", "wait")}
    assert [(item.pod, item.reason) for item in find_remaining(found, refused, 300)] == [
        ("default/a", f"is being deleted, due at {NOW}, and has the finalizers example.com/keep"),
        ("default/b", "is kept"),
        ("default/c", "tolerates the cordon, so that its controller may have started it here again"),
        ("default/d", "still runs"),
    ]


BUDGET = "The disruption budget web needs 1 healthy pods and has 1 currently"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ApiError("no", 429, {"DisruptionBudget": BUDGET}), f"is protected by a PodDisruptionBudget ({BUDGET})"),
        (
            ApiError("it answered 500: This pod has more than one PodDisruptionBudget, which is not supported.", 500),
            "is protected by a PodDisruptionBudget (it answered 500: This pod has more than one PodDisruptionBudget",
        ),
        (ApiError("it answered 429: slow down.", 429), "cannot be evicted (it answered 429: slow down)"),
        (ApiError("pdb x is forbidden.", 403), "cannot be evicted (pdb x is forbidden)"),
        (ApiError("away.", 0), "cannot be evicted (away)"),
    ],
)
def test_explain_refusal_of_each_error_names_cause(error: ApiError, words: str) -> None:
    found = explain_refusal(pod("p"), error)
    assert found.pod == "default/p"
    assert found.reason.startswith(words)
    assert found.remedy


@pytest.mark.parametrize(
    "error",
    [ApiError("x", 400), ApiError("x", 401), ApiError("x", 403, {MISSING_RIGHT: "create pods/eviction"})],
)
def test_explain_refusal_of_permanent_error_raises(error: ApiError) -> None:
    with pytest.raises(ApiError) as caught:
        explain_refusal(pod("p"), error)
    assert caught.value is error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ApiError("no", 429, {"DisruptionBudget": BUDGET}), "is protected by a PodDisruptionBudget"),
        (ApiError("This pod has more than one PodDisruptionBudget.", 500), "is protected by a PodDisruptionBudget"),
        (ApiError("pdb x is forbidden.", 403), "cannot be evicted (pdb x is forbidden)"),
        (ApiError("admission webhook w does not support dry run.", 400), None),
        (ApiError("not found.", 404), None),
        (ApiError("it is another one.", 409), None),
    ],
)
def test_explain_dry_run_of_each_error_predicts_refusal(error: ApiError, words: str | None) -> None:
    found = explain_dry_run(pod("p"), error)
    assert (found is None) if words is None else (found and found.reason.startswith(words))


@pytest.mark.parametrize(
    "error",
    [
        ApiError("away."),
        ApiError("slow down.", 429),
        ApiError("x", 503),
        ApiError("x", 401),
        ApiError("x", 403, {MISSING_RIGHT: "create pods/eviction"}),
    ],
)
def test_explain_dry_run_of_transient_error_raises(error: ApiError) -> None:
    with pytest.raises(ApiError) as caught:
        explain_dry_run(pod("p"), error)
    assert caught.value is error


@pytest.mark.parametrize(
    ("status", "is_transient"),
    [(0, True), (429, True), (500, True), (503, True), (401, False), (403, False), (404, False)],
)
def test_api_error_is_transient_by_status(status: int, is_transient: bool) -> None:
    assert ApiError("x", status).is_transient is is_transient


def test_format_blockers_with_many_pods_is_limited() -> None:
    one = format_blockers("w1", [Blocker("ns/a", "is kept", "wait")])
    assert one == (
        "The drain of node w1 is blocked by 1 pod, and the node stays cordoned: ns/a is kept: wait. "
        "Then run again, which resumes the drain."
    )
    many = format_blockers("w1", [Blocker(f"ns/{number:02}", "is kept", "wait") for number in range(MAX_NAMED + 5)])
    assert "15 pods, and the node stays cordoned: ns/00" in many
    assert "; and 5 more." in many
    assert "ns/10" not in many
