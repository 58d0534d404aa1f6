#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module config_snapshot."""

from __future__ import annotations

DOCUMENTATION = r"""
module: config_snapshot
short_description: Keep a file until a change to it has proved itself
version_added: 0.1.0
description:
  - Keeps a file of a daemon as it is before a change, so that it can be put back if the daemon does not start with the
    change, and forgets it once the daemon has shown that it works.
  - The snapshot is kept below O(state_dir) with mode V(0600), never beside the file. It keeps content, mode and owner, and
    also that a file does not exist.
  - While there is a snapshot, M(gpu.kubernetes.containerd_config) keeps its record of the content that the snapshot can bring
    back, so that what it did before can be undone after a rollback, too.
  - This is no backup. What was there when this collection first met a file is kept elsewhere, and longer.
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
  path:
    description: The file. A symbolic link is followed.
    type: path
    required: true
  state:
    description: What to do with the snapshot.
    type: str
    required: true
    choices:
      taken: Keep the file as it is now.
      restored: >-
        Put the file back as it was; does nothing without a snapshot. Content that others have written since the change
        is kept first, with a warning that tells where.
      dropped: Forget the snapshot.
  pending_marker:
    description:
      - While this file exists, a change to O(path) still waits for its proof, so that O(state=taken) leaves a snapshot
        that there is from before, unless others have changed the file since that change.
    type: path
  state_dir:
    description: Directory of this collection on the node.
    type: path
    default: /var/lib/gpu-kubernetes
seealso:
  - module: gpu.kubernetes.container_runtime_probe
"""

EXAMPLES = r"""
- name: Keep the configuration of containerd
  gpu.kubernetes.config_snapshot:
    path: /etc/containerd/config.toml
    state: taken

- name: Put the configuration of containerd back
  gpu.kubernetes.config_snapshot:
    path: /etc/containerd/config.toml
    state: restored
"""

RETURN = r"""
exists:
  description: Whether there was a snapshot when the module began.
  returned: success
  type: bool
  sample: true
backup_file:
  description: Where the content is kept that others had written since the change and that was replaced.
  returned: O(state=restored), not in check mode, if there was such content
  type: str
  sample: /var/lib/gpu-kubernetes/backups/etc-containerd-config.toml.93e1f0a2c4b5.0f343b0931126a20
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils import _snapshot
from ansible_collections.gpu.kubernetes.plugins.module_utils._files import STATE_DIR, FilesError
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.places import Places

ARGUMENTS = {
    "path": {"type": "path", "required": True},
    "state": {"type": "str", "required": True, "choices": ["taken", "restored", "dropped"]},
    "pending_marker": {"type": "path"},
    "state_dir": {"type": "path", "default": STATE_DIR},
}


def act(params: dict[str, t.Any], check_mode: bool) -> dict[str, t.Any]:
    """Do what the parameters ask and return the result; raises FilesError or ConfigError."""
    path, state, places = params["path"], params["state"], Places(params["state_dir"])
    with places.exclusive(path, check_mode):
        snapshot = _snapshot.Snapshot(path, places)
        exists, backup = snapshot.exists, None
        if state == "taken":
            steps = snapshot.take(params["pending_marker"])
        elif state == "restored":
            steps, backup = snapshot.restore()
        else:
            steps = snapshot.drop()
        if not check_mode:
            _snapshot.apply(steps, places)
            if state == "dropped":
                snapshot.settle()
    return {"changed": bool(steps), "exists": exists, **({"backup_file": backup} if backup and not check_mode else {})}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    try:
        result = act(module.params, module.check_mode)
    except (FilesError, ConfigError) as error:
        module.fail_json(msg=str(error))
    if "backup_file" in result:
        module.warn(
            f"{module.params['path']} was changed by others since; what it held is kept in {result['backup_file']}."
        )
    module.exit_json(**result)


if __name__ == "__main__":
    main()
