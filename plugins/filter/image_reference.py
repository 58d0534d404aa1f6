# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter image_reference."""

from __future__ import annotations

DOCUMENTATION = r"""
name: image_reference
short_description: Return the name of an image from its parts
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
positional: _input
options:
  _input:
    description: Registry, repository, and tag, digest or C(tag@digest) of the image, in this order.
    type: list
    elements: str
    required: true
"""

RETURN = r"""
_value:
  description: The name, with C(:) before a tag and C(@) before a digest.
  type: str
  sample: registry.example.com/nvidia/k8s-device-plugin:v0.20.0
"""

import re
from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def image_reference(parts: Sequence[str]) -> str:
    """Return the name; a missing part or a malformed digest raises AnsibleFilterError."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._image import split_tag

    words = [] if isinstance(parts, str) else [str(part).strip("/ ") for part in parts]
    if len(words) != 3 or not all(words):
        raise AnsibleFilterError(
            f"image_reference: the image {'/'.join(words) or parts!r} needs a registry, a repository, and a tag or digest; set all three."
        )
    registry, repository, text = words
    tag, digest = split_tag(text)
    if (digest or "@" in text) and not DIGEST.fullmatch(digest):
        raise AnsibleFilterError(
            f"image_reference: the digest {digest} of image {registry}/{repository} is not sha256: and 64 hexadecimal digits in lower case; correct it."
        )
    return f"{registry}/{repository}{tag and ':' + tag}{digest and '@' + digest}"


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"image_reference": image_reference}
