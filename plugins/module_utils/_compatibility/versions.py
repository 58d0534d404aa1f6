# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Versions of drivers, CUDA, kernels and container toolkits, as tuples of numbers that compare as the versions do."""

from __future__ import annotations

import math
import re
from typing import Any, Tuple

#: Numbers of a version. Infinity at the end stands for the newest of all that begin so.
Version = Tuple[float, ...]

_NUMBERS = re.compile(r"\d+(?:\.\d+)*")
_PACKAGED = re.compile(r"(?:\d+:)?(\d+(?:\.\d+)*)(?:[-+~_]|$)")
_KERNEL = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")


class CompatibilityError(ValueError):
    """The situation or a table cannot be read; the text is one sentence with cause and remedy."""


def parse_version(text: Any, what: str = "version") -> Version:
    """The numbers of a version such as ``570.124.06`` or ``12.8``. Raises CompatibilityError for anything else."""
    if isinstance(text, (bool, float)) or not _NUMBERS.fullmatch(str(text).strip()):
        raise CompatibilityError(f"{text!r} is not a {what}; write numbers with dots between them, as a text")
    return tuple(int(number) for number in str(text).strip().split("."))


def format_version(numbers: Version) -> str:
    """The text of the numbers, as parse_version reads it."""
    return ".".join(f"{number:.0f}" for number in numbers)


def parse_newest(text: Any, what: str = "version") -> Version:
    """The newest of all versions that begin with *text*."""
    return (*parse_version(text, what), math.inf)


def parse_package(text: Any, what: str) -> Version:
    """The numbers in a package's version such as ``1.17.8-1`` or ``3:580.95.05-1``. Raises CompatibilityError for another one."""
    found = _PACKAGED.match(str(text).strip())
    return parse_version(found.group(1) if found else text, what)


def parse_driver(text: Any) -> Version:
    """A driver's version, or a branch such as ``570`` or ``570.*``, which stands for the newest version of it."""
    whole = str(text).strip()
    numbers = parse_package(whole[:-2] if whole.endswith(".*") else whole, "driver version")
    return numbers if len(numbers) > 1 and not whole.endswith(".*") else (*numbers, math.inf)


def parse_cuda(text: Any) -> Version:
    """A CUDA version of at least two numbers, such as ``12.8`` or ``12.8.1``."""
    numbers = parse_version(text, "CUDA version")
    if len(numbers) < 2:
        raise CompatibilityError(f"{text!r} is not a CUDA version; write two or three numbers, as in 12.8")
    return numbers


def get_branch(version: Version) -> int:
    """The driver branch that a version belongs to."""
    return int(version[0])


def parse_kernel(text: Any) -> Version:
    """The three numbers that a kernel release such as ``6.8.0-60-generic`` begins with; a missing third one is 0.

    The distribution's own numbers after them are left out, because other kernels do not have them.
    """
    numbers = _KERNEL.match(str(text).strip())
    if numbers is None:
        raise CompatibilityError(f"{text!r} is not a kernel release; write it as uname -r does")
    return tuple(int(number or 0) for number in numbers.groups())


def parse_device(text: Any) -> int:
    """A PCI device id, four hexadecimal digits with or without ``0x``."""
    digits = str(text).strip().lower()
    if not re.fullmatch(r"(?:0x)?[0-9a-f]{4}", digits):
        raise CompatibilityError(f"{text!r} is not a PCI device id; write its four hexadecimal digits, as a text")
    return int(digits, 16)
