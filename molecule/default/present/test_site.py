# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""On a finished cluster the whole path changes nothing more, and the report agrees with the cluster."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import testinfra

LAB = Path(__file__).resolve().parents[3] / ".lab" / "molecule"


def test_check_mode_has_nothing_to_announce(playbook: Callable[..., Any]) -> None:
    """A whole second run is the scenario's step idempotence."""
    code, recap, said = playbook("site", "--check", "--diff")
    assert code == 0, said
    assert recap
    assert all(counts["changed"] == 0 for counts in recap.values()), said


def test_report_is_readable_by_machines(inventory: dict[str, Any]) -> None:
    with open(inventory["all"]["vars"]["gpu_verify_report_path"], encoding="utf-8") as file:
        report = json.load(file)
    assert [node["node"] for node in report["nodes"]] == ["molecule-worker-1", "molecule-worker-2"]
    assert report["problems"] == []
    assert "simulated" in str(report["notes"])


def test_verifying_alone_keeps_the_report(inventory: dict[str, Any], playbook: Callable[..., Any]) -> None:
    path = Path(inventory["all"]["vars"]["gpu_verify_report_path"])
    before = path.read_text(encoding="utf-8")
    code, _recap, said = playbook("verify_gpu_cluster", "--limit", "molecule-worker-1")
    assert code == 0, said
    assert path.read_text(encoding="utf-8") == before
    assert [node["smoke_test"]["result"] for node in json.loads(before)["nodes"]] == ["passed", "passed"]


def test_what_another_tool_wrote_is_told(tmp_path: Path, playbook: Callable[..., Any]) -> None:
    """The running daemon is as it was: it is the file that drifted."""
    machine = testinfra.get_host(f"ansible://molecule-worker-1?ansible_inventory={LAB / 'inventory.yml'}")
    config, path = "/etc/containerd/config.toml", tmp_path / "report.json"
    machine.check_output(f"cp -p {config} /root/ && sed -i 's,/usr/bin/nvidia-container-runtime,/opt/other,' {config}")
    try:
        code, _recap, said = playbook(
            "verify_gpu_cluster", "--limit", "molecule-worker-1", "-e", f"gpu_verify_report_path={path}"
        )
    finally:
        machine.check_output(f"mv /root/config.toml {config}")
    assert code != 0, said
    report = json.loads(path.read_text(encoding="utf-8"))
    assert [(problem["code"], problem["host"]) for problem in report["problems"]] == [("drift", "molecule-worker-1")]
    assert any("/opt/other" in line for line in report["nodes"][0]["runtime"]["drift"])


def test_nodes_that_do_not_offer_their_gpus_are_in_the_report(tmp_path: Path, playbook: Callable[..., Any]) -> None:
    path = tmp_path / "report.json"
    extra = {
        "gpu_verify_report_path": str(path),
        "k8s_device_plugin_expected_gpus": 99,
        "k8s_device_plugin_wait_timeout": 5,
    }
    code, _recap, said = playbook("site", "--tags", "device_plugin,smoke_test,verify", "-e", json.dumps(extra))
    assert code != 0
    assert "GPU report: 2 nodes" in said
    report = json.loads(path.read_text(encoding="utf-8"))
    assert [problem["code"] for problem in report["problems"]] == ["node", "node"]
    assert [node["smoke_test"]["result"] for node in report["nodes"]] == ["passed", "passed"]


def test_one_node_goes_and_comes_back(api: Any, apps: Any, playbook: Callable[..., Any]) -> None:
    """What the whole cluster shares stays as long as another node has use for it."""
    here = ("--limit", "molecule-worker-2")
    code, _recap, said = playbook("remove_gpu_nodes", *here)
    assert code == 0, said
    assert "KEPT" in said
    assert apps.read_namespaced_daemon_set("nvidia-device-plugin-daemonset", "kube-system")
    labels = {node.metadata.name: node.metadata.labels for node in api.list_node().items}
    assert "nvidia.com/gpu.present" not in labels["molecule-worker-2"]
    assert labels["molecule-worker-1"]["nvidia.com/gpu.present"] == "true"
    code, recap, said = playbook("site", *here)
    assert code == 0, said
    assert "molecule-worker-1" not in recap
    assert api.read_node("molecule-worker-2").status.allocatable["nvidia.com/gpu"] == "2"
