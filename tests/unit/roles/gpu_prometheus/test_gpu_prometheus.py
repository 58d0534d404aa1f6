# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role on a real Prometheus, whose promtool checks the files; systemctl and journalctl are fakes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import prometheus, wait

from ansible_collections.gpu.kubernetes.plugins.module_utils._monitoring.rules import GROUPS
from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import HERE

CONFIG = """\
# The administrator's own.
global:
  scrape_interval: 15s   # as everywhere
scrape_configs:
  - job_name: node
    static_configs:
      - targets: ["127.0.0.1:9100"]
"""
HOSTS = {
    name: {
        "gpu_exporter_target": {"address": f"127.0.0.1:{port}", "exporter": "nvidia_gpu_exporter", "scheme": "http"},
        "gpu_node_name": name,
        "gpu_prometheus_expected_gpus": 8,
    }
    for name, port in (("gpu1", 1), ("gpu2", 2))
}
PLAY = [{"hosts": "gpu1,gpu2", "gather_facts": False, "roles": ["gpu.kubernetes.gpu_prometheus"]}]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[prometheus.Prometheus]:
    folder = tmp_path / "etc"
    folder.mkdir()
    (folder / "prometheus.yml").write_text(CONFIG)
    with prometheus.Prometheus(folder) as running:
        yield running


def describe(server: prometheus.Prometheus, folder: Path) -> dict[str, str]:
    """The variables of a Prometheus."""
    return {
        "gpu_prometheus_host": "monitor",
        "gpu_prometheus_config_path": str(server.config),
        "gpu_prometheus_promtool": str(prometheus.programs() / "promtool"),
        "gpu_prometheus_reload": "http",
        "gpu_prometheus_url": server.url,
        "gpu_prometheus_state_dir": str(folder / "state"),
    }


@pytest.fixture
def role(server: prometheus.Prometheus, run, tmp_path: Path):
    """Run the role; return whether it succeeded, the number of changes of all hosts, and the output."""
    playbook = tmp_path / "play.yml"
    playbook.write_text(json.dumps(PLAY))
    inventory = {"all": {"hosts": {**HOSTS, "monitor": {}}, "vars": HERE}}

    def run_role(*options: str, environment=None, **extra):
        found = {**describe(server, tmp_path), **extra}
        code, output = run(inventory, playbook, *options, environment=environment, **found)
        print(output)
        return code == 0, sum(map(int, re.findall(r"changed=(\d+)", output))), output

    return run_role


def files(server: prometheus.Prometheus) -> dict[str, str]:
    """What is beside the configuration, without data and log of Prometheus."""
    found = (path for path in server.folder.rglob("*") if path.is_file() and "data" not in path.parts)
    return {str(path.relative_to(server.folder)): path.read_text() for path in found if path != server.log}


def targets(server: prometheus.Prometheus) -> list[dict[str, str]]:
    """The labels of the targets of the job, as Prometheus has found them."""

    def read() -> list[dict[str, str]]:
        active = json.loads(server.get("/api/v1/targets"))["data"]["activeTargets"]
        return sorted(
            (each["labels"] for each in active if each["labels"]["job"] == "gpu"), key=lambda each: each["node"]
        )

    return wait.until(read, seconds=30, pause=0.2)


#: Variables of a host, and the message.
REFUSED = {
    # As in the guide that users have followed by hand.
    "configuration": ({"gpu_prometheus_config_path": "{{ other }}"}, "other.yml.*field lables not found"),
    "option": ({"gpu_prometheus_scrape_options": {"lables": {}}}, "prometheus.yml.*field lables not found"),
    "no-host": ({"gpu_prometheus_host": ""}, "set gpu_prometheus_host"),
    "address": ({"gpu_prometheus_url": "http://127.0.0.1:1"}, "Prometheus does not answer .*nothing was changed"),
}


def test_role_with_what_prometheus_would_refuse_changes_nothing(server, refusals, tmp_path: Path) -> None:
    """One play for each host."""
    other = server.folder / "other.yml"
    other.write_text(CONFIG + "        lables: {gpu: nvidia-4090}\n")
    start, reloaded = files(server), server.reloads()
    common = {**HOSTS["gpu1"], **describe(server, tmp_path), "gpu_prometheus_host": "localhost", "other": str(other)}
    plays = [{host: {**common, **variables}} for host, (variables, _message) in REFUSED.items()]
    found = refusals("gpu_prometheus", ["main"], *plays)
    for host, (_variables, message) in REFUSED.items():
        assert re.search(message, " ".join(found[host].split())), found[host]
    assert files(server) == start
    assert server.reloads() == reloaded


def test_role_with_a_prometheus_is_exact_and_undone(server, role) -> None:
    """The scenario repeats the run."""
    start = files(server)
    assert role("--check")[:2] == (True, 1)
    assert files(server) == start
    assert role("--limit", "gpu1")[:2] == (True, 1)
    assert server.groups() == sorted(GROUPS) or set(server.groups()) == set(GROUPS)
    [label] = targets(server)
    assert label == {
        "job": "gpu",
        "instance": "127.0.0.1:1",
        "node": "gpu1",
        "gpu_expected": "8",
        "exporter": "nvidia_gpu_exporter",
    }
    assert server.config.read_text().startswith(CONFIG)
    # A second host comes by a file of its own, without a reload.
    reloaded = server.reloads()
    assert role("--limit", "gpu2")[:2] == (True, 1)
    assert [
        each["node"] for each in wait.until(lambda: targets(server), lambda found: len(found) == 2, seconds=30)
    ] == ["gpu1", "gpu2"]
    written = files(server)
    assert server.reloads() == reloaded
    assert role("--check")[:2] == (True, 0)
    assert (files(server), server.reloads()) == (written, reloaded)
    # The rules stay while a host has a target.
    assert role("--limit", "gpu1", gpu_prometheus_state="absent")[:2] == (True, 1)
    assert set(written) - set(files(server)) == {"gpu-targets/gpu1.json"}
    assert role("--check", gpu_prometheus_state="absent")[:2] == (True, 1)
    assert role(gpu_prometheus_state="absent")[:2] == (True, 1)
    assert files(server) == start
    assert not (server.folder / "gpu-targets").exists()
    assert server.groups() == []


def write_program(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_role_with_a_configuration_that_does_not_load_rolls_back(server, role, tmp_path: Path) -> None:
    """A fake of promtool accepts everything, as another version may. The reload and the log are by fakes of systemd's programs."""
    programs = tmp_path / "programs"
    write_program(programs / "systemctl", f"kill -HUP {server.process.pid}")
    write_program(programs / "journalctl", f"cat {server.log}")
    environment = {"PATH": f"{programs}:/usr/sbin:/usr/bin:/sbin:/bin"}
    fake = str(write_program(programs / "promtool", "exit 0"))
    systemd = {"environment": environment, "gpu_prometheus_reload": "systemd"}
    assert role(**systemd)[:2] == (True, 1)
    start = files(server)
    options = {"lables": {}}
    succeeded, _changes, output = role(**systemd, gpu_prometheus_promtool=fake, gpu_prometheus_scrape_options=options)
    assert not succeeded
    message = " ".join(output.split())
    assert "its former files were restored: prometheus_config_last_reload_successful is 0" in message
    assert "field lables not found" in message, output
    assert files(server) == start
    assert set(server.groups()) == set(GROUPS)
