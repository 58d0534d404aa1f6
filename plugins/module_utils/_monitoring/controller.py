# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's half of the module prometheus_config: decide, check, write, reload, verify, and roll back."""

from __future__ import annotations

import posixpath
import typing as t

from .._config import controller
from .._config.controller import Answer, Plan, Send, to_plain
from .._config.errors import ConfigError
from .._config.record import encode_bytes
from .._config.yaml_nodes import Syntax
from . import config, rules
from .config import Observed, Params, Record
from .scrape import RULES_FILE, TARGETS_DIR, name_target_file


def run(arguments: t.Mapping[str, t.Any], syntax: Syntax, send: Send, check_mode: bool, diff: bool) -> dict[str, t.Any]:
    """Bring Prometheus' host to what the arguments request; return the result with its warnings, and the difference if *diff*. Raises ConfigError."""
    arguments = to_plain(arguments, "targets, scrape_options or alerts")
    run_one = _Run(arguments, syntax, send)
    plan, answer, record = run_one.plan()
    orders = _list_orders(plan, answer, record)
    result = controller.build_result(plan, orders, syntax, diff)
    result["changed"] = bool(plan.steps) or plan.facts["needs_reload"]
    run_one.check(plan, answer)
    if not check_mode:
        result["backup_files"] = run_one.write(orders, answer)
        if plan.facts["needs_reload"]:
            run_one.reload()
        if arguments["state"] == "absent":
            send({"do": "tidy", "folder": posixpath.join(posixpath.dirname(answer.path), TARGETS_DIR)})
    return result


class _Run:
    """One run on one Prometheus."""

    def __init__(self, arguments: t.Mapping[str, t.Any], syntax: Syntax, send: Send) -> None:
        self.arguments = arguments
        self.syntax = syntax
        self.send = send

    def read(self) -> tuple[Answer, Observed, Record | None]:
        """Return what Prometheus' host has."""
        names = [name_target_file(host) for host in self.arguments["targets"]]
        request = {
            "do": "read",
            "path": self.arguments["path"],
            "names": names,
            "state_dir": self.arguments["state_dir"],
        }
        reported = self.send(request)
        answer = Answer.parse(reported)
        folder = posixpath.join(posixpath.dirname(answer.path), TARGETS_DIR)
        observed = Observed(
            path=answer.path,
            config=answer.content,
            rules=answer.files[posixpath.join(posixpath.dirname(answer.path), RULES_FILE)],
            targets={
                posixpath.basename(path): data
                for path, data in answer.files.items()
                if posixpath.dirname(path) == folder
            },
            others=tuple(reported["others"]),
            owner=None if reported["owner"] is None else tuple(reported["owner"]),
            mode=reported["mode"],
        )
        return answer, observed, Record.decode(answer.record, answer.record_path)

    def plan(self) -> tuple[Plan, Answer, Record | None]:
        """Return what this run changes, and what it has read. Raises ConfigError."""
        answer, observed, record = self.read()
        given = self.arguments
        if given["state"] == "absent":
            return config.plan_absent(given["targets"], observed, record, self.syntax), answer, record
        params = Params(given["targets"], given["scrape_options"], given["alerts"], given["runbook_url"])
        return config.plan_present(params, observed, record, self.syntax), answer, record

    def check(self, plan: Plan, answer: Answer) -> None:
        """Have promtool check the planned files, and require that Prometheus answers, before anything changes. Raises ConfigError."""
        planned = {step.path: step.after for step in plan.steps}
        rules_path = posixpath.join(posixpath.dirname(answer.path), RULES_FILE)
        if self.arguments["state"] == "present" or plan.facts["needs_reload"]:
            request = {
                "do": "check",
                "promtool": self.arguments["promtool"],
                "path": answer.path,
                "rules_path": rules_path,
                "config": encode_bytes(planned.get(answer.path, answer.content)),
                "rules": encode_bytes(planned.get(rules_path, answer.files[rules_path])),
            }
            refusal = self.send(request)["refusal"]
            if refusal:
                raise ConfigError(f"promtool refuses the configuration, and nothing was changed: {refusal}")
        if plan.facts["needs_reload"] and self.arguments["reload"] != "none":
            refusal = self.send({"do": "probe", "url": self.arguments["url"]})["refusal"]
            if refusal:
                raise ConfigError(
                    f"Prometheus does not answer ({refusal}), and nothing was changed: start it, or set gpu_prometheus_url to its address, or"
                    " gpu_prometheus_reload to none."
                )

    def write(self, orders: t.Sequence[t.Mapping[str, t.Any]], answer: Answer) -> dict[str, str]:
        """Have the host follow the orders; return the backups, by file."""
        if not orders:
            return {}
        state_dir = self.arguments["state_dir"]
        return controller.write(orders, answer, self.send, state_dir, posixpath.join(state_dir, "backups"))

    def reload(self) -> None:
        """Have Prometheus load the files and verify it, or roll back. Raises ConfigError after a rollback."""
        refusal, log = self._load(self.arguments["state"])
        answer, observed, record = self.read()
        if refusal is None:
            final = config.confirm(record)
            self.write(_list_orders(Plan((), final, {}), answer, record), answer)
            return
        if record is None:
            raise ConfigError(f"Prometheus did not load the configuration: {refusal}.")
        restore = config.plan_restore(observed, record)
        self.write(_list_orders(restore, answer, record), answer)
        again, _log = self._load("present" if restore.record else "absent")
        outcome = "and its former files were restored" if again is None else f"also not with its former files ({again})"
        raise ConfigError(
            f"Prometheus did not load the configuration, {outcome}: {refusal}. Its last log lines: {' / '.join(log) or 'none'}."
        )

    def _load(self, state: str) -> tuple[str | None, list[str]]:
        if self.arguments["reload"] == "none":
            return None, []
        request = {
            "do": "reload",
            "how": self.arguments["reload"],
            "service": self.arguments["service"],
            "url": self.arguments["url"],
            "file": RULES_FILE,
            "groups": list(rules.GROUPS) if state == "present" else [],
        }
        answer = self.send(request)
        return answer["refusal"], list(answer["log"])


def _list_orders(plan: Plan, answer: Answer, record: Record | None) -> list[dict[str, t.Any]]:
    """Return the orders. Files of targets are this collection's, and are not backed up."""
    folder = posixpath.join(posixpath.dirname(answer.path), TARGETS_DIR)
    orders = controller.list_orders(plan, answer, record)
    return [{**each, "backup": each["backup"] and posixpath.dirname(each["path"]) != folder} for each in orders]
