# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.gpu.kubernetes.plugins.filter.managed_cluster import managed_cluster
from ansible_collections.gpu.kubernetes.plugins.filter.managed_cluster_plan import managed_cluster_plan
from ansible_collections.gpu.kubernetes.plugins.filter.managed_cluster_result import managed_cluster_result


def test_filters_return_problems_of_cluster_and_test() -> None:
    cluster = managed_cluster([{"metadata": {"name": "a"}}], [], [])
    found = managed_cluster_result(cluster, {"msg": "no access."})
    assert found["problems"] == ["None of the 1 nodes offers nvidia.com/gpu.", "The test could not run: no access."]
    assert found["untested"] == []


def test_plan_of_an_unknown_cluster_names_the_playbooks_for_hosts() -> None:
    plan = managed_cluster_plan([{"metadata": {"name": "a"}}], [], [])
    assert plan["labels"] == {"a": {}}
    assert "gpu.kubernetes.deploy_device_plugin" in plan["refusals"][0]


def test_plan_has_the_exporter_if_monitoring_is_requested() -> None:
    node = {
        "metadata": {"name": "a", "labels": {"nvidia.com/gpu.present": "true"}},
        "status": {"nodeInfo": {"kubeletVersion": "v1.34.1-eks-1"}},
    }
    request = {"mode": "exporter", "provider": "dcgm_exporter", "method": "daemonset", "nodes": {"a": {}}, "pods": {}}
    assert managed_cluster_plan([node], [], [])["monitoring"] == {}
    assert managed_cluster_plan([node], [], [], monitoring=request)["monitoring"]["nodes"] == ["a"]
    plan = managed_cluster_plan([node], [], [], monitoring={**request, "provider": "intel_xpumd"})
    assert "Intel's xpumd" in plan["refusals"][0]


def test_filters_refuse_input_of_another_form() -> None:
    with pytest.raises(AnsibleFilterError, match="cannot read its input"):
        managed_cluster([{}], [], [])
    with pytest.raises(AnsibleFilterError, match="cannot read its input"):
        managed_cluster_plan([{}], [], [])
    with pytest.raises(AnsibleFilterError, match="cannot read its input"):
        managed_cluster_result({}, {"results": []})
