# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.change_log import Change, ChangeLog, Record
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.formats import JSON, TOML
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.paths import StatePaths
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.tree import MISSING
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.containerd.base_template import BLOCK, TEMPLATE
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.drift import list_drift
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.runtime import build_rules

if t.TYPE_CHECKING:
    from pathlib import Path

DROP_IN, DAEMON, TEMPLATE_FILE = (
    "/etc/crio/crio.conf.d/99-gpu.conf",
    "/etc/docker/daemon.json",
    "/agent/config.toml.tmpl",
)
RUNTIME = ("crio", "runtime", "runtimes", "nvidia", "runtime_path")
WRITTEN = {
    DROP_IN: (TOML, Change(RUNTIME, "runtime", MISSING, "/usr/bin/nvidia-container-runtime")),
    DAEMON: (JSON, Change(("default-runtime",), "default", MISSING, "nvidia")),
    TEMPLATE_FILE: (TEMPLATE, Change(BLOCK, "settings", MISSING, "[debug]\n")),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A machine on which the collection has written three files."""
    paths = StatePaths(str(tmp_path / "var/lib/gpu-kubernetes"))
    for path, (syntax, change) in WRITTEN.items():
        document = syntax.from_bytes(b"")
        document.set(change.path, change.after)
        put(tmp_path, path, document.to_bytes())
        record = Record(None, document.to_bytes(), entries={"nvidia": (change,)})
        ChangeLog(path, paths.record(path), syntax, build_rules("")).write("sha", {"sha": record}, keep=False)
    return tmp_path


def put(root: Path, path: str, data: bytes) -> None:
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)


def test_files_with_the_settings_of_their_records_have_no_drift(root: Path) -> None:
    assert list_drift(str(root)) == []
    put(root, DAEMON, b'{"default-runtime": "nvidia", "log-level": "warn"}')
    assert list_drift(str(root)) == []


def test_changed_and_missing_settings_are_named_without_their_values(root: Path) -> None:
    put(root, DAEMON, b'{"default-runtime": "secret"}')
    (root / DROP_IN.lstrip("/")).unlink()
    put(root, TEMPLATE_FILE, b"")
    assert list_drift(str(root)) == [
        {"path": TEMPLATE_FILE, "settings": ["block"], "error": ""},
        {"path": DROP_IN, "settings": [".".join(RUNTIME)], "error": ""},
        {"path": DAEMON, "settings": ["default-runtime"], "error": ""},
    ]


def test_file_that_cannot_be_read_has_an_error(root: Path) -> None:
    put(root, DAEMON, b"{")
    [row] = list_drift(str(root))
    assert (row["path"], row["settings"]) == (DAEMON, [])
    assert "daemon.json" in row["error"]


def test_machine_without_records_has_no_drift(tmp_path: Path) -> None:
    assert list_drift(str(tmp_path)) == []
