# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's half of the module kube_scheduler_manifest."""

from __future__ import annotations

import base64
import json
import posixpath
import typing as t

from .._config import controller, files
from .._config.controller import Answer, Send, to_plain
from .._config.errors import ConfigError
from .._config.record import decode_bytes
from .._config.redact import mask_tree
from .._config.yaml_nodes import Syntax, text_of
from .._distributions import DEFAULT, HIDDEN, OwnScheduler, named
from . import own, plan
from .node_state import NodeState, Unread, find_duplicates
from .record import Record

_NOWHERE = f"run this on the control planes, give path (kube_scheduler_extender_manifest) if the manifest has another name, or {HIDDEN.scheduler_hint}"
# One read, and one for each file that could not be guessed: the --config of others, the managed one, the requested one.
_MOST_READS = 6


def run(arguments: t.Mapping[str, t.Any], syntax: Syntax, send: Send, check_mode: bool, diff: bool) -> dict[str, t.Any]:
    """Bring one node to what the arguments request; return the result with its warnings, and the difference if *diff*. Raises ConfigError."""
    arguments = to_plain(arguments, "extenders")
    state_dir = arguments["state_dir"]
    backup_dir = arguments["backup_dir"] or posixpath.join(state_dir, "backups")
    reported, decided = _decide(arguments, syntax, send)
    answer = Answer.parse(reported)
    _refuse_beside(answer.path, state_dir=state_dir, backup_dir=backup_dir)
    orders = controller.list_orders(decided, answer, Record.decode(answer.record, answer.record_path))
    result = controller.build_result(decided, orders, syntax, diff)
    duplicates, warnings = find_duplicates(_node_state(answer, reported), syntax)
    result["changed"] = bool(orders)
    result["other_manifests"] = duplicates
    started = reported.get("own") or {}
    result["unit"] = started.get("unit", "")
    result["argument"] = f"--config={started['config']}" if started else ""
    result["warnings"] += [*warnings, *_warn_overwritten(arguments, reported, decided)]
    result["checksums"] = {order["path"]: files.sha256(decode_bytes(order["data"])) for order in orders}
    if orders and not check_mode:
        result["backup_files"] = controller.write(orders, answer, send, state_dir, backup_dir)
    return result


def _decide(
    arguments: t.Mapping[str, t.Any], syntax: Syntax, send: Send
) -> tuple[t.Mapping[str, t.Any], controller.Plan]:
    """Read what is needed of the node, for which one request suffices unless a manifest is written in an unusual way."""
    path, more = arguments["path"], [arguments["config_path"] or plan.CONFIG_PATH]
    params = plan.Params(arguments["extenders"], arguments["config_path"], arguments["kubernetes_version"])
    is_present = arguments["state"] == "present"
    for _attempt in range(_MOST_READS):
        reported = send({"do": "read", "path": path, "more": more, "state_dir": arguments["state_dir"]})
        path = _manifest_path(path, reported, syntax)
        answer = Answer.parse(reported)
        if reported.get("own"):
            return reported, _decide_own(arguments, params, reported, syntax)
        node, record = _node_state(answer, reported), Record.decode(answer.record, answer.record_path)
        if path != node.path:
            continue
        elsewhere = named(reported["distribution"]).scheduler_hint
        if elsewhere and is_present and not arguments["path"] and node.manifest is not None:
            raise ConfigError(
                f"{node.path} is not edited: {elsewhere}. Where that does not apply, give path (kube_scheduler_extender_manifest)."
            )
        if node.manifest is None and (is_present or record is None):
            if not is_present:
                return reported, controller.Plan((), None, {"managed": False, "path": node.path}, keep_record=True)
            raise _no_manifest(node, reported, arguments["path"])
        try:
            return reported, (plan.present if is_present else plan.absent)(params, node, record, syntax)
        except Unread as unread:
            more = [*more, unread.args[0]]
    raise ConfigError(f"{path}: the files of kube-scheduler change while they are read: run again.")


def _decide_own(
    arguments: t.Mapping[str, t.Any], params: plan.Params, reported: t.Mapping[str, t.Any], syntax: Syntax
) -> controller.Plan:
    """Plan the change of a kube-scheduler that the distribution starts itself."""
    row, answer = OwnScheduler(**reported["own"]), Answer.parse(reported)
    record = Record.decode(answer.record, answer.record_path)
    settings = {path: decode_bytes(data) or b"" for path, data in reported["settings"]}
    state = own.OwnState(answer.content, answer.files[row.config], settings, str(reported["command"]))
    if arguments["state"] == "present":
        return own.present(row, params, state, record, syntax)
    return own.absent(row, state, record, syntax)


def _manifest_path(given: str | None, reported: t.Mapping[str, t.Any], syntax: Syntax) -> str:
    """Return where the manifest is. The node guessed it from the kubelet's configuration, which is read as YAML here."""
    guess = str(reported["path"])
    if given:
        return given
    trees = [syntax.read(base64.b64decode(data), file) for file, data in reported["kubelet"]]
    folders = [text_of(tree.get("staticPodPath")) for tree in trees if isinstance(tree, dict)]
    folder = next(filter(None, reversed(folders)), "")
    if not folder or posixpath.normpath(folder) in (
        posixpath.normpath(guess),
        posixpath.dirname(posixpath.normpath(guess)),
    ):
        return guess
    return posixpath.join(folder, posixpath.basename(guess))


def _node_state(answer: Answer, reported: t.Mapping[str, t.Any]) -> NodeState:
    neighbours = {name: decode_bytes(text) for name, text in reported["neighbours"].items()}
    return NodeState(answer.path, answer.content, answer.files, neighbours)


def _no_manifest(node: NodeState, reported: t.Mapping[str, t.Any], given: str | None) -> ConfigError:
    """Return the error, with the remedy."""
    if given:
        source = "which path names"
    elif reported["kubelet"]:
        source = f"by staticPodPath of the kubelet's configuration, {' and '.join(file for file, _data in reported['kubelet'])}"
    else:
        source = f"{DEFAULT.name}'s default, for no configuration of the kubelet was found"
    others = [name for name, data in node.neighbours.items() if data is not None]
    found = f"; {', '.join(others)} in the same folder may be it" if others else ""
    remedy = named(reported["distribution"]).scheduler_hint or _NOWHERE
    return ConfigError(
        f"There is no manifest of a static pod kube-scheduler at {node.path} ({source}){found}: {remedy}."
    )


def _warn_overwritten(
    arguments: t.Mapping[str, t.Any], reported: t.Mapping[str, t.Any], decided: controller.Plan
) -> list[str]:
    """Return a warning if each run of the cluster's installer overwrites the configuration."""
    installer = named(reported["distribution"])
    if not installer.scheduler_variables or (decided.record is None and decided.keep_record):
        return []
    there = f"{installer.marker} exists, so {installer.name}'s next run overwrites the configuration of kube-scheduler"
    if arguments["state"] == "absent":
        return [
            f"{there}: remove the extenders from {installer.scheduler_variables} in its inventory, too, if they are there."
        ]
    extenders = mask_tree(arguments["extenders"])
    return [
        f"{there}: add to {installer.scheduler_variables} in its inventory {json.dumps(extenders, sort_keys=True)}."
    ]


def _refuse_beside(manifest: str, **places: str) -> None:
    folder = posixpath.dirname(posixpath.normpath(manifest)) + "/"
    for name, path in places.items():
        if (posixpath.normpath(path) + "/").startswith(folder):
            raise ConfigError(
                f"{name} {path} lies in {folder}, where the kubelet reads every file as a pod: give another place."
            )
