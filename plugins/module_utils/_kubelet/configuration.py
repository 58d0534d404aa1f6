# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A KubeletConfiguration as a tree: merged, compared, and cleared of what is ours. Private to this collection."""

from __future__ import annotations

import re
import typing as t

from .._document import same
from .._kubernetes import quantities
from .._runtimes.trees import MISSING, Path, Tree, dotted, drop, get, leaves, put
from .._yaml_files.errors import EditError
from .._yaml_files.scalars import Unclear, meaning, text_of
from .settings import RESERVED, THRESHOLDS

# Text for every reader of YAML, other than 1e3 or 10:20.
_WITH_UNIT = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:[KMGTPE]i|[numkMGTP]|%|[hs]|[mun]s))+")

API_VERSION, KIND = "kubelet.config.k8s.io/v1beta1", "KubeletConfiguration"


def check_kind(tree: t.Any, what: str) -> None:
    """Raise EditError if *tree* is no configuration of the kubelet that is known here."""
    found = [text_of(tree.get(key)) for key in ("apiVersion", "kind")] if isinstance(tree, dict) else []
    if found != [API_VERSION, KIND]:
        told = " ".join(part for part in found if part) or "neither apiVersion nor kind"
        raise EditError(
            f"{what} is no {KIND} of {API_VERSION}, but has {told}: give the path of the kubelet's configuration, or bring it to that version."
        )


def merge(tree: Tree, values: t.Mapping[str, t.Any], what: str) -> None:
    """Make *tree* hold *values* in place, mapping by mapping. What means the same already stays as it is written. Raises EditError."""
    for path, value in leaves(dict(values)).items():
        for depth in range(1, len(path)):
            above = get(tree, path[:depth])
            if above is MISSING or meaning(above) is None:
                put(tree, path[:depth], {})
            elif not isinstance(above, dict):
                raise EditError(f"{what}: {dotted(path[:depth])} has to be a mapping; correct it and run again.")
        if not alike(path, get(tree, path), value):
            put(tree, path, value)


def take_back(tree: Tree, values: t.Mapping[str, t.Any], first: Tree) -> list[Path]:
    """Give *tree* back in place what *first* has where *values* are; return where others have changed those since, and which stay."""
    foreign = []
    for path, value in leaves(dict(values)).items():
        now, former = get(tree, path), get(first, path)
        if now is MISSING or alike(path, now, former):
            continue
        if not alike(path, now, value):
            foreign.append(path)
        elif former is not MISSING:
            put(tree, path, None)  # in its place ruamel.yaml would write the text in the quotes of ours
            put(tree, path, former)
        else:
            drop(tree, path, keep=[path[:depth] for depth in range(1, len(path)) if _is_mapping(first, path[:depth])])
            _empty_as_before(tree, first, path)
    return foreign


def means(tree: t.Any, path: Path = ()) -> t.Any:
    """Return *tree* as plain data in which what the kubelet takes for the same is the same, such as 1Gi and 1024Mi."""
    if isinstance(tree, dict):
        return {str(key): means(value, (*path, str(key))) for key, value in tree.items()}
    if isinstance(tree, list):
        return [means(value, (*path, "")) for value in tree]
    value = meaning(tree)
    if isinstance(value, Unclear) and _WITH_UNIT.fullmatch(value.text):
        value = value.text
    if isinstance(value, str) and len(path) == 2 and path[0] in (*RESERVED, *THRESHOLDS):
        try:
            return ("amount", str(quantities.parse_quantity(value)))
        except ValueError:
            return value
    return value


def alike(path: Path, left: t.Any, right: t.Any) -> bool:
    """Whether two values of one setting mean the same; one that is missing is like no other."""
    if left is MISSING or right is MISSING:
        return left is right
    return same(means(left, path), means(right, path))


def _is_mapping(tree: Tree, path: Path) -> bool:
    return isinstance(get(tree, path), dict)


def _empty_as_before(tree: Tree, first: Tree, path: Path) -> None:
    """Put back what stood for an empty mapping, such as null, where a mapping of ours is gone."""
    for depth in range(1, len(path)):
        if get(tree, path[:depth]) is MISSING and get(first, path[:depth]) is not MISSING:
            put(tree, path[:depth], get(first, path[:depth]))
            return
