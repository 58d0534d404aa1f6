# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("ansible.module_utils.basic")

from ansible_collections.gpu.kubernetes.tests.unit.plugins.modules import node_module

# A package manager for the test: one file a package, with its version.
DPKG_QUERY = """#!/bin/sh
for name; do :; done
[ -f "{db}/$name" ] || exit 1
printf 'installed %s' "$(cat "{db}/$name")"
"""
APT_GET = """#!/bin/sh
echo "$@" >> "{db}.log"
[ -f "{db}.broken" ] && {{ echo "W: noise" >&2; echo "E: Unable to locate package" >&2; exit 100; }}
doing=
for word; do
    case "$doing:$word" in
        :install | :purge) doing=$word ;;
        install:*) echo 1.17.8-1 > "{db}/${{word%%=*}}" ;;
        purge:*) rm "{db}/$word" ;;
    esac
done
"""


class Host:
    def __init__(self, root: Path) -> None:
        self.programs, self.db = root / "bin", root / "db"
        self.programs.mkdir()
        self.db.mkdir()
        for name, text in (("dpkg-query", DPKG_QUERY), ("apt-get", APT_GET)):
            (self.programs / name).write_text(text.format(db=self.db))
            (self.programs / name).chmod(0o755)

    def run(self, check: bool = False, **arguments: object) -> dict[str, object]:
        given = {"name": ["toolkit", "base"], "manager": "apt", **arguments}
        return node_module.run("host_packages", given, check=check, folder=str(self.programs))

    @property
    def calls(self) -> list[str]:
        log = Path(f"{self.db}.log")
        return log.read_text().splitlines() if log.exists() else []


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_install_and_remove(host: Host) -> None:
    checked = host.run(check=True)
    assert (checked["changed"], host.calls) == (True, [])
    done = host.run()
    assert (done["changed"], done["packages"]) == (True, ["toolkit", "base"])
    assert done["packages"] == checked["packages"]
    assert done["diff"] == checked["diff"]
    assert len(host.calls) == 2
    assert host.run(check=True)["changed"] is False
    assert host.run()["changed"] is False
    assert len(host.calls) == 2
    assert host.run(state="absent", check=True)["changed"] is True
    assert host.run(state="absent")["changed"] is True
    assert host.run(state="absent")["changed"] is False
    assert list(host.db.iterdir()) == []


def test_only_what_is_missing_is_installed(host: Host) -> None:
    (host.db / "base").write_text("0.9-1")
    assert host.run()["packages"] == ["toolkit"]
    assert host.run(version="1.17.8")["packages"] == ["base"]
    assert host.calls[-1].endswith("install base=1.17.8*")


def test_a_failure_tells_the_managers_own_words(host: Host) -> None:
    Path(f"{host.db}.broken").touch()
    answer = host.run()
    assert answer["failed"]
    assert answer["msg"] == "apt-get failed for toolkit and base: E: Unable to locate package"
