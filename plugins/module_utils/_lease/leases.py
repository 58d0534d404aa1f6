# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Leases in the cluster: one for each node, and one for kube-scheduler of all control planes.

They are in kube-system, because a kubelet may write the Lease of its own name in kube-node-lease. The clock is the API server's,
as its answers report it.
"""

from __future__ import annotations

from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING, Any, Sequence

from .._kube_error import ApiError
from .._kubernetes.api import run_parallel
from .._kubernetes.objects import Object
from .._kubernetes.retries import Timing, Wait, retry, share_limit
from .decide import REFUSE, Held, Request, Verdict, decide, decode_time, encode_time, may_release

if TYPE_CHECKING:
    from .._kube_api import Cluster

NAMESPACE = "kube-system"
LABELS = {"app.kubernetes.io/managed-by": "gpu.kubernetes"}
# Another run writes the Lease between the list and the change.
ATTEMPTS = 5


def hold_leases(
    cluster: Cluster, names: Sequence[str], request: Request, check_mode: bool = False, timing: Timing | None = None
) -> dict[str, Verdict]:
    """Acquire, renew or take over the Leases with these names; return the verdict on each. Check mode only reads.

    One list, and one request for each Lease that changes, which is repeated while the server is busy. A refused Lease is not changed. Raises ApiError.
    """
    known = _read_leases(cluster, names)
    start_wait = share_limit(timing or Timing())
    verdicts = run_parallel(
        lambda name: _hold(cluster, name, known.get(name), request, check_mode, start_wait()), names
    )
    return dict(zip(names, verdicts))


def release_leases(cluster: Cluster, names: Sequence[str], holder: str, timing: Timing | None = None) -> list[str]:
    """Delete those of the Leases that the run holds; return their names. Raises ApiError."""
    own = [lease for lease in _read_leases(cluster, names).values() if may_release(read_lease(lease), holder)]
    start_wait = share_limit(timing or Timing())
    return [name for name in run_parallel(lambda lease: _delete(cluster, lease, start_wait()), own) if name]


def _read_leases(cluster: Cluster, names: Sequence[str]) -> dict[str, Object]:
    found = {str(lease["metadata"]["name"]): lease for lease in cluster.leases(NAMESPACE, LABELS)}
    return {name: found[name] for name in names if name in found}


def _hold(cluster: Cluster, name: str, lease: Object | None, request: Request, check_mode: bool, wait: Wait) -> Verdict:
    attempt = 1
    while True:
        verdict = decide(read_lease(lease) if lease else None, request, _now(cluster))
        if verdict.after is None or verdict.action == REFUSE or check_mode:
            return verdict
        try:
            retry(partial(_write, cluster, name, lease, verdict.after), wait)
        except ApiError as error:
            # Made, changed or deleted by another run meanwhile.
            if error.status not in (404, 409) or attempt == ATTEMPTS:
                raise
            attempt += 1
            lease = cluster.lease(NAMESPACE, name)
        else:
            return verdict


def _write(cluster: Cluster, name: str, lease: Object | None, after: Held) -> None:
    metadata: Object = {"labels": LABELS}
    if lease is None:
        metadata.update(name=name, namespace=NAMESPACE)
        spec = format_spec(after, {})
        kind = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
        cluster.create_lease(NAMESPACE, {**kind, "metadata": metadata, "spec": spec})
        return
    # The server rejects the patch (409) if the Lease has changed since it was read.
    metadata["resourceVersion"] = lease["metadata"].get("resourceVersion")
    cluster.patch_lease(NAMESPACE, name, {"metadata": metadata, "spec": format_spec(after, lease.get("spec") or {})})


def _delete(cluster: Cluster, lease: Object, wait: Wait) -> str:
    """Delete the Lease as it was read; return its name, or nothing if another run has it by now."""
    name = str(lease["metadata"]["name"])
    try:
        retry(partial(cluster.delete_lease, NAMESPACE, name, lease["metadata"].get("resourceVersion")), wait)
    except ApiError as error:
        if error.status not in (404, 409):
            raise
        return ""
    return name


def read_lease(lease: Object) -> Held | None:
    """Return the content of a Lease; None if it has no holder."""
    spec: dict[str, Any] = lease.get("spec") or {}
    if not spec.get("holderIdentity"):
        return None
    renewed = decode_time(spec.get("renewTime"))
    since = decode_time(spec["acquireTime"]) if spec.get("acquireTime") else renewed
    seconds = spec.get("leaseDurationSeconds")
    return Held(str(spec["holderIdentity"]), since, renewed, seconds if isinstance(seconds, int) else 0)


def format_spec(after: Held, before: Object) -> Object:
    """Return the spec of the Lease, whose spec was *before*."""
    former = before.get("holderIdentity")
    return {
        "holderIdentity": after.holder,
        "acquireTime": encode_time(after.since),
        "renewTime": encode_time(after.renewed),
        "leaseDurationSeconds": after.seconds,
        "leaseTransitions": (before.get("leaseTransitions") or 0) + (former not in (None, after.holder)),
    }


def _now(cluster: Cluster) -> datetime:
    # A proxy may have removed the time of the answer.
    return cluster.server_time or datetime.now(timezone.utc)
