# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An example of a nodeSelector for each product of GPUs in a cluster, from the labels of its nodes."""

from __future__ import annotations

from typing import Any, Iterable, Mapping

from ..objects import get_labels, get_name
from .devices import PREFIX

# By vendor, the labels that name a product; the first that a node has counts.
PRODUCT_LABELS: Mapping[str, tuple[str, ...]] = {
    "nvidia": ("nvidia.com/gpu.product", PREFIX + "nvidia.product"),
    "amd": (PREFIX + "amd.product", "amd.com/gpu.product-name"),
    "intel": (PREFIX + "intel.product", "gpu.intel.com/product"),
}


def list_selectors(nodes: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each product: vendor, product, the names of its nodes, and the ``node_selector`` that selects them."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for node in nodes:
        labels = get_labels(node)
        for vendor, names in PRODUCT_LABELS.items():
            label = next((name for name in names if labels.get(name)), None)
            if label:
                rows.setdefault((vendor, labels[label], label), []).append(get_name(node))
    return [
        {"vendor": vendor, "product": product, "nodes": sorted(found), "node_selector": {label: product}}
        for (vendor, product, label), found in sorted(rows.items())
    ]
