# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules that observe a host and a cluster: parameters, results and failures."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from fakes.kubernetes_api import FakeCluster, node

pytest.importorskip("ansible.module_utils.basic")

from ansible.module_utils import basic

from ansible_collections.gpu.kubernetes.plugins.module_utils._checks import gather
from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import ApiError
from ansible_collections.gpu.kubernetes.plugins.modules import doctor_cluster_info, doctor_host_info

if TYPE_CHECKING:
    from fakes.nvml.simulated import NvmlBuilder


@pytest.fixture
def observe(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Return observe(**arguments), which runs doctor_host_info with two of its parts."""
    monkeypatch.setattr(gather, "PARTS", {"pci": gather.read_bus, "log": gather.read_log})

    def run(**arguments: Any) -> dict[str, Any]:
        encoded = json.dumps({"ANSIBLE_MODULE_ARGS": arguments}).encode()
        monkeypatch.setattr(basic, "_ANSIBLE_ARGS", encoded)
        monkeypatch.setattr(basic, "_ANSIBLE_PROFILE", "legacy", raising=False)
        with pytest.raises(SystemExit):
            doctor_host_info.main()
        result: dict[str, Any] = json.loads(capsys.readouterr().out)
        return result

    return run


@pytest.mark.parametrize("check_mode", [False, True])
def test_doctor_host_info_observes_without_a_change(observe: Any, nvml_builder: NvmlBuilder, check_mode: bool) -> None:
    places = {"library": nvml_builder.library("t4"), "pci_path": nvml_builder.pci("t4"), "kernel_log": "/nonexistent"}
    result = observe(_ansible_check_mode=check_mode, **places)
    assert result["changed"] is False
    assert len(result["observation"]["nvml"]["gpus"]) == len(result["observation"]["pci"]) > 0
    assert set(result["observation"]["errors"]) == {"log"}


@pytest.mark.parametrize("timeout", [0, -1, 3601, "nan", "inf"])
def test_doctor_host_info_refuses_a_timeout_without_a_limit(observe: Any, timeout: Any) -> None:
    result = observe(timeout=timeout)
    assert result["failed"] is True
    assert f"timeout is {timeout} seconds; give gpu_doctor_timeout more than 0 and at most 3600" in result["msg"]


def test_doctor_cluster_info_without_nodes_of_the_api_fails(run_module: Any) -> None:
    cluster = FakeCluster()

    def fail(_call: str) -> None:
        raise ApiError("The API is away.", 503)

    cluster.on_call = fail
    result = run_module(doctor_cluster_info, cluster)
    assert (result["failed"], result["msg"]) == (True, "The API is away.")


def test_doctor_cluster_info_keeps_requested_nodes(run_module: Any) -> None:
    cluster = FakeCluster([node("w1"), node("w2"), node("w3", 1)])
    cluster.server_time = None  # type: ignore[attr-defined]
    cluster.gather = lambda *_arguments: []  # type: ignore[method-assign,assignment]
    result = run_module(doctor_cluster_info, cluster, nodes=["w1"])
    assert (result["changed"], sorted(result["observation"]["nodes"])) == (False, ["w1", "w3"])
