# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""On a deployed cluster a second run changes nothing, and the report agrees with the cluster."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

CONFIG = "/etc/containerd/config.toml"


def test_check_mode_reports_no_change(playbook: Callable[..., Any]) -> None:
    """The scenario's step idempotence is a second run without check mode."""
    code, recap, printed = playbook("site", "--check", "--diff")
    assert code == 0, printed
    assert recap
    assert all(counts["changed"] == 0 for counts in recap.values()), printed


def test_report_has_both_nodes_and_no_problem(inventory: dict[str, Any]) -> None:
    with open(inventory["all"]["vars"]["gpu_verify_report_path"], encoding="utf-8") as file:
        report = json.load(file)
    assert [node["node"] for node in report["nodes"]] == ["molecule-worker-1", "molecule-worker-2"]
    assert [node["smoke_test"]["result"] for node in report["nodes"]] == ["passed", "passed"]
    assert report["problems"] == []
    assert "simulated" in str(report["notes"])


def test_report_is_written_as_a_page(tmp_path: Path, inventory: dict[str, Any], playbook: Callable[..., Any]) -> None:
    path = tmp_path / "page.html"
    source = inventory["all"]["vars"]["gpu_verify_report_path"]
    words = ("-e", f"gpu_html_report_source={source}", "-e", f"gpu_html_report_dest={path}")
    for changed in (1, 0):
        code, recap, printed = playbook("report_gpu_fleet", *words)
        assert (code, recap["localhost"]["changed"]) == (0, changed), printed
    page = path.read_text(encoding="utf-8")
    assert all(f"<strong>molecule-worker-{number}</strong>" in page for number in (1, 2))


def test_verify_of_one_host_reports_its_drift_and_keeps_the_others(
    tmp_path: Path,
    inventory: dict[str, Any],
    get_machine: Callable[[str], Any],
    playbook: Callable[..., Any],
) -> None:
    """Another tool has written to the file; the running daemon is as it was."""
    machine, path = get_machine("molecule-worker-1"), tmp_path / "report.json"
    shutil.copy(inventory["all"]["vars"]["gpu_verify_report_path"], path)
    before = json.loads(path.read_text(encoding="utf-8"))
    machine.check_output(f"cp -p {CONFIG} /root/ && sed -i 's,/usr/bin/nvidia-container-runtime,/opt/other,' {CONFIG}")
    try:
        code, _recap, printed = playbook(
            "verify_gpu_cluster", "--limit", "molecule-worker-1", "-e", f"gpu_verify_report_path={path}"
        )
    finally:
        machine.check_output(f"mv /root/config.toml {CONFIG}")
    assert code != 0, printed
    report = json.loads(path.read_text(encoding="utf-8"))
    assert [(problem["code"], problem["host"]) for problem in report["problems"]] == [("drift", "molecule-worker-1")]
    first, second = report["nodes"]
    assert any("/opt/other" in line for line in first["runtime"]["drift"])
    # The result of another configuration does not count.
    assert (first["smoke_test"]["result"], second) == ("not run", before["nodes"][1])


def test_node_is_removed_and_added_again(api: Any, apps: Any, playbook: Callable[..., Any]) -> None:
    """Objects of the cluster stay while another node needs them."""
    limit = ("--limit", "molecule-worker-2")
    code, _recap, printed = playbook("remove_gpu_nodes", *limit)
    assert code == 0, printed
    assert "KEPT" in printed
    assert apps.read_namespaced_daemon_set("nvidia-device-plugin-daemonset", "kube-system")
    labels = {node.metadata.name: node.metadata.labels for node in api.list_node().items}
    assert "nvidia.com/gpu.present" not in labels["molecule-worker-2"]
    assert labels["molecule-worker-1"]["nvidia.com/gpu.present"] == "true"
    code, recap, printed = playbook("site", *limit)
    assert code == 0, printed
    assert "molecule-worker-1" not in recap
    assert api.read_node("molecule-worker-2").status.allocatable["nvidia.com/gpu"] == "2"
