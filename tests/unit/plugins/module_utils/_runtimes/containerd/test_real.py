# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each containerd of CONTAINERDS, set by the gates, prints its effective configuration before and after a change."""

from __future__ import annotations

import os
import subprocess
import typing as t
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.tree import MISSING, compare_leaves, get
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.validate import find_program
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.containerd import daemon
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.containerd.schema import schema_of
from ansible_collections.gpu.kubernetes.plugins.module_utils._toml import loads
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes import samples
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.node import DropInNode, Node

#: ansible-test passes only PATH.
PROGRAMS = [path for path in os.environ.get("CONTAINERDS", "").split(os.pathsep) if path] or [
    path for path in [find_program(None, "containerd")] if path
]
OWN = "its own default"
CASES = [(program, name) for program in PROGRAMS for name in [OWN, *samples.FILES]] or [("", OWN)]

pytestmark = pytest.mark.skipif(not PROGRAMS, reason="no containerd is installed")


def content(program: str, name: str) -> str:
    """Return a sample, or the default configuration of this containerd."""
    if name != OWN:
        return samples.FILES[name][0]
    done = subprocess.run([program, "config", "default"], check=True, stdout=subprocess.PIPE)
    return done.stdout.decode()


def effective(program: str, node: Node) -> t.Any:
    verdict = daemon.validate_file(program, str(node.config), node.config.read_bytes(), str(node.root))
    assert verdict.refusal is None
    return verdict.effective


@pytest.mark.parametrize(
    ("program", "name"), CASES, ids=lambda value: Path(value).parent.name if "/" in value else value
)
def test_only_requested_settings_change(tmp_path: Path, program: str, name: str) -> None:
    text = content(program, name)
    node = Node(tmp_path, text)
    node.release = release = daemon.read_release(program)
    node.host = replace(node.host, binary=program)
    assert release is not None
    highest = release.highest_file_version
    if highest and any(f"version = {version}" in text for version in (3, 4) if version > highest):
        with pytest.raises(Exception, match=f"containerd {release} reads up to version {highest}"):
            node.present()
        return
    before = effective(program, node)
    assert node.present(set_default=True).changed
    assert not node.present(set_default=True).changed
    check_changes(text, before, effective(program, node))
    node.absent()
    assert node.text() == text


@pytest.mark.parametrize(
    ("program", "name"), CASES, ids=lambda value: Path(value).parent.name if "/" in value else value
)
def test_only_requested_settings_change_with_a_drop_in(tmp_path: Path, program: str, name: str) -> None:
    text = content(program, name)
    node = DropInNode(tmp_path, text)
    node.release = release = daemon.read_release(program)
    node.host = replace(node.host, binary=program, workdir=str(tmp_path))
    assert release is not None
    disabled = loads(text).get("disabled_plugins", [])
    if release.major == 1 or "cri" in disabled or ("version = 4" in text and str(release) == "2.1"):
        with pytest.raises(ConfigError, match=r"leave drop_in out|reads up to version"):
            node.run("present")
        assert node.text() == text
        return
    before = effective(program, node)
    assert node.run("present", check=True, set_default=True)["changed"]
    assert node.run("present", set_default=True)["changed"]
    assert not node.run("present", set_default=True)["changed"]
    check_changes(text, before, effective(program, node))
    node.run("absent")
    assert node.text() == text
    assert not node.folder.exists()


def check_changes(text: str, before: t.Any, after: t.Any) -> None:
    """Check that *after* has the runtime, and that nothing else changed."""
    layout = schema_of(after)
    assert layout is not None
    runtimes = get(after, layout.runtimes)
    assert runtimes["nvidia"]["options"]["BinaryName"] == "/usr/bin/nvidia-container-runtime"
    assert runtimes["nvidia"]["runtime_type"] == "io.containerd.runc.v2"
    assert get(after, (*layout.containerd, "default_runtime_name")) == "nvidia"
    assert runtimes["runc"]["runtime_type"] == "io.containerd.runc.v2"
    if get(before, layout.containerd) is not MISSING and "cri" not in str(before.get("disabled_plugins", [])):
        # containerd lists the file itself, whose path varies, among the imports.
        allowed = (("imports",), (*layout.runtimes, "nvidia"), (*layout.containerd, "default_runtime_name"))
        # For a file without runc, containerd 1.x prints all settings of runc.
        own = schema_of(loads(text))
        has_runc = own is not None and "runc" in get(loads(text), own.runtimes, {})
        added = () if has_runc else ((*layout.runtimes, "runc"),)
        others = [
            path
            for path in compare_leaves(before, after)
            if not any(path[: len(place)] == place for place in (*allowed, *added)) and path != layout.runtimes
        ]
        assert others == []
