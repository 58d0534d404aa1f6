#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: docker_daemon_config
short_description: Merge the NVIDIA runtime into Docker's configuration
version_added: 0.1.0
author:
  - gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Adds a runtime such as C(nvidia) to Docker's C(daemon.json), as an administrator would by hand.
  - Settings of others, the order of keys, indentation, line endings, the end of the file, file mode, owner, extended attributes
    (ACL, SELinux context) and symbolic links stay as they are, and the file is replaced in one step, unless others
    have changed it meanwhile. A hard link to it keeps the former content. Other white space is normalised.
  - What an existing entry of the runtime has, such as C(runtimeArgs), and other C(features) are kept.
  - A file that is not valid JSON is refused with line and column, a key that is in one object twice with its name.
  - Where C(dockerd) is on the node, it has to accept the candidate (C(dockerd --validate), Docker 23.0 and newer) before the
    file is replaced.
  - Each changed setting is recorded, so that O(state=absent) undoes these changes only. If others did not change the file, its first
    content is restored byte for byte.
  - This module restarts nothing. See RV(restart_required).
extends_documentation_fragment:
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.node
  - gpu.kubernetes.runtime_config
options:
  path:
    description: The configuration file. A missing or empty one is created with what is needed and nothing else. Templates are refused.
    type: path
    default: /etc/docker/daemon.json
  runtime_name:
    description:
      - Name of the runtime, as in C(docker run --runtime). Lowercase letters, digits and hyphens, but not V(runc), which is Docker's own.
    type: str
    default: nvidia
  runtime_path:
    description: Path of the NVIDIA runtime on the node, written as C(path) of the runtime.
    type: path
    default: /usr/bin/nvidia-container-runtime
  enable_cdi:
    description: Whether Docker reads devices from the Container Device Interface (C(features.cdi)). Left out, it stays as it is.
    type: bool
  dockerd_binary:
    description:
      - Path of C(dockerd). Left out, it is searched for in E(PATH) and the usual directories.
    type: path
seealso:
  - module: gpu.kubernetes.containerd_config
  - module: gpu.kubernetes.config_snapshot
  - name: Docker daemon configuration
    description: Meaning of the settings.
    link: https://docs.docker.com/reference/cli/dockerd/#daemon-configuration-file
"""

EXAMPLES = r"""
- name: Add the NVIDIA runtime beside runc
  gpu.kubernetes.docker_daemon_config:

- name: Make it the default runtime, as Kubernetes with cri-dockerd and older device plugins requires
  gpu.kubernetes.docker_daemon_config:
    set_default: true
  register: __docker_config
  notify: Restart Docker

- name: Switch CDI on and add a setting of your own
  gpu.kubernetes.docker_daemon_config:
    enable_cdi: true
    settings:
      log-opts:
        max-size: 10m

- name: Undo all changes
  gpu.kubernetes.docker_daemon_config:
    state: absent
"""

RETURN = r"""
default_runtime:
  description: Default runtime that the file names, null if it names none (Docker then uses runc).
  returned: success
  type: str
  sample: nvidia
restart_required:
  description:
    - Whether Docker has to be restarted to take over the file. True if this run changed what the file means, or an earlier run did
      and no restart was confirmed since.
    - To confirm, remove C(pending/docker.restart) below O(state_dir).
  returned: success
  type: bool
backup_file:
  description: Backup of the file as first found.
  returned: changed, not in check mode, O(backup=true), and the undo has not removed it
  type: str
  sample: /var/lib/gpu-kubernetes/backups/etc-docker-daemon.json.5e0b9d3c7a41.0f343b0931126a20
reasons:
  description: What was changed, in words.
  returned: success
  type: list
  elements: str
  sample: [make nvidia the default runtime]
files:
  description: The files that hold what was requested, or held it.
  returned: success
  type: list
  elements: str
  sample: [/etc/docker/daemon.json]
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.apply import Host, Outcomes, ensure
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.module_main import run
from ansible_collections.gpu.kubernetes.plugins.module_utils._module import build_module
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.arguments import ARGUMENTS as COMMON_ARGUMENTS
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.docker import Docker

ARGUMENTS = {
    **COMMON_ARGUMENTS,
    "path": {"type": "path", "default": "/etc/docker/daemon.json"},
    "dockerd_binary": {"type": "path"},
}
REQUESTED = ("path", "runtime_name", "runtime_path", "set_default", "enable_cdi", "settings")


def act(params: t.Mapping[str, t.Any], host: Host) -> Outcomes:
    """Bring the file to what the parameters request; raises ConfigError or FilesError."""
    return ensure(Docker(**{name: params[name] for name in REQUESTED}), params["state"], host)


def main() -> None:
    """Run the module."""
    run(build_module(AnsibleModule, ARGUMENTS), "dockerd", act)


if __name__ == "__main__":
    main()
