# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file of features for node feature discovery (NFD), whose worker publishes its lines as labels of the node.

NFD publishes names in any namespace except those of Kubernetes, so all labels have the prefix of this collection.
"""

from __future__ import annotations

from typing import Mapping

from .devices import PREFIX
from .record import Labels, is_reserved

NVIDIA = "nvidia.com/"
NVIDIA_GPU = NVIDIA + "gpu."


def rename_labels(labels: Mapping[str, str | None]) -> Labels:
    """Return the labels below the prefix of this collection; those of Kubernetes, which NFD does not publish, and those without a value are left out."""
    renamed: Labels = {}
    for label, value in labels.items():
        if value is None or is_reserved(label):
            continue
        if label.startswith(NVIDIA_GPU):
            name = f"{PREFIX}nvidia.{label[len(NVIDIA_GPU) :]}"
        elif label.startswith(NVIDIA):
            name = f"{PREFIX}nvidia.{label[len(NVIDIA) :]}"
        else:
            name = label if "/" in label else PREFIX + label
        renamed[name] = value
    return renamed


def render_features(labels: Mapping[str, str | None]) -> str:
    """Return the file: a line ``name=value`` for each label, in order."""
    lines = [f"{name}={value}" for name, value in sorted(rename_labels(labels).items())]
    return "\n".join(["# Managed by gpu.kubernetes; changes are overwritten.", *lines, ""])
