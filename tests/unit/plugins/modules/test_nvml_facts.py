# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module: parameters and facts, also in check mode."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("ansible.module_utils.basic")

from ansible.module_utils import basic

from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml import details
from ansible_collections.gpu.kubernetes.plugins.modules import nvml_facts

if TYPE_CHECKING:
    from fakes.nvml.simulated import NvmlBuilder

ABSENT = "/nonexistent/file"


def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: dict[str, Any]
) -> dict[str, Any]:
    monkeypatch.setattr(basic, "_ANSIBLE_ARGS", json.dumps({"ANSIBLE_MODULE_ARGS": arguments}).encode())
    monkeypatch.setattr(basic, "_ANSIBLE_PROFILE", "legacy", raising=False)
    with pytest.raises(SystemExit):
        nvml_facts.main()
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("check_mode", [False, True])
def test_facts_of_each_source(
    nvml_builder: NvmlBuilder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], check_mode: bool
) -> None:
    result = run(monkeypatch, capsys, {"library": nvml_builder.library("a100-40g"), "_ansible_check_mode": check_mode})
    assert result["changed"] is False
    nvml = result["ansible_facts"]["nvml"]
    assert set(nvml) == {
        "source",
        "driver_version",
        "cuda_driver_version",
        "nvml_version",
        "driver",
        "xid_errors",
        "gpus",
        "nvswitches",
        "machine",
        "error",
    }
    assert (nvml["source"], nvml["error"], len(nvml["gpus"])) == ("nvml", None, 8)
    assert (nvml["gpus"][0]["pci_address"], nvml["gpus"][0]["pci_device_id"]) == ("0000:07:00.0", "20b0")


def test_returned_values_are_documented(
    nvml_builder: NvmlBuilder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    yaml = pytest.importorskip("yaml")
    documented = yaml.safe_load(nvml_facts.RETURN)["ansible_facts"]["contains"]["nvml"]["contains"]
    arguments = {"library": nvml_builder.library("h100-mig"), "gather_subset": ["all", "processes"]}
    nvml = run(monkeypatch, capsys, arguments)["ansible_facts"]["nvml"]
    assert set(documented) == set(nvml)
    assert set(documented["gpus"]["contains"]) == set(nvml["gpus"][0])
    assert set(documented["driver"]["contains"]) == set(nvml["driver"])
    assert set(documented["gpus"]["contains"]["nvlinks"]["contains"]) == set(nvml["gpus"][0]["nvlinks"][0])
    for name in ("bar1", "ecc", "retired_pages", "row_remapping", "power", "clocks", "pcie", "fabric"):
        assert set(documented["gpus"]["contains"][name]["sample"]) == set(nvml["gpus"][0][name])
    reasons = " ".join(documented["gpus"]["contains"]["clocks"]["description"])
    assert all(f"V({reason})" in reasons for reason in details.CLOCK_REASONS)
    partition = documented["gpus"]["contains"]["mig_devices"]["contains"]
    assert set(partition) == set(nvml["gpus"][0]["mig_devices"][0])
    instance = documented["gpus"]["contains"]["gpu_instances"]["contains"]
    assert set(instance) == set(nvml["gpus"][0]["gpu_instances"][0])


def test_gather_subset_limits_facts(
    nvml_builder: NvmlBuilder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = {"library": nvml_builder.library("t4"), "gather_subset": ["pcie"]}
    nvml = run(monkeypatch, capsys, arguments)["ansible_facts"]["nvml"]
    assert nvml["driver"] is None
    assert nvml["gpus"][0]["pcie"]["width"] == 16
    assert not {"clocks", "ecc", "peers", "details"} & set(nvml["gpus"][0])


def test_host_without_gpu_does_not_fail(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    result = run(monkeypatch, capsys, {"library": ABSENT, "nvidia_smi": ABSENT, "pci_path": ABSENT})
    assert result["ansible_facts"]["other_gpus"] == []
    assert result["ansible_facts"]["nvml"]["source"] == "none"
    assert "failed" not in result


def test_options_are_passed_to_the_collector(
    nvml_builder: NvmlBuilder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = {
        "library": nvml_builder.library("hang"),
        "pci_path": nvml_builder.pci("t4"),
        "timeout": 0.3,
        "nvidia_smi": ABSENT,
    }
    nvml = run(monkeypatch, capsys, arguments)["ansible_facts"]["nvml"]
    assert (nvml["source"], "within 0.3 seconds" in nvml["error"]) == ("pci", True)


@pytest.mark.parametrize("timeout", [0, -1, 3601, "inf", "nan"])
def test_invalid_timeout_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], timeout: float | str
) -> None:
    result = run(monkeypatch, capsys, {"timeout": timeout})
    assert result["failed"] is True
    assert result["msg"] == f"timeout is {timeout} seconds; give more than 0 and at most 3600."
