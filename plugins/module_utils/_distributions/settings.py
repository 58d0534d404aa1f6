# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A distribution's own settings: a YAML file and the folder of its drop-ins, which has the same name with `.d`."""

from __future__ import annotations

import os
import typing as t

from .._config.yaml_nodes import meaning


def list_files(folder: str) -> list[str]:
    """Return the files of settings that are there, in the order in which they are read: the main one, and those in *folder*, by name."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith((".yaml", ".yml")))
    except OSError:
        names = []
    found = [folder[: -len(".d")], *(os.path.join(folder, name) for name in names)]
    return [path for path in found if os.path.isfile(path)]


def merge_settings(trees: t.Iterable[t.Any]) -> dict[str, t.Any]:
    """Return what files of settings mean together: a later one replaces a key, and adds to a list if the key ends in a plus."""
    merged: dict[str, t.Any] = {}
    for tree in trees:
        for key, value in (meaning(tree) or {}).items():
            name = key[:-1] if key.endswith("+") else key
            before = merged.get(name, [])
            merged[name] = [*to_list(before), *to_list(value)] if key.endswith("+") else value
    return merged


def to_list(value: t.Any) -> list[t.Any]:
    """Return a setting that may be one value or several as a list."""
    return value if isinstance(value, list) else [value]
