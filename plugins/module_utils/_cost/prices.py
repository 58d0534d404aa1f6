# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The price table: the price of a GPU hour by product. It has no prices of its own."""

from __future__ import annotations

import math
import re
from fnmatch import fnmatchcase
from typing import Any, Mapping

from .errors import CostError

_OTHER = re.compile(r"[^a-z0-9_.*?-]+")


def parse_prices(given: Mapping[str, Any], currency: str) -> dict[str, float]:
    """Return the price of a GPU hour by pattern of products. Raises CostError."""
    if given and not currency:
        raise CostError("gpu_cost_prices needs gpu_cost_currency, such as EUR.")
    prices = {}
    for pattern, price in given.items():
        try:
            number = math.nan if isinstance(price, bool) else float(price)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number) or number < 0:
            raise CostError(f"The price of {pattern} in gpu_cost_prices is {price!r}; write a number from 0.")
        prices[_fold(str(pattern))] = number
    return prices


def _fold(text: str) -> str:
    """Return a product or pattern as it is compared: in lower case, with a hyphen for spaces and the like."""
    return _OTHER.sub("-", text.strip().lower())


def find_price(prices: Mapping[str, float], product: str) -> float | None:
    """Return the price of a GPU hour: of the product itself, else of the longest pattern that matches; None without one."""
    name = _fold(product)
    matching = [pattern for pattern in prices if fnmatchcase(name, pattern)]
    best = max(matching, key=lambda pattern: (pattern == name, len(pattern), pattern), default=None)
    return None if best is None else prices[best]
