# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter apt_places."""

from __future__ import annotations

DOCUMENTATION = r"""
name: apt_places
short_description: Find apt's sources of the distribution
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Reads the output of C(apt-get indextargets) and the sources files that it names. Returns the repositories of the distribution with the
    options of their entries, so that further components can use the same mirrors and keys.
  - Entries that the roles of this collection write are left out.
positional: _input
options:
  _input:
    description: Output of C(apt-get indextargets), without C(--format).
    type: str
    required: true
  files:
    description: Content of each file in a C(Sourcesentry) field by its path, in Base64 as M(ansible.builtin.slurp) returns it.
    type: dict
    required: true
  origin:
    description: The distribution's C(Origin), such as V(Debian). Repositories with an unknown origin are included.
    type: str
    required: true
  suites:
    description: The suites to find.
    type: list
    elements: str
    required: true
seealso:
  - plugin: gpu.kubernetes.vendor_packages
    plugin_type: role
    description: Uses it for a repository without a URL.
"""

EXAMPLES = r"""
- name: Show the host's sources of Debian
  ansible.builtin.debug:
    msg: >-
      {{ __targets.stdout | gpu.kubernetes.apt_places(files={'/etc/apt/sources.list': __list.content}, origin='Debian',
         suites=['bookworm']) }}
"""

RETURN = r"""
_value:
  description: The repositories, in apt's order.
  type: list
  elements: dict
  contains:
    url:
      description: URL of the repository.
      type: str
      sample: http://mirror.example.com/archive/
    suite:
      description: Its suite.
      type: str
      sample: bookworm
    options:
      description: Options of the entry by their names in deb822, such as C(Signed-By).
      type: dict
      sample: {Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg}
"""

from base64 import b64decode
from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable


def apt_places(targets: str, files: dict[str, str], origin: str, suites: list[str]) -> list[dict[str, Any]]:
    """Return the repositories of the distribution with the options of their entries."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.apt import find_repositories

    try:
        texts = {
            path: b64decode(content, validate=True).decode("utf-8", "surrogateescape")
            for path, content in files.items()
        }
        return find_repositories(targets, texts, origin, suites)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise AnsibleFilterError(f"apt_places cannot read the output of apt-get indextargets ({error!r}).") from error


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"apt_places": apt_places}
