# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What systemd and the journal say of a unit, as data."""

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
    """Return the command that prints the unit's latest words, of its current start only where systemd numbers them.

    ``shown`` is what parse_show returns. A unit that systemd starts again and again may have died of what it said at an
    earlier start, and this one has said nothing yet.
    """
    invocation = shown.get("InvocationID") if shown.get("NRestarts", "0") == "0" else None
    command = ["journalctl", "--unit", unit, "--lines", str(lines), "--output", "cat", "--no-pager", "--quiet"]
    return [*command, f"_SYSTEMD_INVOCATION_ID={invocation}"] if invocation else command


def find_error_lines(lines: Iterable[str], limit: int = 8) -> list[str]:
    """Choose the daemon's words that explain a failure: its latest errors, else its latest words.

    containerd writes its own levels into plain text, so the journal's priorities do not know them. The same words
    said at each restart are kept once.
    """
    spoken = [_TIME.sub("", line).strip() for line in lines if line.strip()]
    chosen = [line for line in spoken if _ERROR_LINES.search(line)] or spoken
    return list(dict.fromkeys(reversed(chosen)))[:limit][::-1]
