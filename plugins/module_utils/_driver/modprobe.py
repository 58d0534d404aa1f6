# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file of modprobe.d: modules that must not be loaded, and parameters of those that are (modprobe.d(5))."""

from __future__ import annotations

import re
from typing import Any, Mapping, Sequence

HEADER = "# Written by Ansible (gpu.kubernetes.modprobe_config); a change by hand is lost with its next run.\n"
_NAME = re.compile(r"[A-Za-z0-9_-]+")


class ModprobeError(Exception):
    """What was asked cannot be written; the message is a sentence without a full stop."""


def render(blacklist: Sequence[str], options: Mapping[str, Mapping[str, Any]]) -> bytes | None:
    """Return the content of the file, None where there is nothing to say.

    A module on the blacklist is not loaded by its alias, and not by its name either: the kernel's mode setting asks for
    nouveau by name.  Raises ModprobeError for a name or value that modprobe could read as something else.
    """
    lines = [f"blacklist {_name(name)}\ninstall {_name(name)} /bin/false\n" for name in blacklist]
    lines += [
        f"options {_name(module)} {' '.join(f'{_name(key)}={_value(key, value)}' for key, value in sorted(values.items()))}\n"
        for module, values in sorted(options.items())
        if values
    ]
    return "".join([HEADER, *lines]).encode("utf-8") if lines else None


def _name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ModprobeError(f"{name!r} is no name of a kernel module or parameter: use letters, digits, - and _")
    return name


def _value(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    text = str(value)
    if not text or any(mark in text for mark in '"\\#\n'):
        raise ModprobeError(
            f"The value {text!r} of {key} cannot be written for modprobe: use no quotes, backslashes, # or line ends"
        )
    return f'"{text}"' if re.search(r"\s", text) else text
