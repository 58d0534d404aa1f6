# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A KubeletConfiguration as a tree: merged, compared, and undone."""

from __future__ import annotations

import re
import typing as t

from .._config.errors import ConfigError
from .._config.tree import MISSING, Path, Tree, drop, format_path, get, leaves, put
from .._config.yaml_nodes import Ambiguous, meaning, text_of
from .._document import is_same
from .._kubernetes import quantities
from .settings import RESERVED, THRESHOLDS

# Text for every reader of YAML, other than 1e3 or 10:20.
_WITH_UNIT = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:[KMGTPE]i|[numkMGTP]|%|[hs]|[mun]s))+")

API_VERSION, KIND = "kubelet.config.k8s.io/v1beta1", "KubeletConfiguration"


def check_kind(tree: t.Any, what: str) -> None:
    """Raise ConfigError if *tree* is not a configuration of the kubelet of a known version."""
    found = [text_of(tree.get(key)) for key in ("apiVersion", "kind")] if isinstance(tree, dict) else []
    if found != [API_VERSION, KIND]:
        kind = " ".join(part for part in found if part) or "neither apiVersion nor kind"
        raise ConfigError(
            f"{what} is not a {KIND} of {API_VERSION}, but has {kind}: give the path of the kubelet's configuration, or bring it to that version."
        )


def merge(tree: Tree, values: t.Mapping[str, t.Any], what: str) -> None:
    """Make *tree* hold *values* in place, mapping by mapping. What already means the same stays as it is written. Raises ConfigError."""
    for path, value in leaves(dict(values)).items():
        for depth in range(1, len(path)):
            above = get(tree, path[:depth])
            if above is MISSING or meaning(above) is None:
                put(tree, path[:depth], {})
            elif not isinstance(above, dict):
                raise ConfigError(f"{what}: {format_path(path[:depth])} has to be a mapping; correct it and run again.")
        if not is_equal(path, get(tree, path), value):
            put(tree, path, value)


def undo_values(tree: Tree, values: t.Mapping[str, t.Any], original: Tree) -> list[Path]:
    """Restore in place what *original* has where *values* are; return which others have changed since, and which stay."""
    changed = []
    for path, value in leaves(dict(values)).items():
        now, former = get(tree, path), get(original, path)
        if now is MISSING or is_equal(path, now, former):
            continue
        if not is_equal(path, now, value):
            changed.append(path)
        elif former is not MISSING:
            put(tree, path, None)  # otherwise ruamel.yaml would write the text in the quotes of the managed value
            put(tree, path, former)
        else:
            drop(
                tree, path, keep=[path[:depth] for depth in range(1, len(path)) if _is_mapping(original, path[:depth])]
            )
            _restore_empty(tree, original, path)
    return changed


def normalize(tree: t.Any, path: Path = ()) -> t.Any:
    """Return *tree* as plain data in which values that are equal to the kubelet are equal, such as 1Gi and 1024Mi."""
    if isinstance(tree, dict):
        return {str(key): normalize(value, (*path, str(key))) for key, value in tree.items()}
    if isinstance(tree, list):
        return [normalize(value, (*path, "")) for value in tree]
    value = meaning(tree)
    if isinstance(value, Ambiguous) and _WITH_UNIT.fullmatch(value.text):
        value = value.text
    if isinstance(value, str) and len(path) == 2 and path[0] in (*RESERVED, *THRESHOLDS):
        try:
            return ("amount", str(quantities.parse_quantity(value)))
        except ValueError:
            return value
    return value


def is_equal(path: Path, left: t.Any, right: t.Any) -> bool:
    """Whether two values of one setting mean the same; one that is missing equals no other."""
    if left is MISSING or right is MISSING:
        return left is right
    return is_same(normalize(left, path), normalize(right, path))


def _is_mapping(tree: Tree, path: Path) -> bool:
    return isinstance(get(tree, path), dict)


def _restore_empty(tree: Tree, original: Tree, path: Path) -> None:
    """Restore what stood for an empty mapping, such as null, where the managed mapping is gone."""
    for depth in range(1, len(path)):
        if get(tree, path[:depth]) is MISSING and get(original, path[:depth]) is not MISSING:
            put(tree, path[:depth], get(original, path[:depth]))
            return
