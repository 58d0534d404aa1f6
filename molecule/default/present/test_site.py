# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""On a finished cluster the whole path changes nothing more, and the report agrees with the cluster."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

CONFIG = "/etc/containerd/config.toml"


def test_check_mode_has_nothing_to_announce(playbook: Callable[..., Any]) -> None:
    """A whole second run is the scenario's step idempotence."""
    code, recap, printed = playbook("site", "--check", "--diff")
    assert code == 0, printed
    assert recap
    assert all(counts["changed"] == 0 for counts in recap.values()), printed


def test_report_is_readable_by_machines(inventory: dict[str, Any]) -> None:
    with open(inventory["all"]["vars"]["gpu_verify_report_path"], encoding="utf-8") as file:
        report = json.load(file)
    assert [node["node"] for node in report["nodes"]] == ["molecule-worker-1", "molecule-worker-2"]
    assert [node["smoke_test"]["result"] for node in report["nodes"]] == ["passed", "passed"]
    assert report["problems"] == []
    assert "simulated" in str(report["notes"])


def test_verifying_one_host_reports_its_drift_and_keeps_the_rest_of_the_report(
    tmp_path: Path,
    inventory: dict[str, Any],
    machine_named: Callable[[str], Any],
    playbook: Callable[..., Any],
) -> None:
    """Another tool has written to the file; the running daemon is as it was."""
    machine, path = machine_named("molecule-worker-1"), tmp_path / "report.json"
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
    # The smoke test of another configuration says nothing about this one.
    assert (first["smoke_test"]["result"], second) == ("not run", before["nodes"][1])


def test_one_node_goes_and_comes_back(api: Any, apps: Any, playbook: Callable[..., Any]) -> None:
    """What the whole cluster shares stays as long as another node has use for it."""
    here = ("--limit", "molecule-worker-2")
    code, _recap, printed = playbook("remove_gpu_nodes", *here)
    assert code == 0, printed
    assert "KEPT" in printed
    assert apps.read_namespaced_daemon_set("nvidia-device-plugin-daemonset", "kube-system")
    labels = {node.metadata.name: node.metadata.labels for node in api.list_node().items}
    assert "nvidia.com/gpu.present" not in labels["molecule-worker-2"]
    assert labels["molecule-worker-1"]["nvidia.com/gpu.present"] == "true"
    code, recap, printed = playbook("site", *here)
    assert code == 0, printed
    assert "molecule-worker-1" not in recap
    assert api.read_node("molecule-worker-2").status.allocatable["nvidia.com/gpu"] == "2"
