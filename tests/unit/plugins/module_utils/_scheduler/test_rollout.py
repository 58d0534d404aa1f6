# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rollback of kube-scheduler and its order, and the manifest of its pod."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._scheduler.rollout import (
    CHECKSUM,
    HASH,
    READ,
    build_record,
    judge_pod,
    order_rollback,
)

PATH = "/etc/kubernetes/manifests/kube-scheduler.yaml"
CONFIG = "/etc/kubernetes/scheduler.yaml"
#: When the manifest was written, which is 2026-11-23T02:32:35 UTC.
WRITTEN = 1795401155.9
#: A manifest that the run does not change: hash of the former and of the present pod, when the kubelet read it; whether the pod is from it.
FORMER_PODS = {
    "same": ("a", "a", "2026-11-23T02:00:00.9Z", True),
    "another": ("a", "b", "2026-11-23T02:00:00.9Z", False),
    "written-by-others": ("a", "b", "2026-11-23T04:32:36.000000001+02:00", True),
    "written-in-the-same-second": ("a", "b", "2026-11-23T02:32:35Z", True),
    "no-former-pod": ("", "b", "2026-11-23T02:00:00Z", True),
    "no-pod": ("", "", "", False),
}


def pod(
    digest: str, read: str = "", checksum: str = "", statuses: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    marks = {HASH: digest, READ: read, CHECKSUM: checksum}
    return {
        "metadata": {"annotations": {name: text for name, text in marks.items() if text}},
        "status": {"containerStatuses": statuses},
    }


@pytest.mark.parametrize(("before", "digest", "read", "expected"), FORMER_PODS.values(), ids=FORMER_PODS)
def test_pod_of_an_unchanged_manifest(before: str, digest: str, read: str, expected: bool) -> None:
    manifest = {"path": PATH, "checksum": "c", "mtime": WRITTEN}
    state = judge_pod(pod(digest, read), {"hash": before, "former": [f"{PATH} c"]}, manifest, "d")
    assert state["from_manifest"] is expected


@pytest.mark.parametrize(
    ("digest", "checksum", "requested", "expected"),
    [
        ("b", "d", "d", True),
        ("b", "", "d", False),
        ("b", "", None, True),
        ("a", "d", "d", False),
        ("", "", None, False),
    ],
)
def test_pod_of_a_written_manifest_has_new_hash_and_checksum(
    digest: str, checksum: str, requested: str | None, expected: bool
) -> None:
    manifest = {"path": PATH, "checksum": "new", "mtime": WRITTEN}
    state = judge_pod(pod(digest, checksum=checksum), {"hash": "a", "former": [f"{PATH} c"]}, manifest, requested)
    assert state["from_manifest"] is expected


def waiting_status(reason: str, restarts: int = 0) -> dict[str, Any]:
    return {"ready": False, "restartCount": restarts, "state": {"waiting": {"reason": reason}}}


@pytest.mark.parametrize(
    ("statuses", "ready", "settled", "waiting"),
    [
        ([{"ready": True}], True, True, []),
        ([{"ready": True}, {"ready": False}], False, False, []),
        ([], False, False, []),
        (None, False, False, []),
        ([waiting_status("CrashLoopBackOff", 2)], False, False, ["CrashLoopBackOff"]),
        ([waiting_status("CrashLoopBackOff", 3)], False, True, ["CrashLoopBackOff"]),
        ([waiting_status("ImagePullBackOff", 9)], False, False, ["ImagePullBackOff"]),
        ([waiting_status("ContainerCreating")], False, False, []),
    ],
)
def test_pod_is_ready_or_crashes_repeatedly(
    statuses: list[dict[str, Any]] | None, ready: bool, settled: bool, waiting: list[str]
) -> None:
    manifest = {"path": PATH, "checksum": "new", "mtime": WRITTEN}
    state = judge_pod(pod("b", statuses=statuses), {"hash": "a", "former": []}, manifest, None)
    assert (state["ready"], state["settled"], state["waiting"]) == (ready, settled, waiting)


def test_pod_of_another_manifest_is_neither_ready_nor_settled() -> None:
    manifest = {"path": PATH, "checksum": "new", "mtime": WRITTEN}
    for statuses in ([{"ready": True}], [waiting_status("CrashLoopBackOff", 5)]):
        state = judge_pod(pod("a", statuses=statuses), {"hash": "a", "former": []}, manifest, None)
        assert (state["ready"], state["settled"]) == (False, False)


def stat_result(path: str, checksum: str = "") -> dict[str, Any]:
    stat = {"exists": True, "checksum": checksum, "mode": "0600", "uid": 0, "gid": 0, "size": 3}
    return {"item": path, "stat": stat if checksum else {"exists": False}}


FRESH = {
    "files": [{"path": PATH, "content": "bWFu", "mode": "0600", "uid": 0, "gid": 0}],
    "absent": [CONFIG],
    "former": [f"{CONFIG} ", f"{PATH} old"],
    "written": [f"{PATH} new", f"{CONFIG} config"],
    "hash": "a",
}
RUN = {PATH: "new", CONFIG: "config"}


def test_record_has_the_present_files() -> None:
    stats = [stat_result(CONFIG), stat_result(PATH, "old")]
    record = build_record(stats, [{"item": PATH, "content": "bWFu"}], RUN, {}, "a")
    assert {**record, "written": sorted(record["written"])} == {**FRESH, "written": sorted(FRESH["written"])}


@pytest.mark.parametrize(
    ("manifest", "config", "kept"),
    [
        ("old", "", True),
        ("new", "config", True),
        ("new", "", True),
        ("of-an-upgrade", "config", False),
    ],
)
def test_record_of_an_interrupted_run_is_kept_unless_others_changed_a_file(
    manifest: str, config: str, kept: bool
) -> None:
    stats = [stat_result(PATH, manifest), stat_result(CONFIG, config), stat_result("/etc/kubernetes/more.yaml", "more")]
    contents = [{"item": each["item"], "content": "bm93"} for each in stats if each["stat"]["exists"]]
    record = build_record(stats, contents, {PATH: "newest"}, FRESH, "b")
    assert record["hash"] == ("a" if kept else "b")
    assert [each["content"] for each in record["files"] if each["path"] == PATH] == ["bWFu" if kept else "bm93"]
    assert (CONFIG in record["absent"], f"{PATH} new" in record["written"]) == (kept, kept)
    assert f"{PATH} newest" in record["written"]
    assert "/etc/kubernetes/more.yaml more" in record["former"]


def test_rollback_begins_with_the_leader_and_ends_with_the_host() -> None:
    pending = [{"host": host, "names": [host, f"{host}.example.com"]} for host in ("a", "b", "c", "d")]
    assert [each["host"] for each in order_rollback(pending, "c.example.com", "a")] == ["c", "b", "d", "a"]
    assert [each["host"] for each in order_rollback(pending, "a", "a")] == ["b", "c", "d", "a"]
    assert [each["host"] for each in order_rollback(pending, "", "d")] == ["a", "b", "c", "d"]
