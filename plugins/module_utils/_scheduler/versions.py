# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which configuration a kube-scheduler reads, by its version. Private to this collection.

Sources: the removals in kubernetes/kubernetes #105424 (Policy, v1beta1), #117649 (v1beta2) and #119994 (v1beta3).
"""

from __future__ import annotations

import re
import typing as t

from .._yaml_files.errors import EditError

GROUP = "kubescheduler.config.k8s.io"
KIND = "KubeSchedulerConfiguration"

#: Oldest first: name, first and last minor version of Kubernetes 1.x that reads it.
_API_VERSIONS: tuple[tuple[str, int, float], ...] = (
    ("v1beta1", 19, 22),
    ("v1beta2", 22, 27),
    ("v1beta3", 23, 28),
    ("v1", 25, float("inf")),
)
ORDER = tuple(name for name, _first, _last in _API_VERSIONS)
OLDEST = 19

_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.\d+)?(?:[-+].*)?")


def parse(text: t.Any, what: str) -> int:
    """Return the minor version of a Kubernetes version such as v1.34.4, v1.34.4-eks-1 or 1.34; raises EditError."""
    found = _VERSION.fullmatch(str(text).strip())
    if isinstance(text, float) or found is None:
        raise EditError(f"{what} {text} is no version of Kubernetes: give one such as v1.34.4, as a text.")
    major, minor = int(found.group(1)), int(found.group(2))
    if major != 1 or minor < OLDEST:
        raise EditError(f"{what} is {text}, and Kubernetes 1.{OLDEST} is the oldest that is supported: upgrade it.")
    return minor


def tag_of(image: str) -> str | None:
    """Return the tag of an image's reference, None if it has none."""
    name, _at, _digest = image.partition("@")
    last = name.rpartition("/")[2]
    return last.partition(":")[2] or None


def of_image(image: str) -> int:
    """Return the minor version of Kubernetes that the tag of *image* tells; raises EditError."""
    tag = tag_of(image)
    if tag is None or not _VERSION.fullmatch(tag):
        raise EditError(
            f"The image {image} does not tell the version of Kubernetes by its tag: give kubernetes_version."
        )
    return parse(tag, f"The tag of the image {image}")


def wanted(minor: int) -> str:
    """Return the API version to be written for Kubernetes 1.*minor*: the newest, which later ones read longest."""
    return readable(minor)[-1]


def readable(minor: int) -> list[str]:
    """Return the API versions that Kubernetes 1.*minor* reads, oldest first."""
    return [name for name, first, last in _API_VERSIONS if first <= minor <= last]


def target(version: str, minor: int) -> str:
    """Return the API version that a configuration of *version* gets for Kubernetes 1.*minor*: never an older one.

    Raises EditError for one that cannot be brought there.
    """
    if version not in ORDER:
        known = ", ".join(ORDER)
        raise EditError(
            f"{GROUP}/{version} is none of the versions that can be migrated ({known}): write it anew in {wanted(minor)}."
        )
    if ORDER.index(version) <= ORDER.index(wanted(minor)):
        return wanted(minor)
    if version in readable(minor):
        return version
    raise EditError(
        f"{GROUP}/{version} is newer than what Kubernetes 1.{minor} reads ({', '.join(readable(minor))}): write it anew in {wanted(minor)}."
    )
