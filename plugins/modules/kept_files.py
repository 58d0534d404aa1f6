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
    description: The files, for O(state=kept). Without any, nothing is done, and RV(known) tells whether files are kept.
    type: list
    elements: path
    default: []
  package_files:
    description:
      - Other files of the package that the files are of, which nobody replaces. Give the same ones each time.
      - As long as these are what they were, whatever is not known at one of the files is taken for the other program's, in another version. Once
        they have changed, it is taken for the package's, until O(state=noted) finds the same after a new start of the other program.
      - Without any, the package is taken to be the same for ever.
    type: list
    elements: path
    default: []
  state:
    description: What to do.
    type: str
    required: true
    choices:
      kept: >-
        Keep the files as they are. What is kept already stays, but for files that a newer package has brought since, as O(package_files) tells.
      noted: Note what has been put in their place.
      returned: >-
        Put back what was kept, and forget it. A file that may be of a newer package is left alone, with a warning. Does nothing where nothing
        is kept. What is overwritten without having been noted is copied to the backups.
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
    name: other-agent
    paths: [/usr/bin/nvidia-container-runtime-hook, /usr/bin/nvidia-container-toolkit]
    package_files: [/usr/bin/nvidia-container-runtime, /usr/bin/nvidia-ctk]
    state: kept

- name: Give them back
  gpu.kubernetes.kept_files:
    name: other-agent
    package_files: [/usr/bin/nvidia-container-runtime, /usr/bin/nvidia-ctk]
    state: returned

- name: Look whether anything is kept
  gpu.kubernetes.kept_files:
    name: other-agent
    state: kept
  check_mode: true
  register: kept
"""

RETURN = r"""
files:
  description: The files that were kept, noted or put back now, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: [/usr/bin/nvidia-container-runtime-hook]
unreplaced:
  description: With O(state=kept), those that were replaced once and have their original again, until the other program starts anew.
  returned: success
  type: list
  elements: str
  sample: []
outdated:
  description: With O(state=returned), those of RV(files) that come from an older package than the one that is installed.
  returned: success
  type: list
  elements: str
  sample: []
left:
  description: With O(state=returned), those that were left alone, for they may be of a newer package.
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
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.files import STATE_DIR, FilesError
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.paths import StatePaths

ARGUMENTS = {
    "name": {"type": "str", "required": True},
    "paths": {"type": "list", "elements": "path", "default": []},
    "package_files": {"type": "list", "elements": "path", "default": []},
    "state": {"type": "str", "required": True, "choices": ["kept", "noted", "returned"]},
    "state_dir": {"type": "path", "default": STATE_DIR},
}


def act(params: dict[str, t.Any], check_mode: bool) -> dict[str, t.Any]:
    """Do what the parameters ask and return the result; raises FilesError."""
    record = _kept_files.Record(params["name"], params["state_dir"])
    result: dict[str, t.Any] = {"unreplaced": [], "outdated": [], "left": []}
    with StatePaths(params["state_dir"]).lock(record.file, check_mode):
        known = record.read() is not None
        release = _kept_files.release_of(params["package_files"])
        if params["state"] == "kept":
            result["files"], result["unreplaced"] = _kept_files.keep(record, params["paths"], release, check_mode)
        elif params["state"] == "noted":
            result["files"] = _kept_files.note(record, check_mode)
        else:
            given = _kept_files.give_back(record, release, check_mode)
            result.update(files=given.back, outdated=given.outdated, left=given.left)
    there = [path for path in params["paths"] if os.path.lexists(path)]
    changed = bool(result["files"]) or (params["state"] == "returned" and known)
    return {**result, "changed": changed, "known": known, "there": there}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    if not re.fullmatch(r"[A-Za-z0-9_-]+", module.params["name"]):
        module.fail_json(msg=f"name is {module.params['name']!r}: make it one word of letters, digits, - and _.")
    try:
        result = act(module.params, module.check_mode)
    except FilesError as error:
        module.fail_json(msg=str(error))
    copies = os.path.join(module.params["state_dir"], "backups")
    for path in result["left"]:
        module.warn(
            f"{path} is left as it is, for its package was upgraded since and may have written it; if it does not work, install that package anew."
            f" What was there before is in {copies}."
        )
    for path in result["outdated"]:
        module.warn(f"{path} is of an older package than the one that is installed: install that package anew.")
    module.exit_json(**result)


if __name__ == "__main__":
    main()
