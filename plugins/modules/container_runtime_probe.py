#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module container_runtime_probe."""

from __future__ import annotations

DOCUMENTATION = r"""
module: container_runtime_probe
short_description: Ask a running containerd, CRI-O or Docker whether it works and with which runtimes
version_added: 0.1.0
description:
  - Asks systemd for the unit and the daemon itself, over the Container Runtime Interface (CRI) or Docker's own API on its socket, and
    waits until all is well or waiting is of no use.
  - What is returned is what the running daemon uses, not what its file says now.
  - A daemon that is not well is a result and not a failure of the module, so that a role can put a configuration back.
  - Needs neither C(crictl) nor C(ctr).
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
    type: path
  service:
    description: The daemon's systemd unit. Left out, it is called as the daemon. An empty string asks the socket only.
    type: str
  runtime:
    description: A runtime that the daemon has to offer.
    type: str
  runtime_path:
    description: The program that O(runtime) has to run with. A daemon that does not tell it is not blamed.
    type: path
  default_runtime:
    description: The runtime that has to be the default.
    type: str
  reloaded:
    description:
      - Whether the daemon was told to read its configuration again and may still be at it, so that the runtimes asked for are
        waited for. A daemon that was restarted has them or never will.
    type: bool
    default: false
  wait_timeout:
    description: How many seconds to wait for the daemon.
    type: int
    default: 0
notes:
  - The sockets are open to root only.
seealso:
  - module: gpu.kubernetes.container_runtime_info
  - module: gpu.kubernetes.containerd_config
"""

EXAMPLES = r"""
- name: Ask containerd how it is
  gpu.kubernetes.container_runtime_probe:
  register: probe

- name: Ask Docker how it is
  gpu.kubernetes.container_runtime_probe:
    daemon: docker
  register: probe

- name: Wait until containerd offers the runtime nvidia
  gpu.kubernetes.container_runtime_probe:
    runtime: nvidia
    wait_timeout: 60
  register: probe
  failed_when: not probe.ok
"""

RETURN = r"""
ok:
  description: Whether the daemon runs, answers, says that its runtime is ready and has what was asked for.
  returned: success
  type: bool
  sample: true
cause:
  description: Why it is not well; empty if it is.
  returned: success
  type: str
  sample: containerd runs without the runtime nvidia (it has runc)
remedy:
  description: What to do about it; empty if it is well.
  returned: success
  type: str
  sample: write it into the configuration and restart containerd
msg:
  description: Cause and remedy in one piece.
  returned: when it is not well
  type: str
  sample: containerd runs without the runtime nvidia (it has runc); write it into the configuration and restart containerd
service:
  description: What systemd says; empty if it was not asked.
  returned: success
  type: dict
  sample:
    ActiveState: active
    SubState: running
runtime_name:
  description: The name that the daemon gives itself; V(none) without an answer, as all of the following.
  returned: success
  type: str
  sample: containerd
runtime_version:
  description: The daemon's version.
  returned: success
  type: str
  sample: 2.1.4
api_version:
  description: The version of the CRI that it speaks; V(none) for Docker.
  returned: success
  type: str
  sample: v1
default_runtime:
  description: The runtime of pods that name none.
  returned: success
  type: str
  sample: runc
enable_cdi:
  description: Whether the Container Device Interface is on, where the version has a setting for it.
  returned: success
  type: bool
  sample: true
live_restore:
  description: Whether containers go on while the daemon restarts; V(none) for others than Docker, with which they do.
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
    - The runtimes of the running configuration by name, each with its C(type), C(binary) and C(systemd_cgroup).
  returned: success
  type: dict
  sample:
    nvidia:
      type: io.containerd.runc.v2
      binary: /usr/bin/nvidia-container-runtime
      systemd_cgroup: true
remarks:
  description: What the daemon complains of although it works, as a pod network that is not there yet.
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

import time
import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils import _commands
from ansible_collections.gpu.kubernetes.plugins.module_utils._probe import cri, crio, docker, grpc, http, unit, verdict

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
CALL_SECONDS = 5.0


def output_of(module: AnsibleModule, command: list[str]) -> str:
    """Return the program's output, nothing if the host does not have it."""
    path = module.get_bin_path(command[0])
    return _commands.run([path, *command[1:]])[1] if path else ""


def ask(daemon: str, socket: str) -> tuple[dict[str, t.Any], dict[str, t.Any]]:
    """Ask the daemon; what it says of itself, and what it runs with. Raises CallError."""
    if daemon == "docker":
        return docker.ask(lambda target: http.get(socket, target, CALL_SECONDS))
    answer = cri.ask(lambda method, message: grpc.call(socket, method, message, CALL_SECONDS))
    if daemon == "crio":
        return answer, crio.runtimes_of(http.get(socket, "/config", CALL_SECONDS))
    return answer, cri.runtimes_of(answer["config"])


def look(module: AnsibleModule, service: str) -> verdict.Observation:
    """Look at the daemon once."""
    daemon = module.params["daemon"]
    api = "the API" if daemon == "docker" else "the CRI"
    shown = unit.parse_show(output_of(module, unit.show_command(service))) if service else {}
    try:
        answer, effective = ask(daemon, module.params["socket"] or SOCKETS[daemon])
    except grpc.CallError as error:
        return verdict.Observation(service or daemon, shown, refusal=error, api=api)
    return verdict.Observation(service or daemon, shown, answer, effective, api=api)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec=ARGUMENTS, required_by={"runtime_path": ("runtime",)}, supports_check_mode=True
    )
    params = module.params
    wanted = verdict.Wanted(params["runtime"], params["default_runtime"], params["runtime_path"], params["reloaded"])
    service = params["daemon"] if params["service"] is None else params["service"]
    begin = time.monotonic()
    seen, judged = verdict.watch(
        lambda: look(module, service), wanted, params["wait_timeout"], time.monotonic, time.sleep
    )
    log: list[str] = []
    if not judged.ok and seen.cri is None and service:
        command = unit.journal_command(service, seen.unit)
        log = unit.telling_lines(output_of(module, command).splitlines())
    module.exit_json(
        changed=False,
        ok=judged.ok,
        cause=judged.cause,
        remedy=judged.remedy,
        log=log,
        service=dict(seen.unit),
        remarks=verdict.remarks(seen),
        waited_seconds=round(time.monotonic() - begin, 2),
        **verdict.facts(seen),
        # for the failure that a task may make of it
        **({} if judged.ok else {"msg": judged.sentence}),
    )


if __name__ == "__main__":
    main()
