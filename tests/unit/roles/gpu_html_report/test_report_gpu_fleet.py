# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook report_gpu_fleet; it reads and writes files alone."""

from __future__ import annotations

import json
import stat

import pytest

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._report.fleet import (
    make_allocation,
    make_cost,
    make_earlier,
    make_report,
)

PLAYBOOK = ROOT / "playbooks" / "report_gpu_fleet.yml"


@pytest.fixture
def write(run, tmp_path):
    """Run the playbook on files in a folder: exit code and output."""
    (tmp_path / "report.json").write_text(json.dumps(make_report()), encoding="utf-8")

    def play(*options, **variables):
        paths = {"gpu_html_report_source": "report.json", "gpu_html_report_dest": "page.html"}
        given = {key: str(tmp_path / name) for key, name in paths.items()}
        return run("[gpu_nodes]\nunreachable.invalid\n", PLAYBOOK, *options, **{**given, **variables})

    return play


def test_page_is_written_once_and_check_mode_writes_nothing(write, tmp_path):
    page = tmp_path / "page.html"
    code, output = write("--check")
    assert (code, page.exists(), "changed=1" in output) == (0, False, True), output
    code, output = write()
    assert (code, "changed=1" in output) == (0, True), output
    written = page.read_bytes()
    code, output = write()
    assert (code, "changed=0" in output, page.read_bytes()) == (0, True, written), output


def test_page_has_what_is_given_and_templates_in_it_stay_text(write, tmp_path):
    variables = {"gpu_html_report_language": "zh-CN", "gpu_html_report_title": "A & B"}
    for name, data in (("allocation", make_allocation()), ("cost", make_cost()), ("earlier", make_earlier())):
        (tmp_path / f"{name}.json").write_text(json.dumps(data), encoding="utf-8")
        variables[f"gpu_html_report_{name}"] = str(tmp_path / f"{name}.json")
    code, output = write(**variables)
    assert code == 0, output
    assert stat.S_IMODE((tmp_path / "page.html").stat().st_mode) == 0o600
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert '<html lang="zh-CN">' in page
    assert "<h1>A &amp; B</h1>" in page
    assert all(f"<h2 id={section}>" in page for section in ("changes", "cost"))
    assert "{{ 7 * 191 }}" in page
    assert "1337" not in page


def test_missing_files_are_named(write, tmp_path):
    code, output = write(gpu_html_report_source=str(tmp_path / "no.json"), gpu_html_report_cost="/nonexistent.json")
    assert code != 0
    missing = f"The controller does not have {tmp_path}/no.json and /nonexistent.json; run verify_gpu_cluster"
    assert missing in " ".join(output.split())
    assert not (tmp_path / "page.html").exists()
