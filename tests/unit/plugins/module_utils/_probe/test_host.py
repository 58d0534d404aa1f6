# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Sequence

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._probe import host

RUNTIME = "NVIDIA Container Runtime version 1.17.8\nspec: 1.2.0\n\nrunc version 1.1.5\n"


@pytest.mark.parametrize(
    ("output", "version"),
    [
        ("", None),
        (RUNTIME, "1.17.8"),
        ("NVIDIA Container Runtime version unknown\nspec: 1.3.0\n", None),
        ("containerd github.com/containerd/containerd/v2 2.4.2+unknown \n", "2.4.2+unknown"),
        ("containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u1", "1.6.20~ds1"),
        ("containerd containerd.io v1.7.27 05044ec0a9a75232cad458027ca83437aae3f4da", "1.7.27"),
        ("containerd containerd.io 1.7.28 b98a3aace656320842a23f4a392a33f46af97866", "1.7.28"),
    ],
)
def test_find_version_in_first_line(output: str, version: str | None) -> None:
    assert host.find_version(output) == version


@pytest.mark.parametrize(
    ("path", "answer", "expected"),
    [
        (None, (0, ""), {"path": None, "version": None, "usable": False}),
        ("/x", (0, RUNTIME), {"path": "/x", "version": "1.17.8", "usable": True}),
        ("/x", (0, "odd"), {"path": "/x", "version": None, "usable": True}),
        ("/x", (126, "1.2.3"), {"path": "/x", "version": None, "usable": False}),
    ],
)
def test_describe_program_of_each_answer(
    path: str | None, answer: tuple[int, str], expected: dict[str, object]
) -> None:
    assert host.describe_program(path, lambda _command: answer) == expected


@pytest.mark.parametrize(
    ("manager", "answer", "version"),
    [
        ("apt", (0, "installed 1.17.8-1"), "1.17.8-1"),
        ("apt", (0, "config-files 1.17.8-1"), None),
        ("apt", (1, ""), None),
        ("dnf", (0, "installed 1.17.8-1"), "1.17.8-1"),
        ("zypper", (1, "package x is not installed"), None),
        ("pacman", (0, "toolkit 1.17.8-2"), "1.17.8-2"),
        ("apt", (0, "config-files 1.17.7-1\ninstalled 1.17.8-1\n"), "1.17.8-1"),  # of two architectures
        ("dnf", (0, "installed 1.17.8-1\ninstalled 1.17.9-1\n"), "1.17.8-1"),
        ("brew", (0, "installed 1"), None),
        (None, (0, "installed 1"), None),
    ],
)
def test_read_package_version_by_manager(manager: str | None, answer: tuple[int, str], version: str | None) -> None:
    requested: list[Sequence[str]] = []

    def run(command: Sequence[str]) -> tuple[int, str]:
        requested.append(command)
        return answer

    assert host.read_package_version(manager, "toolkit", run) == version
    assert all(list(command[-2:]) == ["--", "toolkit"] for command in requested)


@pytest.mark.parametrize(
    ("there", "manager"),
    [({"apt-get"}, "apt"), ({"dnf", "zypper"}, "zypper"), ({"dnf"}, "dnf"), ({"pacman"}, "pacman"), (set(), None)],
)
def test_find_package_manager_by_command(there: set[str], manager: str | None) -> None:
    assert host.find_package_manager(lambda name: name if name in there else None) == manager
