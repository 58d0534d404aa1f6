# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command reads a cluster, which needs the API client of the controller."""

from __future__ import annotations

import socket

import pytest

pytest.importorskip("kubernetes")

from fakes import small_cluster
from fakes.loopback_api import serve_in_thread, write_kubeconfig

from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._lint.test_manifests import BAD, run


def test_command_reads_a_live_cluster(capsys, tmp_path):
    node = {"kind": "Node", "metadata": {"name": "a"}, "status": {"allocatable": {"nvidia.com/gpu": "1"}}}
    container = {"name": "main", "image": "busybox", "resources": {"limits": {"nvidia.com/gpu": "2"}}}
    pod = {"kind": "Pod", "metadata": {"name": "train", "namespace": "team"}, "spec": {"containers": [container]}}
    path = tmp_path / "pod.yaml"
    path.write_text(BAD.replace("500m", "3"))
    with serve_in_thread(small_cluster.SmallCluster(node, pod)) as server:
        kubeconfig = str(write_kubeconfig(server.url, tmp_path / "kubeconfig"))
        status, text, _errors = run(capsys, "--live", "--kubeconfig", kubeconfig)
        assert (status, f"{server.url}:1: error GPU014 Pod/team/train asks for 2" in text) == (1, True)
        status, text, _errors = run(capsys, path, "--kubeconfig", kubeconfig)
        assert (status, "asks for 3" in text, "asks for 2" in text) == (1, True, False)


def test_command_exits_with_3_for_a_cluster_that_does_not_answer(capsys, tmp_path):
    with socket.socket() as closed:  # bound and not listening: connections are refused
        closed.bind(("127.0.0.1", 0))
        kubeconfig = write_kubeconfig(f"http://127.0.0.1:{closed.getsockname()[1]}", tmp_path / "kubeconfig")
        status, text, errors = run(capsys, "--live", "--kubeconfig", kubeconfig)
    assert (status, text, "cannot be reached" in errors) == (3, "", True)
