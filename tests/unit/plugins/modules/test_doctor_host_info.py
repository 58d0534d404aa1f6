# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module that observes a host: parameters, results and failures."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("ansible.module_utils.basic")

from ansible.module_utils import basic

from ansible_collections.gpu.kubernetes.plugins.module_utils._checks import gather
from ansible_collections.gpu.kubernetes.plugins.modules import doctor_host_info

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
