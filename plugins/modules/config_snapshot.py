#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module config_snapshot."""

from __future__ import annotations

DOCUMENTATION = r"""
module: config_snapshot
short_description: Keep files until a change to them is verified
version_added: 0.1.0
description:
  - Internal module of this collection, which can change in any release.
  - Keeps files of a daemon as they are before a change, so that they can be restored if the daemon does not start with the
    change, and discards them once the daemon is verified.
  - Each file's snapshot is kept below O(state_dir) with mode V(0600), never beside the file. It keeps content, mode and owner, and
    also that a file does not exist.
  - While there is a snapshot, M(gpu.kubernetes.containerd_config) keeps its record of the content that the snapshot can
    restore, so that what it did before can be undone after a rollback, too.
  - This is no backup. The file as this collection first found it is kept elsewhere, and longer.
author:
  - gpu.kubernetes authors (@gpu-kubernetes)
extends_documentation_fragment:
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.node
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
    details: Files of daemons hold passwords of registries.
  idempotent:
    support: full
options:
  paths:
    description: The files. Symbolic links are followed, and the drop-ins are added that one of them has by this collection.
    type: list
    elements: path
    required: true
  state:
    description: What to do with the snapshots.
    type: str
    required: true
    choices:
      taken: Keep the files as they are now.
      restored: >-
        Restore the files as they were; does nothing without a snapshot. Content that others have written since the change
        is kept first, with a warning that names the backup.
      dropped: Discard the snapshots.
  pending_marker:
    description:
      - While this file exists, a change to O(paths) is not verified yet, so that O(state=taken) keeps an existing
        snapshot, unless others have changed its file since that change.
    type: path
  state_dir:
    description: Directory of this collection on the node.
    type: path
    default: /var/lib/gpu-kubernetes
seealso:
  - module: gpu.kubernetes.container_runtime_health_info
"""

EXAMPLES = r"""
- name: Keep the configuration of containerd
  gpu.kubernetes.config_snapshot:
    paths: [/etc/containerd/config.toml]
    state: taken

- name: Restore the configuration of containerd
  gpu.kubernetes.config_snapshot:
    paths: [/etc/containerd/config.toml]
    state: restored
"""

RETURN = r"""
exists:
  description: Whether there was a snapshot of one of the files when the module began.
  returned: success
  type: bool
  sample: true
backup_files:
  description: Backups of the content that others had written since the change and that was replaced, by file.
  returned: O(state=restored), not in check mode
  type: dict
  sample:
    /etc/containerd/config.toml: /var/lib/gpu-kubernetes/backups/etc-containerd-config.toml.93e1f0a2c4b5.0f343b0931126a20
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils._config import snapshot
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.change_log import add_imported_files
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.files import STATE_DIR, FilesError
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.paths import StatePaths
from ansible_collections.gpu.kubernetes.plugins.module_utils._module import build_module

ARGUMENTS = {
    "paths": {"type": "list", "elements": "path", "required": True},
    "state": {"type": "str", "required": True, "choices": ["taken", "restored", "dropped"]},
    "pending_marker": {"type": "path"},
    "state_dir": {"type": "path", "default": STATE_DIR},
}


def act(params: dict[str, t.Any], check_mode: bool) -> dict[str, t.Any]:
    """Do what the parameters request and return the result; raises FilesError or ConfigError."""
    paths, changed, exists, backups = StatePaths(params["state_dir"]), False, False, {}
    for path in add_imported_files(params["state_dir"], params["paths"]):
        with paths.lock(path, check_mode):
            one = snapshot.Snapshot(path, paths)
            exists = exists or one.exists
            steps, backup = _plan(one, params)
            changed = changed or bool(steps)
            if backup:
                backups[path] = backup
            if not check_mode:
                snapshot.apply(steps, paths)
                if params["state"] == "dropped":
                    one.prune_record()
    restored = params["state"] == "restored" and not check_mode
    return {"changed": changed, "exists": exists, **({"backup_files": backups} if restored else {})}


def _plan(one: snapshot.Snapshot, params: dict[str, t.Any]) -> tuple[list[snapshot.Step], str | None]:
    if params["state"] == "taken":
        return one.take(params["pending_marker"]), None
    return one.restore() if params["state"] == "restored" else (one.drop(), None)


def main() -> None:
    """Run the module."""
    module = build_module(AnsibleModule, ARGUMENTS)
    try:
        result = act(module.params, module.check_mode)
    except (FilesError, ConfigError) as error:
        module.fail_json(msg=str(error))
    for path, backup in result.get("backup_files", {}).items():
        module.warn(f"{path} was changed by others since; what it held is kept in {backup}.")
    module.exit_json(**result)


if __name__ == "__main__":
    main()
