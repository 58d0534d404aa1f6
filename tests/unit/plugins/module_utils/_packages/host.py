# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host with a fake package manager."""

from __future__ import annotations

from typing import Sequence

from ansible_collections.gpu.kubernetes.plugins.module_utils._packages import transaction
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.request import Request

# Output of zypper 1.14.
ZYPPER_SEARCH = """<?xml version='1.0'?>
<stream>

<search-result version="0.0">
<solvable-list>
<solvable status="installed" name="toolkit" kind="package" edition="2.0.0-1" arch="noarch" repository="Stubs of the tests"/>
<solvable status="other-version" name="toolkit" kind="package" edition="1.10.0-1" arch="noarch" repository="Stubs of the tests"/>
<solvable status="other-version" name="toolkit" kind="package" edition="1.2.0-1" arch="noarch" repository="Stubs of the tests"/>
</solvable-list>
</search-result>
</stream>
"""


def make_available(manager: str, *packages: tuple[str, str]) -> tuple[str, tuple[int, str, str]]:
    """Return words of the command that lists available packages, and its result with these versions."""
    words, line = {
        "apt": ("madison", " {} | {} | http://repository.example.com/archive bookworm/main amd64 Packages\n"),
        "dnf": ("repoquery", "{} {}\n"),
        "zypper": ("search", '<solvable name="{}" kind="package" edition="{}"/>\n'),
    }[manager]
    return words, (0, "".join(line.format(*package) for package in packages), "")


class Host:
    """A host whose commands return the answers that the test sets for some of their words, and otherwise succeed without output.

    A successful command with words in ``effects`` changes the installed packages accordingly.
    """

    def __init__(self, manager: str, **installed: str) -> None:
        self.manager = manager
        self.installed: dict[str, str | None] = dict(installed)
        self.calls: list[str] = []
        self.answers: list[tuple[str, list[tuple[int, str, str]]]] = []
        self.effects: dict[str, dict[str, str | None]] = {}

    def answer(self, words: str, *answers: tuple[int, str, str]) -> None:
        """Set the results of commands with these words, one after the other; the last one stays."""
        self.answers.append((words, list(answers)))

    def run(self, command: Sequence[str]) -> tuple[int, str, str]:
        line = " ".join(command)
        self.calls.append(line)
        queue = next((answers for words, answers in self.answers if words in line), [(0, "", "")])
        found = queue.pop(0) if len(queue) > 1 else queue[0]
        if found[0] == 0 and "--simulate" not in line:
            for words, change in self.effects.items():
                self.installed.update(change if words in line else {})
        return found

    @property
    def changing_calls(self) -> list[str]:
        """The calls without simulations."""
        return [call for call in self.calls if "--simulate" not in call]

    def apply(self, request: Request, check_mode: bool = False) -> tuple[str, ...]:
        return transaction.apply(self.manager, request, self.installed.copy, self.run, check_mode)[1]

    def check_available(self, request: Request) -> tuple[str, ...]:
        return transaction.check_available(self.manager, request, self.installed.copy, self.run)[1]
