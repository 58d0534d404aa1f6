# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file of modprobe.d: modules that must not be loaded, and parameters of those that are (modprobe.d(5))."""

from __future__ import annotations

import re
import shlex
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


def parameters(data: bytes | None) -> dict[str, dict[str, str]]:
    """Return {module: {name: value}} of what such a file gives; what somebody has written there that is no such line is left out."""
    found: dict[str, dict[str, str]] = {}
    for line in (data or b"").decode("utf-8", "replace").splitlines():
        try:
            words = shlex.split(line)
        except ValueError:
            continue
        if words[:1] == ["options"] and len(words) > 1:
            pairs = (word.partition("=") for word in words[2:])
            found.setdefault(words[1], {}).update({name: value for name, _equals, value in pairs})
    return found


def dropped(
    before: bytes | None, after: bytes | None, earlier: Mapping[str, Mapping[str, str]]
) -> dict[str, dict[str, str]]:
    """Return {module: {name: value}} of what the file gave *before*, or *earlier* still, and does not give *after*."""
    given, kept = parameters(before), parameters(after)
    merged = {module: {**earlier.get(module, {}), **given.get(module, {})} for module in {*earlier, *given}}
    left = {
        module: {name: value for name, value in sorted(values.items()) if name not in kept.get(module, {})}
        for module, values in sorted(merged.items())
    }
    return {module: values for module, values in left.items() if values}


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
