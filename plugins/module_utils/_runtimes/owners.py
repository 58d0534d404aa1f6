# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of containerd that another program renders or overwrites, and what that program offers instead."""

from __future__ import annotations

import os.path
import re
from dataclasses import dataclass

from .._config.config_file import describe_template
from .._config.errors import ConfigError
from .._config.tree import MISSING, Tree, get
from .._distributions import DISTRIBUTIONS, Distribution

_TEMPLATE_NAMES = (".tmpl", ".tpl", ".j2", ".gotmpl")


@dataclass(frozen=True)
class Owner:
    """Who owns a file and what to do; `refuse` is False where an edit works, but does not last."""

    name: str
    message: str
    refuse: bool = True


def owner_of_path(path: str) -> Owner | None:
    """Return the program that renders the file *path* (as given or with links resolved), as its name shows."""
    row = next((row for row in DISTRIBUTIONS if row.containerd_path and re.search(row.containerd_path, path)), None)
    if row:
        return _owner(row, path)
    return Owner("template", describe_template(path)) if path.endswith(_TEMPLATE_NAMES) else None


def refuse_rendered(path: str) -> None:
    """Raise ConfigError if the *path*, as given or with links resolved, is that of a file which a program renders."""
    owner = owner_of_path(path) or owner_of_path(os.path.realpath(path))
    if owner:
        raise ConfigError(owner.message)


def owner_of_text(path: str, text: str) -> Owner | None:
    """Return the program that marks the *text* of a file as its own."""
    row = next((row for row in DISTRIBUTIONS if row.containerd_mark and re.search(row.containerd_mark, text)), None)
    return _owner(row, path) if row else None


def owner_of_tree(path: str, tree: Tree) -> Owner | None:
    """Return the program to which the settings of a file belong, as the name of a runtime spec shows."""
    known = {row.containerd_spec: row for row in DISTRIBUTIONS if row.containerd_spec}
    plugins = tree.get("plugins", {})
    for plugin in plugins.values() if isinstance(plugins, dict) else ():
        runtimes = get(plugin, ("containerd", "runtimes"), {})
        for runtime in runtimes.values() if isinstance(runtimes, dict) else ():
            spec = get(runtime, ("base_runtime_spec",))
            row = None if spec is MISSING else known.get(os.path.basename(str(spec)))
            if row:
                return _owner(row, path)
    return None


def _owner(row: Distribution, path: str) -> Owner:
    if row.containerd_hint:
        return Owner(row.name, f"{path} is rendered by {row.name}: {row.containerd_hint}.")
    words = f"set {row.containerd_variables} in its inventory as well, or its next run overwrites {path}"
    return Owner(row.name, f"{path} looks like {row.name}'s: {words}.", refuse=False)
