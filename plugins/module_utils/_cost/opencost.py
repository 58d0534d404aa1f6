# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The values of OpenCost's chart, from the price table.

OpenCost's custom pricing has one price for all GPUs of a cluster. With several, it is their mean, weighted by the cluster's GPUs, so that the sum of the
cluster is right, and the parts are not. A node has GPUs there if it has the label ``gpuLabel``.
"""

from __future__ import annotations

import json
from typing import Mapping

from .._vendors import SERVED
from .errors import CostError
from .prices import find_price

MARK = "# Written by gpu.kubernetes.gpu_cost; gpu_cost_state: absent removes this file."
PRICE_DIGITS = 6


def render_values(gpus: Mapping[str, float], prices: Mapping[str, float], currency: str, prometheus_url: str) -> str:
    """Return the values as YAML. *gpus* are those of the cluster by product, *prices* are by pattern. Raises CostError."""
    priced = {product: find_price(prices, product) for product, count in sorted(gpus.items()) if count > 0}
    missing = [product for product, price in priced.items() if price is None]
    if missing or not priced:
        raise CostError(
            f"OpenCost's values need a price of each GPU, and there is none of {', '.join(missing) or 'any, since no node has one'}; add it to"
            " gpu_cost_prices, or leave gpu_cost_opencost_values_path empty."
        )
    total = sum(gpus[product] for product in priced)
    price = round(sum(gpus[product] * (each or 0.0) for product, each in priced.items()) / total, PRICE_DIGITS)
    comments = [MARK, f"# Currency: {json.dumps(currency)}. OpenCost has one price for all GPUs."]
    if len(set(priced.values())) > 1:
        parts = ", ".join(f"{gpus[product]:g} x {product} at {each:g}" for product, each in priced.items())
        comments.append(f"# The mean of {json.dumps(parts)}: right for the sum of the cluster, wrong for each node.")
    lines = [
        *comments,
        "opencost:",
        "  customPricing:",
        "    enabled: true",
        "    createConfigmap: true",
        "    provider: custom",
        "    costModel:",
        "      description: GPU price of gpu_cost_prices",
        f'      GPU: "{price:g}"',
        f"      gpuLabel: {SERVED.present_label}",
        '      gpuLabelValue: "true"',
        "  mcp:",
        "    enabled: false",
    ]
    if prometheus_url:
        lines += [
            "  prometheus:",
            "    internal:",
            "      enabled: false",
            "    external:",
            "      enabled: true",
            f"      url: {json.dumps(prometheus_url)}",
        ]
    return "\n".join(lines) + "\n"
