# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real containerds print what they make of a file before and after; the gates name one of each line in CONTAINERDS."""

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

#: ansible-test passes PATH alone on.
PROGRAMS = [path for path in os.environ.get("CONTAINERDS", "").split(os.pathsep) if path] or [
    path for path in [find_program(None, "containerd")] if path
]
OWN = "its own default"
CASES = [(program, name) for program in PROGRAMS for name in [OWN, *samples.FILES]] or [("", OWN)]

pytestmark = pytest.mark.skipif(not PROGRAMS, reason="there is no containerd here")


def content(program: str, name: str) -> str:
    """A sample, or all that this containerd would write itself."""
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
def test_what_was_asked_and_nothing_else(tmp_path: Path, program: str, name: str) -> None:
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
    check(text, before, effective(program, node))
    node.absent()
    assert node.text() == text


@pytest.mark.parametrize(
    ("program", "name"), CASES, ids=lambda value: Path(value).parent.name if "/" in value else value
)
def test_the_same_in_a_drop_in(tmp_path: Path, program: str, name: str) -> None:
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
    check(text, before, effective(program, node))
    node.run("absent")
    assert node.text() == text
    assert not node.folder.exists()


def check(text: str, before: t.Any, after: t.Any) -> None:
    """The runtime is what containerd makes of the files *after*, and nothing else changed."""
    layout = schema_of(after)
    assert layout is not None
    runtimes = get(after, layout.runtimes)
    assert runtimes["nvidia"]["options"]["BinaryName"] == "/usr/bin/nvidia-container-runtime"
    assert runtimes["nvidia"]["runtime_type"] == "io.containerd.runc.v2"
    assert get(after, (*layout.containerd, "default_runtime_name")) == "nvidia"
    assert runtimes["runc"]["runtime_type"] == "io.containerd.runc.v2"
    if get(before, layout.containerd) is not MISSING and "cri" not in str(before.get("disabled_plugins", [])):
        # containerd counts the file itself, which lies elsewhere each time, among the imports.
        allowed = (("imports",), (*layout.runtimes, "nvidia"), (*layout.containerd, "default_runtime_name"))
        # Of a file that does not name runc, containerd 1.x shows its own table with all that may be in it, as long as no other is named.
        own = schema_of(loads(text))
        named = own is not None and "runc" in get(loads(text), own.runtimes, {})
        added = () if named else ((*layout.runtimes, "runc"),)
        others = [
            path
            for path in compare_leaves(before, after)
            if not any(path[: len(place)] == place for place in (*allowed, *added)) and path != layout.runtimes
        ]
        assert others == []
