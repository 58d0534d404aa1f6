# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A connection to a fake node: it runs no module, and returns its result from a JSON file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from ansible.plugins.connection import ConnectionBase

DOCUMENTATION = r"""
name: fake_node
short_description: Answer modules of a fake node from a file
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - For measurements with many hosts. Ansible's own work does not change, and no module runs.
  - A module without an answer fails.
extends_documentation_fragment: connection_pipelining
options:
  host:
    description: The name of the host, which replaces C(HOST) in the answers.
    type: str
    vars:
      - name: inventory_hostname
  answers:
    description: A JSON file with the result of each module, by its name.
    type: path
    required: true
    vars:
      - name: fake_node_answers
"""

#: The full name of the module in the program that Ansible sends; its form depends on the version of ansible-core.
MODULE = re.compile(rb"(?:module_fqn|mod_name)=['\"]([\w.]+)['\"]")


class Connection(ConnectionBase):
    """Ansible's entry point."""

    transport = "fake_node"
    has_pipelining = True

    def _connect(self) -> Connection:
        self._connected = True
        return self

    def exec_command(self, cmd: str, in_data: bytes | None = None, sudoable: bool = True) -> tuple[int, bytes, bytes]:
        """Return exit status, standard output and standard error."""
        super().exec_command(cmd, in_data=in_data, sudoable=sudoable)
        found = MODULE.search(in_data or b"")
        if found is None:
            return 0, b"", b""
        name = found[1].decode().rpartition(".")[2]
        answers: dict[str, Any] = json.loads(Path(self.get_option("answers")).read_text(encoding="utf-8"))
        if name not in answers:
            return 1, b"", f"the fake node has no answer for the module {name}".encode()
        return 0, json.dumps(answers[name]).replace("HOST", self.get_option("host")).encode(), b""

    def put_file(self, in_path: str, out_path: str) -> None:
        """Copy nothing."""
        super().put_file(in_path, out_path)

    def fetch_file(self, in_path: str, out_path: str) -> None:
        """Fetch nothing."""
        super().fetch_file(in_path, out_path)

    def close(self) -> None:
        """End the connection."""
        self._connected = False
