# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""apt's sources of the distribution; molecule/nvidia_driver uses the real apt."""

from __future__ import annotations

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.apt import (
    find_repositories,
    read_entry_options,
)

KEY = "/usr/share/keyrings/debian-archive-keyring.gpg"
INLINE = "\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mQINBF\n -----END PGP PUBLIC KEY BLOCK-----"
SOURCES = f"""\
# Internal mirror
Types: deb deb-src
URIs: http://mirror.example.com/archive
Suites: bookworm bookworm-updates
Components: main
signed-by: {KEY}
Architectures: amd64


Types: deb
URIs: http://mirror.example.com/security
Suites: bookworm-security
Components: main
Signed-By:{INLINE}
"""
FILES = {
    "/etc/apt/sources.list.d/debian.sources": SOURCES,
    "/etc/apt/sources.list": "\n# old\ndeb http://old.example.com/archive bookworm main contrib\n",
    "/etc/apt/sources.list.d/other.list": "deb [trusted=yes] http://other.example.com bookworm main\n",
}


def target(url: str, suite: str, entry: str, origin: str | None = "Debian", architecture: str = "amd64") -> str:
    known = f"Origin: {origin}\n" if origin else ""
    return f"MetaKey: main/binary-{architecture}/Packages\n{known}Fallback-Of: \nRelease: {suite}\nRepo-URI: {url}\nSourcesentry: {entry}\n"


def test_find_repositories_matches_code_name() -> None:
    targets = target("http://old.example.com/archive/", "stable", "/etc/apt/sources.list:3") + "Codename: bookworm\n"
    [found] = find_repositories(targets, FILES, "Debian", ["bookworm"])
    assert found["suite"] == "stable"


def test_find_repositories_returns_options_and_omits_other_origins() -> None:
    mirror, other = "http://mirror.example.com/", "http://other.example.com/"
    targets = "\n".join(
        [
            target(f"{mirror}archive/", "bookworm", "/etc/apt/sources.list.d/debian.sources:1"),
            target(f"{mirror}archive/", "bookworm", "/etc/apt/sources.list.d/debian.sources:1", architecture="all"),
            target(f"{mirror}archive/", "bookworm-updates", "/etc/apt/sources.list.d/debian.sources:1"),
            target(f"{mirror}security/", "bookworm-security", "/etc/apt/sources.list.d/debian.sources:2"),
            target(other, "bookworm", "/etc/apt/sources.list.d/other.list:1", "Other"),
            target("http://old.example.com/archive/", "bookworm", "/etc/apt/sources.list:3", None),
            target("http://managed.example.com/", "bookworm", "/etc/apt/sources.list.d/gpu-kubernetes-cuda.sources:1"),
        ]
    )
    mirror_options = {"signed-by": KEY, "Architectures": "amd64"}
    assert find_repositories(targets, FILES, "Debian", ["bookworm", "bookworm-security"]) == [
        {"url": f"{mirror}archive/", "suite": "bookworm", "options": mirror_options},
        {"url": f"{mirror}security/", "suite": "bookworm-security", "options": {"Signed-By": INLINE}},
        {"url": "http://old.example.com/archive/", "suite": "bookworm", "options": {}},
    ]
    assert find_repositories("", FILES, "Debian", ["bookworm"]) == []


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("deb http://a.example.com/[x] bookworm main", {}),
        (f"deb [signed-by={KEY}] http://a b main", {"Signed-By": KEY}),
        ("deb [ arch=amd64,i386 trusted=yes ] http://a b main", {"Architectures": "amd64 i386", "Trusted": "yes"}),
        ("  deb [arch-=i386 lang+=de] http://a b main", {"Architectures-Remove": "i386", "Languages-Add": "de"}),
        (
            "deb [check-valid-until=no pdiffs=no by-hash=force] http://a b main",
            {"Check-Valid-Until": "no", "PDiffs": "no", "By-Hash": "force"},
        ),
    ],
)
def test_read_entry_options_of_line_returns_names_of_deb822(line: str, options: dict[str, str]) -> None:
    assert read_entry_options("/etc/apt/sources.list", f"# first\n{line}\n", 2) == options
