# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options and attributes that all modules for configuration files of container runtimes have in common.

The other half of the options is ``ARGUMENTS`` in ``module_utils/_runtimes/arguments.py``.
"""

from __future__ import annotations


class ModuleDocFragment:
    """Documentation of the options and attributes."""

    DOCUMENTATION = r"""
attributes:
  check_mode:
    support: full
    details: Nothing at all is written on the node, neither the file nor state, lock or backup.
  diff_mode:
    support: full
    details: Credentials, such as those of registries, proxies and log drivers, are masked in the difference.
  idempotent:
    support: full
options:
  state:
    description:
      - V(present) merges the runtime into the configuration.
      - V(absent) removes what earlier runs of this module set for O(runtime_name) and restores the former values. What others wrote
        since stays.
        If others changed a setting that this module had set, nothing is written, and the run fails. The message names the file,
        the setting and the backup. Remove the setting or restore its former value, then run again.
        A file from which others removed the runtime is left as it is.
    type: str
    choices: [present, absent]
    default: present
  runtime_name:
    description:
      - Name of the runtime, which a C(RuntimeClass) names as its handler. Lowercase letters, digits and hyphens.
    type: str
    default: nvidia
  runtime_path:
    description: Path of the NVIDIA runtime on the node.
    type: path
    default: /usr/bin/nvidia-container-runtime
  set_default:
    description:
      - V(true) makes O(runtime_name) the default runtime.
      - V(false) restores the default runtime that was there before, or the daemon's own, if O(runtime_name) is the default now.
      - Left out, the default runtime stays as it is.
    type: bool
  enable_cdi:
    description: Whether devices are read from the Container Device Interface. Left out, it stays as it is.
    type: bool
  validate:
    description: Whether the daemon has to accept the candidate before the file is replaced. Without its program on the node, nothing is checked.
    type: bool
    default: true
  settings:
    description:
      - Further settings, deep-merged at the root of the document. Tables or objects are merged, all other values (lists too) are replaced.
      - The other options of this module override settings for the same key.
      - The module writes nothing to the node's log, and masks credentials in its results and differences. A new file that holds
        credentials has mode V(0600).
    type: dict
    default: {}
  backup:
    description:
      - Whether to keep a copy of the file as first found in C(backups) below O(state_dir), for people to read, and of what others
        have written since when this module changes the file again. O(state=absent) removes the copy of what the file then holds again.
      - The record of changes below O(state_dir), from which O(state=absent) restores the original bytes, holds the content of
        the file (mode V(0600), for root only) in any case, as long as the file has a change of this module.
    type: bool
    default: true
  state_dir:
    description: Directory for backups, the record of changes and the marker for a pending restart. No daemon may read it.
    type: path
    default: /var/lib/gpu-kubernetes
"""
