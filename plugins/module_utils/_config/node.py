# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node's half of modules that decide on the controller: reads files and writes them, and decides nothing."""

from __future__ import annotations

import os
import typing as t
from types import MappingProxyType

from . import files
from .files import FilesError
from .paths import StatePaths
from .record import decode_bytes, encode_bytes

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

#: Reads what the controller requests, by the keys of its request.
Read = t.Callable[..., t.Dict[str, t.Any]]


def run_node_half(
    module: AnsibleModule, name: str, read: Read, actions: t.Mapping[str, Read] = MappingProxyType({})
) -> None:
    """Exit with what the action plugin *name* requests, or fail with one sentence."""
    request = module.params["_request"]
    if request is None:
        module.fail_json(msg=f"The action plugin gpu.kubernetes.{name} was not found: run this as a task of Ansible.")
    try:
        module.exit_json(changed=False, answer=answer(request, module.check_mode, read, actions))
    except FilesError as error:
        module.fail_json(msg=str(error))


def answer(
    request: t.Mapping[str, t.Any], check_mode: bool, read: Read, actions: t.Mapping[str, Read] = MappingProxyType({})
) -> dict[str, t.Any]:
    """Return what the controller requests: to read, to write, or one of the daemon's own *actions*; raises FilesError."""
    arguments = {key: value for key, value in request.items() if key != "do"}
    if request["do"] == "read":
        return read(**arguments)
    if request["do"] in actions:
        return actions[request["do"]](**arguments)
    return {"backups": {} if check_mode else write(**arguments)}


def read_files(path: str, kind: str, state_dir: str, more: t.Iterable[str] = ()) -> dict[str, t.Any]:
    """Return the file *path*, the record of changes to it by modules of this *kind*, and *more* files, as the controller gets them.

    {path, record_path, files: {path: {data (base64, None: no file), sha256}}}. Raises FilesError.
    """
    record = StatePaths(state_dir).record(path, kind)
    return {"path": path, "record_path": record, "files": {name: _describe(name) for name in [path, record, *more]}}


def _describe(path: str) -> dict[str, str | None]:
    data = files.read_bytes(path)
    return {"data": encode_bytes(data), "sha256": files.sha256(data)}


def write(
    path: str,
    orders: t.Sequence[t.Mapping[str, t.Any]],
    expected: t.Mapping[str, str | None],
    state_dir: str,
    backup_dir: str,
) -> dict[str, str]:
    """Follow the orders, one after the other: {path, data (base64, None: no file), owner, mode, backup, private}; return the backups, by file.

    Nothing is written if one of the files is not as it was *expected*. Once the record is removed, so are the backups of what
    the files hold again. Raises FilesError.
    """
    with files.lock(path, (files.LOCK_DIR, os.path.join(state_dir, "lock"))):
        for name, sha256 in expected.items():
            if files.sha256(files.read_bytes(name)) != sha256:
                raise FilesError(f"{name} was changed by others since it was read: nothing was written; run again.")
        files.make_dirs(state_dir)
        backups = {each["path"]: files.backup(each["path"], backup_dir) for each in orders if each["backup"]}
        for each in orders:
            _replace(each, (expected[each["path"]],))
        if any(each["private"] and each["data"] is None for each in orders):
            _drop_copies(expected, backup_dir)
    return {name: copy for name, copy in backups.items() if copy and os.path.exists(copy)}


def _replace(order: t.Mapping[str, t.Any], expected: t.Collection[str | None]) -> None:
    path, data = order["path"], decode_bytes(order["data"])
    if data is None:
        files.remove_file(path, expected)
        return
    if order["private"]:
        files.make_dirs(os.path.dirname(path), 0o700)
    files.write_atomic(path, data, mode=order.get("mode", 0o600), owner=order["owner"], expected=expected)


def _drop_copies(paths: t.Iterable[str], backup_dir: str) -> None:
    for path in paths:
        data = files.read_bytes(path)
        if data is not None:
            files.drop_copy(path, data, backup_dir)
