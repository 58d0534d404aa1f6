#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: containerd_config
short_description: Merge the NVIDIA runtime into containerd's configuration, without loss
version_added: 0.1.0
author:
  - gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Adds a runtime such as C(nvidia) to containerd's C(config.toml), as an administrator would by hand.
  - Only the lines concerned change. Comments, order, quoting, indentation, line endings, file mode, owner, extended attributes
    (ACL, SELinux context) and symbolic links stay as they are, and the file is replaced in one step, unless others
    have changed it meanwhile. A hard link to it keeps the former content.
  - The new runtime inherits what C(runc) (or another runtime of runc's type that is the default) has, such as
    C(runtime_type), C(SystemdCgroup) and C(base_runtime_spec), and nothing from Kata Containers or gVisor. What an existing
    table of the runtime has is kept.
  - Where C(containerd) is on the node, it has to accept the candidate (C(containerd config dump)) and to make of it what
    is requested before the file is replaced.
  - Each changed setting is recorded, so that O(state=absent) undoes these changes only. If others did not change the file, its first
    content is restored byte for byte.
  - This module restarts nothing. See RV(restart_required).
extends_documentation_fragment:
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.node
  - gpu.kubernetes.runtime_config
options:
  path:
    description:
      - The configuration file. A missing or empty one is created with what is needed and nothing else.
      - On a host whose Kubernetes distribution brings its own containerd, the default means that one, and the module writes what the
        distribution offers instead of the file that it renders, which is a drop-in, its template, or its own configuration.
        RV(files) names it.
      - Other files that a Kubernetes distribution renders, and templates, are refused, and the error names what the distribution offers instead.
        A file that the cluster's installer overwrites is changed, with a warning that names the variables of its inventory.
    type: path
    default: /etc/containerd/config.toml
  drop_in:
    description:
      - A file of its own for the runtime, which O(path) imports by its absolute path, unless it does already, such as
        through C(/etc/containerd/conf.d/*.toml). Nothing else is written to O(path) but the configuration version, if there is none.
      - Needs containerd 2.0 or newer, which merges imported files setting by setting; 1.x would read the whole CRI section from the
        drop-in, and is refused. So is what a drop-in cannot do, such as switching CRI on that O(path) switches off, and O(settings)
        other than those of C(plugins), which containerd does not merge leaf by leaf.
      - The drop-in has the settings that differ from those of O(path) and of the files that containerd reads before it, and the
        configuration version of O(path).
      - To move the runtime between the two files, remove it with O(state=absent) first, which needs no O(drop_in) for that.
    type: path
  state:
    description:
      - V(present) merges the runtime into the file.
      - V(absent) removes what earlier runs of this module set for O(runtime_name) and restores the former values. What others wrote
        since stays.
        If others changed a setting that this module had set, nothing is written, and the run fails. The message names the file,
        the setting and the backup. Remove the setting or restore its former value, then run again.
        Settings that the runtime inherited are removed with it, whatever their value.
        If others added settings to a table C(runc) that this module made, C(runc) stays, with a warning. If others changed a file
        in which CRI was disabled before, CRI stays enabled, with a warning. A file from which others removed the runtime is left as
        it is. A drop-in is removed with its last setting, and its import with it.
    type: str
    choices: [present, absent]
    default: present
  runtime_path:
    description: Path of the NVIDIA runtime on the node, written as C(options.BinaryName).
    type: path
    default: /usr/bin/nvidia-container-runtime
  enable_cdi:
    description:
      - Whether the CRI plugin reads devices from the Container Device Interface. Left out, it stays as it is.
      - containerd 2.0 and newer have it on unless the file says otherwise, so that it is written there only if it differs.
    type: bool
  systemd_cgroup:
    description:
      - Whether containers are put into cgroups through systemd (C(SystemdCgroup)). It has to agree with the kubelet's
        C(cgroupDriver).
      - If given, it is applied to O(runtime_name) and to every other runtime of runc's type, because containerd reports to the kubelet
        the driver of one of them only.
      - Left out, O(runtime_name) inherits what runc has.
    type: bool
  containerd_version:
    description:
      - Release of containerd, such as V(1.7.28) or V(2.1). Decides the configuration version of a new file and the effect of imported files.
      - Left out, C(containerd --version) is run.
    type: str
  containerd_binary:
    description:
      - Path of C(containerd). Left out, it is searched for in E(PATH) and the usual directories.
    type: path
seealso:
  - module: gpu.kubernetes.docker_daemon_config
  - name: containerd CRI configuration
    description: Meaning of the settings.
    link: https://github.com/containerd/containerd/blob/main/docs/cri/config.md
"""

EXAMPLES = r"""
- name: Add the NVIDIA runtime beside runc
  gpu.kubernetes.containerd_config:

- name: Make it the default runtime, with the systemd cgroup driver for all runtimes
  gpu.kubernetes.containerd_config:
    set_default: true
    systemd_cgroup: true
  register: __runtime_config
  notify: Restart containerd

- name: Add a setting of your own
  gpu.kubernetes.containerd_config:
    settings:
      plugins:
        io.containerd.cri.v1.runtime:
          max_container_log_line_size: 32768

- name: Add the runtime in a file of its own, with containerd 2
  gpu.kubernetes.containerd_config:
    drop_in: /etc/containerd/conf.d/99-nvidia.toml

- name: Undo all changes
  gpu.kubernetes.containerd_config:
    state: absent
"""

RETURN = r"""
config_version:
  description: Configuration version of the file after the run, null if it has none.
  returned: success
  type: int
  sample: 3
plugin_id:
  description: Plugin under which the runtimes are, null if the file has no version.
  returned: success
  type: str
  sample: io.containerd.cri.v1.runtime
default_runtime_name:
  description:
    - Default runtime that the file names, with O(drop_in) that of all files together; null if it names none (containerd then
      uses runc).
  returned: success
  type: str
  sample: nvidia
systemd_cgroup:
  description:
    - Whether the runtime O(runtime_name) uses the systemd cgroup driver, which the kubelet has to use, too; null without the runtime.
  returned: success
  type: bool
  sample: true
restart_required:
  description:
    - Whether containerd has to be restarted to take over the file. True if this run changed what the file means, or an earlier run did
      and no restart was confirmed since.
    - To confirm, remove C(pending/containerd.restart) below O(state_dir).
  returned: success
  type: bool
backup_file:
  description: Backup of the file as first found, that of O(path) if both it and O(drop_in) were changed.
  returned: changed, not in check mode, O(backup=true), and the undo has not removed it
  type: str
  sample: /var/lib/gpu-kubernetes/backups/etc-containerd-config.toml.93e1f0a2c4b5.0f343b0931126a20
reasons:
  description: What was changed, in words.
  returned: success
  type: list
  elements: str
  sample: [make nvidia the default runtime]
files:
  description:
    - The files that hold what was requested, or held it, in the order in which they are written. More than one with O(drop_in), of
      which the first is the drop-in and the last O(path).
  returned: success
  type: list
  elements: str
  sample: [/etc/containerd/config.toml]
"""

import os
import typing as t
from dataclasses import replace

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils import _distributions
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.apply import Host, Outcomes
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.module_main import run
from ansible_collections.gpu.kubernetes.plugins.module_utils._module import build_module
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.arguments import ARGUMENTS as COMMON_ARGUMENTS
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.containerd import distribution, drop_in
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.containerd.daemon import read_release
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.containerd.plan import Request
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.containerd.schema import Release, parse_release
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.containerd.unit import Place

ARGUMENTS = {
    **COMMON_ARGUMENTS,
    "path": {"type": "path", "default": "/etc/containerd/config.toml"},
    "drop_in": {"type": "path"},
    "systemd_cgroup": {"type": "bool"},
    "containerd_version": {"type": "str"},
    "containerd_binary": {"type": "path"},
}
REQUESTED = ("path", "runtime_name", "runtime_path", "set_default", "enable_cdi", "systemd_cgroup", "settings")


def find_release(given: str | None, binary: str | None) -> Release | None:
    """Return the release given, else the one that *binary* states, else None; raises ConfigError for text that is not a version."""
    if given is None:
        return read_release(binary) if binary else None
    release = parse_release(given)
    if release is None:
        raise ConfigError(f"containerd_version {given} is not a version: give one such as 1.7.28 or 2.1.")
    return release


def act(params: t.Mapping[str, t.Any], host: Host) -> Outcomes:
    """Bring the files to what the parameters request; raises ConfigError or FilesError."""
    name = _distributions.detect(os.path.exists)
    own = _distributions.named(name).own_containerd
    if own and params["path"] in (_distributions.USUAL_CONFIG, own.config, own.edited):
        return _act_for_distribution(Place(str(name), own), params, host)
    release = find_release(params["containerd_version"], host.binary)
    request = Request(release=release, **{name: params[name] for name in REQUESTED})
    return drop_in.apply(request, params["drop_in"], params["state"], host)


def _act_for_distribution(place: Place, params: t.Mapping[str, t.Any], host: Host) -> Outcomes:
    """Bring the containerd that a distribution brings to what the parameters request, in the distribution's way."""
    if params["drop_in"] not in (None, place.own.edited):
        raise ConfigError(
            f"drop_in {params['drop_in']}: leave it out, since {place.name} has its own place for the runtime."
        )
    # The host may have another containerd in PATH.
    host = replace(host, binary=params["containerd_binary"])
    given = params["containerd_version"]
    request = Request(
        release=find_release(given, None) if given else None, **{name: params[name] for name in REQUESTED}
    )
    return distribution.apply(place, request, params["state"], host)


def main() -> None:
    """Run the module."""
    run(build_module(AnsibleModule, ARGUMENTS), "containerd", act)


if __name__ == "__main__":
    main()
