# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter replaced_programs."""

from __future__ import annotations

DOCUMENTATION = r"""
name: replaced_programs
short_description: Plan the backup and the restore of programs that an agent replaces
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
  - Compares the programs of a host with the record of earlier runs. Returns what to back up, what to record and what to restore.
  - The agent's programs are not known before it starts. While the other files of the package are unchanged, an unknown program is the agent's.
    After a package upgrade, an unknown program is the package's, until the agent has restarted and left it as it is.
positional: _input
options:
  _input:
    description:
      - RV(gpu.kubernetes.host_files_info#module:files) of the programs and the files of the package, with checksums, and of the record, with its content.
    type: dict
    required: true
  programs:
    description: Paths of the programs, each a regular file, a symbolic link or missing. What is at a missing one later is removed.
    type: list
    elements: str
    required: true
  package_files:
    description: Paths of other files of the same package, which the agent does not replace.
    type: list
    elements: str
    required: true
  record:
    description: Path of the record, which may be missing.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Read the programs
  gpu.kubernetes.host_files_info:
    checksums: [/usr/bin/nvidia-container-runtime-hook, /usr/bin/nvidia-ctk]
    contents: [/var/lib/gpu-kubernetes/state/nano-gpu-programs.json]
  register: found

- name: Show what a first run backs up
  ansible.builtin.debug:
    msg: "{{ (found.files | gpu.kubernetes.replaced_programs([hook], ['/usr/bin/nvidia-ctk'], record)).back_up }}"
  vars:
    hook: /usr/bin/nvidia-container-runtime-hook
    record: /var/lib/gpu-kubernetes/state/nano-gpu-programs.json
"""

RETURN = r"""
_value:
  description:
    - C(known), whether there is a record. C(existing), the programs that exist.
    - C(back_up), the files to copy before the agent starts, each with C(path), C(backup) (the name of the copy) and C(checksum).
    - C(backed_up), the record to write after that, and C(noted), the record to write once the agent has started, as text in JSON. Empty if the
      record is unchanged.
    - C(unreplaced), the programs that have their original again, until the agent restarts.
    - C(restore), the files to restore, each as in C(back_up) and with C(mode), C(uid) and C(gid). C(links), the symbolic links to restore, each
      with C(path) and C(target). C(remove), the paths at which there was nothing.
    - C(unknown), files as in C(back_up) that C(restore) and C(links) replace and that no run has recorded.
    - C(outdated), the programs whose backup is older than the installed package. C(left), the programs that a newer package may have
      written, which are not restored.
  type: dict
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError

#: A *content*, and of a file ``ATTRIBUTES``.
Program = Mapping[str, Any]
#: What a program is: the SHA-256 of a file, the target of a symbolic link, or missing. No target is a template.
CONTENT = re.compile(r"sha256:[0-9a-f]{64}|link:[^{}]+|missing")
MISSING: Program = {"content": "missing"}

ATTRIBUTES = ("mode", "uid", "gid")

#: A program's *original* and its *release*, the *replacement* (None: not known yet), and the *former* entry that a package upgrade has
#: replaced, until the agent has restarted.
Entry = Mapping[str, Any]


def must_back_up(entry: Entry | None, now: Program, release: str) -> bool:
    """Return whether a program has to be backed up: at first, and whenever a newer package has written it."""
    if entry is None:
        return True
    return bool(release != entry["release"] and entry["original"] != MISSING and now["content"] != entry["replacement"])


def is_unreplaced(entry: Entry, now: Program) -> bool:
    """Return whether the original is in place although the agent has replaced it before."""
    replaced = entry["replacement"] is not None or entry["former"] is not None
    return bool(replaced and entry["original"] != MISSING and now["content"] == entry["original"]["content"])


def note_replacement(entry: Entry, now: Program) -> Entry:
    """Return the entry after the agent has started."""
    if now["content"] == entry["original"]["content"]:
        # The agent has written it again, so that it is not the package's.
        return {**entry["former"], "replacement": now["content"]} if entry["former"] else entry
    replacement = None if entry["original"] == MISSING else now["content"]
    return {**entry, "replacement": replacement, "former": None}


def must_restore(entry: Entry, now: Program, release: str) -> bool | None:
    """Return whether the original has to be restored; None if a newer package may have written the program."""
    same_release = release == entry["release"]
    if now["content"] == entry["original"]["content"]:
        # An interrupted run may have restored the content without mode and owner.
        return None if entry["former"] else same_release and now != entry["original"]
    if entry["original"] == MISSING or entry["replacement"] in (None, now["content"]):
        return True
    return True if same_release else None


def replaced_programs(
    found: Mapping[str, Mapping[str, Any]], programs: Sequence[str], package_files: Sequence[str], record: str
) -> dict[str, Any]:
    """Return what to back up, to record and to restore; raises AnsibleFilterError for a damaged record."""
    now = {path: _program(path, found[path]) for path in programs}
    checksums = [(path, found[path].get("checksum")) for path in package_files]
    release = hashlib.sha256(json.dumps(checksums).encode()).hexdigest()
    known = _read(record, found[record].get("content"))
    entries = {path: entry for path, entry in (known or {}).items() if path in now}
    fresh = [path for path in programs if must_back_up(entries.get(path), now[path], release)]
    added = {path: _entry(now[path], release, entries.get(path)) for path in fresh}
    backed_up = {**entries, **added}
    noted = {path: note_replacement(entry, now[path]) for path, entry in entries.items()}
    return {
        "known": known is not None,
        "existing": [path for path in programs if now[path] != MISSING],
        "back_up": _files({path: now[path] for path in fresh}),
        "backed_up": _text(backed_up) if added or known is None else "",
        "unreplaced": [path for path, entry in backed_up.items() if is_unreplaced(entry, now[path])],
        "noted": _text(noted) if noted != entries else "",
        **_plan_restore(entries, now, release),
    }


def _plan_restore(entries: Mapping[str, Entry], now: Mapping[str, Program], release: str) -> dict[str, Any]:
    """Return the part of the result that concerns the undo."""
    verdicts = {path: must_restore(entry, now[path], release) for path, entry in entries.items()}
    restored = {path: entries[path] for path, verdict in verdicts.items() if verdict}
    originals = {path: entry["original"] for path, entry in restored.items()}
    # Before the agent, there was a file or a link.
    present = {path: entry for path, entry in restored.items() if entry["original"] != MISSING}
    return {
        "restore": _files(originals),
        "links": [
            {"path": path, "target": original["content"][len("link:") :]}
            for path, original in originals.items()
            if original["content"].startswith("link:")
        ],
        "remove": [path for path in restored if path not in present],
        "unknown": _files({path: now[path] for path, entry in present.items() if _is_unknown(entry, now[path])}),
        "outdated": [path for path, entry in present.items() if entry["release"] != release],
        "left": [path for path, verdict in verdicts.items() if verdict is None],
    }


def _is_unknown(entry: Entry, now: Program) -> bool:
    """Return whether neither the package nor the agent has written the program as far as a run has recorded."""
    return now["content"] not in (entry["original"]["content"], entry["replacement"])


def _entry(now: Program, release: str, former: Entry | None) -> Entry:
    return {"original": now, "release": release, "replacement": None, "former": former}


def _program(path: str, file: Mapping[str, Any]) -> Program:
    if not file["exists"]:
        return MISSING
    content = f"link:{file['link']}" if file["link"] else f"sha256:{file.get('checksum')}"
    if not CONTENT.fullmatch(content):
        raise AnsibleFilterError(f"{path} is not a regular file that can be read, or a symbolic link to one.")
    return {"content": content} if file["link"] else {"content": content, **{key: file[key] for key in ATTRIBUTES}}


def _files(programs: Mapping[str, Program]) -> list[dict[str, Any]]:
    """Return the regular files of the programs, with the names of their copies."""
    return [
        {
            "path": path,
            "checksum": (checksum := program["content"][len("sha256:") :]),
            "backup": f"{os.path.basename(path)}.{checksum[:16]}",
            **{key: program[key] for key in ATTRIBUTES},
        }
        for path, program in programs.items()
        if program["content"].startswith("sha256:")
    ]


def _text(entries: Mapping[str, Entry]) -> str:
    return json.dumps(entries, sort_keys=True, indent=1) + "\n"


def _read(record: str, content: str | None) -> dict[str, Entry] | None:
    """Return the entries of a record by path; None without a record. Raises AnsibleFilterError for a damaged record."""
    if content is None:
        return None
    try:
        entries: dict[str, Entry] = json.loads(content)
        if all(_is_entry(entry) for entry in entries.values()):
            return entries
    except (ValueError, LookupError, TypeError, AttributeError):
        pass
    raise AnsibleFilterError(
        f"{record}, the record of the replaced programs, is damaged: restore the programs from the backups beside its directory,"
        " and remove it."
    )


def _is_entry(entry: Entry) -> bool:
    original, replacement = entry["original"], entry["replacement"]
    is_file = original["content"].startswith("sha256:")
    return bool(
        CONTENT.fullmatch(original["content"])
        and (replacement is None or CONTENT.fullmatch(replacement))
        and (
            not is_file
            or (re.fullmatch(r"[0-7]{3,5}", original["mode"]) and int(original["uid"]) + int(original["gid"]) >= 0)
        )
        and isinstance(entry["release"], str)
        and (entry["former"] is None or _is_entry(entry["former"]))
    )


class FilterModule:
    """Filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by their names."""
        return {"replaced_programs": replaced_programs}
