# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two jobs run the gates, and the last line of each run has the counts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from gates import machine, scenarios, versions

TESTS = Path(__file__).resolve().parents[2]
# Gates of a script: NAME prints; one with "bad" in its name fails, one with "hangs" waits until it is ended.
GATE = """
import sys, time
print("output of", sys.argv[1], flush=True)
time.sleep(600 if "hangs" in sys.argv[1] else 0)
sys.exit("bad" in sys.argv[1])
"""
RUN = """
import sys
from pathlib import Path
from gates.runner import Runner
first, *others = sys.argv[4:]
limit = float(sys.argv[3])
sys.exit(Runner("demo", first.split(","), others, limit, Path(sys.argv[1]), (sys.executable, sys.argv[2])).run())
"""


@pytest.fixture
def start(tmp_path):
    """Start a runner of gates with a limit in seconds."""
    gate = tmp_path / "gate.py"
    gate.write_text(GATE)

    def run(limit, *gates):
        command = [sys.executable, "-c", RUN, str(tmp_path), str(gate), str(limit), *gates]
        return subprocess.Popen(
            command, env={"PYTHONPATH": str(TESTS), "PATH": "/usr/bin:/bin"}, stdout=subprocess.PIPE, text=True
        )

    return run


def verdicts(folder):
    return {gate["name"]: gate["verdict"] for gate in json.loads((folder / "demo.json").read_text())["gates"]}


def test_gates_run_after_a_failed_gate(start, tmp_path):
    process = start(600, "bad-main,main", "good", "bad", "better")
    lines = process.communicate()[0].splitlines()
    assert (process.returncode, lines[-1]) == (1, "3 passed, 2 failed, 0 skipped")
    assert verdicts(tmp_path) == {
        "bad-main": "failed",
        "main": "passed",
        "good": "passed",
        "bad": "failed",
        "better": "passed",
    }
    assert (tmp_path / "good.log").read_text() == "output of good\n"
    assert "bad | output of bad" in lines
    assert (tmp_path / "summary.txt").read_text() == f"{lines[-1]}\n"


def test_run_over_its_limit_ends_with_a_summary(start, tmp_path):
    process = start(1, "main-hangs", "hangs", "later")
    lines = process.communicate()[0].splitlines()
    assert (process.returncode, lines[-1]) == (1, "0 passed, 3 failed, 0 skipped")
    assert set(verdicts(tmp_path).values()) <= {"ended", "not run"}
    assert verdicts(tmp_path)["later"] == "not run"
    assert any("the limit of a run" in line for line in lines)


def test_gate_that_the_runner_loses_is_a_failure(start, tmp_path):
    (tmp_path / "good.log").mkdir()  # a folder cannot be written
    process = start(600, "main", "good")
    assert process.communicate()[0].splitlines()[-1] == "1 passed, 1 failed, 0 skipped"
    assert (process.returncode, verdicts(tmp_path)) == (1, {"main": "passed", "good": "lost"})


def test_scenario_whose_cluster_dies_fails_and_the_next_gets_a_new_lab(lab, monkeypatch):
    commands, _differences, _guest_runs = lab

    def fail(*_words):
        raise scenarios.LabError("no API server")

    monkeypatch.setattr(scenarios.fingerprint, "remaining", fail)
    assert scenarios.run_all("cluster", ["default", "kube_scheduler_extender"]) == 1
    assert commands[-4:] == ["up", ("kube_scheduler_extender",), "down", "down"]


@pytest.mark.parametrize(
    ("go", "pythons", "ci", "root", "status", "printed"),
    [
        ((1, 26), True, "1", True, 0, ""),
        (None, True, "", True, 1, "lacks Go 1.24 or newer on PATH; install"),
        ((1, 19), True, "", True, 1, "(it is 1.19)"),
        ((1, 26), False, "1", True, 1, "lacks Python 3.8, 3.9"),
        (None, False, "1", True, 1, "lacks Go 1.24 or newer on PATH and Python 3.8"),
        ((1, 26), False, "", True, 0, "is left out and counted as skipped"),
        ((1, 26), True, "", False, 1, "run the whole as root"),
    ],
)
def test_machine_without_a_tool_is_reported_first(monkeypatch, capsys, go, pythons, ci, root, status, printed):
    monkeypatch.setenv("CI", ci)
    monkeypatch.delenv("GATES_TIER", raising=False)
    monkeypatch.setattr(machine, "go_version", lambda: go)
    monkeypatch.setattr(versions, "find_python", lambda _version: Path("/usr/bin/python") if pythons else None)
    monkeypatch.setattr(machine.os, "geteuid", lambda: 0 if root else 1000)
    assert machine.main() == status
    captured = capsys.readouterr()
    lines = (captured.out + captured.err).splitlines()
    assert len(lines) == bool(printed)
    assert printed in "".join(lines)


@pytest.fixture
def lab(monkeypatch, tmp_path):
    """A fake lab: commands are recorded, each scenario leaves the next list of differences."""
    commands, differences, guest_runs = [], [], [True]
    monkeypatch.setattr(scenarios, "CACHE", tmp_path)
    monkeypatch.setattr(scenarios, "write", lambda *_words: None)
    monkeypatch.setattr(scenarios.subprocess, "run", lambda command, **_more: commands.append(command[-1]))
    monkeypatch.setattr(scenarios.fingerprint, "take", lambda _settings: {"node": "label a"})
    monkeypatch.setattr(scenarios.fingerprint, "remaining", lambda *_words: differences.pop(0) if differences else [])

    def run(command, env):
        name = command[-1]
        guests = [env[key] for key in scenarios.GUESTS.values() if key in env]
        commands.append((name, *guests) if command[0] == "molecule" else name)
        return 0, [f"  /molecule/default/../{guest}/present/test_{guest}.py" for guest in guests if guest_runs]

    monkeypatch.setattr(scenarios, "run", run)
    return commands, differences, guest_runs


def test_sharing_runs_on_the_cluster_of_default(lab):
    commands, _differences, guest_runs = lab
    assert scenarios.run_all("cluster", ["default", "sharing"]) == 0
    assert commands == ["down", "up", ("default", "sharing"), "down"]
    guest_runs.clear()
    assert scenarios.run_all("cluster", ["default", "sharing"]) == 1


def test_all_guests_run_on_the_cluster_of_default_or_else_alone(lab):
    commands, _differences, _guest_runs = lab
    assert scenarios.run_all("cluster", ["default", "nvidia_sharing", "sharing"]) == 0
    assert scenarios.run_all("cluster", ["nvidia_sharing"]) == 0
    assert commands == [
        "down",
        "up",
        ("default", "sharing", "nvidia_sharing"),
        "down",
        "down",
        "up",
        ("nvidia_sharing",),
        "down",
    ]


def test_scenario_that_leaves_a_difference_fails_and_the_next_gets_a_new_lab(lab):
    commands, differences, _guest_runs = lab
    differences += [["node: +label b"]]
    assert scenarios.run_all("cluster", ["default", "kube_scheduler_extender"]) == 1
    assert commands == ["down", "up", ("default",), "down", "up", ("kube_scheduler_extender",), "down"]


def test_scenario_that_does_not_exist_is_refused(capsys):
    assert scenarios.run_all("cluster", ["nonsense"]) == 2
    assert "There is no scenario nonsense; choose from default, " in capsys.readouterr().err
