# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ladder of ownership: which labels of a node another tool publishes, so that this collection does not set them.

1. The operator, the labeller or the feature discovery of a vendor: by a rule, the labels that it publishes where it runs.
2. Node feature discovery (NFD): the names that it has recorded on the node. It overwrites them, and removes them when it stops publishing them.
3. No other tool: the label is set.

Source of the annotation: nfd-master of node-feature-discovery v0.19.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Collection, Iterable, Mapping, Sequence

from ..objects import Object, get_annotations

NFD = "node feature discovery"
# The names of the labels that NFD has set, separated by commas. A second instance of NFD has its own name before it.
NFD_ANNOTATION = "nfd.node.kubernetes.io/feature-labels"
# NFD records a name below this prefix without it.
NFD_PREFIX = "feature.node.kubernetes.io/"


@dataclass(frozen=True)
class YieldRule:
    """Leave ``labels`` to ``tool`` on nodes with an unmanaged label that matches ``when`` or a name of NFD's record that matches ``published``.

    All are shell patterns. Of the labels that match ``compare``, another value than the desired one is a warning.
    """

    when: Sequence[str]
    labels: Sequence[str]
    published: Sequence[str] = ()
    compare: Sequence[str] = ()
    tool: str = "another tool"


def read_published(node: Object) -> frozenset[str]:
    """Return the full names of the labels that NFD has recorded on the node."""
    texts = [
        text
        for name, text in get_annotations(node).items()
        if name == NFD_ANNOTATION or name.endswith("." + NFD_ANNOTATION)
    ]
    names = (name.strip() for text in texts for name in str(text).split(","))
    return frozenset(name if "/" in name else NFD_PREFIX + name for name in names if name)


def find_publishers(
    labels: Iterable[str], unmanaged: Collection[str], published: Collection[str], rules: Iterable[YieldRule]
) -> dict[str, str]:
    """Return the tool that publishes each of *labels*; a label that no other tool publishes is left out.

    *unmanaged* are the names of the node's labels that are not managed, *published* those that NFD has recorded.
    """
    running = [
        rule for rule in rules if _is_any(unmanaged, rule.when) or (published and _is_any(published, rule.published))
    ]
    found = {}
    for label in labels:
        tools = [rule.tool for rule in running if matches_any(label, rule.labels)]
        if tools or label in published:
            found[label] = tools[0] if tools else NFD
    return found


def find_differences(
    node: str,
    publishers: Mapping[str, str],
    desired: Mapping[str, str | None],
    observed: Mapping[str, str],
    rules: Iterable[YieldRule],
) -> list[str]:
    """Return a sentence for each label of another tool whose value the facts of the host contradict, if a rule compares it."""
    compared = [pattern for rule in rules for pattern in rule.compare]
    return [
        f"Node {node}: {tool} publishes {label}={observed[label]}, and the facts of the host give {desired[label]}; the label is not changed."
        for label, tool in sorted(publishers.items())
        if label in observed and desired.get(label) not in (None, observed[label]) and matches_any(label, compared)
    ]


def matches_any(name: str, patterns: Iterable[str]) -> bool:
    """Return whether the name matches one of the shell patterns."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _is_any(names: Iterable[str], patterns: Sequence[str]) -> bool:
    return any(matches_any(name, patterns) for name in names)
