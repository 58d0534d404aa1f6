# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter url_credentials."""

from __future__ import annotations

DOCUMENTATION = r"""
name: url_credentials
short_description: Separate the credentials from a URL
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
  - Messages show a URL with its credentials; M(ansible.builtin.get_url) takes them as options of their own.
positional: _input
options:
  _input:
    description: The URL.
    type: str
    required: true
"""

RETURN = r"""
_value:
  description: C(url) without credentials. C(username) and C(password) are decoded; they are missing if the URL has none.
  type: dict
"""

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable


def url_credentials(url: str) -> dict[str, str]:
    """Return the parts; text that is not a URL raises AnsibleFilterError."""
    try:
        parts = urlsplit(url)
        plain = url.replace(parts.netloc, parts.netloc.rpartition("@")[2], 1)
    except (AttributeError, TypeError, ValueError) as error:
        raise AnsibleFilterError(f"url_credentials cannot read its input ({error!r}); give a URL.") from error
    found = {"username": parts.username, "password": parts.password}
    return {"url": plain, **{key: unquote(value) for key, value in found.items() if value}}


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"url_credentials": url_credentials}
