# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration of Prometheus: which files change on its host. Pure functions; the controller's half calls them."""

from __future__ import annotations

import fnmatch
import posixpath
import typing as t
from dataclasses import dataclass, field, replace

from .._config.controller import Plan, Step
from .._config.errors import ConfigError
from .._config.files import sha256
from .._config.record import DAMAGED, FileRecord, decode_bytes, describe_damage, encode_bytes, load
from .._config.yaml_nodes import Syntax, ensure, is_equal, mappings, sequence, text_of
from .rules import build_groups
from .scrape import RULES_FILE, TARGETS_DIR, build_job, build_target_file, name_target_file
from .series import JOB

_HEADER = b"# Managed by gpu.kubernetes (role gpu_prometheus): changes are lost at its next run.\n"
_SUBJECT = "Prometheus' configuration"


@dataclass(frozen=True)
class Record:
    """What was done to the configuration and to the file of rules, and what there was before a change that is not verified."""

    config: FileRecord
    rules: FileRecord
    former: Former | None = None

    @property
    def written(self) -> tuple[str | None, ...]:
        """The SHA-256 of what was written."""
        return (*self.config.written, *self.rules.written)

    def encode(self) -> dict[str, t.Any]:
        """Return the record as JSON can hold it."""
        former = self.former and {
            "config": encode_bytes(self.former.config),
            "rules": encode_bytes(self.former.rules),
            "record": self.former.record and self.former.record.encode(),
        }
        return {"config": self.config.encode(), "rules": self.rules.encode(), "former": former}

    @staticmethod
    def decode(data: bytes | None, file: str) -> Record | None:
        """Return the record in *file*, None if there is none. Raises ConfigError if it cannot be read."""
        if data is None:
            return None
        try:
            return _read(load(data, file, _SUBJECT))
        except DAMAGED as exc:
            raise describe_damage(file, _SUBJECT, exc) from exc


@dataclass(frozen=True)
class Former:
    """Both files as they were before a change that is not verified, and what was on record of them."""

    config: bytes | None
    rules: bytes | None
    record: Record | None


def _read(content: t.Mapping[str, t.Any]) -> Record:
    former = content["former"]
    if former is not None:
        before = None if former["record"] is None else _read(former["record"])
        former = Former(decode_bytes(former["config"]), decode_bytes(former["rules"]), before)
    return Record(FileRecord.decode(content["config"]), FileRecord.decode(content["rules"]), former)


@dataclass(frozen=True)
class Observed:
    """The files on Prometheus' host (None: no file), those of the run's targets by name, names of others, and owner and mode for new ones."""

    path: str
    config: bytes | None
    rules: bytes | None
    targets: t.Mapping[str, bytes | None] = field(default_factory=dict)
    others: tuple[str, ...] = ()
    owner: tuple[int, int] | None = None
    mode: int = 0o644

    @property
    def folder(self) -> str:
        """The folder of the configuration."""
        return posixpath.dirname(self.path)

    @property
    def rules_path(self) -> str:
        """The file of rules."""
        return posixpath.join(self.folder, RULES_FILE)

    def target_path(self, name: str) -> str:
        """Return the path of a file of targets."""
        return posixpath.join(self.folder, TARGETS_DIR, name)

    def step(self, path: str, before: bytes | None, after: bytes | None) -> tuple[Step, ...]:
        """Return the step that changes a file, if it changes."""
        return () if before == after else (Step(path, before, after, self.owner, self.mode),)


@dataclass(frozen=True)
class Params:
    """The targets of this run's hosts by host (see build_target; empty for a host without an exporter), more options of the job, and changes of alerts."""

    targets: t.Mapping[str, t.Mapping[str, t.Any]] = field(default_factory=dict)
    options: t.Mapping[str, t.Any] = field(default_factory=dict)
    alerts: t.Mapping[str, t.Any] = field(default_factory=dict)
    runbook_url: str = ""


def plan_present(params: Params, observed: Observed, record: Record | None, syntax: Syntax) -> Plan:
    """Plan to have Prometheus scrape the targets and evaluate the rules. Raises ConfigError."""
    if observed.config is None:
        raise ConfigError(
            f"There is no {observed.path}: install Prometheus first, or set gpu_prometheus_config_path to its configuration."
        )
    job = build_job(params.options)
    original = _undo(observed, record, syntax)
    _refuse_unmanaged(observed, original, record, syntax)
    config = observed.config
    if record is None or not _is_complete(syntax.read(config, observed.path), job, observed):
        config = syntax.edit(original, observed.path, lambda root: _add(root, job, observed))
    rules = _HEADER + syntax.render({"groups": build_groups(params.alerts, params.runbook_url)})
    steps = observed.step(observed.rules_path, observed.rules, rules)
    for host, target in params.targets.items():
        name = name_target_file(host)
        data = build_target_file(target) if target else None
        steps += observed.step(observed.target_path(name), observed.targets.get(name), data)
    steps += observed.step(observed.path, observed.config, config)
    return _finish(steps, observed, record, (original, config), rules)


def plan_absent(hosts: t.Iterable[str], observed: Observed, record: Record | None, syntax: Syntax) -> Plan:
    """Plan to remove the targets of the hosts, and job and rules with the last target. Raises ConfigError."""
    names = [name_target_file(host) for host in hosts]
    targets: tuple[Step, ...] = ()
    for name in names:
        targets += observed.step(observed.target_path(name), observed.targets.get(name), None)
    if observed.others or record is None:
        return Plan(targets, record, {"needs_reload": False}, keep_record=True)
    rules = observed.step(observed.rules_path, observed.rules, None)
    if observed.config is None:  # Prometheus is gone
        return Plan((*rules, *targets), None, {"needs_reload": False})
    original = _undo(observed, record, syntax)
    steps = (*observed.step(observed.path, observed.config, original), *rules)
    return _finish((*steps, *targets), observed, record, (original, original), None)


def confirm(record: Record | None) -> Record | None:
    """Return the record once Prometheus has loaded the configuration; None if nothing of this collection is in it."""
    if record is None or record.rules.written[:1] == (None,):
        return None
    return replace(record, former=None)


def plan_restore(observed: Observed, record: Record) -> Plan:
    """Plan to restore both files as they were before the change on *record*, which is not verified."""
    former = record.former
    if former is None:
        return Plan((), record, {}, keep_record=True)
    steps = observed.step(observed.path, observed.config, former.config)
    steps += observed.step(observed.rules_path, observed.rules, former.rules)
    return Plan(steps, former.record, {})


def _finish(
    steps: tuple[Step, ...],
    observed: Observed,
    record: Record | None,
    config: tuple[bytes, bytes],
    rules: bytes | None,
) -> Plan:
    """Return the plan. *config* is the configuration without this collection, and the planned one."""
    reloads = any(step.path in (observed.path, observed.rules_path) for step in steps)
    if not reloads:
        pending = record is not None and record.former is not None
        return Plan(steps, record, {"needs_reload": pending}, keep_record=True)
    former = record.former if record and sha256(observed.config) in record.config.written else None
    fresh = Record(
        FileRecord(config[0], _hashes(config[1], observed.config)),
        FileRecord(None, _hashes(rules, observed.rules)),
        former or Former(observed.config, observed.rules, record),
    )
    return Plan(steps, fresh, {"needs_reload": True})


def _hashes(*contents: bytes | None) -> tuple[str | None, ...]:
    return tuple(dict.fromkeys(sha256(each) for each in contents))


def _refuse_unmanaged(observed: Observed, original: bytes, record: Record | None, syntax: Syntax) -> None:
    root = syntax.read(original, observed.path)
    if any(text_of(job.get("job_name")) == JOB for job in mappings(root, "scrape_configs", observed.path)):
        raise ConfigError(
            f"{observed.path} has a job {JOB} that this collection has not written: remove or rename it, since the alerts read the job of that name."
        )
    known = record.rules.written if record else ()
    if observed.rules is not None and sha256(observed.rules) not in known:
        raise ConfigError(
            f"{observed.rules_path} is not as this collection has written it: move your changes to a file of your own, remove it, and run again."
        )


def _undo(observed: Observed, record: Record | None, syntax: Syntax) -> bytes:
    """Return the configuration as it would be without this collection."""
    now = observed.config or b""
    if record is None:
        return now
    if sha256(now) == record.config.written[0] and record.config.original is not None:
        return record.config.original
    return syntax.edit(now, observed.path, lambda root: _remove(root, observed.path))


def _add(root: dict[str, t.Any], job: t.Mapping[str, t.Any], observed: Observed) -> None:
    listed = [text_of(each) for each in sequence(root, "rule_files", observed.path)]
    # A pattern of others may read the file already.
    if not any(_matches(each, observed) for each in listed):
        ensure(root, "rule_files", list).append(RULES_FILE)
    ensure(root, "scrape_configs", list).append(dict(job))


def _is_complete(root: dict[str, t.Any], job: t.Mapping[str, t.Any], observed: Observed) -> bool:
    """Whether the configuration has the job as planned, and reads the rules."""
    jobs = [each for each in mappings(root, "scrape_configs", observed.path) if text_of(each.get("job_name")) == JOB]
    listed = [text_of(each) for each in sequence(root, "rule_files", observed.path)]
    return len(jobs) == 1 and is_equal(jobs[0], dict(job)) and any(_matches(each, observed) for each in listed)


def _matches(pattern: str, observed: Observed) -> bool:
    """Whether an entry of ``rule_files`` reads the file of rules. A wildcard matches no slash there."""
    full = posixpath.normpath(posixpath.join(observed.folder, pattern))
    return posixpath.dirname(full) == observed.folder and fnmatch.fnmatchcase(RULES_FILE, posixpath.basename(full))


def _remove(root: dict[str, t.Any], path: str) -> None:
    """Remove job and rules from the tree, and lists that get empty by that."""
    for key, found in (
        ("rule_files", [each for each in sequence(root, "rule_files", path) if text_of(each) == RULES_FILE]),
        (
            "scrape_configs",
            [job for job in mappings(root, "scrape_configs", path) if text_of(job.get("job_name")) == JOB],
        ),
    ):
        for each in found:
            root[key].remove(each)
        if found and not root[key]:
            del root[key]
