#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module kept_files."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kept_files
short_description: Keep files that somebody else is about to replace, and give them back
version_added: 0.1.0
description:
  - Keeps files of a node byte by byte with mode and owner, symbolic links with their target, and also that there is nothing at a path, before
    a program of somebody else replaces them. Puts back later what was there.
  - Each file is put back in one step. A run that was killed is gone on with by the next one.
author:
  - gpu.kubernetes authors (@gpu-kubernetes)
extends_documentation_fragment:
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.node
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
    details: The files are programs.
  idempotent:
    support: full
options:
  name:
    description: What the files are kept under, one word.
    type: str
    required: true
  paths:
    description: The files, for O(state=kept).
    type: list
    elements: path
    default: []
  state:
    description: What to do.
    type: str
    required: true
    choices:
      kept: >-
        Keep the files as they are. What is kept already stays, but for files that are neither that nor what O(state=noted) has noted, as after
        an upgrade of their package.
      noted: Note what has been put in their place.
      returned: >-
        Put back what was kept, and forget it. A file that was written since by a third one is left alone, with a warning. Does nothing where
        nothing is kept.
  state_dir:
    description: Directory of this collection on the node.
    type: path
    default: /var/lib/gpu-kubernetes
seealso:
  - module: gpu.kubernetes.config_snapshot
"""

EXAMPLES = r"""
- name: Keep the toolkit's programs
  gpu.kubernetes.kept_files:
    name: nano-gpu
    paths: [/usr/bin/nvidia-container-runtime-hook, /usr/bin/nvidia-container-toolkit]
    state: kept

- name: Give them back
  gpu.kubernetes.kept_files:
    name: nano-gpu
    state: returned
"""

RETURN = r"""
files:
  description: The files that were kept, noted or put back now, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: [/usr/bin/nvidia-container-runtime-hook]
left:
  description: With O(state=returned), those that were left alone, for a third one has written them since.
  returned: success
  type: list
  elements: str
  sample: []
known:
  description: Whether files were kept under this name when the module began.
  returned: success
  type: bool
  sample: false
there:
  description: Those of O(paths) at which there is something now.
  returned: success
  type: list
  elements: str
  sample: [/usr/bin/nvidia-container-runtime-hook]
"""

import os
import re
import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils import _kept_files
from ansible_collections.gpu.kubernetes.plugins.module_utils._files import STATE_DIR, FilesError
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.places import Places

ARGUMENTS = {
    "name": {"type": "str", "required": True},
    "paths": {"type": "list", "elements": "path", "default": []},
    "state": {"type": "str", "required": True, "choices": ["kept", "noted", "returned"]},
    "state_dir": {"type": "path", "default": STATE_DIR},
}


def act(params: dict[str, t.Any], check_mode: bool) -> dict[str, t.Any]:
    """Do what the parameters ask and return the result; raises FilesError."""
    record = _kept_files.Record(params["name"], params["state_dir"])
    with Places(params["state_dir"]).exclusive(record.file, check_mode):
        known = record.read() is not None
        left: list[str] = []
        if params["state"] == "kept":
            files = _kept_files.keep(record, params["paths"], check_mode)
        elif params["state"] == "noted":
            files = _kept_files.note(record, check_mode)
        else:
            files, left = _kept_files.give_back(record, check_mode)
    there = [path for path in params["paths"] if os.path.lexists(path)]
    changed = bool(files) or (params["state"] == "returned" and known)
    return {"changed": changed, "files": files, "left": left, "known": known, "there": there}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    if not re.fullmatch(r"[A-Za-z0-9_-]+", module.params["name"]):
        module.fail_json(msg=f"name is {module.params['name']!r}: make it one word of letters, digits, - and _.")
    try:
        result = act(module.params, module.check_mode)
    except FilesError as error:
        module.fail_json(msg=str(error))
    for path in result["left"]:
        module.warn(f"{path} was written by others since and is left as it is.")
    module.exit_json(**result)


if __name__ == "__main__":
    main()
