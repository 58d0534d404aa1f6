# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A unit's state and log, by systemd and the journal."""

from __future__ import annotations

import re
from typing import Iterable, Mapping

SHOW_PROPERTIES = (
    "LoadState",
    "ActiveState",
    "SubState",
    "Result",
    "ExecMainStatus",
    "NRestarts",
    "InvocationID",
    "MainPID",
)

# A CRI plugin that cannot be loaded is a mere warning to containerd.
_ERROR_LINES = re.compile(
    r"level=(?:fatal|error|panic)|^(?:containerd|panic|fatal error): "
    r"|level=warning msg=\"failed to load plugin\".* id=\"?io\.containerd\.(?:grpc\.v1\.cri|cri\.v1\.)"
)
_TIME = re.compile(r'^time="[^"]*" ')


def build_show_command(unit: str) -> list[str]:
    """Return the command whose output parse_show reads."""
    return ["systemctl", "show", unit, "--property=" + ",".join(SHOW_PROPERTIES)]


def parse_show(output: str) -> dict[str, str]:
    """Read ``systemctl show``: {property: value}."""
    pairs = (line.partition("=") for line in output.splitlines() if "=" in line)
    return {name: value for name, _sign, value in pairs}


def build_journal_command(unit: str, shown: Mapping[str, str], lines: int = 200) -> list[str]:
    """Return the command that prints the unit's latest log lines, only those of its current start if it was not restarted.

    ``shown`` is what parse_show returns. A unit that systemd has restarted may have logged the cause at an
    earlier start, and nothing yet at this one.
    """
    invocation = shown.get("InvocationID") if shown.get("NRestarts", "0") == "0" else None
    command = ["journalctl", "--unit", unit, "--lines", str(lines), "--output", "cat", "--no-pager", "--quiet"]
    return [*command, f"_SYSTEMD_INVOCATION_ID={invocation}"] if invocation else command


def find_error_lines(lines: Iterable[str], limit: int = 8) -> list[str]:
    """Return the log lines that explain a failure: the latest errors, else the latest lines.

    containerd writes levels into its text, so that the journal's priorities do not have them. Lines that repeat
    at each restart are returned once.
    """
    messages = [_TIME.sub("", line).strip() for line in lines if line.strip()]
    chosen = [line for line in messages if _ERROR_LINES.search(line)] or messages
    return list(dict.fromkeys(reversed(chosen)))[:limit][::-1]
