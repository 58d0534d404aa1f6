#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: restore_timer
short_description: Have a node restore its former files if the run ends
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal module of this collection, which can change in any release.
  - Starts a transient timer of systemd on the node, before a change that can cost the node. If the run does not disarm it in time, because the controller
    or the connection has failed, the timer restores the files from the record that the role has made, and restarts what reads them. What it replaces is
    kept as a backup.
  - A reboot removes the timer. It never reports a change, since it belongs to the run.
options:
  name:
    description: Name of the daemon. The timer is C(gpu-kubernetes-restore-NAME.timer).
    type: str
    required: true
  state:
    description: What to do.
    type: str
    required: true
    choices:
      armed: Start the timer, or start it again. Does nothing if there is no former state to restore. Removes the record of an earlier restore.
      disarmed: Stop the timer. A restore that has begun ends first. Fails if the timer has restored a file since it was started.
      reported: Return what the timer has restored, and remove the record of it.
  verify_seconds:
    description: Seconds that the verification of the change may take on this host. The time for the restart and for the other hosts is added.
    type: int
    default: 300
  hosts:
    description: Number of hosts that the play changes at once.
    type: int
    default: 1
  forks:
    description: Number of hosts on which a task runs at once.
    type: int
    default: 1
  snapshots:
    description: Files with a snapshot of M(gpu.kubernetes.config_snapshot).
    type: list
    elements: path
    default: []
  kubelet_config:
    description: The kubelet's configuration, of which M(gpu.kubernetes.kubelet_config) has a record.
    type: path
  change_record:
    description: The record of files before a change of kube-scheduler.
    type: path
  service:
    description: The systemd unit that reads the files. Left out, nothing is restarted.
    type: str
  reload:
    description: Whether to reload the unit if it can be reloaded, instead of a restart.
    type: bool
    default: false
  state_dir:
    description: Directory of this collection on the node.
    type: path
    default: /var/lib/gpu-kubernetes
  systemd_dir:
    description: A directory that exists where systemd runs.
    type: path
    default: /run/systemd/system
extends_documentation_fragment:
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.node
attributes:
  check_mode:
    support: full
    details: Nothing is armed or disarmed, and a record stays.
  diff_mode:
    support: none
  idempotent:
    support: full
seealso:
  - module: gpu.kubernetes.config_snapshot
"""

EXAMPLES = r"""
- name: Restore containerd's configuration unless this run verifies it and disarms the timer
  gpu.kubernetes.restore_timer:
    name: containerd
    state: armed
    verify_seconds: 60
    snapshots: [/etc/containerd/config.toml]
    service: containerd
"""

RETURN = r"""
armed:
  description: Whether the timer was started.
  returned: O(state=armed)
  type: bool
reason:
  description: Why it was not started; empty if it was, and if there is nothing to restore.
  returned: O(state=armed)
  type: str
restored:
  description: What the timer has restored since the last report; V(null) if it has not.
  returned: O(state=armed) if the timer was started, and O(state=reported)
  type: dict
  contains:
    armed:
      description: When the timer was started, by the node's clock.
      type: str
    at:
      description: When it restored.
      type: str
    files:
      description: The files that differed.
      type: list
      elements: str
    problems:
      description: What failed.
      type: list
      elements: str
"""

import os
import sys
import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils import _commands
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.change_log import add_imported_files
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.files import STATE_DIR, FilesError
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.paths import StatePaths
from ansible_collections.gpu.kubernetes.plugins.module_utils._module import build_module
from ansible_collections.gpu.kubernetes.plugins.module_utils._restore import sources
from ansible_collections.gpu.kubernetes.plugins.module_utils._restore.timer import (
    Programs,
    Timer,
    TimerError,
    sum_seconds,
)

ARGUMENTS = {
    "name": {"type": "str", "required": True},
    "state": {"type": "str", "required": True, "choices": ["armed", "disarmed", "reported"]},
    "verify_seconds": {"type": "int", "default": 300},
    "hosts": {"type": "int", "default": 1},
    "forks": {"type": "int", "default": 1},
    "snapshots": {"type": "list", "elements": "path", "default": []},
    "kubelet_config": {"type": "path"},
    "change_record": {"type": "path"},
    "service": {"type": "str"},
    "reload": {"type": "bool", "default": False},
    "state_dir": {"type": "path", "default": STATE_DIR},
    "systemd_dir": {"type": "path", "default": "/run/systemd/system"},
}

# Seconds for a call of systemctl or systemd-run, which only ask systemd.
CALL_SECONDS = 60


def run(command: t.Sequence[str]) -> tuple[int, str]:
    """Return the exit status, and output and errors, of a command; a missing or hanging one has failed."""
    try:
        status, output, errors = _commands.run(command, seconds=CALL_SECONDS)
    except OSError as error:
        return 127, f"{command[0]}: {error.strerror}"
    return status, output + errors


def find_former(params: dict[str, t.Any]) -> list[sources.File]:
    """Return the files to restore; raises FilesError or ConfigError."""
    state = StatePaths(params["state_dir"])
    found = sources.list_snapshots(add_imported_files(params["state_dir"], params["snapshots"]), state)
    if params["kubelet_config"]:
        found += sources.read_kubelet_record(params["kubelet_config"], state)
    if params["change_record"]:
        found += sources.read_change_record(params["change_record"])
    return found


def list_commands(params: dict[str, t.Any], systemctl: str) -> list[list[str]]:
    """Return what makes the service read the former files; systemd does not start a unit that failed too often."""
    if not params["service"]:
        return []
    verb = "reload-or-restart" if params["reload"] else "restart"
    return [[systemctl, "reset-failed", "--", params["service"]], [systemctl, verb, "--", params["service"]]]


def act(timer: Timer | None, params: dict[str, t.Any], check_mode: bool) -> dict[str, t.Any]:
    """Do what the parameters request and return the result; *timer* is None without systemd. Raises FilesError, ConfigError or TimerError."""
    if params["state"] == "armed":
        if check_mode:
            return {"armed": False, "reason": ""}
        if timer is None:
            return {"armed": False, "reason": "systemd does not run on this host"}
        former = find_former(params)
        if not former:
            return {"armed": False, "reason": ""}
        restored = timer.read_record()
        seconds = sum_seconds(params["verify_seconds"], params["hosts"], params["forks"])
        timer.arm(former, list_commands(params, timer.programs.systemctl), seconds)
        return {"armed": True, "reason": "", "restored": restored}
    if params["state"] == "disarmed":
        if timer is not None and not check_mode:
            timer.disarm()
        return {}
    record = timer.read_record() if timer is not None else None
    if record and timer is not None and not check_mode:
        timer.remove_record()
    return {"restored": record}


def main() -> None:
    """Run the module."""
    module = build_module(AnsibleModule, ARGUMENTS)
    params = module.params
    systemctl, systemd_run = (module.get_bin_path(name) for name in ("systemctl", "systemd-run"))
    timer = None
    if systemctl and systemd_run and os.path.isdir(params["systemd_dir"]):
        programs = Programs(systemctl, systemd_run, sys.executable)
        timer = Timer(params["name"], StatePaths(params["state_dir"]), programs, run)
    try:
        module.exit_json(changed=False, **act(timer, params, module.check_mode))
    except (FilesError, ConfigError, TimerError) as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
