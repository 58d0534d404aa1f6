# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line of kube-scheduler in a container.

Source: spf13/pflag, as kube-scheduler uses it: names with underscores count, one dash does not, the last of several values wins.
"""

from __future__ import annotations

import posixpath
import typing as t
from dataclasses import dataclass

from .._config.errors import ConfigError
from .._config.yaml_nodes import sequence, text_of

PROGRAM = "kube-scheduler"
PLACES = ("command", "args")

# Flags that never take the next item as their value.
_SWITCHES = frozenset(
    [
        "add-dir-header",
        "alsologtostderr",
        "authentication-skip-lookup",
        "authentication-tolerate-lookup-failure",
        "contention-profiling",
        "disable-http2-serving",
        "help",
        "leader-elect",
        "log-json-split-stream",
        "log-text-split-stream",
        "logtostderr",
        "one-output",
        "permit-address-sharing",
        "permit-port-sharing",
        "profiling",
        "skip-headers",
        "skip-log-headers",
        "use-legacy-policy-config",
        "version",
    ]
)
_TRUE, _FALSE = ("1", "t", "T", "TRUE", "true", "True"), ("0", "f", "F", "FALSE", "false", "False")


@dataclass(frozen=True)
class Flag:
    """One flag: its name with hyphens, its value (None: a switch without one), and the items of the list in which it is."""

    name: str
    value: str | None
    place: str
    index: int
    size: int


def parse(container: t.Mapping[str, t.Any], where: str) -> list[Flag]:
    """Return the flags of kube-scheduler, in their order. Raises ConfigError if it is not started directly."""
    flags: list[Flag] = []
    for place, first in _starts(container, where):
        items = [text_of(item) for item in sequence(container, place, where)]
        index = first
        while index < len(items) and items[index] != "--":
            flag = _flag(items, index, place)
            flags += [flag] if flag else []
            index += flag.size if flag else 1
    return flags


def is_started(container: t.Mapping[str, t.Any], where: str) -> bool:
    """Whether a container starts kube-scheduler, by its command or by its image alone."""
    words = [text_of(item) for place in PLACES for item in sequence(container, place, where)]
    image = posixpath.basename(text_of(container.get("image")).partition("@")[0]).partition(":")[0]
    return PROGRAM in map(posixpath.basename, words) or image == PROGRAM


def last(flags: t.Sequence[Flag], name: str) -> str | None:
    """Return the value of the flag *name* that counts, None if it is not there; a switch without a value is true."""
    values = [flag.value for flag in flags if flag.name == name]
    return None if not values else "true" if values[-1] is None else values[-1]


def switch(value: str, name: str) -> bool:
    """Return the value of a switch; raises ConfigError for text that kube-scheduler does not accept."""
    if value not in _TRUE + _FALSE:
        raise ConfigError(f"The flag --{name} has the value {value}: give it true or false.")
    return value in _TRUE


def remove(container: dict[str, t.Any], flags: t.Sequence[Flag]) -> None:
    """Remove *flags* from the lists that they are in."""
    for flag in sorted(flags, key=lambda flag: flag.index, reverse=True):
        del container[flag.place][flag.index : flag.index + flag.size]


def put(container: dict[str, t.Any], name: str, value: str, where: str) -> None:
    """Make *value* the only one of the flag *name*: in its place, else behind the other flags."""
    known = [flag for flag in parse(container, where) if flag.name == name]
    if known:
        remove(container, known[1:])
        items, at = container[known[0].place], known[0].index
        if known[0].size == 2:
            items[at + 1] = value
        else:
            items[at] = f"--{name}={value}"
        return
    place = [place for place, _first in _starts(container, where) if sequence(container, place, where)][-1]
    items = container[place]
    end = [text_of(item) for item in items].index("--") if "--" in map(text_of, items) else len(items)
    items.insert(end, f"--{name}={value}")


def _starts(container: t.Mapping[str, t.Any], where: str) -> list[tuple[str, int]]:
    """Return the lists that hold flags, and where these begin."""
    command, args = (sequence(container, place, where) for place in PLACES)
    for place, items in (("command", command), ("args", args)):
        for index, item in enumerate(items):
            if posixpath.basename(text_of(item)) == PROGRAM:
                return [(place, index + 1), ("args", 0)] if place == "command" else [(place, index + 1)]
    if command or not args:
        what = text_of(command[0]) if command else "its image alone"
        raise ConfigError(
            f"{where}: kube-scheduler is started by {what}, so that its flags cannot be edited: give it a command with"
            " kube-scheduler and its flags as items of their own."
        )
    return [("args", 0)]  # the image knows its program


def _flag(items: t.Sequence[str], index: int, place: str) -> Flag | None:
    item = items[index]
    if not item.startswith("--"):
        return None
    name, equals, value = item[2:].partition("=")
    name = name.replace("_", "-")
    if equals:
        return Flag(name, value, place, index, 1)
    if name in _SWITCHES or items[index + 1 : index + 2] == [] or items[index + 1].startswith("--"):
        return Flag(name, None, place, index, 1)
    return Flag(name, items[index + 1], place, index, 2)
