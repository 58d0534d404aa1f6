# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter may_be_image."""

from __future__ import annotations

DOCUMENTATION = r"""
name: may_be_image
short_description: Return whether variables of an image may name a published image
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
  - The tag decides. An image with a digest alone may be any image of its repository's name.
positional: _input, published
options:
  _input:
    description: Repository, and tag, digest or C(tag@digest) of the image, in this order. An empty text stands for the published one.
    type: list
    elements: str
    required: true
  published:
    description: The published image, as C(repository:tag). If empty, no image is it.
    type: str
    required: true
"""

RETURN = r"""
_value:
  description: Whether it may be that image.
  type: bool
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def may_be_image(parts: Sequence[str], published: str) -> bool:
    """Return whether it may be; anything else than two parts raises AnsibleFilterError."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._image import may_be_image as may_be

    if isinstance(parts, str) or len(parts) != 2:
        raise AnsibleFilterError(f"may_be_image cannot read {parts!r}; see its documentation.")
    repository, tag = map(str, parts)
    return bool(published) and may_be(repository, tag, published)


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"may_be_image": may_be_image}
