# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The version of Kubernetes, and of the configuration that its kube-scheduler reads.

Source: https://kubernetes.io/docs/reference/scheduling/config/. Kubernetes reads v1 since 1.25.
"""

from __future__ import annotations

import re
import typing as t

from .._config.errors import ConfigError

GROUP = "kubescheduler.config.k8s.io"
KIND = "KubeSchedulerConfiguration"

#: The API version that is written.
VERSION = "v1"
#: Versions that are brought to VERSION.
MIGRATED = ("v1beta2", "v1beta3")
#: The oldest minor version of Kubernetes 1.x that reads VERSION.
OLDEST = 25

_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.\d+)?(?:[-+].*)?")


def parse(text: t.Any, what: str) -> int:
    """Return the minor version of a Kubernetes version such as v1.34.4, v1.34.4-eks-1 or 1.34; raises ConfigError."""
    found = _VERSION.fullmatch(str(text).strip())
    if isinstance(text, float) or found is None:
        raise ConfigError(f"{what} {text} is not a version of Kubernetes: give one such as v1.34.4, as a text.")
    major, minor = int(found.group(1)), int(found.group(2))
    if major != 1 or minor < OLDEST:
        raise ConfigError(f"{what} is {text}, and Kubernetes before 1.{OLDEST} is not supported: upgrade the cluster.")
    return minor


def tag_of(image: str) -> str | None:
    """Return the tag of an image's reference, None if it has none."""
    name, _at, _digest = image.partition("@")
    last = name.rpartition("/")[2]
    return last.partition(":")[2] or None


def of_image(image: str) -> int:
    """Return the minor version of Kubernetes that the tag of *image* names; raises ConfigError."""
    tag = tag_of(image)
    if tag is None or not _VERSION.fullmatch(tag):
        raise ConfigError(
            f"The image {image} does not name the version of Kubernetes by its tag: give kubernetes_version."
        )
    return parse(tag, f"The tag of the image {image}")
