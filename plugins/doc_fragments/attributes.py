# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Attributes that modules have in common.

A module uses ``gpu.kubernetes.attributes`` and states C(support) for check_mode,
diff_mode and idempotent; the sub-fragments below are complete and only need naming.
"""

from __future__ import annotations


class ModuleDocFragment:
    """Fragments of documentation for the ``attributes`` of modules."""

    # The module itself adds `support` (and `details`) to each of the three.
    DOCUMENTATION = r"""
options: {}
attributes:
  check_mode:
    description: Can run in C(check_mode) and report whether it would change something, without changing anything.
  diff_mode:
    description: Will return details on what has changed (or would change in C(check_mode)) when in diff mode.
  idempotent:
    description:
      - When run twice in a row outside check mode with the same arguments, the second run reports that nothing changed.
      - This assumes that the system did not change in between for other reasons.
"""

    # For modules that run on a node and edit files or read hardware there.
    NODE = r"""
options: {}
attributes:
  platform:
    description: Target operating systems on which the module can run.
    support: full
    platforms: linux
"""

    # For modules that only talk to the API server, from the controller or execution environment.
    API = r"""
options: {}
attributes:
  platform:
    description: Target operating systems on which the module can run.
    details:
      - The module runs where C(kubernetes.core) modules run, which usually is the controller.
      - On the controller, some of these modules use the Python of Ansible, unless the task has C(become), C(environment) or C(async).
    support: full
    platforms: posix
  action_group:
    description: Use C(group/gpu.kubernetes.api) in C(module_defaults) to set defaults for this module.
    support: full
    membership:
      - gpu.kubernetes.api
"""

    # For modules that return ansible_facts.
    FACTS = r"""
options: {}
attributes:
  check_mode:
    support: full
    details: This module does not change anything.
  diff_mode:
    support: N/A
    details: This module does not change anything.
  idempotent:
    support: full
    details: This module does not change anything.
  facts:
    description: Action returns an C(ansible_facts) dictionary that will update existing host facts.
    support: full
"""

    # For modules that change something and support all three.
    FULL = r"""
options: {}
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
"""

    # For modules that only read.
    INFO = r"""
options: {}
attributes:
  check_mode:
    support: full
    details: This module does not change anything.
  diff_mode:
    support: N/A
    details: This module does not change anything.
  idempotent:
    support: full
    details: This module does not change anything.
"""
