# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.containerd.schema import (
    CRI_V2,
    CRI_V3,
    Release,
    follow_migration,
    parse_release,
    schema,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2.1.4", Release(2, 1)),
        ("v1.7.28", Release(1, 7)),
        ("1.6.20~ds1", Release(1, 6)),
        ("2.4.0-beta.1", Release(2, 4)),
        ("2", Release(2, 0)),
        ("containerd github.com/containerd/containerd/v2 2.4.2+unknown", Release(2, 4)),
        (
            "containerd github.com/containerd/containerd/v2 v2.2.0 1c4457e00facac03ce1d75f7b6777a7a851e5c41",
            Release(2, 2),
        ),
        ("containerd containerd.io 1.7.27 05044ec0a9a75232cad458027ca83437aae3f4da", Release(1, 7)),
        ("containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u1", Release(1, 6)),
        ("latest", None),
        ("", None),
    ],
)
def test_parse_release(text: str, expected: Release | None) -> None:
    assert parse_release(text) == expected


@pytest.mark.parametrize(
    ("release", "new", "highest", "merges"),
    [
        (Release(1, 6), 2, 2, False),
        (Release(1, 7), 2, 2, False),
        (Release(2, 0), 3, 3, True),
        (Release(2, 2), 3, 3, True),
        (Release(2, 3), 3, 4, True),
        (Release(2, 4), 3, 4, True),
        (Release(2, 9), 3, None, True),
    ],
)
def test_properties_of_each_release(release: Release, new: int, highest: int | None, merges: bool) -> None:
    assert (release.new_file_version, release.highest_file_version, release.merges_imports) == (new, highest, merges)


@pytest.mark.parametrize(
    ("version", "plugin"),
    [(2, "io.containerd.grpc.v1.cri"), (3, "io.containerd.cri.v1.runtime"), (4, "io.containerd.cri.v1.runtime")],
)
def test_schema_of_each_version(version: int, plugin: str) -> None:
    assert schema(version).version == version
    assert schema(version).runtimes == ("plugins", plugin, "containerd", "runtimes")


@pytest.mark.parametrize(
    ("tree", "plugin"),
    [
        ({}, CRI_V2),
        ({"version": 2}, CRI_V2),
        ({"version": 3}, CRI_V3),
        ({"version": 3, "plugins": {CRI_V3: {"x": 1}}}, CRI_V3),
        ({"version": 3, "plugins": {CRI_V2: {"x": 1}}}, CRI_V2),
    ],
)
def test_follow_migration_returns_new_path(tree: dict[str, object], plugin: str) -> None:
    assert follow_migration(("plugins", CRI_V2, "x"), tree) == ("plugins", plugin, "x")


def test_schema_of_version_1_raises() -> None:
    with pytest.raises(ValueError, match="version 1"):
        schema(1)
