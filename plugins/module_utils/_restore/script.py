# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the timer starts on the node, in an archive with the files that it imports: restores files, and restarts what reads them.

Its plan is JSON: ``name``, ``files`` (path, content in base64 or null for no file, mode, uid, gid), ``commands``, ``backups`` (a folder), ``record``
(the file for the next run), and ``armed``, which goes into the record.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import time
import typing as t

from .. import _commands
from .._config import files

#: Seconds for one command, such as a restart that stops a daemon first.
COMMAND_SECONDS = 300


def restore(plan: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Restore all files, then run the commands; return the record. One failure does not stop the others.

    The commands run even if no file differed: a run that rolls back may have restored the files and ended before its restart.
    """
    changed: list[str] = []
    problems: list[str] = []
    for file in plan["files"]:
        try:
            if restore_file(file, plan["backups"]):
                changed.append(file["path"])
        except (files.FilesError, OSError) as error:
            problems.append(str(error))
    problems += [problem for problem in map(_run, plan["commands"]) if problem]
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return {"name": plan["name"], "armed": plan["armed"], "at": at, "files": changed, "problems": problems}


def restore_file(file: t.Mapping[str, t.Any], backups: str) -> bool:
    """Restore one file and return whether it differed; what it held is kept in the folder *backups*. Raises FilesError or OSError."""
    path = file["path"]
    content = None if file["content"] is None else base64.b64decode(file["content"])
    if files.read_bytes(path) == content:
        return False
    files.backup(path, backups)
    if content is None:
        files.remove_file(path)
        return True
    mode, owner = file["mode"], (file["uid"], file["gid"])
    files.write_atomic(path, content, mode=0o600 if mode is None else mode, owner=None if None in owner else owner)
    # An existing file keeps the mode and owner that the change gave it.
    if None not in owner:
        os.chown(path, *owner)
    if mode is not None:
        os.chmod(path, mode)
    return True


def _run(command: t.Sequence[str]) -> str:
    """Run a command; return why it failed, else nothing."""
    try:
        status, _output, errors = _commands.run(command, seconds=COMMAND_SECONDS)
    except OSError as error:
        return f"{' '.join(command)}: {error.strerror}"
    return f"{' '.join(command)}: {errors.strip() or f'exit status {status}'}" if status else ""


def main(arguments: t.Sequence[str]) -> int:
    """Follow the plan in the file that the arguments name; write the record, and remove the plan."""
    (path,) = arguments
    with open(path, encoding="utf-8") as file:
        plan = json.load(file)
    record = restore(plan)
    files.write_atomic(plan["record"], json.dumps(record, sort_keys=True).encode("utf-8") + b"\n", mode=0o600)
    files.remove_file(path)
    sys.stdout.write(
        f"restored {', '.join(record['files']) or 'no file'}; {'; '.join(record['problems']) or 'no problem'}\n"
    )
    return 1 if record["problems"] else 0
