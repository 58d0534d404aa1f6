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
  - The snapshot is kept below O(state_dir) with mode V(0600), never beside the file. That a file does not exist is
    kept, too.
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
      restored: Put the file back as it was; does nothing without a snapshot.
      dropped: Forget the snapshot.
  pending_marker:
    description:
      - While this file exists, a change to O(path) still waits for its proof, so that O(state=taken) leaves a snapshot
        that there is from before.
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
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils import _snapshot
from ansible_collections.gpu.kubernetes.plugins.module_utils._files import STATE_DIR, FilesError

ARGUMENTS = {
    "path": {"type": "path", "required": True},
    "state": {"type": "str", "required": True, "choices": ["taken", "restored", "dropped"]},
    "pending_marker": {"type": "path"},
    "state_dir": {"type": "path", "default": STATE_DIR},
}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    snapshot = _snapshot.Snapshot(module.params["path"], module.params["state_dir"])
    plans = {
        "taken": lambda: snapshot.take(module.params["pending_marker"]),
        "restored": snapshot.restore,
        "dropped": snapshot.drop,
    }
    exists = snapshot.exists
    try:
        steps = plans[module.params["state"]]()
        if not module.check_mode:
            for step in steps:
                _snapshot.apply(step)
    except FilesError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=bool(steps), exists=exists)


if __name__ == "__main__":
    main()
