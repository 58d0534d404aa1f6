#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: docker_daemon_config
short_description: Merge the NVIDIA runtime into Docker's configuration, without loss
version_added: 0.1.0
author:
  - gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Adds a runtime such as C(nvidia) to Docker's C(daemon.json), as an administrator would by hand.
  - Only the lines concerned change. Order of keys, indentation, line endings, the end of the file, file mode, owner, extended attributes
    (ACL, SELinux context) and symbolic links stay as they are, and the file is replaced in one step.
  - What an existing entry of the runtime has, such as C(runtimeArgs), and other C(features) are kept.
  - A file with anything that Docker and other readers take differently is refused, with line and column. Such are keys that
    are there twice, comments and text after the end of the document.
  - Where C(dockerd) is on the node, it has to accept the candidate (C(dockerd --validate), Docker 23.0 and newer) before the
    file is replaced.
  - What was put in is recorded leaf by leaf, so that O(state=absent) takes out just that. A file that nobody else changed gets its
    first bytes back.
  - This module restarts nothing. See RV(restart_required).
extends_documentation_fragment:
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.node
attributes:
  check_mode:
    support: full
    details: Nothing at all is written on the node, neither the file nor state, lock or backup.
  diff_mode:
    support: full
    details: Credentials, such as those of proxies and log drivers, are masked in the difference.
  idempotent:
    support: full
options:
  path:
    description: The configuration file. A missing or empty one is created with what is needed and nothing else. Templates are refused.
    type: path
    default: /etc/docker/daemon.json
  state:
    description:
      - V(present) merges the runtime into the file.
      - V(absent) takes out what earlier runs of this module put in for O(runtime_name) and leaves what others wrote since.
        A file that was replaced since is left as it is.
    type: str
    choices: [present, absent]
    default: present
  runtime_name:
    description:
      - Name of the runtime, as in C(docker run --runtime). Lowercase letters, digits and hyphens, but not V(runc), which is Docker's own.
    type: str
    default: nvidia
  runtime_path:
    description: Path of the NVIDIA runtime on the node, written as C(path) of the runtime.
    type: path
    default: /usr/bin/nvidia-container-runtime
  set_default:
    description:
      - V(true) makes O(runtime_name) the default runtime (C(default-runtime)).
      - V(false) puts back the default runtime that was there before, or C(runc), if O(runtime_name) is the default now.
      - Left out, the default runtime stays as it is.
    type: bool
  enable_cdi:
    description: Whether Docker takes devices from the Container Device Interface (C(features.cdi)). Left out, it stays as it is.
    type: bool
  dockerd_binary:
    description:
      - Path of C(dockerd). Left out, it is looked for in E(PATH) and the usual directories.
    type: path
  validate:
    description: Whether C(dockerd) has to accept the candidate before the file is replaced. Nothing is asked where there is no C(dockerd).
    type: bool
    default: true
  settings:
    description:
      - Further settings, deep-merged at the root of the document. Objects are merged, all other values (lists too) are replaced.
      - The other options of this module win over settings for the same key.
      - Use C(no_log) on the task if they hold credentials that must not be logged on the node.
    type: dict
    default: {}
  backup:
    description:
      - Whether to keep a copy of the file as first met in C(backups) below O(state_dir), for people to look at. It stays there
        after O(state=absent), too.
      - The record of changes below O(state_dir), from which O(state=absent) gives the first bytes back, holds the content of
        the file (mode V(0600), for root only) whatever this says, as long as something of this module is in the file.
    type: bool
    default: true
  state_dir:
    description: Directory for backups, the record of changes and the mark for a pending restart. No daemon may read it.
    type: path
    default: /var/lib/gpu-kubernetes
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

- name: Make it the default runtime, as Kubernetes with cri-dockerd and older device plugins need it
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

- name: Take it all out again
  gpu.kubernetes.docker_daemon_config:
    state: absent
"""

RETURN = r"""
default_runtime:
  description: Default runtime that the file names, null if it names none (Docker then takes runc).
  returned: success
  type: str
  sample: nvidia
restart_required:
  description:
    - Whether Docker has to be restarted to take over the file. True if this run changed what the file means, or an earlier run did
      and nobody confirmed a good restart since.
    - To confirm, remove C(pending/docker.restart) below O(state_dir).
  returned: success
  type: bool
backup_file:
  description: Where the file as first met is kept.
  returned: changed, not in check mode, and O(backup=true)
  type: str
  sample: /var/lib/gpu-kubernetes/backups/etc-docker-daemon.json.5e0b9d3c7a41.0f343b0931126a20
reasons:
  description: What was changed, in words.
  returned: success
  type: list
  elements: str
  sample: [make nvidia the default runtime]
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils._files import FilesError
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes import proof
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.apply import (
    Host,
    answer,
    ensure_absent,
    ensure_present,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.docker import Docker
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.masking import secret_words

ARGUMENTS = {
    "path": {"type": "path", "default": "/etc/docker/daemon.json"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "runtime_name": {"type": "str", "default": "nvidia"},
    "runtime_path": {"type": "path", "default": "/usr/bin/nvidia-container-runtime"},
    "set_default": {"type": "bool"},
    "enable_cdi": {"type": "bool"},
    "dockerd_binary": {"type": "path"},
    "validate": {"type": "bool", "default": True},
    "settings": {"type": "dict", "default": {}},
    "backup": {"type": "bool", "default": True},
    "state_dir": {"type": "path", "default": "/var/lib/gpu-kubernetes"},
}
ASKED = ("path", "runtime_name", "runtime_path", "set_default", "enable_cdi", "settings")


def act(params: dict[str, t.Any], check_mode: bool, diff: bool, workdir: str) -> tuple[dict[str, t.Any], list[str]]:
    """Do what the parameters ask; return the answer and the warnings.  Raises ConfigError or FilesError."""
    daemon = Docker(**{name: params[name] for name in ASKED})
    host = Host(
        state_dir=params["state_dir"],
        check_mode=check_mode,
        keep_copy=params["backup"],
        binary=proof.find_binary(params["dockerd_binary"], "dockerd") if params["validate"] else None,
        workdir=workdir,
    )
    outcome = ensure_present(daemon, host) if params["state"] == "present" else ensure_absent(daemon, host)
    return answer(daemon, outcome, diff), outcome.warnings


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    module.no_log_values.update(secret_words(module.params["settings"]))
    try:
        result, warnings = act(module.params, module.check_mode, module._diff, module.tmpdir)
    except (ConfigError, FilesError) as exc:
        module.fail_json(msg=str(exc))
    for warning in warnings:
        module.warn(warning)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
