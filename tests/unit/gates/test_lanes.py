# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gates beside each other: which begin, which have the processors, and that all are shown."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from gates import lanes


def test_the_longest_gate_begins():
    listed = [{"name": "a", "tags": []}, {"name": "b", "tags": None}, {"name": "c", "tags": ["first"]}]
    assert list(lanes.ordered(listed).items()) == [("c", True), ("a", False), ("b", False)]


#: A nox that lists two gates, of which the second one fails and is to have the processors first.
NOX = """
import json, os, sys
if "--list" in sys.argv:
    print(json.dumps([{"name": name, "tags": ["first"] * (name == "bad")} for name in ("good", "bad")]))
else:
    print("said by", sys.argv[2], "at", os.nice(0), flush=True)
    print("and erred", file=sys.stderr)
    sys.exit(sys.argv[2] == "bad")
"""


def test_all_gates_are_run_and_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(lanes, "NOX", (sys.executable, "-c", NOX))
    monkeypatch.setattr(lanes.signal, "signal", lambda *_: None)
    assert lanes.main(tmp_path) == 1
    assert (tmp_path / "gates.txt").read_text() == "bad\ngood\n"
    out, here = capsys.readouterr().out, os.nice(0)
    assert f"said by good at {min(here + 5, 19)}\nand erred\n" in out
    assert f"said by bad at {here}\nand erred\n" in out


def test_no_gate_begins_after_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(lanes, "NOX", (sys.executable, "-c", NOX))
    ended = lanes.Lanes(tmp_path)
    ended.end()
    assert ended.run("good", True) == 1
    assert not (tmp_path / "good.log").exists()
