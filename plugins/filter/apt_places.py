# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter apt_places."""

from __future__ import annotations

DOCUMENTATION = r"""
name: apt_places
short_description: Find where apt has the distribution from
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Reads what C(apt-get indextargets) tells of a host, and the files that it names, and returns the repositories of the distribution
    with the options of their entries, so that further components can be had from the same places by the same keys.
  - Entries that the roles of this collection write are left out.
positional: _input
options:
  _input:
    description: What C(apt-get indextargets) tells, without C(--format).
    type: str
    required: true
  files:
    description: Content of each file that a C(Sourcesentry) in it names, by its path.
    type: dict
    required: true
  origin:
    description: The distribution's C(Origin), such as V(Debian). Repositories of which apt does not know it yet count as well.
    type: str
    required: true
  suites:
    description: Suites that are looked for.
    type: list
    elements: str
    required: true
seealso:
  - plugin: gpu.kubernetes.vendor_packages
    plugin_type: role
    description: Uses it where a repository is asked for without its URL.
"""

EXAMPLES = r"""
- name: Show where the host has Debian from
  ansible.builtin.debug:
    msg: >-
      {{ __targets.stdout | gpu.kubernetes.apt_places(files={'/etc/apt/sources.list': __list.content | b64decode}, origin='Debian',
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

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.apt_places import places

if TYPE_CHECKING:
    from collections.abc import Callable


def apt_places(targets: str, files: dict[str, str], origin: str, suites: list[str]) -> list[dict[str, Any]]:
    """Return the repositories of the distribution with the options of their entries."""
    try:
        return places(targets, files, origin, suites)
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise AnsibleFilterError(f"apt_places cannot read what apt-get indextargets told ({error!r}).") from error


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by its name."""
        return {"apt_places": apt_places}
