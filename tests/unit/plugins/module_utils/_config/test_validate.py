# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._config import validate
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError

if t.TYPE_CHECKING:
    from pathlib import Path


class TestFindProgram:
    def test_named_program_is_used(self) -> None:
        assert validate.find_program("/x/daemon", "daemon") == "/x/daemon"

    def test_program_is_found_in_usual_places(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(validate, "SEARCH_PATH", str(tmp_path))
        monkeypatch.setenv("PATH", "/nowhere")
        assert validate.find_program(None, "daemon") is None
        (tmp_path / "daemon").write_text("#!/bin/sh\n", encoding="utf-8")
        (tmp_path / "daemon").chmod(0o755)
        assert validate.find_program(None, "daemon") == str(tmp_path / "daemon")


def test_run_returns_status_output_and_errors() -> None:
    assert validate.run(["/bin/sh", "-c", "echo out; echo err >&2; exit 3"]) == (3, "out\n", "err\n")
    with pytest.raises(ConfigError, match="Cannot run /nowhere/daemon"):
        validate.run(["/nowhere/daemon"])
