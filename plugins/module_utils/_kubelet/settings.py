# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings that are asked for, judged before anything is written: what the kubelet would refuse is refused here. Private to this collection.

Sources: cmd/kubelet/app/server.go (parseResourceList) and pkg/kubelet/eviction/helpers.go (parseThresholdStatement) of Kubernetes.
"""

from __future__ import annotations

import math
import typing as t
from fractions import Fraction

from .._kubernetes import quantities
from .._runtimes.trees import Path, Tree, dotted, leaves, put
from .._yaml_files.errors import EditError

RESERVED = ("kubeReserved", "systemReserved")
RESOURCES = ("cpu", "memory", "ephemeral-storage", "pid")
THRESHOLDS = ("evictionHard", "evictionSoft", "evictionMinimumReclaim")
SIGNALS = (
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "containerfs.available",
    "containerfs.inodesFree",
    "allocatableMemory.available",
    "pid.available",
)
IDENTITY = ("apiVersion", "kind")
# Mappings of text to text, in which the kubelet takes no number.
_TEXTS = (
    *RESERVED,
    *THRESHOLDS,
    "evictionSoftGracePeriod",
    "qosReserved",
    "cpuManagerPolicyOptions",
    "topologyManagerPolicyOptions",
)


def checked(values: t.Mapping[str, t.Any]) -> Tree:
    """Return what is asked for, with text where the kubelet wants text and without empty mappings. Raises EditError, naming the setting."""
    tree: Tree = {}
    for path, value in leaves(dict(values)).items():
        _check_name(path[0])
        if value is None:
            raise EditError(f"values: {dotted(path)} has no value: give it one, or leave it out.")
        if value == {}:
            continue
        wanted = _text(path, value) if path[0] in _TEXTS else value
        _check(path, wanted)
        put(tree, path, wanted)
    return tree


def percentage(text: str) -> float | None:
    """Return the number of a percentage, 0 to 100; None for what is none. Raises ValueError for one that the kubelet does not take."""
    if not text.endswith("%"):
        return None
    number = float(text.rstrip("%"))
    if not 0 <= number <= 100 or "_" in text or text != text.strip():
        raise ValueError(f"{text} is not between 0% and 100%")
    return number


def _check_name(name: str) -> None:
    if name in IDENTITY:
        raise EditError(f"values: {name} says what the file is, and stays as it is: leave it out.")
    folded = name.replace("-", "").replace("_", "").lower()
    meant = next((known for known in _TEXTS if known.lower() == folded), name)
    if meant != name:
        raise EditError(f"values: the kubelet knows no setting {name}: write {meant}.")


def _text(path: Path, value: t.Any) -> str:
    """Return a number as text; whole ones without a decimal point."""
    if len(path) != 2 or isinstance(value, (bool, list, dict)):
        raise EditError(f"values: {path[0]} has to be a mapping of names to texts, and {dotted(path)} is {value!r}.")
    if isinstance(value, float) and math.isfinite(value) and value == int(value):
        value = int(value)
    return str(value)


def _check(path: Path, value: t.Any) -> None:
    if path[0] in RESERVED:
        _check_reserved(path, str(value))
    elif path[0] in THRESHOLDS:
        _check_threshold(path, str(value))


def _check_reserved(path: Path, value: str) -> None:
    if path[1] not in RESOURCES:
        raise EditError(
            f"values: {dotted(path)}: the kubelet reserves {', '.join(RESOURCES)}, and no {path[1]}: take it out."
        )
    amount = _amount(path, value, "a quantity such as 500m, 2 or 1Gi")
    if amount < 0:
        raise EditError(f"values: {dotted(path)} is {value}: give an amount that is not below 0.")
    if amount.denominator != 1 and path[1] != "cpu":
        raise EditError(
            f"values: {dotted(path)} is {value}, which is no whole number (m is a thousandth, Mi is MiB): correct it."
        )


def _check_threshold(path: Path, value: str) -> None:
    if path[1] not in SIGNALS:
        raise EditError(
            f"values: {dotted(path)}: the kubelet knows the signals {', '.join(SIGNALS)}: write one of them."
        )
    example = "a quantity such as 500Mi or a percentage such as 10%"
    try:
        if percentage(value) is not None:
            return
    except ValueError:
        raise EditError(f"values: {dotted(path)} is {value}: give {example}.") from None
    amount = _amount(path, value, example)
    if amount < 0 or (amount == 0 and path[0] != "evictionMinimumReclaim"):
        raise EditError(f"values: {dotted(path)} is {value}: give an amount above 0, or 0% for none.")


def _amount(path: Path, value: str, example: str) -> Fraction:
    try:
        return quantities.parse_quantity(value)
    except ValueError:
        raise EditError(f"values: {dotted(path)} is {value or 'empty'}: give {example}.") from None
