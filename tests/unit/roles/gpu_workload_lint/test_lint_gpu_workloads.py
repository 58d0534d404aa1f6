# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook lint_gpu_workloads on files and on a fake API server."""

from __future__ import annotations

import json
import re
import socket

import pytest
from fakes import small_cluster
from fakes.loopback_api import serve_in_thread, write_kubeconfig

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

PLAYBOOK = ROOT / "playbooks" / "lint_gpu_workloads.yml"
NODE = {"kind": "Node", "metadata": {"name": "gpu1"}, "status": {"allocatable": {"nvidia.com/gpu": "2"}}}
POD = {
    "kind": "Pod",
    "metadata": {"name": "train", "namespace": "team"},
    "spec": {"containers": [{"name": "main", "image": "busybox", "resources": {"limits": {"nvidia.com/gpu": 4}}}]},
}


@pytest.fixture
def lint(run):
    """Run the playbook: exit code and output."""
    return lambda *options, **variables: run("", PLAYBOOK, *options, **variables)


@pytest.mark.parametrize("check", [(), ("--check",)])
def test_manifests_without_a_cluster(lint, tmp_path, check):
    manifest, report = tmp_path / "pod.json", tmp_path / "report.sarif"
    manifest.write_text(
        json.dumps({**POD, "metadata": {"name": "train\x1b[31m"}}).replace("4", "0.5"), encoding="utf-8"
    )
    variables = {
        "gpu_workload_lint_paths": [str(manifest)],
        "gpu_workload_lint_format": "sarif",
        "gpu_workload_lint_path": str(report),
    }
    code, output = lint(*check, **variables)
    assert code == 2, output
    assert "error GPU003 Pod/train" in output
    assert "1 findings are errors or graver" in output
    assert "\x1b[31m" not in output
    assert "skipped GPU014: nodes not known" in output
    assert report.exists() is not bool(check)
    code, output = lint(*check, **variables, gpu_workload_lint_fail_on="never")
    assert code == 0, output


def test_findings_are_printed_as_one_line_for_programs(lint, tmp_path):
    manifest, report = tmp_path / "pod.json", tmp_path / "report.json"
    manifest.write_text(json.dumps(POD).replace("4", "0.5"), encoding="utf-8")
    code, output = lint(
        gpu_workload_lint_paths=[str(manifest)],
        gpu_workload_lint_print="json",
        gpu_workload_lint_format="json",
        gpu_workload_lint_path=str(report),
        gpu_workload_lint_fail_on="never",
    )
    assert code == 0, output
    [line] = [each for each in output.splitlines() if each.startswith('{"schema"')]
    assert json.loads(line) == json.loads(report.read_text(encoding="utf-8"))
    assert "error GPU003 Pod" not in output


def test_other_files_of_a_folder_with_an_unreadable_one_are_checked(lint, tmp_path):
    (tmp_path / "a.yaml").write_text("image: {{ .Values.image }}\n  x: [")
    (tmp_path / "b.json").write_text(json.dumps(POD).replace("4", "0.5"), encoding="utf-8")
    code, output = lint(gpu_workload_lint_paths=[str(tmp_path)], gpu_workload_lint_fail_on="never")
    assert code == 2, output
    assert "error GPU003 Pod/team/train" in output
    assert re.search(
        r"a\.yaml, line \d+: it is a template; render it first \(helm template\)\. The other files were checked", output
    )


def test_workloads_of_a_cluster(lint, tmp_path):
    owned = {**POD, "metadata": {"name": "owned", "namespace": "team", "ownerReferences": [{"kind": "Job"}]}}
    ray = [{"kind": "RayCluster", "name": "r", "uid": "1"}]
    workers = [
        {**POD, "metadata": {"name": f"ray-{each}", "namespace": "team", "ownerReferences": ray}} for each in "ab"
    ]
    with serve_in_thread(small_cluster.SmallCluster(NODE, POD, owned, *workers)) as server:
        code, output = lint(gpu_kubeconfig=str(write_kubeconfig(server.url, tmp_path / "kubeconfig")))
    assert code == 2, output
    assert "GPU014 Pod/team/train asks for 4 of nvidia.com/gpu, and no node that it selects has more than 2" in output
    assert "owned" not in output
    assert output.count("GPU014 Pod/team/ray-") == 1


def test_cluster_that_does_not_answer_fails_the_run_with_the_cause(lint, tmp_path):
    with socket.socket() as closed:  # bound and not listening: connections are refused
        closed.bind(("127.0.0.1", 0))
        kubeconfig = write_kubeconfig(f"http://127.0.0.1:{closed.getsockname()[1]}", tmp_path / "kubeconfig")
        code, output = lint(gpu_kubeconfig=str(kubeconfig))
    assert code == 2, output
    assert "cannot be reached (" in output
    assert "check that it is up" in output
    assert "findings are" not in output
