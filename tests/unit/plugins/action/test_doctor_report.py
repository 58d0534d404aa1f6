# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

pytest.importorskip("ansible.plugins.action")

from ansible.errors import AnsibleActionFail

from ansible_collections.gpu.kubernetes.plugins.action import doctor_report
from ansible_collections.gpu.kubernetes.plugins.modules import doctor_report as doctor_report_module
from ansible_collections.gpu.kubernetes.plugins.plugin_utils import _show
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._checks.healthy import build, put


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return report(check_mode, **arguments): the result, with the printed lines as ``printed``."""
    printed: list[str] = []
    monkeypatch.setattr(_show.display, "display", lambda text, **_tone: printed.append(text))
    action = doctor_report.ActionModule.__new__(doctor_report.ActionModule)
    monkeypatch.setattr(doctor_report.ActionBase, "run", lambda *_arguments: {})

    def run(check_mode: bool = False, **arguments: Any) -> dict[str, Any]:
        def validate(argument_spec: dict[str, Any]) -> tuple[None, dict[str, Any]]:
            documented = yaml.safe_load(doctor_report_module.DOCUMENTATION)["options"]
            assert {name: (option["type"], option.get("default")) for name, option in documented.items()} == {
                name: (option["type"], option["default"]) for name, option in argument_spec.items()
            }
            return None, {**{name: option["default"] for name, option in argument_spec.items()}, **arguments}

        monkeypatch.setattr(action, "validate_argument_spec", validate, raising=False)
        monkeypatch.setattr(action, "_task", SimpleNamespace(check_mode=check_mode), raising=False)
        printed.clear()
        return {**action.run(), "printed": list(printed)}

    return run


def test_doctor_report_writes_files_for_their_owner_once(report: Any, tmp_path: Path) -> None:
    host, cluster = build()
    paths = {form: str(tmp_path / f"doctor.{form}") for form in ("text", "json", "junit")}
    arguments = {
        "observations": [host],
        "cluster": cluster,
        "outputs": paths,
        "bundle": str(tmp_path / "doctor.tar.gz"),
    }
    planned = report(check_mode=True, **arguments)
    assert (planned["changed"], list(tmp_path.iterdir())) == (True, [])
    assert report(**arguments)["changed"] is True
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}
    assert len(list(tmp_path.iterdir())) == 4
    assert report(**arguments)["changed"] is False


def test_doctor_report_of_fault_names_host_cause_and_remedy(report: Any) -> None:
    host, cluster = build()
    put(host, "pci/0/alive", False)
    result = report(observations=[host], cluster=cluster)
    assert result["failure"].startswith(
        "gpu1: the GPU at 0000:3b:00.0 does not answer on the PCI bus (hw.pci_alive); drain the node"
    )
    assert any(line.startswith("FAIL hw.pci_alive") for line in result["printed"])
    assert report(observations=[host], cluster=cluster, fail_on="never")["failure"] == ""
    assert report(observations=[host], cluster=cluster, show=False)["printed"] == []


def test_doctor_report_as_json_is_one_line_of_the_report(report: Any) -> None:
    host, cluster = build()
    result = report(observations=[{**host, "host": "nöde\n"}], cluster=cluster, format="json")
    [line] = result["printed"]
    assert line.startswith('{"schema": "gpu.kubernetes/doctor/v1"')
    assert json.loads(line) == result["report"]
    assert report(observations=[host], cluster=cluster, format="json", show=False)["printed"] == []


class Prometheus(BaseHTTPRequestHandler):
    """A fake of Prometheus' HTTP API, which has no target and no rules, and requires a token."""

    def do_GET(self) -> None:
        body = {"data": {"groups": []}} if self.path.startswith("/api/v1/rules?") else {"data": {"result": []}}
        self.send_response(200 if self.headers["Authorization"] == "Bearer word" else 401)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *_arguments: Any) -> None:
        """Print nothing."""


@pytest.fixture
def prometheus() -> Iterator[str]:
    """The address of the fake."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Prometheus) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_doctor_report_reads_the_monitoring(report: Any, prometheus: str) -> None:
    host, cluster = build()
    del cluster["monitoring"]
    settings = {"token": "word", "username": "", "password": "", "ca_path": "", "validate_certs": True, "timeout": 5.0}

    def run(**changes: Any) -> Any:
        given = {"url": prometheus, **settings, **changes}
        return report(observations=[host], cluster=cluster, prometheus=given, checks=["monitoring"])["report"]

    assert [cause["id"] for cause in run()["causes"]] == ["mon.rules", "mon.scraped"]
    for changes, words in (({"token": "other"}, "HTTP Error 401"), ({"url": "http://127.0.0.1:9"}, "refused")):
        found = run(**changes)
        assert (found["causes"], found["status"]) == ([], "pass")
        [detail] = {each["details"][0] for each in found["hosts"][0]["checks"]}
        assert detail.startswith("Prometheus cannot be read")
        assert words in detail
        assert "word" not in str(found)


def test_doctor_report_without_observations_fails(report: Any) -> None:
    assert report(errors=["The API is away."])["failure"] == "The API is away; the report lists what was not examined."


def test_doctor_report_of_symptom_prints_causes(report: Any) -> None:
    result = report(symptom="Driver/library version mismatch")
    assert [row["id"] for row in result["symptoms"]][:1] == ["kernel.mismatch"]
    assert "report" not in result
    assert "possible cause" in result["printed"][0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"checks": ["hw.none"]}, "There is no check or layer hw.none"),
        ({"outputs": {"html": "x"}}, "gpu_doctor_outputs has the format html; use text, json, junit"),
        ({"outputs": {"json": "/nonexistent/folder/x"}}, "/nonexistent/folder/x cannot be written on the controller"),
        ({"observations": [7]}, "cannot read the observations"),
    ],
)
def test_doctor_report_of_wrong_argument_is_an_error(report: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(AnsibleActionFail, match=message):
        report(**arguments)


def test_doctor_report_prints_no_control_characters(report: Any) -> None:
    host, cluster = build()
    host["runtime"]["error"] = "\x1b[2J\u202e"
    assert all(line.isprintable() for line in report(observations=[host], cluster=cluster)["printed"])
