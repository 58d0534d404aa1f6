#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module container_runtime_info."""

from __future__ import annotations

DOCUMENTATION = r"""
module: container_runtime_info
short_description: Read which container runtime and NVIDIA toolkit a node has
version_added: 0.1.0
description:
  - Returns the paths and versions of the daemon's program and the NVIDIA container runtime, the package of the latter,
    whether systemd knows the daemon, and which runtime the kubelet uses.
  - Reads programs, packages, the unit and the kubelet's arguments and configuration.
    M(gpu.kubernetes.container_runtime_health_info) queries the running daemon.
author:
  - gpu.kubernetes authors (@gpu-kubernetes)
extends_documentation_fragment:
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.info
  - gpu.kubernetes.attributes.node
options:
  daemon:
    description: The daemon.
    type: str
    choices: [containerd, crio, docker]
    default: containerd
  service:
    description: Name of the daemon's systemd unit; by default the daemon's name.
    type: str
  toolkit_runtime:
    description:
      - The NVIDIA container runtime, as a path or as a name that is searched in C(PATH) and in V(/usr/local/nvidia/toolkit),
        where the toolkit's container image puts it.
    type: str
    default: nvidia-container-runtime
  packages:
    description: Names of packages whose installed versions are returned.
    type: list
    elements: str
    default: [nvidia-container-toolkit]
  package_manager:
    description: The package manager to query; by default the first one that is found.
    type: str
    choices: [apt, dnf, zypper, pacman]
  config_path:
    description: A configuration file of a container runtime, which is not among RV(other_configurations).
    type: path
  files:
    description: Paths, of which RV(files_found) has those that exist.
    type: list
    elements: str
    default: []
  state_dir:
    description: Where the collection keeps its records on the node.
    type: path
    default: /var/lib/gpu-kubernetes
seealso:
  - module: gpu.kubernetes.container_runtime_health_info
  - module: gpu.kubernetes.containerd_config
"""

EXAMPLES = r"""
- name: Look at the container runtime
  gpu.kubernetes.container_runtime_info:
  register: runtime

- name: Show the version of containerd
  ansible.builtin.debug:
    var: runtime.program.version
"""

RETURN = r"""
program:
  description: The daemon's program.
  returned: success
  type: dict
  contains:
    path:
      description: Where it is; V(none) if it is not found.
      type: str
      sample: /usr/bin/containerd
    version:
      description: Its version.
      type: str
      sample: 2.1.4
    usable:
      description: Whether it can be executed.
      type: bool
      sample: true
service:
  description: The systemd unit.
  returned: success
  type: dict
  contains:
    name:
      description: Its name.
      type: str
      sample: containerd
    exists:
      description: Whether systemd knows it.
      type: bool
      sample: true
    state:
      description: C(ActiveState) of the unit.
      type: str
      sample: active
toolkit:
  description: NVIDIA's container runtime.
  returned: success
  type: dict
  contains:
    path:
      description: Where the runtime is; V(none) if it is not found.
      type: str
      sample: /usr/bin/nvidia-container-runtime
    version:
      description: Its version.
      type: str
      sample: 1.17.8
    usable:
      description: Whether it can be executed and prints its version.
      type: bool
      sample: true
package_manager:
  description: The package manager that was asked.
  returned: success
  type: str
  sample: apt
packages:
  description: The installed version of each package; V(none) if it is not installed.
  returned: success
  type: dict
  sample:
    nvidia-container-toolkit: 1.17.8-1
other_configurations:
  description: Configuration files other than O(config_path) in which a record says that this collection put a runtime.
  returned: success
  type: list
  elements: str
  sample: [/etc/docker/daemon.json]
files_found:
  description: Those of O(files) that are there, whatever they are.
  returned: success
  type: list
  elements: str
  sample: [/etc/apt/preferences.d/nvidia-container-toolkit]
kubelet:
  description: The kubelet of the host.
  returned: success
  type: dict
  contains:
    running:
      description: Whether it runs.
      type: bool
      sample: true
    endpoint:
      description: The socket of its container runtime; V(none) on a host that kubeadm never made a node and where no kubelet runs.
      type: str
      sample: unix:///run/containerd/containerd.sock
    daemon:
      description: V(containerd), V(crio), or V(docker) for cri-dockerd; V(none) where the socket's name tells of none of them.
      type: str
      sample: containerd
    version:
      description: Its version; V(none) if its program is not found.
      type: str
      sample: 1.34.4
    cgroup_driver:
      description:
        - V(systemd) or V(cgroupfs), which the container runtime has to use, too.
        - V(none) where it reads the driver from the container runtime, as from Kubernetes 1.31 on with containerd 2.0 or CRI-O 1.28, and
          where a version is unknown.
      type: str
      sample: systemd
kubernetes_distribution:
  description: The Kubernetes distribution, or the installer of the cluster, whose files are found; V(none) without any.
  returned: success
  type: str
  sample: kubeadm
own_containerd:
  description:
    - The containerd that this distribution brings; empty if it brings none, or if O(service) or O(config_path) are those of another one.
    - RV(program) and RV(service) are then its program and the unit that runs it.
  returned: success
  type: dict
  contains:
    config:
      description: What it reads. The distribution renders it.
      type: str
      sample: /var/lib/example/etc/containerd/config.toml
    socket:
      description: Its socket.
      type: str
      sample: /run/example/containerd.sock
    service:
      description: The systemd unit that runs it.
      type: str
      sample: example-agent
    program:
      description: Its program; V(none) before the distribution has unpacked it.
      type: str
      sample: /var/lib/example/bin/containerd
    reloads:
      description: Whether it reads changed drop-ins by itself.
      type: bool
      sample: false
edge_framework:
  description:
    - The edge framework that the host shows, by the local proxy that its kubelet uses as API server or by an agent that replaces the kubelet.
    - V(superedge), V(openyurt) or V(kubeedge); empty for none.
  returned: success
  type: str
  sample: ""
"""

import os
import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils import _commands, _distributions, _edge
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.change_log import list_changed_files
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.files import STATE_DIR
from ansible_collections.gpu.kubernetes.plugins.module_utils._module import build_module
from ansible_collections.gpu.kubernetes.plugins.module_utils._probe import clients, host, kubelet

PROGRAMS = {"containerd": "containerd", "crio": "crio", "docker": "dockerd"}
ARGUMENTS = {
    "daemon": {"type": "str", "choices": list(PROGRAMS), "default": "containerd"},
    "service": {"type": "str"},
    "toolkit_runtime": {"type": "str", "default": "nvidia-container-runtime"},
    "packages": {"type": "list", "elements": "str", "default": ["nvidia-container-toolkit"]},
    "package_manager": {"type": "str", "choices": ["apt", "dnf", "zypper", "pacman"]},
    "config_path": {"type": "path"},
    "files": {"type": "list", "elements": "str", "default": []},
    "state_dir": {"type": "path", "default": STATE_DIR},
}
# A service's PATH and that of a login differ; these are where packages and installers put the programs.
FURTHER_FOLDERS = ["/usr/local/bin", "/usr/local/sbin", "/usr/bin", "/usr/local/nvidia/toolkit"]


def describe_kubelet(version: str | None, runtime: str | None) -> dict[str, t.Any]:
    """Return the facts of a kubelet of this version with a container runtime of this version."""
    facts = kubelet.describe_kubelet(kubelet.list_processes(), kubelet.read_path)
    if kubelet.reads_driver_from_runtime(version, facts["daemon"], runtime):
        facts["cgroup_driver"] = None
    return {**facts, "version": version}


def find_own(distribution: str | None, params: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return the containerd that the *distribution* brings, empty if the parameters mean another one."""
    own = _distributions.describe_own(distribution) if params["daemon"] == "containerd" else {}
    is_meant = (
        own
        and params["service"] in (None, _distributions.USUAL_SERVICE, own["service"])
        and params["config_path"] in (None, _distributions.USUAL_CONFIG, own["config"])
    )
    return own if is_meant else {}


def find_edge_framework() -> str:
    """Return the name of the edge framework that this host shows; empty for none."""
    server = kubelet.find_server(kubelet.list_processes(), kubelet.read_path)
    return _edge.find_framework({}, server=server) or _edge.find_agent(os.path.exists)


def main() -> None:
    """Run the module."""
    module = build_module(AnsibleModule, ARGUMENTS)
    params = module.params

    def find(name: str) -> str | None:
        found: str | None = module.get_bin_path(name, opt_dirs=FURTHER_FOLDERS)
        return found

    def attempt(command: t.Sequence[str]) -> tuple[int, str]:
        if not find(command[0]):
            return 127, ""
        try:
            return _commands.run(command)[:2]
        except OSError:
            return 126, ""

    manager = params["package_manager"] or host.find_package_manager(find)
    distribution = _distributions.detect(os.path.exists)
    own = find_own(distribution, params)
    service = own.get("service") or params["service"] or params["daemon"]
    program = host.describe_program(own["program"] if own else find(PROGRAMS[params["daemon"]]), attempt)
    shown = clients.parse_show(attempt(clients.build_show_command(service))[1])
    module.exit_json(
        changed=False,
        program=program,
        service={
            "name": service,
            "exists": shown.get("LoadState") == "loaded",
            "state": shown.get("ActiveState"),
        },
        toolkit=host.describe_program(find(params["toolkit_runtime"]), attempt),
        package_manager=manager,
        packages={name: host.read_package_version(manager, name, attempt) for name in params["packages"]},
        other_configurations=list_changed_files(params["state_dir"], besides=params["config_path"]),
        files_found=host.filter_existing(params["files"]),
        kubelet=describe_kubelet(host.describe_program(find("kubelet"), attempt)["version"], program["version"]),
        kubernetes_distribution=distribution,
        own_containerd=own,
        edge_framework=find_edge_framework(),
    )


if __name__ == "__main__":
    main()
