#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module mps_cleanup."""

from __future__ import annotations

DOCUMENTATION = r"""
module: mps_cleanup
short_description: Remove what a control daemon of MPS has left on a host
version_added: 0.1.0
description:
  - Internal module of this collection, which can change in any release.
  - The control daemon of NVIDIA's device plugin cleans up when it ends. One that is killed leaves its processes, the compute mode
    C(EXCLUSIVE_PROCESS), in which a GPU serves one process, the tmpfs of the shared memory, and files.
  - Has processes of MPS quit through their pipe, and fails with their IDs if they stay; it kills none. Daemons with a pipe elsewhere are unmanaged.
  - Sets the compute mode C(DEFAULT) through NVML where it is C(EXCLUSIVE_PROCESS), if O(path) or a process shows that MPS was used. Without a driver
    there is no such mode.
  - An interrupted run can be repeated; it resumes where it stopped.
author:
  - gpu.kubernetes authors (@gpu-kubernetes)
extends_documentation_fragment:
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.node
  - gpu.kubernetes.attributes.full
options:
  path:
    description: The folder of the control daemons on the host.
    type: path
    default: /run/nvidia/mps
  library:
    description:
      - Path of C(libnvidia-ml.so.1).
      - When left out, the dynamic loader's own is used, else one in the usual folders of drivers in containers.
    type: path
  wait_timeout:
    description: Seconds to wait until the processes have quit.
    type: int
    default: 60
"""

EXAMPLES = r"""
- name: Remove what the control daemon of MPS has left
  gpu.kubernetes.mps_cleanup:
"""

RETURN = r"""
left:
  description: What was left, one entry each; the diff has the same as lines.
  returned: success
  type: list
  elements: str
  sample: [GPU 0 has the compute mode EXCLUSIVE_PROCESS, /run/nvidia/mps exists]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils._module import build_module
from ansible_collections.gpu.kubernetes.plugins.module_utils._mps import cleanup

ARGUMENTS = {
    "path": {"type": "path", "default": "/run/nvidia/mps"},
    "library": {"type": "path"},
    "wait_timeout": {"type": "int", "default": 60},
}
ROOT = "/"


def main() -> None:
    """Run the module."""
    module = build_module(AnsibleModule, ARGUMENTS)
    params = module.params
    host = cleanup.Host(params["path"], f"{ROOT.rstrip('/')}/proc", params["library"])
    try:
        found = cleanup.find_leftovers(host)
        if not module.check_mode:
            cleanup.remove(host, found, params["wait_timeout"])
    except cleanup.CleanupError as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(msg=f"{params['path']} cannot be removed ({error}); remove it, and run again.")
    before = found.describe(params["path"])
    diff = {"before_header": "MPS", "after_header": "MPS", "before": before, "after": ""}
    module.exit_json(changed=bool(before), left=before.splitlines(), diff=diff)


if __name__ == "__main__":
    main()
