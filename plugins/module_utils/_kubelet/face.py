# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The two halves of the module kubelet_config: what they say to each other, and what the controller makes of it.

Private to this collection.
"""

from __future__ import annotations

import base64
import posixpath
import typing as t

from .. import _files
from .._yaml_files.scalars import Syntax
from .._yaml_files.steps import Ask, data_of, difference, expected, order, plain, with_record
from . import plan
from .command import Flag
from .record import Record
from .seen import Seen

ARGUMENTS: dict[str, t.Any] = {
    "path": {"type": "path"},
    "values": {"type": "dict", "default": {}},
    "state": {"type": "str", "choices": ["present", "absent", "restored", "confirmed"], "default": "present"},
    "keep_former": {"type": "bool", "default": False},
    "state_dir": {"type": "path", "default": _files.STATE_DIR},
    "_request": {"type": "dict"},
}

# Headers of requests for static pods may hold a token.
_MASKED = "staticPodURLHeader"


def run(arguments: t.Mapping[str, t.Any], syntax: Syntax, ask: Ask, check_mode: bool) -> dict[str, t.Any]:
    """Do what the arguments ask of one node; return the result with its warnings. Raises EditError."""
    arguments = plain(arguments, "values")
    path, state_dir = arguments["path"], arguments["state_dir"]
    answer = ask({"do": "read", "path": path, "state_dir": state_dir})
    seen = _seen(answer)
    record = Record.decode(data_of(answer["record"]), answer["record_path"])
    decided = _decide(arguments, seen, record, syntax)
    steps = _steps(decided, answer, record)
    result: dict[str, t.Any] = {
        "changed": decided.step is not None,
        **decided.facts,
        "warnings": list(decided.notes),
        "diff": [] if decided.step is None else [difference(decided.step, syntax, _MASKED)],
        "files": [step["path"] for step in steps],
    }
    if steps and not check_mode:
        files = {answer["path"]: answer["config"], answer["record_path"]: answer["record"]}
        request = {"do": "write", "path": seen.path, "steps": steps, "expected": expected(files)}
        request.update(state_dir=state_dir, backup_dir=posixpath.join(state_dir, "backups"))
        result["backup_files"] = dict(ask(request)["copies"])
    return result


def _decide(arguments: t.Mapping[str, t.Any], seen: Seen, record: Record | None, syntax: Syntax) -> plan.Plan:
    asked = plan.Asked(arguments["path"] is not None, arguments["keep_former"])
    if arguments["state"] == "present":
        return plan.present(arguments["values"], seen, record, syntax, asked)
    if arguments["state"] == "absent":
        return plan.absent(seen, record, syntax, asked)
    return {"restored": plan.restored, "confirmed": plan.confirmed}[arguments["state"]](seen, record)


def _seen(answer: t.Mapping[str, t.Any]) -> Seen:
    flags = answer["flags"]
    return Seen(
        path=answer["path"],
        config=data_of(answer["config"]),
        flags=None if flags is None else tuple(Flag(*flag) for flag in flags),
        named=answer["named"],
        is_named=answer["is_named"],
        drop_ins={path: base64.b64decode(data) for path, data in answer["drop_ins"]},
        processes=answer["processes"],
        distribution=answer["distribution"],
    )


def _steps(decided: plan.Plan, answer: t.Mapping[str, t.Any], record: Record | None) -> list[dict[str, t.Any]]:
    """Return what the node has to write."""
    orders = [order(decided.step, record.file.written if record else ())] if decided.step else []
    if decided.keep_record:
        return orders
    return with_record(orders, answer["record_path"], decided.record.encode() if decided.record else None)
