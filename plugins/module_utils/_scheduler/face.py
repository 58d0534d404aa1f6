# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The two halves of the module kube_scheduler_manifest: what they say to each other, and what the controller makes of it.

Private to this collection.
"""

from __future__ import annotations

import base64
import copy
import json
import posixpath
import typing as t

from .. import _files
from .._distributions import DEFAULT, HIDDEN, named
from .._yaml_files.errors import EditError
from .._yaml_files.masking import hide
from .._yaml_files.scalars import Syntax, text_of
from .._yaml_files.steps import Ask, data_of, difference, expected, order, plain, with_record
from . import plan
from .record import Record
from .seen import Seen, Unread, strays

ARGUMENTS: dict[str, t.Any] = {
    "path": {"type": "path"},
    "config_path": {"type": "path"},
    "backup_dir": {"type": "path"},
    "state_dir": {"type": "path", "default": _files.STATE_DIR},
    "kubernetes_version": {"type": "str"},
    "extenders": {"type": "list", "elements": "dict", "default": []},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "_request": {"type": "dict"},
}

_NOWHERE = f"run this on the control planes, give path if the manifest has another name, or {HIDDEN.scheduler_hint}"
_MASKED = "keyData"
# Once to look, once for each file that could not be guessed: a --config before us, one of ours, one asked for.
_MOST_READS = 6


def run(arguments: t.Mapping[str, t.Any], syntax: Syntax, ask: Ask, check_mode: bool) -> dict[str, t.Any]:
    """Do what the arguments ask of one node; return the result with its warnings. Raises EditError."""
    arguments = plain(arguments, "extenders")
    backups = arguments["backup_dir"] or posixpath.join(arguments["state_dir"], "backups")
    answer, seen, decided = _decide(arguments, syntax, ask)
    _refuse_beside(seen.path, state_dir=arguments["state_dir"], backup_dir=backups)
    others, told = strays(seen, syntax)
    result: dict[str, t.Any] = {
        **decided.facts,
        "other_manifests": others,
        "warnings": [*decided.notes, *told, *_overwritten(arguments, answer, decided)],
        "diff": [difference(step, syntax, _MASKED) for step in decided.steps],
    }
    steps = _steps(decided, answer)
    result["changed"] = bool(steps)
    result["files"] = [step["path"] for step in steps]
    result["checksums"] = {step["path"]: _files.sha256(data_of(step)) for step in steps}
    if steps and not check_mode:
        files = {**answer["files"], answer["path"]: answer["manifest"], answer["record_path"]: answer["record"]}
        request = {"do": "write", "path": seen.path, "steps": steps, "expected": expected(files)}
        request.update(state_dir=arguments["state_dir"], backup_dir=backups)
        result["backup_files"] = dict(ask(request)["copies"])
    return result


def _decide(
    arguments: t.Mapping[str, t.Any], syntax: Syntax, ask: Ask
) -> tuple[t.Mapping[str, t.Any], Seen, plan.Plan]:
    """Read of the node what is needed, which one request brings unless a manifest is written in an unusual way."""
    path, more = arguments["path"], [arguments["config_path"] or plan.CONFIG_PATH]
    asked = plan.Asked(arguments["extenders"], arguments["config_path"], arguments["kubernetes_version"])
    do = plan.present if arguments["state"] == "present" else plan.absent
    for _attempt in range(_MOST_READS):
        answer = ask({"do": "read", "path": path, "more": more, "state_dir": arguments["state_dir"]})
        path = _manifest_path(path, answer, syntax)
        seen = _seen(answer)
        record = Record.decode(data_of(answer["record"]), answer["record_path"])
        if path != seen.path:
            continue
        elsewhere = named(answer["distribution"]).scheduler_hint
        if elsewhere and do is plan.present and not arguments["path"] and seen.manifest is not None:
            raise EditError(f"{seen.path} is not edited: {elsewhere}. Where that is not so, give path.")
        if seen.manifest is None and (do is plan.present or record is None):
            if do is plan.absent:
                return answer, seen, plan.Plan((), None, {"path": seen.path}, keep_record=True)
            raise _no_manifest(seen, answer, arguments["path"])
        try:
            return answer, seen, do(asked, seen, record, syntax)
        except Unread as unread:
            more = [*more, unread.args[0]]
    raise EditError(f"{path}: the files of kube-scheduler change while they are read: run again.")


def _manifest_path(given: str | None, answer: t.Mapping[str, t.Any], syntax: Syntax) -> str:
    """Return where the manifest is. The node guessed it from the kubelet's configuration, which is read properly here."""
    guess = str(answer["path"])
    if given:
        return given
    trees = [syntax.read(base64.b64decode(data), file) for file, data in answer["kubelet"]]
    told = [text_of(tree.get("staticPodPath")) for tree in trees if isinstance(tree, dict)]
    folder = next(filter(None, reversed(told)), "")
    if not folder or posixpath.normpath(folder) in (
        posixpath.normpath(guess),
        posixpath.dirname(posixpath.normpath(guess)),
    ):
        return guess
    return posixpath.join(folder, posixpath.basename(guess))


def _seen(answer: t.Mapping[str, t.Any]) -> Seen:
    return Seen(
        answer["path"],
        data_of(answer["manifest"]),
        {path: data_of(file) for path, file in answer["files"].items()},
        {name: None if text is None else base64.b64decode(text) for name, text in answer["neighbours"].items()},
    )


def _no_manifest(seen: Seen, answer: t.Mapping[str, t.Any], given: str | None) -> EditError:
    """Return the error that names the way."""
    if given:
        source = "which path names"
    elif answer["kubelet"]:
        source = f"by staticPodPath of the kubelet's configuration, {' and '.join(file for file, _data in answer['kubelet'])}"
    else:
        source = f"{DEFAULT.name}'s place, for no configuration of the kubelet was found"
    others = [name for name, data in seen.neighbours.items() if data is not None]
    found = f"; {', '.join(others)} in the same folder may be it" if others else ""
    way = named(answer["distribution"]).scheduler_hint or _NOWHERE
    return EditError(f"There is no manifest of a static pod kube-scheduler at {seen.path} ({source}){found}: {way}.")


def _overwritten(arguments: t.Mapping[str, t.Any], answer: t.Mapping[str, t.Any], decided: plan.Plan) -> list[str]:
    """Return a warning if each run of the cluster's installer overwrites the configuration."""
    installer = named(answer["distribution"])
    if not installer.scheduler_variables or (decided.record is None and decided.keep_record):
        return []
    there = f"{installer.marker} exists, so {installer.name}'s next run overwrites the configuration of kube-scheduler"
    if arguments["state"] == "absent":
        return [
            f"{there}: remove the extenders from {installer.scheduler_variables} in its inventory, too, if they are there."
        ]
    extenders = copy.deepcopy(arguments["extenders"])
    hide(extenders, _MASKED)
    return [
        f"{there}: add to {installer.scheduler_variables} in its inventory {json.dumps(extenders, sort_keys=True)}."
    ]


def _refuse_beside(manifest: str, **places: str) -> None:
    folder = posixpath.dirname(posixpath.normpath(manifest)) + "/"
    for name, path in places.items():
        if (posixpath.normpath(path) + "/").startswith(folder):
            raise EditError(
                f"{name} {path} lies in {folder}, where the kubelet takes every file for a pod: give another place."
            )


def _steps(decided: plan.Plan, answer: t.Mapping[str, t.Any]) -> list[dict[str, t.Any]]:
    """Return what the node has to write."""
    known = Record.decode(data_of(answer["record"]), answer["record_path"])
    ours = {*known.manifest.written, *known.config.written} if known else set()
    orders = [order(step, ours) for step in decided.steps]
    if decided.keep_record:
        return orders
    return with_record(orders, answer["record_path"], None if decided.record is None else decided.record.encode())
