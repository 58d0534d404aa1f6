# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which settings of container runtimes others have changed since this collection wrote them, by its records on the node."""

from __future__ import annotations

import os.path
import typing as t

from .._config import config_file, files
from .._config.change_log import ChangeLog, Rules, list_recorded_files
from .._config.errors import ConfigError
from .._config.formats import JSON, TOML
from .._config.paths import StatePaths
from .._config.tree import format_path
from .containerd.base_template import TEMPLATE
from .containerd.undo import RULES
from .runtime import build_rules

if t.TYPE_CHECKING:
    from .._document import Format

#: By the extension of a file. What is YAML is written as JSON; other files are TOML.
_SYNTAXES: t.Mapping[str, Format] = {".json": JSON, ".yaml": JSON, ".tmpl": TEMPLATE}


def list_drift(root: str = "/", state_dir: str = files.STATE_DIR) -> list[dict[str, t.Any]]:
    """Return {path, settings, error} of each file below *root* that differs from its record; ``error`` if it cannot be compared.

    Values are left out: they can be credentials.
    """
    paths = StatePaths(os.path.join(root, state_dir.lstrip("/")))
    rows = [_compare(root, path, paths.record(path)) for path in list_recorded_files(paths.state_dir)]
    return [row for row in rows if row["settings"] or row["error"]]


def _compare(root: str, path: str, record: str) -> dict[str, t.Any]:
    syntax = _SYNTAXES.get(os.path.splitext(path)[1], TOML)
    rules: Rules = RULES if syntax is TOML else build_rules("")
    place = os.path.join(root, path.lstrip("/"))
    try:
        file = config_file.read(place, syntax)
        found = ChangeLog(place, record, syntax, rules).find_drift(file.sha, file.tree)
    except (ConfigError, files.FilesError) as error:
        return {"path": path, "settings": [], "error": str(error)}
    return {"path": path, "settings": [format_path(each) for each in found], "error": ""}
