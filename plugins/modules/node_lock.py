#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_lock
short_description: Hold or release the lock file of a host that a run changes
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal module of this collection, which can change in any release.
  - A file on the host names the run that changes it, so that a second run is refused, also without an API server. The rules are those of
    M(gpu.kubernetes.node_leases); times are by the host's clock.
  - The file is below C(/run), so that a reboot removes it.
  - It belongs to a run and is not a change of the host, so the module never reports a change.
options:
  path:
    description: The lock file. Its folder has mode V(0700).
    type: path
    required: true
  subject:
    description: What the lock is for, in messages.
    type: str
    required: true
  state:
    description: Whether the lock is held or released. A lock of another run is not released.
    type: str
    choices: [present, absent]
    default: present
  seconds:
    description: How long the lock lasts from now on.
    type: int
    default: 7200
  take_over:
    description: Whether a lock of another run is taken over.
    type: bool
    default: false
  holder:
    description: Name of this run. The action plugin sets it.
    type: str
    default: ""
  ended:
    description: Runs that have ended without a release. The action plugin sets it.
    type: list
    elements: str
    default: []
extends_documentation_fragment:
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.node
attributes:
  check_mode:
    support: full
    details: The lock is only read. RV(refused) has a lock of another run.
  diff_mode:
    support: none
  idempotent:
    support: full
seealso:
  - module: gpu.kubernetes.node_leases
"""

EXAMPLES = r"""
- name: Hold the lock of a host
  gpu.kubernetes.node_lock:
    path: /run/gpu-kubernetes/run.json
    subject: this host
"""

RETURN = r"""
refused:
  description: The lock, if another run holds it.
  returned: O(state=present)
  type: list
  elements: dict
  contains:
    name:
      description: The lock file.
      type: str
    holder:
      description: Its holder.
      type: str
    reason:
      description: Who holds it since when, and what to do, as a clause.
      type: str
"""

import datetime

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.files import FilesError
from ansible_collections.gpu.kubernetes.plugins.module_utils._lease.decide import Request
from ansible_collections.gpu.kubernetes.plugins.module_utils._lease.lock_file import hold_lock, release_lock
from ansible_collections.gpu.kubernetes.plugins.module_utils._lease.report import (
    REQUEST_ARGUMENTS,
    describe_take_overs,
    list_refused,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._module import build_module

ARGUMENTS = {
    "path": {"type": "path", "required": True},
    "subject": {"type": "str", "required": True},
    **REQUEST_ARGUMENTS,
}


def main() -> None:
    module = build_module(AnsibleModule, ARGUMENTS)
    params, path = module.params, module.params["path"]
    try:
        if params["state"] == "absent":
            if not module.check_mode:
                release_lock(path, params["holder"])
            module.exit_json(changed=False)
        request = Request(params["holder"], params["seconds"], params["take_over"], params["ended"])
        now = datetime.datetime.now(datetime.timezone.utc)
        verdicts = {path: hold_lock(path, request, now, module.check_mode)}
    except FilesError as error:
        module.fail_json(msg=str(error))
    subjects = {path: params["subject"]}
    for warning in describe_take_overs(verdicts, subjects):
        module.warn(warning)
    module.exit_json(changed=False, refused=list_refused(verdicts, subjects))


if __name__ == "__main__":
    main()
