#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module container_runtime_health_info."""

from __future__ import annotations

DOCUMENTATION = r"""
module: container_runtime_health_info
short_description: Check whether containerd, CRI-O or Docker works and which runtimes it has
version_added: 0.1.0
description:
  - Queries systemd and the daemon until the daemon works, or until waiting longer does not help.
  - containerd and CRI-O are queried with C(crictl), which reports the running configuration.
  - On a node without a usable C(crictl), containerd is queried with C(ctr), else through systemd alone. Its runtimes are then those of
    C(containerd config dump), which is what the daemon reads at its next start. CRI-O is queried over HTTP on its socket.
  - Docker is queried over HTTP on its socket.
  - RV(source) is the client that was used.
  - A daemon that does not work is a result and not a failure of the module, so that a role can roll a configuration back.
author:
  - gpu.kubernetes authors (@gpu-kubernetes)
extends_documentation_fragment:
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.info
  - gpu.kubernetes.attributes.node
options:
  daemon:
    description: Which daemon it is.
    type: str
    choices: [containerd, crio, docker]
    default: containerd
  socket:
    description:
      - The daemon's socket.
      - Left out, V(/run/containerd/containerd.sock), V(/run/crio/crio.sock) or V(/run/docker.sock).
      - The first of them means the socket of the containerd that the host's Kubernetes distribution brings, if it brings one, unless
        O(service) is that of another.
    type: path
  service:
    description: The daemon's systemd unit. The default is the daemon's name. With an empty string, systemd is not queried.
    type: str
  runtime:
    description: A runtime that the daemon has to offer.
    type: str
  runtime_path:
    description: The program that O(runtime) has to run with. It is not checked where the daemon does not report it.
    type: path
  default_runtime:
    description: The runtime that has to be the default.
    type: str
  reloaded:
    description:
      - Whether the daemon may still be reading its configuration after a reload. The module then waits for the requested runtimes.
    type: bool
    default: false
  wait_timeout:
    description: How many seconds to wait for the daemon.
    type: int
    default: 0
notes:
  - The sockets are open to root only.
  - Nodes of kubeadm have C(crictl), from the package C(cri-tools).
seealso:
  - module: gpu.kubernetes.container_runtime_info
  - module: gpu.kubernetes.containerd_config
"""

EXAMPLES = r"""
- name: Check containerd
  gpu.kubernetes.container_runtime_health_info:
  register: probe

- name: Check Docker
  gpu.kubernetes.container_runtime_health_info:
    daemon: docker
  register: probe

- name: Wait until containerd has the runtime nvidia
  gpu.kubernetes.container_runtime_health_info:
    runtime: nvidia
    wait_timeout: 60
  register: probe
  failed_when: not probe.ok
"""

RETURN = r"""
ok:
  description: Whether the daemon runs, answers, is ready, and has the requested runtimes.
  returned: success
  type: bool
  sample: true
cause:
  description: Why RV(ok) is V(false); empty otherwise.
  returned: success
  type: str
  sample: containerd runs without the runtime nvidia (it has runc)
remedy:
  description: What to do about RV(cause).
  returned: success
  type: str
  sample: write it into the configuration and restart containerd
msg:
  description: Cause and remedy in one sentence.
  returned: when RV(ok) is V(false)
  type: str
  sample: containerd runs without the runtime nvidia (it has runc); write it into the configuration and restart containerd
service:
  description: The unit's properties, from systemd; empty if it was not queried.
  returned: success
  type: dict
  sample:
    ActiveState: active
    SubState: running
source:
  description:
    - The client that was used, V(none) without an answer.
    - V(crictl) reports all values.
    - V(ctr) reports the version, and whether containerd serves the CRI. The runtimes are those of C(containerd config dump).
    - V(systemd) reports no more than that the service is active and its socket accepts a connection. The runtimes are those of
      C(containerd config dump).
    - V(http) is the interface of Docker and, without C(crictl), of CRI-O.
  returned: success
  type: str
  sample: crictl
runtime_name:
  description: The name that the daemon reports; V(none) without an answer, as all of the following.
  returned: success
  type: str
  sample: containerd
runtime_version:
  description: The daemon's version; V(none) where RV(source) does not report it.
  returned: success
  type: str
  sample: 2.1.4
api_version:
  description: The version of the CRI that it serves; V(none) unless RV(source) is V(crictl).
  returned: success
  type: str
  sample: v1
default_runtime:
  description: The runtime of pods without a runtime class.
  returned: success
  type: str
  sample: runc
enable_cdi:
  description: Whether the Container Device Interface is on, where the version has a setting for it.
  returned: success
  type: bool
  sample: true
live_restore:
  description: Whether Docker's containers continue while it restarts. V(none) for other daemons, whose containers always do.
  returned: success
  type: bool
  sample: false
containers_running:
  description: How many containers Docker runs; V(none) for others.
  returned: success
  type: int
  sample: 12
runtimes:
  description:
    - The runtimes by name, each with its C(type), C(binary) and C(systemd_cgroup). Empty where they are unknown.
  returned: success
  type: dict
  sample:
    nvidia:
      type: io.containerd.runc.v2
      binary: /usr/bin/nvidia-container-runtime
      systemd_cgroup: true
remarks:
  description:
    - What does not make RV(ok) V(false), such as a missing pod network.
    - Why a client was not used, such as C(crictl) that is not installed.
  returned: success
  type: list
  elements: str
  sample: []
log:
  description: The daemon's latest errors, if it does not answer.
  returned: success
  type: list
  elements: str
  sample: []
waited_seconds:
  description: How long the answer took.
  returned: success
  type: float
  sample: 0.1
"""

import os
import time
import typing as t
from dataclasses import replace

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils import _commands, _distributions
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.validate import run
from ansible_collections.gpu.kubernetes.plugins.module_utils._module import build_module
from ansible_collections.gpu.kubernetes.plugins.module_utils._probe import clients, kubelet, verdict
from ansible_collections.gpu.kubernetes.plugins.module_utils._probe.errors import QueryError
from ansible_collections.gpu.kubernetes.plugins.module_utils._probe.query import Node, query
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.containerd import unit

SOCKETS = {
    "containerd": "/run/containerd/containerd.sock",
    "crio": "/run/crio/crio.sock",
    "docker": "/run/docker.sock",
}
ARGUMENTS = {
    "daemon": {"type": "str", "choices": list(SOCKETS), "default": "containerd"},
    "socket": {"type": "path"},
    "service": {"type": "str"},
    "runtime": {"type": "str"},
    "runtime_path": {"type": "path"},
    "default_runtime": {"type": "str"},
    "reloaded": {"type": "bool", "default": False},
    "wait_timeout": {"type": "int", "default": 0},
}
# Where crictl and ctr are besides PATH, which sudo may shorten.
PROGRAM_FOLDERS = ["/usr/local/bin", "/opt/bin"]


def output_of(module: AnsibleModule, command: list[str]) -> str:
    """Return the program's output, nothing if the host does not have it."""
    path = module.get_bin_path(command[0])
    return _commands.run([path, *command[1:]])[1] if path else ""


def find_program(module: AnsibleModule, name: str, folders: list[str]) -> str | None:
    """Return the path of the program, None if the host does not have it."""
    # Folders that are given to get_bin_path would come before PATH.
    path: str | None = module.get_bin_path(name) or module.get_bin_path(name, opt_dirs=folders)
    return path


def explain(judged: verdict.Verdict) -> verdict.Verdict:
    """Return the verdict on a distribution's containerd without the runtime, with where the distribution searches for it."""
    name = _distributions.detect(os.path.exists)
    own = _distributions.named(name).own_containerd
    remedy = unit.describe_search(unit.Place(str(name), own), run) if own else ""
    return replace(judged, remedy=remedy or judged.remedy)


def find_own(params: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return the containerd that the host's Kubernetes distribution brings, empty if another one is meant, or there is none."""
    own = _distributions.describe_own(_distributions.detect(os.path.exists)) if params["daemon"] == "containerd" else {}
    is_meant = own and all(
        params[name] in (None, usual, own[name])
        for name, usual in (("socket", _distributions.USUAL_SOCKET), ("service", _distributions.USUAL_SERVICE))
    )
    return own if is_meant else {}


def read_arguments(pid: str) -> list[str]:
    """Return the arguments of the process, none if there is no such process."""
    return (kubelet.read_path(f"/proc/{pid}/cmdline") or "").split("\0")[:-1] if pid.isdigit() else []


def observe(module: AnsibleModule, service: str, own: t.Mapping[str, t.Any]) -> verdict.Observation:
    """Look at the daemon once."""
    daemon = module.params["daemon"]
    api = "the API" if daemon == "docker" else "the CRI"
    shown = clients.parse_show(output_of(module, clients.build_show_command(service))) if service else {}
    program = own.get("program")
    folders = [*PROGRAM_FOLDERS, *([os.path.dirname(program)] if program else [])]
    # The unit's process is that of the distribution, of which containerd is a child.
    started = [program, "--config", own["config"]] if program else None
    node = Node(
        find=lambda name: find_program(module, name, folders),
        run=lambda command, seconds: _commands.run(command, seconds=seconds),
        arguments_of=lambda pid: started or read_arguments(pid),
    )
    try:
        answer, effective = query(daemon, own.get("socket") or module.params["socket"] or SOCKETS[daemon], shown, node)
    except QueryError as error:
        return verdict.Observation(service or daemon, shown, failure=error, api=api)
    return verdict.Observation(service or daemon, shown, answer, effective, api=api)


def main() -> None:
    """Run the module."""
    module = build_module(AnsibleModule, ARGUMENTS, required_by={"runtime_path": ("runtime",)})
    params = module.params
    wanted = verdict.Desired(params["runtime"], params["default_runtime"], params["runtime_path"], params["reloaded"])
    own = find_own(params)
    service = own.get("service") or (params["daemon"] if params["service"] is None else params["service"])
    begin = time.monotonic()
    observation, judged = verdict.wait_for_verdict(
        lambda: observe(module, service, own), wanted, params["wait_timeout"], time.monotonic, time.sleep
    )
    if not judged.ok and params["runtime"] and own and observation.answer:
        known = params["runtime"] in verdict.list_handlers(observation)
        judged = judged if known else explain(judged)
    log: list[str] = []
    if not judged.ok and observation.answer is None and service:
        command = clients.build_journal_command(service, observation.unit)
        log = clients.find_error_lines(output_of(module, command).splitlines())
    module.exit_json(
        changed=False,
        ok=judged.ok,
        cause=judged.cause,
        remedy=judged.remedy,
        log=log,
        service=dict(observation.unit),
        remarks=verdict.list_remarks(observation),
        waited_seconds=round(time.monotonic() - begin, 2),
        **verdict.build_facts(observation),
        # for the failure that a task may make of it
        **({} if judged.ok else {"msg": judged.sentence}),
    )


if __name__ == "__main__":
    main()
