# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The change of control planes one after another: what a rollback needs, whether a pod is from the present manifest, and whom to roll back first."""

from __future__ import annotations

import re
import typing as t
from datetime import datetime

#: The annotation with the checksum of the managed configuration, and those of the kubelet: its hash of the manifest, and when it read it.
CHECKSUM = "gpu-kubernetes/scheduler-config-checksum"
HASH = "kubernetes.io/config.hash"
READ = "kubernetes.io/config.seen"
#: Why a container does not run. The kubelet retries, and a missing API server may be the cause, so only MOST_RESTARTS of a crash are a failure.
WAITING = (
    "CrashLoopBackOff",
    "CreateContainerError",
    "CreateContainerConfigError",
    "RunContainerError",
    "ImagePullBackOff",
)
MOST_RESTARTS = 3

Fields = t.Mapping[str, t.Any]


def list_paths(record: Fields) -> list[str]:
    """Return the paths in a record, those that had a file first."""
    return [*(each["path"] for each in record.get("files", [])), *record.get("absent", [])]


def build_record(
    stats: t.Sequence[Fields], contents: t.Sequence[Fields], checksums: Fields, record: Fields, pod_hash: str
) -> dict[str, t.Any]:
    """Return what a rollback restores: the files before the change with content, mode and owner, and the paths that had none.

    *stats* has path and state of each file, those of *record* first and in its order; *contents* has the content of each that exists, in Base64,
    and *checksums* what the run will write, by path. ``former`` and ``written`` are paths with the SHA-256 of the file before and after, and
    ``hash`` is the kubelet's of the former manifest. The record of an interrupted run is kept if each of its files is as before that run, or as a
    run wrote it. Otherwise others have changed a file, as a cluster upgrade does, and a rollback restores the present files.
    """
    now = [f"{each['item']} {each['stat'].get('checksum', '')}" for each in stats]
    count = len(list_paths(record))
    known = {*record.get("former", []), *record.get("written", [])}
    if not set(now[:count]) <= known:
        record, count = {}, 0
    content = {each["item"]: each["content"] for each in contents}
    fresh = stats[count:]
    return {
        "files": [*record.get("files", []), *(_keep(each, content) for each in fresh if each["stat"]["exists"])],
        "absent": [*record.get("absent", []), *(each["item"] for each in fresh if not each["stat"]["exists"])],
        "former": [*record.get("former", []), *now[count:]],
        "written": sorted(
            {*record.get("written", []), *(f"{path} {checksum or ''}" for path, checksum in checksums.items())}
        ),
        "hash": record.get("hash", pod_hash),
    }


def _keep(found: Fields, content: t.Mapping[str, str]) -> dict[str, t.Any]:
    attributes = {name: found["stat"][name] for name in ("mode", "uid", "gid")}
    return {"path": found["item"], "content": content[found["item"]], **attributes}


def judge_pod(pod: Fields, record: Fields, manifest: Fields, checksum: str | None) -> dict[str, t.Any]:
    """Return whether the pod is ``from_manifest``, ``ready`` and ``settled``, and in ``waiting`` why its containers do not run.

    *manifest* has path, SHA-256 and modification time (seconds since 1970) of the present manifest. Where it is the former one, the former pod is
    from it, or one that the kubelet has read since. Where a run has written it, another pod is, with the *checksum* of its configuration; with
    None, any configuration. A settled pod is ready, or crashes again and again.
    """
    annotations = (pod.get("metadata") or {}).get("annotations") or {}
    digest, former = annotations.get(HASH, ""), record["hash"]
    if f"{manifest['path']} {manifest['checksum']}" in record["former"]:
        current = former in ("", digest) or _parse_time(annotations.get(READ, "")) >= int(manifest["mtime"])
    else:
        current = digest != former and checksum in (None, annotations.get(CHECKSUM, ""))
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    current = bool(digest) and current
    ready = current and bool(statuses) and all(each.get("ready") for each in statuses)
    waiting = [reason for reason in map(_read_reason, statuses) if reason in WAITING]
    crashing = (
        current and WAITING[0] in waiting and max(each.get("restartCount", 0) for each in statuses) >= MOST_RESTARTS
    )
    return {"from_manifest": current, "ready": ready, "settled": ready or crashing, "waiting": waiting}


def _read_reason(status: Fields) -> str:
    return ((status.get("state") or {}).get("waiting") or {}).get("reason") or ""


def _parse_time(text: str) -> int:
    """Return seconds since 1970 of a time of RFC 3339, rounded down; 0 without one."""
    return int(datetime.strptime(re.sub(r"[.]\d+", "", text), "%Y-%m-%dT%H:%M:%S%z").timestamp()) if text else 0


def order_rollback(pending: t.Sequence[Fields], leader: str, host: str) -> list[Fields]:
    """Return the control planes that a run has changed and not verified yet: the one of the *leader* first, then the others, *host* last."""
    return sorted(pending, key=lambda each: (each["host"] == host, leader not in each["names"]))
