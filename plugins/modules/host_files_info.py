#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module host_files_info."""

from __future__ import annotations

DOCUMENTATION = r"""
module: host_files_info
short_description: Read attributes, checksums and contents of several files of a host at once
version_added: 0.1.0
description:
  - Internal module of this collection, which can change in any release.
  - Replaces loops over M(ansible.builtin.stat) and M(ansible.builtin.slurp), whose every item starts Python on the host.
author:
  - gpu.kubernetes authors (@gpu-kubernetes)
extends_documentation_fragment:
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.node
  - gpu.kubernetes.attributes.info
options:
  paths:
    description: The absolute paths of files of which only the attributes are read.
    type: list
    elements: str
    default: []
  checksums:
    description: The absolute paths of files of which the SHA-256 checksum is returned too.
    type: list
    elements: str
    default: []
  contents:
    description:
      - The absolute paths of files of which the content is returned too. No content is masked.
      - What is there and is no regular file is an error.
    type: list
    elements: str
    default: []
seealso:
  - module: ansible.builtin.stat
  - module: ansible.builtin.slurp
"""

EXAMPLES = r"""
- name: Read a record and find the device of the driver
  gpu.kubernetes.host_files_info:
    paths: [/dev/nvidiactl]
    contents: [/var/lib/gpu-kubernetes/state/gpu_exporter.json]
  register: found
"""

RETURN = r"""
files:
  description:
    - What is at each path. Except for RV(files.exists) and RV(files.link), the values are those of what a symbolic link leads to, and are missing if
      it leads nowhere.
  returned: success
  type: dict
  contains:
    exists:
      description: Whether a file, a folder, a device or a symbolic link is there.
      type: bool
      returned: always
      sample: true
    link:
      description: The target of the symbolic link; empty if there is none.
      type: str
      returned: always
      sample: ""
    mode:
      description: The permissions in octal.
      type: str
      returned: if it exists
      sample: "0660"
    uid:
      description: The number of the owner.
      type: int
      returned: if it exists
      sample: 0
    gid:
      description: The number of the group.
      type: int
      returned: if it exists
      sample: 44
    group:
      description: The name of the group, or its number if it has none.
      type: str
      returned: if it exists
      sample: video
    checksum:
      description: The SHA-256 checksum.
      type: str
      returned: for regular files in O(checksums)
      sample: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
    content:
      description: The content as UTF-8; other bytes are replaced.
      type: str
      returned: for files in O(contents)
      sample: "{}"
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.file_info import describe_files
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.files import FilesError
from ansible_collections.gpu.kubernetes.plugins.module_utils._module import build_module

ARGUMENTS: dict[str, dict[str, t.Any]] = {
    "paths": {"type": "list", "elements": "str", "default": []},
    "checksums": {"type": "list", "elements": "str", "default": []},
    "contents": {"type": "list", "elements": "str", "default": []},
}


def main() -> None:
    """Run the module."""
    module = build_module(AnsibleModule, ARGUMENTS)
    try:
        files = describe_files(module.params["paths"], module.params["checksums"], module.params["contents"])
    except FilesError as exc:
        module.fail_json(msg=str(exc))
    module.exit_json(changed=False, files=files)


if __name__ == "__main__":
    main()
