# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults on a deployed cluster; only `make test-all` runs them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.thorough
HOST = "molecule-worker-2"
CONFIG = "/etc/containerd/config.toml"


def test_malformed_configuration_is_refused_before_any_host_changes(
    get_machine: Callable[[str], Any], expect_refusal: Callable[..., None]
) -> None:
    """The file is on the last host: the first host is not changed either."""
    machine = get_machine(HOST)
    machine.check_output(f"cp -p {CONFIG} /root/ && echo 'broken = [' >> {CONFIG}")
    try:
        expect_refusal([], HOST, CONFIG, "line")
    finally:
        machine.check_output(f"mv /root/config.toml {CONFIG}")


def test_second_run_is_refused_while_a_first_one_holds_the_node(playbook: Callable[..., Any]) -> None:
    """The first run stops after it has begun to change a node, while the second one runs, and ends well afterwards."""
    second: list[tuple[int, str]] = []

    def run_second(first: subprocess.Popen[str]) -> None:
        os.killpg(first.pid, signal.SIGSTOP)
        try:
            code, _recap, printed = playbook("prepare_gpu_nodes", "--limit", HOST)
            second.append((code, " ".join(printed.split())))
        finally:
            os.killpg(first.pid, signal.SIGCONT)

    code, _recap, printed = playbook(
        "prepare_gpu_nodes", "--limit", HOST, at={r"^TASK \[.*Install or keep the driver": run_second}
    )
    assert code == 0, printed
    ((code, refusal),) = second
    assert code != 0, refusal
    assert re.search(r"another run changes this host: that of \S+, since .*; wait until it ends, or", refusal), refusal


def test_report_names_nodes_without_allocatable_gpus(tmp_path: Path, playbook: Callable[..., Any]) -> None:
    path = tmp_path / "report.json"
    extra = {
        "gpu_verify_report_path": str(path),
        "k8s_device_plugin_expected_gpus": 99,
        "k8s_device_plugin_wait_timeout": 5,  # the test waits for it
    }
    code, _recap, printed = playbook("site", "--tags", "device_plugin,smoke_test,verify", "-e", json.dumps(extra))
    assert code != 0
    assert "GPU report: 2 nodes" in printed
    report = json.loads(path.read_text(encoding="utf-8"))
    assert [problem["code"] for problem in report["problems"]] == ["node", "node"]
    assert [node["smoke_test"]["result"] for node in report["nodes"]] == ["passed", "passed"]
