# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole output of a program, without waiting for its child processes."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils import _commands

PLUGINS = Path(__file__).resolve().parents[4] / "plugins"


def test_run_returns_status_output_and_errors() -> None:
    assert _commands.run(["sh", "-c", "echo yes; echo 'no\xe9' >&2; exit 3"]) == (3, "yes\n", "no\xe9\n")
    assert _commands.run(["sh", "-c", "kill -9 $$"]) == (-9, "", "")


def test_run_returns_large_output_whole() -> None:
    assert _commands.run(["sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x"]) == (0, "x" * 3_000_000, "")


def test_run_passes_text_to_the_standard_input() -> None:
    assert _commands.run(["cat"], text="quit\n") == (0, "quit\n", "")
    assert _commands.run(["cat"]) == (0, "", "")


def test_run_replaces_bytes_that_are_not_utf8() -> None:
    assert _commands.run(["printf", "a\\377"]) == (0, "a\ufffd", "")


def test_run_gives_no_input_and_adds_to_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEPT", "1")
    monkeypatch.setenv("REPLACED", "1")
    command = ["sh", "-c", 'cat; echo "$KEPT $REPLACED"']
    assert _commands.run(command, {"REPLACED": "2"}) == (0, "1 2\n", "")
    assert _commands.run(command) == (0, "1 1\n", "")


def test_run_does_not_wait_for_a_daemon_that_keeps_the_output_open() -> None:
    status, output, _errors = _commands.run(["sh", "-c", "sleep 3600 & echo $!"])
    assert status == 0
    os.kill(int(output), signal.SIGKILL)


def test_run_raises_where_there_is_no_program() -> None:
    with pytest.raises(FileNotFoundError):
        _commands.run(["/nonexistent/program"])


def test_run_kills_a_program_that_runs_too_long(tmp_path: Path) -> None:
    with pytest.raises(TimeoutError, match="timed out"):
        _commands.run(["sh", "-c", f"echo $$ > {tmp_path}/pid; exec sleep 3600"], seconds=1)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_run_kills_a_program_after_the_limit_and_names_it(tmp_path: Path) -> None:
    script = f"echo $$ > {tmp_path}/pid; echo begun; exec sleep 3600"
    status, output, errors = _commands.run(["sh", "-c", script], limit=1)
    assert (status, output) == (_commands.TIMED_OUT, "begun\n")
    assert errors == "sh has not ended within 1 seconds and was killed\n"
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_no_plugin_uses_what_can_lose_output() -> None:
    assert [path.name for path in PLUGINS.rglob("*.py") if ".run_command(" in path.read_text(encoding="utf-8")] == []
