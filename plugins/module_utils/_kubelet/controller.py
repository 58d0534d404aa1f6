# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's half of the module kubelet_config."""

from __future__ import annotations

import base64
import posixpath
import typing as t
from dataclasses import replace

from .._config import controller
from .._config.controller import Answer, Send, to_plain
from .._config.yaml_nodes import Syntax
from .._distributions import OwnKubelet
from . import own, plan
from .command import Flag
from .node_state import NodeState
from .record import Record


def run(arguments: t.Mapping[str, t.Any], syntax: Syntax, send: Send, check_mode: bool, diff: bool) -> dict[str, t.Any]:
    """Bring one node to what the arguments request; return the result with its warnings, and the difference if *diff*. Raises ConfigError."""
    arguments = to_plain(arguments, "values")
    state_dir = arguments["state_dir"]
    reported = send({"do": "read", "path": arguments["path"], "state_dir": state_dir})
    answer = Answer.parse(reported)
    record = Record.decode(answer.record, answer.record_path)
    node = _node_state(answer, reported, syntax)
    decided = _decide(arguments, node, record, syntax)
    if node.own:
        decided = own.drop_blank(decided, node.path, node.config, answer.content)
    orders = controller.list_orders(decided, answer, record)
    result = {**controller.build_result(decided, orders, syntax, diff), "service": reported["service"]}
    if orders and not check_mode:
        backup_dir = posixpath.join(state_dir, "backups")
        result["backup_files"] = controller.write(orders, answer, send, state_dir, backup_dir)
    return result


def _decide(
    arguments: t.Mapping[str, t.Any], node: NodeState, record: Record | None, syntax: Syntax
) -> controller.Plan:
    params = plan.Params(arguments["values"], arguments["path"] is not None, arguments["keep_former"])
    if arguments["state"] == "present":
        return plan.present(params, node, record, syntax)
    if arguments["state"] == "absent":
        return plan.absent(params, node, record, syntax)
    return {"restored": plan.restored, "confirmed": plan.confirmed}[arguments["state"]](node, record)


def _node_state(answer: Answer, reported: t.Mapping[str, t.Any], syntax: Syntax) -> NodeState:
    flags = reported["flags"]
    node = NodeState(
        path=answer.path,
        config=answer.content,
        flags=None if flags is None else tuple(Flag(*flag) for flag in flags),
        named=reported["named"],
        is_named=reported["is_named"],
        drop_ins={path: base64.b64decode(data) for path, data in reported["drop_ins"]},
        processes=reported["processes"],
        distribution=reported["distribution"],
        agent=reported["agent"],
    )
    if not reported.get("own"):
        return node
    row = OwnKubelet(**reported["own"])
    trees = [syntax.read(base64.b64decode(data), path) for path, data in reported["settings"]]
    return replace(
        node,
        own=row,
        config=own.BLANK if node.config is None else node.config,
        flags=own.read_flags(row, trees, str(reported["command"])),
        drop_ins={path: data for path, data in node.drop_ins.items() if path != node.path},
    )
