# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requested settings, checked before anything is written: what the kubelet would refuse is refused here.

Sources: cmd/kubelet/app/server.go (parseResourceList) and pkg/kubelet/eviction/helpers.go (parseThresholdStatement) of Kubernetes.
"""

from __future__ import annotations

import math
import typing as t
from fractions import Fraction

from .._config.errors import ConfigError
from .._config.tree import Path, Tree, format_path, leaves, put
from .._kubernetes import quantities

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
# Mappings of text to text, in which the kubelet accepts no number.
_TEXTS = (
    *RESERVED,
    *THRESHOLDS,
    "evictionSoftGracePeriod",
    "qosReserved",
    "cpuManagerPolicyOptions",
    "topologyManagerPolicyOptions",
)


def check_values(values: t.Mapping[str, t.Any]) -> Tree:
    """Return the requested *values*, with text where the kubelet reads text and without empty mappings. Raises ConfigError, naming the setting."""
    tree: Tree = {}
    for path, value in leaves(dict(values)).items():
        _check_name(path[0])
        if value is None:
            raise ConfigError(f"values: {format_path(path)} has no value: give it one, or leave it out.")
        if value == {}:
            continue
        setting = _text(path, value) if path[0] in _TEXTS else value
        _check(path, setting)
        put(tree, path, setting)
    return tree


def percentage(text: str) -> float | None:
    """Return the number of a percentage, 0 to 100; None for other text. Raises ValueError for one that the kubelet does not accept."""
    if not text.endswith("%"):
        return None
    number = float(text.rstrip("%"))
    if not 0 <= number <= 100 or "_" in text or text != text.strip():
        raise ValueError(f"{text} is not between 0% and 100%")
    return number


def _check_name(name: str) -> None:
    if name in IDENTITY:
        raise ConfigError(f"values: {name} states what the file is, and stays as it is: leave it out.")
    folded = name.replace("-", "").replace("_", "").lower()
    known_name = next((known for known in _TEXTS if known.lower() == folded), name)
    if known_name != name:
        raise ConfigError(f"values: the kubelet has no setting {name}: write {known_name}.")


def _text(path: Path, value: t.Any) -> str:
    """Return a number as text; whole ones without a decimal point."""
    if len(path) != 2 or isinstance(value, (bool, list, dict)):
        raise ConfigError(
            f"values: {path[0]} has to be a mapping of names to texts, and {format_path(path)} is {value!r}."
        )
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
        raise ConfigError(
            f"values: {format_path(path)}: the kubelet reserves {', '.join(RESOURCES)}, and not {path[1]}: remove it."
        )
    amount = _amount(path, value, "a quantity such as 500m, 2 or 1Gi")
    if amount < 0:
        raise ConfigError(f"values: {format_path(path)} is {value}: give an amount that is not below 0.")
    if amount.denominator != 1 and path[1] != "cpu":
        raise ConfigError(
            f"values: {format_path(path)} is {value}, which is not a whole number (m is a thousandth, Mi is MiB): correct it."
        )


def _check_threshold(path: Path, value: str) -> None:
    if path[1] not in SIGNALS:
        raise ConfigError(
            f"values: {format_path(path)}: the kubelet has the signals {', '.join(SIGNALS)}: write one of them."
        )
    example = "a quantity such as 500Mi or a percentage such as 10%"
    try:
        if percentage(value) is not None:
            return
    except ValueError:
        raise ConfigError(f"values: {format_path(path)} is {value}: give {example}.") from None
    amount = _amount(path, value, example)
    if amount < 0 or (amount == 0 and path[0] != "evictionMinimumReclaim"):
        raise ConfigError(f"values: {format_path(path)} is {value}: give an amount above 0, or 0% for none.")


def _amount(path: Path, value: str, example: str) -> Fraction:
    try:
        return quantities.parse_quantity(value)
    except ValueError:
        raise ConfigError(f"values: {format_path(path)} is {value or 'empty'}: give {example}.") from None
