# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules on the anvil end as they would under a Python of their own."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .anvil import Anvil


@pytest.fixture
def program(tmp_path: Path) -> Iterator[str]:
    anvil = Anvil(tmp_path)
    yield anvil.program
    anvil.close()


def test_it_is_python_to_those_who_start_it(program: str, tmp_path: Path) -> None:
    script = tmp_path / "AnsiballZ_script.py"
    script.write_text(
        "import os, sys; print(sys.argv[1:], os.environ['HERE'], os.getcwd(), sys.stdin.read()); sys.exit(7)"
    )
    done = subprocess.run(
        [program, script, "one", "two"],
        input="said",
        env={"HERE": "x"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (7, f"['one', 'two'] x {tmp_path} said\n")
    done = subprocess.run([program], input="raise OSError('why')", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, "OSError: why")


def test_what_is_no_module_gets_the_python_itself(program: str) -> None:
    done = subprocess.run(
        [program, "-c", "import sys; print(sys.executable)"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{sys.executable}\n"


def test_many_run_side_by_side(program: str, tmp_path: Path) -> None:
    """Each waits until all have begun."""
    code = """
import pathlib, sys, time
place = pathlib.Path({place!r})
(place / "begun-{number}").touch()
while len(list(place.glob("begun-*"))) < 4:
    time.sleep(0.01)
sys.exit({number})
"""
    waiting = [subprocess.Popen([program], stdin=subprocess.PIPE, text=True) for _ in range(4)]
    for number, each in enumerate(waiting):
        assert each.stdin is not None
        each.stdin.write(code.format(place=str(tmp_path), number=number))
        each.stdin.close()
    assert [each.wait(30) for each in waiting] == [0, 1, 2, 3]


def test_a_module_whose_program_is_killed_is_killed(program: str, tmp_path: Path) -> None:
    begun, late = tmp_path / "begun", tmp_path / "late"
    code = f"import pathlib, time; pathlib.Path({str(begun)!r}).touch(); time.sleep(1); pathlib.Path({str(late)!r}).touch()"
    with subprocess.Popen([program], stdin=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        process.stdin.write(code)
        process.stdin.close()
        while not begun.exists():
            time.sleep(0.01)
        process.kill()
    with socket.socket(socket.AF_UNIX) as unfinished:
        unfinished.connect(str(tmp_path / "socket"))
    time.sleep(1.5)
    assert not late.exists()
    assert subprocess.run([program], input="", text=True, check=False).returncode == 0
