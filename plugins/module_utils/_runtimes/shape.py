# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Types of the settings that this package reads, checked once and before anything else.  Private to this collection."""

from __future__ import annotations

import typing as t

from .errors import ConfigError
from .formats import TOML
from .schema import CRI_V2, CRI_V3
from .trees import MISSING, Path, Tree, dotted, get

if t.TYPE_CHECKING:
    from .._document import Format

_WORDS = {
    "text": "a string",
    "texts": "a list of strings",
    "switch": "true or false",
}

# "*" stands for every key of a table.  Tables come before what is in them.
_CONTAINERD: list[tuple[Path, str]] = [
    (("imports",), "texts"),
    (("disabled_plugins",), "texts"),
    (("required_plugins",), "texts"),
    (("plugins",), "table"),
    *(
        (("plugins", plugin, *rest), kind)
        for plugin in (CRI_V2, CRI_V3)
        for rest, kind in (
            ((), "table"),
            (("enable_cdi",), "switch"),
            (("containerd",), "table"),
            (("containerd", "default_runtime_name"), "text"),
            (("containerd", "runtimes"), "table"),
            (("containerd", "runtimes", "*"), "table"),
            (("containerd", "runtimes", "*", "runtime_type"), "text"),
            (("containerd", "runtimes", "*", "options"), "table"),
            (("containerd", "runtimes", "*", "options", "BinaryName"), "text"),
            (("containerd", "runtimes", "*", "options", "SystemdCgroup"), "switch"),
        )
    ),
]


def check_shape(
    tree: Tree, where: str, shape: t.Sequence[tuple[Path, str]] = _CONTAINERD, syntax: Format = TOML
) -> None:
    """Raise ConfigError, naming the file or option *where*, if a setting that is read has a type that it cannot have."""
    words = {"table": syntax.table, **_WORDS}
    for pattern, kind in shape:
        for path in _matches(tree, pattern):
            if not _is(get(tree, path), kind):
                raise ConfigError(f"{where}: {dotted(path)} has to be {words[kind]}; correct it and run again.")


def _matches(tree: Tree, pattern: Path) -> t.Iterator[Path]:
    if "*" not in pattern:
        if get(tree, pattern) is not MISSING:
            yield pattern
        return
    at = pattern.index("*")
    for key in get(tree, pattern[:at], {}):
        yield from _matches(tree, (*pattern[:at], key, *pattern[at + 1 :]))


def _is(value: t.Any, kind: str) -> bool:
    if kind == "texts":
        return isinstance(value, list) and all(isinstance(part, str) for part in value)
    return isinstance(value, {"table": dict, "text": str, "switch": bool}[kind])
