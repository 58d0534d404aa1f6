# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a workload is not ready is reported."""

from __future__ import annotations

UNSEEN = {"spec": {}, "status": {"phase": "Pending"}}
WAITING = {"spec": {"nodeName": "n"}, "status": {"containerStatuses": [{"state": {"waiting": {"reason": "ErrImage"}}}]}}
REFUSED = {"spec": {}, "status": {"conditions": [{"type": "PodScheduled", "message": "0/3 nodes"}]}}
#: The pods of a workload that is not ready, and what is told of them.
TROUBLES = {
    "no-pod": ([], "it has no pod"),
    "no-scheduler": ([UNSEEN], "no scheduler has processed its pods; check that kube-scheduler runs"),
    "refused": ([REFUSED], "0/3 nodes"),
    "waits": ([WAITING, UNSEEN], "ErrImage"),
}


def test_pods_that_no_scheduler_has_looked_at_are_told_of(made):
    hosts = {name: {"__kube_objects_waited": {"found": [[], pods]}} for name, (pods, _words) in TROUBLES.items()}
    told = made("kube_objects", hosts, "__kube_objects_trouble")
    for name, (_pods, words) in TROUBLES.items():
        assert told[name].startswith(words), told[name]
    assert "playbook share_gpus" in told["no-scheduler"]
