# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubernetes quantities as exact numbers: ``500m``, ``1Gi``, ``1e3``, ``1.5``.

Source: k8s.io/apimachinery/pkg/api/resource, ParseQuantity. A number is the amount in the unit of its resource: CPUs, bytes, processes.
"""

from __future__ import annotations

import re
from fractions import Fraction

_QUANTITY = re.compile(
    r"([+-]?)(?=\.?[0-9])([0-9]{0,40})(?:\.([0-9]{0,40}))?(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?[0-9]{1,2}))?"
)
# An exponent of ten for each suffix, else a power of two.
_TENS = {"n": -9, "u": -6, "m": -3, None: 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_TWOS = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


def parse_quantity(text: str) -> Fraction:
    """Return the amount of a quantity. Raises ValueError for anything else."""
    found = _QUANTITY.fullmatch(text)
    if not found:
        raise ValueError(f"{text!r} is not a quantity")
    sign, whole, decimals, suffix, exponent = found.groups()
    number = Fraction(int(sign + whole + (decimals or "")), 10 ** len(decimals or ""))
    if suffix in _TWOS:
        return number * (1 << _TWOS[suffix])
    return number * Fraction(10) ** (int(exponent) if exponent else _TENS[suffix])


def format_amount(amount: Fraction, resource: str) -> str:
    """Return an amount of a *resource* for messages: CPUs with up to three decimals, bytes in the largest unit with at least one."""
    if resource in ("memory", "ephemeral-storage"):
        for suffix, power in reversed(list(_TWOS.items())):
            if abs(amount) >= 1 << power:
                return f"{float(amount / (1 << power)):.2f}".rstrip("0").rstrip(".") + suffix
    return f"{float(amount):.3f}".rstrip("0").rstrip(".")
