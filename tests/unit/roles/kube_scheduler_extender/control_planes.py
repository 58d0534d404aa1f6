# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A manifest of kubeadm, scheduler extenders, and variables of runs."""

from __future__ import annotations

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

MANIFEST = (
    ROOT / "tests" / "unit" / "plugins" / "module_utils" / "_scheduler" / "fixtures" / "kubeadm-1.34.4.yaml"
).read_text()
# What an interrupted run has done before the verification: files of the role, and tasks of the file "change".
INTERRUPTED = ("preflight", "Read the scheduler's pod", "record", "Write the configuration")
RECORD_PATH = "state/kube-scheduler-change.json"
# Variables of a run that fails, with a short wait.
FAILS = {"kube_scheduler_extender_keep": False, "kube_scheduler_extender_timeout": 1}


def describe_hosts(planes):
    """The variables of the control planes by host."""
    return {
        name: {
            "gpu_node_name": name,
            "kube_scheduler_extender_manifest": str(folder / "manifests" / "kube-scheduler.yaml"),
            "kube_scheduler_extender_state_dir": str(folder),
        }
        for name, folder in planes.folders.items()
    }


def extender(name: str, **more):
    url = f"http://127.0.0.1:1/{name}"
    return {"urlPrefix": url, "filterVerb": "filter", "managedResources": [{"name": f"example.com/{name}"}], **more}
