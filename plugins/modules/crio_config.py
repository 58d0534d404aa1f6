#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: crio_config
short_description: Add the NVIDIA runtime to CRI-O by a drop-in file
version_added: 0.1.0
author:
  - gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Adds a runtime such as C(nvidia) to CRI-O by a drop-in file of its own. C(crio.conf) is read, and never written.
  - The new runtime inherits what CRI-O's files set for the default runtime (else of C(crun) or C(runc)), such as C(runtime_root),
    C(monitor_path) and C(allowed_annotations), and what an earlier file sets for a runtime of this name. What the drop-in already has is kept.
  - A file that CRI-O reads later and that would override the result is named, and nothing is written. A warning names one that it reads
    earlier and that describes the runtime too, such as C(99-nvidia.conf) of NVIDIA's GPU Operator.
  - If the drop-in already exists, only the lines concerned change. Comments, order, quoting, file mode, owner, extended attributes
    (ACL, SELinux context) and symbolic links stay as they are, and the file is replaced in one step, unless others
    have changed it meanwhile. A hard link to it keeps the former content.
  - Where C(crio) is on the node, it has to accept the candidate beside all other files (C(crio config)) before the file is replaced.
  - Each changed setting is recorded, so that O(state=absent) undoes these changes only. A drop-in that this module created, and that
    others did not change, is removed.
  - This module restarts nothing. See RV(restart_required).
extends_documentation_fragment:
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.node
  - gpu.kubernetes.runtime_config
options:
  path:
    description: The main configuration file. It need not exist.
    type: path
    default: /etc/crio/crio.conf
  drop_in:
    description:
      - The drop-in file, somewhere in C(crio.conf.d) beside O(path).
      - Left out, it is C(99-nvidia.toml) there, where NVIDIA's C(nvidia-ctk) puts it too.
    type: path
  enable_cdi:
    description: CRI-O always reads devices from the Container Device Interface, so that V(true) changes nothing and V(false) is refused.
    type: bool
  crio_binary:
    description:
      - Path of C(crio). Left out, it is searched for in E(PATH) and the usual directories.
    type: path
notes:
  - Written for CRI-O 1.26 and newer. Older ones drop the runtime C(runc) once another one is the default, and 1.23 has no CDI.
  - NVIDIA's runtime starts the first of the runtimes that its own configuration lists (C(nvidia-container-runtime.runtimes) in
    C(/etc/nvidia-container-runtime/config.toml)) and that it finds. Where CRI-O brings C(crun) alone, C(crun) has to be in that list.
seealso:
  - module: gpu.kubernetes.containerd_config
  - module: gpu.kubernetes.docker_daemon_config
  - module: gpu.kubernetes.config_snapshot
  - name: crio.conf
    description: Meaning of the settings.
    link: https://github.com/cri-o/cri-o/blob/main/docs/crio.conf.5.md
"""

EXAMPLES = r"""
- name: Add the NVIDIA runtime
  gpu.kubernetes.crio_config:

- name: Make it the default runtime
  gpu.kubernetes.crio_config:
    set_default: true
  register: __crio_config
  notify: Restart CRI-O

- name: Add a setting of your own to the same drop-in
  gpu.kubernetes.crio_config:
    settings:
      crio:
        runtime:
          pids_limit: 4096

- name: Undo all changes
  gpu.kubernetes.crio_config:
    state: absent
"""

RETURN = r"""
default_runtime:
  description: Default runtime that CRI-O's files name together, null if they name none (CRI-O then uses its own).
  returned: success
  type: str
  sample: crun
drop_in:
  description: The drop-in file.
  returned: success
  type: str
  sample: /etc/crio/crio.conf.d/99-nvidia.toml
restart_required:
  description:
    - Whether CRI-O has to be restarted to take over the file. True if this run changed what the file means, or an earlier run did
      and no restart was confirmed since.
    - To confirm, remove C(pending/crio.restart) below O(state_dir).
  returned: success
  type: bool
backup_file:
  description: Backup of the drop-in as first found, if it was there.
  returned: changed, not in check mode, the drop-in was there before, O(backup=true), and the undo has not removed it
  type: str
  sample: /var/lib/gpu-kubernetes/backups/etc-crio-crio.conf.d-99-nvidia.toml.93e1f0a2c4b5.0f343b0931126a20
reasons:
  description: What was changed, in words.
  returned: success
  type: list
  elements: str
  sample: [name the NVIDIA runtime's binary, give the runtime its type, inherit from runtime crun]
files:
  description: The files that hold what was requested, or held it.
  returned: success
  type: list
  elements: str
  sample: [/etc/crio/crio.conf.d/99-nvidia.toml]
"""

import os.path
import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.apply import Host, Outcomes, ensure
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.module_main import run
from ansible_collections.gpu.kubernetes.plugins.module_utils._module import build_module
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.arguments import ARGUMENTS as COMMON_ARGUMENTS
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.crio import Crio

ARGUMENTS = {
    **COMMON_ARGUMENTS,
    "path": {"type": "path", "default": "/etc/crio/crio.conf"},
    "drop_in": {"type": "path"},
    "crio_binary": {"type": "path"},
}
REQUESTED = ("runtime_name", "runtime_path", "set_default", "enable_cdi", "settings")


def act(params: t.Mapping[str, t.Any], host: Host) -> Outcomes:
    """Bring the drop-in to what the parameters request; raises ConfigError or FilesError."""
    main = params["path"]
    drop_in = params["drop_in"] or os.path.join(os.path.dirname(main), "crio.conf.d", "99-nvidia.toml")
    return ensure(Crio(path=drop_in, main=main, **{name: params[name] for name in REQUESTED}), params["state"], host)


def main() -> None:
    """Run the module."""
    run(build_module(AnsibleModule, ARGUMENTS), "crio", act)


if __name__ == "__main__":
    main()
