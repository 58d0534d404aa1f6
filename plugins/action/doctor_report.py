# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Action doctor_report: judges observations, prints the report in colour and writes its files."""

from __future__ import annotations

import os
import tempfile
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.gpu.kubernetes.plugins.module_utils._checks import judge, render, symptoms
from ansible_collections.gpu.kubernetes.plugins.module_utils._checks.bundle import build_bundle
from ansible_collections.gpu.kubernetes.plugins.module_utils._checks.registry import UnknownCheckError, select_checks
from ansible_collections.gpu.kubernetes.plugins.plugin_utils import _prometheus
from ansible_collections.gpu.kubernetes.plugins.plugin_utils._show import show_lines

ARGUMENTS: dict[str, Any] = {
    "observations": {"type": "list", "elements": "dict", "default": []},
    "cluster": {"type": "dict", "default": {}},
    "prometheus": {"type": "dict", "default": None, "options": _prometheus.SETTINGS},
    "errors": {"type": "list", "elements": "str", "default": []},
    "checks": {"type": "list", "elements": "str", "default": []},
    "skip": {"type": "list", "elements": "str", "default": []},
    "fail_on": {"type": "str", "choices": list(judge.FAIL_ON), "default": "fail"},
    "outputs": {"type": "dict", "default": {}},
    "bundle": {"type": "path", "default": ""},
    "symptom": {"type": "str", "default": ""},
    "show": {"type": "bool", "default": True},
    "format": {"type": "str", "choices": ["text", "json"], "default": "text"},
}


class ActionModule(ActionBase):
    """Runs on the controller only."""

    _requires_connection = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the report and whether it fails the run, or the causes of a symptom."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        _unused, arguments = self.validate_argument_spec(argument_spec=ARGUMENTS)
        if arguments["symptom"]:
            found = symptoms.find_causes(arguments["symptom"])
            show_lines(render.render_symptoms(found) if arguments["show"] else [])
            return {**result, "changed": False, "symptoms": found}
        if arguments["cluster"] and arguments["prometheus"]:
            monitoring = _prometheus.read_monitoring(arguments["prometheus"])
            arguments["cluster"] = {**arguments["cluster"], "monitoring": monitoring}
        report = _judge(arguments)
        files = _build_files(report, arguments)
        changed = [path for path, data in files.items() if _read(path) != data]
        written = [] if self._task.check_mode else list(files)
        for path in [] if self._task.check_mode else changed:
            _write(path, files[path])
        lines = (
            [(render.write_line(report), "plain")]
            if arguments["format"] == "json"
            else render.render_text(report, written)
        )
        show_lines(lines if arguments["show"] else [])
        failure = _explain_failure(report) if judge.is_failure(report, arguments["fail_on"]) else ""
        return {**result, "changed": bool(changed), "report": report, "failure": failure}


def _judge(arguments: dict[str, Any]) -> dict[str, Any]:
    try:
        checks = select_checks(arguments["checks"], arguments["skip"])
    except UnknownCheckError as error:
        raise AnsibleActionFail(f"{error} The names are in gpu_doctor_checks and gpu_doctor_skip.") from error
    try:
        return judge.judge(
            arguments["observations"], arguments["cluster"] or None, checks, arguments["errors"], arguments["fail_on"]
        )
    except (AttributeError, KeyError, TypeError) as error:
        raise AnsibleActionFail(
            f"doctor_report cannot read the observations ({error!r}); see its documentation."
        ) from error


def _build_files(report: dict[str, Any], arguments: dict[str, Any]) -> dict[str, bytes]:
    """Return the contents of the files to write, by path."""
    unknown = sorted(set(arguments["outputs"]) - set(render.FORMATS))
    if unknown:
        raise AnsibleActionFail(f"gpu_doctor_outputs has the format {unknown[0]}; use {', '.join(render.FORMATS)}.")
    texts = {form: write(report) for form, write in render.FORMATS.items()}
    files = {
        _expand(path): texts[form].encode("utf-8", "replace") for form, path in arguments["outputs"].items() if path
    }
    if arguments["bundle"]:
        named = {"report.txt": texts["text"], "report.json": texts["json"], "junit.xml": texts["junit"]}
        files[_expand(arguments["bundle"])] = build_bundle(
            named, arguments["observations"], arguments["cluster"] or None
        )
    return files


def _expand(path: str) -> str:
    return os.path.realpath(os.path.expanduser(path))


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def _write(path: str, data: bytes) -> None:
    """Replace a file, which only its owner can read."""
    try:
        handle, draft = tempfile.mkstemp(dir=os.path.dirname(path))
        with open(handle, "wb") as file:
            file.write(data)
        os.replace(draft, path)
    except OSError as error:
        raise AnsibleActionFail(
            f"{path} cannot be written on the controller ({error.strerror}); create its folder, or set another path in gpu_doctor_outputs or "
            "gpu_doctor_bundle."
        ) from error


def _explain_failure(report: dict[str, Any]) -> str:
    if not report["causes"] or report["status"] == "unknown":
        return f"{(report['errors'] or ['No host and no cluster could be examined'])[0].rstrip('.')}; the report lists what was not examined."
    first = report["causes"][0]
    rest = len(report["causes"]) - 1
    more = f" {rest} more {'cause is' if rest == 1 else 'causes are'} in the report." if rest else ""
    where = next(filter(None, first["hosts"]), "the cluster")
    return f"{where}: {first['details'][0]} ({first['id']}); {first['remedy']}.{more}"
