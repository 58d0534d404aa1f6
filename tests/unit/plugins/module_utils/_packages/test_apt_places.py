# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where apt has the distribution from; molecule/nvidia_driver asks the real apt."""

from __future__ import annotations

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.apt_places import entry_options, places

KEY = "/usr/share/keyrings/debian-archive-keyring.gpg"
INLINE = "\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mQINBF\n -----END PGP PUBLIC KEY BLOCK-----"
SOURCES = f"""\
# Mirror of the house
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


def test_a_release_is_known_by_its_code_name_too() -> None:
    told = target("http://old.example.com/archive/", "stable", "/etc/apt/sources.list:3") + "Codename: bookworm\n"
    [found] = places(told, FILES, "Debian", ["bookworm"])
    assert found["suite"] == "stable"


def test_options_come_along_and_strangers_do_not() -> None:
    mirror, other = "http://mirror.example.com/", "http://other.example.com/"
    targets = "\n".join(
        [
            target(f"{mirror}archive/", "bookworm", "/etc/apt/sources.list.d/debian.sources:1"),
            target(f"{mirror}archive/", "bookworm", "/etc/apt/sources.list.d/debian.sources:1", architecture="all"),
            target(f"{mirror}archive/", "bookworm-updates", "/etc/apt/sources.list.d/debian.sources:1"),
            target(f"{mirror}security/", "bookworm-security", "/etc/apt/sources.list.d/debian.sources:2"),
            target(other, "bookworm", "/etc/apt/sources.list.d/other.list:1", "Other"),
            target("http://old.example.com/archive/", "bookworm", "/etc/apt/sources.list:3", None),
            target("http://ours.example.com/", "bookworm", "/etc/apt/sources.list.d/gpu-kubernetes-cuda.sources:1"),
        ]
    )
    house = {"signed-by": KEY, "Architectures": "amd64"}
    assert places(targets, FILES, "Debian", ["bookworm", "bookworm-security"]) == [
        {"url": f"{mirror}archive/", "suite": "bookworm", "options": house},
        {"url": f"{mirror}security/", "suite": "bookworm-security", "options": {"Signed-By": INLINE}},
        {"url": "http://old.example.com/archive/", "suite": "bookworm", "options": {}},
    ]
    assert places("", FILES, "Debian", ["bookworm"]) == []


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
def test_options_of_a_line_get_the_names_of_stanzas(line: str, options: dict[str, str]) -> None:
    assert entry_options("/etc/apt/sources.list", f"# first\n{line}\n", 2) == options
