# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host with a package manager, for tests of what is asked of one."""

from __future__ import annotations

from typing import Sequence

from ansible_collections.gpu.kubernetes.plugins.module_utils._packages import transaction
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.request import Request

# What zypper 1.14 says.
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


def offered(manager: str, *packages: tuple[str, str]) -> tuple[str, tuple[int, str, str]]:
    """Words of a question for these packages with their versions, and its answer."""
    words, line = {
        "apt": ("madison", " {} | {} | http://repository.example.com/archive bookworm/main amd64 Packages\n"),
        "dnf": ("repoquery", "{} {}\n"),
        "zypper": ("search", '<solvable name="{}" kind="package" edition="{}"/>\n'),
    }[manager]
    return words, (0, "".join(line.format(*package) for package in packages), "")


class Host:
    """A host whose commands do what the test says of their first matching words, and otherwise succeed in silence.

    A command that was answered with success ``makes`` its changes in what is installed.
    """

    def __init__(self, manager: str, **installed: str) -> None:
        self.manager = manager
        self.installed: dict[str, str | None] = dict(installed)
        self.calls: list[str] = []
        self.answers: list[tuple[str, list[tuple[int, str, str]]]] = []
        self.makes: dict[str, dict[str, str | None]] = {}

    def answer(self, words: str, *answers: tuple[int, str, str]) -> None:
        """Answer commands with these words so, one after the other; the last answer stays."""
        self.answers.append((words, list(answers)))

    def run(self, command: Sequence[str]) -> tuple[int, str, str]:
        line = " ".join(command)
        self.calls.append(line)
        queue = next((answers for words, answers in self.answers if words in line), [(0, "", "")])
        found = queue.pop(0) if len(queue) > 1 else queue[0]
        if found[0] == 0 and "--simulate" not in line:
            for words, change in self.makes.items():
                self.installed.update(change if words in line else {})
        return found

    @property
    def changing(self) -> list[str]:
        """The calls that may change something."""
        return [call for call in self.calls if "--simulate" not in call]

    def apply(self, request: Request, check_mode: bool = False) -> tuple[str, ...]:
        return transaction.apply(self.manager, request, self.installed.copy, self.run, check_mode)[1]

    def available(self, request: Request) -> tuple[str, ...]:
        return transaction.available(self.manager, request, self.installed.copy, self.run)[1]
