# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machine with one of its package managers, which the tests run directly, without a role."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

Playbook = Callable[..., tuple[int, dict[str, dict[str, int]], str]]

STUBS = "/srv/stubs"
LISTING = {
    **dict.fromkeys(["dnf", "zypper"], "rpm --query --all --queryformat '%{NAME} %{VERSION}-%{RELEASE}\\n'"),
    "pacman": "pacman --query",
}
INSTALL = {
    "dnf": "dnf --quiet --assumeyes install",
    "zypper": "zypper --quiet --non-interactive install",
    "pacman": "pacman --sync --noconfirm",
}
REMOVE = {
    "dnf": "dnf --quiet --assumeyes --noautoremove remove",
    "zypper": "zypper --quiet --non-interactive remove",
    "pacman": "pacman --remove --noconfirm",
}
UPGRADE = {"dnf": "dnf --assumeno upgrade", "zypper": "zypper --non-interactive update --dry-run"}
LOCKS = {"dnf": "/etc/dnf/plugins/versionlock.list", "zypper": "/etc/zypp/locks"}
HOLD = {"dnf": "dnf --quiet versionlock add", "zypper": "zypper --quiet addlock"}
RELEASE = {"dnf": "dnf --quiet versionlock delete", "zypper": "zypper --quiet removelock"}


@dataclass(frozen=True)
class Machine:
    """A machine, one of its package managers, and a function that runs a playbook."""

    host: Any
    manager: str
    playbook: Playbook

    def run(self, path: str, *words: str, **variables: object) -> tuple[int, str]:
        """Run a playbook that succeeds, and return the number of changed tasks and the output."""
        code, recap, output = self.playbook(path, *words, "-e", json.dumps(variables))
        assert code == 0, output
        [counts] = recap.values()
        return counts["changed"], output

    def run_failing(self, path: str, *words: str, **variables: object) -> str:
        """Run a playbook that fails, and return its output in one line."""
        code, _recap, output = self.playbook(path, *words, "-e", json.dumps(variables))
        assert code != 0, output
        return " ".join(output.split())

    @property
    def installed(self) -> dict[str, str]:
        """The versions of the packages, without the keys of rpm and the package of the preparation."""
        lines = self.host.check_output(LISTING[self.manager]).splitlines()
        found = dict(line.split() for line in lines)
        return {name: version for name, version in found.items() if name not in {"gpg-pubkey", "stub-base"}}

    @property
    def keys(self) -> str:
        """The keys that rpm trusts."""
        return self.host.run("rpm --query gpg-pubkey --queryformat '%{SUMMARY}\\n'").stdout

    @property
    def locked(self) -> set[str]:
        """The names in the manager's file of locks."""
        file = self.host.file(LOCKS[self.manager])
        text = file.content_string if file.exists else ""
        if self.manager == "dnf":
            return {line.rsplit("-", 2)[0] for line in text.splitlines() if line and not line.startswith("#")}
        return {line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("solvable_name:")}

    def run_manager(self, commands: dict[str, str], *names: str) -> str:
        """Run a command of the package manager, as an administrator would, and return its output."""
        result = self.host.run(f"{commands[self.manager]} {' '.join(names)}")
        return result.stdout + result.stderr

    @property
    def has_upgrade(self) -> bool:
        """Whether an upgrade of all packages would change any."""
        return re.search("^Upgrading:|are going to be upgraded:", self.run_manager(UPGRADE), re.MULTILINE) is not None

    def set_pacman_version(self, version: str) -> None:
        """Set the version in the repository of pacman, and refresh its database; pacman may reject it."""
        self.host.check_output(f"ln --symbolic --force --no-dereference {version} {STUBS}/pacman/current")
        self.host.run("pacman --sync --refresh --refresh --noconfirm")


@pytest.fixture(params=["dnf", "zypper", "pacman"])
def machine(request: pytest.FixtureRequest, host: Any, playbook: Playbook) -> Machine:
    """The machine with each package manager."""
    return Machine(host, request.param, playbook)
