# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role with objects of the Prometheus Operator, on a fake of the API server."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path

import pytest
from fakes import small_cluster
from fakes.loopback_api import serve_in_thread, write_kubeconfig

from ansible_collections.gpu.kubernetes.plugins.module_utils._monitoring import rules
from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import HERE

KINDS = {
    "monitoring.coreos.com/v1": {
        "prometheuses": ("Prometheus", True),
        "prometheusrules": ("PrometheusRule", True),
        "podmonitors": ("PodMonitor", True),
    },
    "monitoring.coreos.com/v1alpha1": {"scrapeconfigs": ("ScrapeConfig", True)},
}
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "monitoring"}}
PROMETHEUS = {
    "apiVersion": "monitoring.coreos.com/v1",
    "kind": "Prometheus",
    "metadata": {"name": "p", "namespace": "monitoring"},
    "spec": {"ruleSelector": {"matchLabels": {"release": "p"}}, "scrapeConfigSelector": {}},
}
HOSTS = {
    name: {
        "gpu_exporter_target": {"address": f"10.0.0.{number}:9835", "exporter": "x", "scheme": "http"},
        "gpu_node_name": name,
        "gpu_prometheus_expected_gpus": 8,
    }
    for number, name in enumerate(("gpu1", "gpu2"), 11)
}


@pytest.fixture
def role(run, tmp_path: Path):
    """Run the role on a cluster: whether it succeeded, the number of changes of all hosts, and the output."""
    playbook = tmp_path / "play.yml"
    playbook.write_text(
        json.dumps([{"hosts": "all", "gather_facts": False, "roles": ["gpu.kubernetes.gpu_prometheus"]}])
    )

    def run_role(server, *options: str, **extra):
        kubeconfig = str(write_kubeconfig(server.url, tmp_path / "kubeconfig"))
        found = {"gpu_prometheus_mode": "operator", "gpu_kubeconfig": kubeconfig, **extra}
        code, output = run({"all": {"hosts": HOSTS, "vars": HERE}}, playbook, *options, **found)
        print(output)
        return code == 0, sum(map(int, re.findall(r"changed=(\d+)", output))), " ".join(output.split())

    return run_role


def names(server) -> set[str]:
    """The objects of the role."""
    return {f"{kind} {name}" for kind, _place, name in server.objects if kind in ("PrometheusRule", "ScrapeConfig")}


def test_role_applies_its_objects_and_removes_them_with_the_last_host(role, monkeypatch) -> None:
    monkeypatch.setattr(small_cluster, "KINDS", {**small_cluster.KINDS, **KINDS})
    with serve_in_thread(small_cluster.SmallCluster(NAMESPACE, PROMETHEUS)) as server:
        succeeded, predicted, _output = role(server, "--check")
        assert (succeeded, predicted > 0, names(server)) == (True, True, set())
        succeeded, changes, output = role(server)
        assert (succeeded, changes) == (True, predicted)
        assert "PrometheusRule gpu-kubernetes is selected by no Prometheus" in output
        every = {
            "PrometheusRule gpu-kubernetes",
            "ScrapeConfig gpu-kubernetes-gpu1",
            "ScrapeConfig gpu-kubernetes-gpu2",
        }
        assert names(server) == every
        # The texts of the alerts keep the placeholders of Prometheus.
        [rule] = server.all("PrometheusRule")
        assert rule["spec"]["groups"] == rules.build_groups()
        present = copy.deepcopy(server.objects)
        assert role(server, "--check")[:2] == (True, 0)
        assert role(server)[:2] == (True, 0)
        assert server.objects == present
        assert role(server, "--limit", "gpu1", gpu_prometheus_state="absent")[0]
        assert names(server) == every - {"ScrapeConfig gpu-kubernetes-gpu1"}
        # A host that has lost its exporter has no target any more.
        assert role(server, "--limit", "gpu2", gpu_exporter_target={})[0]
        assert "ScrapeConfig gpu-kubernetes-gpu2" not in names(server)
        assert role(server, gpu_prometheus_state="absent")[0]
        assert names(server) == set()


def test_cluster_without_the_operator_is_refused(role) -> None:
    with serve_in_thread(small_cluster.SmallCluster()) as server:
        succeeded, changes, output = role(server)
    assert (succeeded, changes) == (False, 0)
    assert "does not have the kinds of the Prometheus Operator" in output
