# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The linter's verdict on pods and templates is that of the API server, which is asked by a dry run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from kubernetes import client
from kubernetes.client.exceptions import ApiException

ROOT = Path(__file__).resolve().parents[3]
LAB = ROOT / ".lab" / os.environ.get("LAB_NAME", "molecule")
COMMAND = [sys.executable, "-m", "ansible_collections.gpu.kubernetes.plugins.module_utils._lint.command"]
GPU = "nvidia.com/gpu"
# What the linter says of a mistake that the API server refuses.
REFUSED = ("refuses", "is not a whole number", "is no resource of Kubernetes")
SPECS: list[tuple[dict[str, Any], bool]] = [
    ({"limits": {GPU: "1"}}, False),
    ({"limits": {GPU: "1000m"}, "requests": {GPU: "1"}}, False),
    ({"limits": {GPU: "1Ki"}}, False),
    ({"limits": {GPU: "0"}}, False),
    ({"limits": {"nvidia.com/gpus": "1"}}, False),
    ({"limits": {"alpha.kubernetes.io/nvidia-gpu": "1"}}, False),
    ({"requests": {GPU: "1"}}, True),
    ({"limits": {GPU: "2"}, "requests": {GPU: "1"}}, True),
    ({"limits": {GPU: "500m"}}, True),
    ({"limits": {GPU: "0.5"}}, True),
    ({"limits": {GPU: "-1"}}, True),
    ({"limits": {"gpu": "1"}}, True),
    ({"limits": {"requests.nvidia.com/gpu": "1"}}, True),
]


def make_spec(resources: dict[str, Any], whole: bool) -> dict[str, Any]:
    """A pod's spec with resources of its container, or of the pod as a whole."""
    container = {"name": "main", "image": "busybox", "resources": {} if whole else resources}
    return {"containers": [container], "restartPolicy": "Never", **({"resources": resources} if whole else {})}


def make_objects() -> dict[str, tuple[dict[str, Any], bool]]:
    """Name -> pod or job, and whether the API server is expected to refuse it."""
    found = {}
    for number, (resources, refused) in enumerate(SPECS):
        for whole in (False, True):
            spec, name = make_spec(resources, whole), f"lint-{number}-{'whole' if whole else 'container'}"
            pod = {"apiVersion": "v1", "kind": "Pod", "spec": spec}
            job = {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": {"spec": spec}}}
            for obj in (pod, job):
                full = f"{name}-{obj['kind']}".lower()
                obj["metadata"] = {"name": full, "namespace": "default"}
                found[full] = (obj, refused or whole)
    return found


def test_verdicts_are_those_of_the_api_server(api):
    objects = make_objects()
    text = json.dumps({"kind": "List", "items": [obj for obj, _refused in objects.values()]})
    environment = {**os.environ, "PYTHONPATH": str(ROOT / ".ansible" / "collections")}
    command = [*COMMAND, "-", "--format", "json", "--fail-on", "never"]
    done = subprocess.run(command, input=text, env=environment, capture_output=True, text=True, check=True)
    findings = json.loads(done.stdout)["findings"]
    refused = {each["name"] for each in findings if any(words in each["message"] for words in REFUSED)}
    assert refused == {name for name, (_obj, expected) in objects.items() if expected}
    assert refused == {name for name, (obj, _expected) in objects.items() if is_refused(api, obj)}


def test_live_cluster_is_read_and_a_closed_port_is_reported(tmp_path):
    # As users have it: this collection and the one with the API client in one folder.
    installed = Path(sysconfig.get_path("purelib")) / "ansible_collections" / "kubernetes"
    for name, path in {"gpu/kubernetes": ROOT, "kubernetes": installed}.items():
        link = tmp_path / "ansible_collections" / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(path)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    live = [*COMMAND, "--live", "--format", "json", "--fail-on", "never", "--kubeconfig"]
    done = subprocess.run([*live, str(LAB / "kubeconfig")], env=environment, capture_output=True, text=True, check=True)
    report = json.loads(done.stdout)
    assert report["summary"]["workloads"] > 0
    assert not {"GPU010", "GPU013", "GPU014"} & set(report["skipped"])
    closed = tmp_path / "kubeconfig"
    text = re.sub(r"server: https://\S+", "server: https://127.0.0.1:9", (LAB / "kubeconfig").read_text())
    closed.write_text(text)
    done = subprocess.run([*live, str(closed)], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, "cannot be reached" in done.stderr) == (3, "", True), done.stderr


def is_refused(api: Any, obj: dict[str, Any]) -> bool:
    """Whether the API server would not create the object."""
    create = (
        api.create_namespaced_pod if obj["kind"] == "Pod" else client.BatchV1Api(api.api_client).create_namespaced_job
    )
    try:
        create("default", obj, dry_run="All")
    except ApiException as error:
        if error.status not in (400, 422):
            raise
        return True
    return False
