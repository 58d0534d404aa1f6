#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module listening_sockets_info."""

from __future__ import annotations

DOCUMENTATION = r"""
module: listening_sockets_info
short_description: List the listening TCP sockets of a host with their processes
version_added: 0.1.0
description:
  - Internal module of this collection, which can change in any release.
  - Reads C(/proc) and runs no program. Sockets of pods with a network of their own are not listed.
author:
  - gpu.kubernetes authors (@gpu-kubernetes)
extends_documentation_fragment:
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.node
  - gpu.kubernetes.attributes.info
options: {}
notes:
  - Reads the processes of other users as root only.
"""

EXAMPLES = r"""
- name: Find the listening sockets
  gpu.kubernetes.listening_sockets_info:
  register: sockets
"""

RETURN = r"""
listeners:
  description: The sockets.
  returned: success
  type: list
  elements: dict
  contains:
    address:
      description: The address, V(0.0.0.0) or V(::) for all addresses.
      type: str
      returned: always
      sample: 10.0.0.11
    port:
      description: The port.
      type: int
      returned: always
      sample: 9835
    pid:
      description: The process; V(none) if it is unknown.
      type: int
      returned: always
      sample: 815
    program:
      description: The name of its program; empty if it is unknown.
      type: str
      returned: always
      sample: nvidia_gpu_exporter
    unit:
      description: The systemd service without its suffix; empty if the process is in none, or in a container.
      type: str
      returned: always
      sample: nvidia_gpu_exporter
    container:
      description: Whether the process is in a container.
      type: bool
      returned: always
      sample: false
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils._exporters.listeners import read_listeners
from ansible_collections.gpu.kubernetes.plugins.module_utils._module import build_module

ROOT = "/"
ARGUMENTS: dict[str, dict[str, t.Any]] = {}


def main() -> None:
    """Run the module."""
    module = build_module(AnsibleModule, ARGUMENTS)
    module.exit_json(changed=False, listeners=read_listeners(ROOT))


if __name__ == "__main__":
    main()
