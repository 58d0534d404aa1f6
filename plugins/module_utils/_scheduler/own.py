# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kube-scheduler that the Kubernetes distribution starts itself: which files give it the extenders, or no longer do.

The configuration is written first and removed last, so that kube-scheduler starts after each step. It names its kubeconfig, since the
flag --kubeconfig has no effect beside --config, and has no leaderElection, since the distribution's flag decides that.
"""

from __future__ import annotations

import posixpath
import re
import typing as t
from dataclasses import dataclass, field

from .._config.controller import Plan, Step
from .._config.errors import ConfigError
from .._config.files import sha256
from .._config.record import FileRecord
from .._config.yaml_nodes import Syntax
from .._distributions import OwnScheduler
from .._distributions.settings import merge_settings, to_list
from . import configuration, extenders, versions
from .record import Record

if t.TYPE_CHECKING:
    from .plan import Params

#: Kubernetes' oldest release with the API version that is written.
_MINOR = 25
_MODE = 0o644


@dataclass(frozen=True)
class OwnState:
    """Of a node: the argument's file and the configuration (None: no such file), and all files of the distribution's settings, in their order.

    *command* is the command line of the unit, which overrides settings of the same name.
    """

    file: bytes | None
    config: bytes | None
    settings: t.Mapping[str, bytes] = field(default_factory=dict)
    command: str = ""


def present(row: OwnScheduler, params: Params, node: OwnState, record: Record | None, syntax: Syntax) -> Plan:
    """Plan to give kube-scheduler the extenders. Raises ConfigError."""
    warnings = extenders.check(params.extenders)
    if params.config_path not in (None, row.config):
        raise ConfigError(
            f"config_path {params.config_path}: leave it out, since the distribution's configuration is {row.config}."
        )
    minor = (
        _MINOR if params.kubernetes_version is None else versions.parse(params.kubernetes_version, "kubernetes_version")
    )
    if record is None and not configuration.is_blank(syntax, node.config, row.config):
        raise ConfigError(f"{row.config} is there, and there is no record of it: move it away, and run again.")
    after = _put_argument(row, node, record, syntax)
    config = _configuration(row, params, node, record, syntax, minor, warnings)
    steps = [Step(row.config, node.config, config, mode=_MODE), Step(row.file, node.file, after, mode=_MODE)]
    fresh = Record(
        _file_record(steps[1], _known_file(row, node, record)),
        _file_record(steps[0], record.config if record else FileRecord(None, ())),
        row.config,
        row.config,
        tuple(extenders.identity(each) for each in params.extenders),
        minor,
    )
    changing = tuple(step for step in steps if step.before != step.after)
    keep = not changing and record is not None and record.extenders == fresh.extenders
    return Plan(changing, fresh, _facts(row, syntax, config), tuple(warnings), keep_record=keep)


def absent(row: OwnScheduler, node: OwnState, record: Record | None, syntax: Syntax) -> Plan:
    """Plan to undo what earlier runs changed. Raises ConfigError."""
    if record is None:
        return Plan((), None, _facts(row, syntax, None), keep_record=True)
    file, config, warnings = _remove_argument(row, node, record), node.config, []
    if sha256(node.config) in record.config.written:
        config = record.config.original
    elif node.config is not None:
        warnings.append(f"{row.config} stays, since others have changed it; kube-scheduler does not read it any more.")
    steps = (Step(row.file, node.file, file, mode=_MODE), Step(row.config, node.config, config, mode=_MODE))
    changing = tuple(step for step in steps if step.before != step.after)
    return Plan(changing, None, _facts(row, syntax, None), tuple(warnings))


def _facts(row: OwnScheduler, syntax: Syntax, config: bytes | None) -> dict[str, t.Any]:
    return {
        "api_version": None if config is None else configuration.api_version(syntax, config, row.config),
        "config_checksum": sha256(config),
        "config_path": None if config is None else row.config,
        "managed": config is not None,
        "path": row.file,
    }


def _known_file(row: OwnScheduler, node: OwnState, record: Record | None) -> FileRecord:
    """Return what is known of the argument's file; what others wrote into it since belongs to its original."""
    if record is not None and sha256(node.file) in record.manifest.written:
        return record.manifest
    return FileRecord(None if row.way == "settings" else _without_line(row, node.file), ())


def _file_record(step: Step, known: FileRecord) -> FileRecord:
    before = [sha256(step.before)] if sha256(step.before) in known.written and step.before != step.after else []
    return FileRecord(known.original, (sha256(step.after), *before))


def _configuration(
    row: OwnScheduler,
    params: Params,
    node: OwnState,
    record: Record | None,
    syntax: Syntax,
    minor: int,
    warnings: list[str],
) -> bytes:
    managed = record.extenders if record else ()

    def change(tree: t.Any) -> list[str]:
        return configuration.set_extenders(tree, minor, params.extenders, managed, (), row.kubeconfig, row.config)

    if node.config is None or configuration.is_blank(syntax, node.config, row.config):
        tree = configuration.new_tree()
        warnings += change(tree)
        return syntax.render(tree)
    warnings += change(syntax.read(node.config, row.config))
    return syntax.edit(node.config, row.config, change)


# -- the argument


def _put_argument(row: OwnScheduler, node: OwnState, record: Record | None, syntax: Syntax) -> bytes:
    if row.way == "arguments":
        return _put_line(row, node)
    text = f"{row.key}+:\n  - config={row.config}\n".encode()
    if (
        node.file is not None
        and (record is None or sha256(node.file) not in record.manifest.written)
        and node.file != text
    ):
        raise ConfigError(f"{row.file} was written or changed by others: move it away, and run again.")
    trees = {path: syntax.read(data, path) for path, data in node.settings.items() if path != row.file}
    check_settings(row, trees, node.command)
    return text


def check_settings(row: OwnScheduler, trees: t.Mapping[str, t.Any], command: str) -> None:
    """Raise ConfigError if the distribution's other settings, by path, would give kube-scheduler another configuration, or drop the argument.

    *command* is the command line of its unit.
    """
    if re.search(rf"--{re.escape(row.key)}[= ]", command):
        raise ConfigError(
            f"{row.unit} is started with --{row.key}, which overrides the settings in files: move it to a file in"
            f" {posixpath.dirname(row.file)} under the key {row.key}+, and run again."
        )
    for path, tree in trees.items():
        found = find_argument(merge_settings([tree]).get(row.key, []), "config")
        if found not in (None, row.config):
            raise ConfigError(
                f"{path} gives kube-scheduler the configuration {found}: move its settings into {row.config} after this run,"
                " or remove it there first."
            )
    inside = {**trees, row.file: {f"{row.key}+": [f"config={row.config}"]}}
    main = min(inside, key=lambda path: (path.startswith(posixpath.dirname(row.file) + "/"), path))
    ordered = [main, *sorted(set(inside) - {main})]
    if find_argument(merge_settings([inside[path] for path in ordered]).get(row.key, []), "config") != row.config:
        later = [path for path in ordered if path > row.file and row.key in (inside[path] or {})]
        raise ConfigError(
            f"{' and '.join(later)} replaces {row.key} of the files before: name it {row.key}+ there, and run again."
        )


def find_argument(arguments: t.Any, name: str) -> str | None:
    """Return the value of the argument *name* that counts, None if it is not there."""
    found = None
    for argument in to_list(arguments):
        key, _equals, value = str(argument).lstrip("-").partition("=")
        found = value if key == name else found
    return found


def _line(row: OwnScheduler) -> str:
    return f"--config={row.config}"


def _put_line(row: OwnScheduler, node: OwnState) -> bytes:
    if node.file is None:
        raise ConfigError(f"There is no {row.file}: finish the installation, and run again.")
    text = node.file.decode("utf-8", "surrogateescape")
    found = find_argument([line.strip() for line in text.splitlines()], "config")
    if found == row.config:
        return node.file
    if found is not None:
        raise ConfigError(f"{row.file} gives kube-scheduler the configuration {found}: remove it there first.")
    end = "" if not text or text.endswith("\n") else "\n"
    return f"{text}{end}{_line(row)}\n".encode("utf-8", "surrogateescape")


def _remove_argument(row: OwnScheduler, node: OwnState, record: Record) -> bytes | None:
    """Return the file of the argument as it was, or without the argument if others have changed it since."""
    if node.file is None or sha256(node.file) in record.manifest.written:
        return record.manifest.original
    if row.way == "settings":
        raise ConfigError(
            f"{row.file} was changed by others: remove config={row.config} there by hand, move the file away, and run again."
        )
    return _without_line(row, node.file)


def _without_line(row: OwnScheduler, data: bytes | None) -> bytes | None:
    if data is None:
        return None
    lines = data.decode("utf-8", "surrogateescape").splitlines(keepends=True)
    return "".join(line for line in lines if line.strip() != _line(row)).encode("utf-8", "surrogateescape")
