# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The summary of a run: counts, and the reasons of failures."""

from __future__ import annotations

import json

import pytest
from gates import _common, _report, go_tests
from gates._report import Case

GOOD = Case("a.b", "test_good", "passed")
BAD = Case(
    "a.b", "test_bad[1]", "failed", "def test():\n>   assert 1 == 2\nE   assert 1 == 2\n\nx.py:3: AssertionError"
)
SKIPPED = Case("a.b", "test_kmod", "skipped", "not concerned: kmod is here")
MISSING_TOOL = Case("a.b", "test_real", "skipped", "there is no containerd here")


@pytest.fixture(autouse=True)
def reports(tmp_path, monkeypatch):
    """A folder of reports, on a machine that is not CI."""
    monkeypatch.delenv("CI", raising=False)
    for module in (_common, _report):
        monkeypatch.setattr(module, "REPORTS", tmp_path)
    return tmp_path


@pytest.fixture
def summary(reports):
    """The summary of gates (name -> verdict) and of their reports: its exit status and its lines."""

    def make(verdicts, **cases):
        for name, those in cases.items():
            _report.write(name, those)
        results = [_report.collect(name, verdict, 2.0, 1.0, reports) for name, verdict in verdicts.items()]
        return _report.summarize(results, reports)

    return make


@pytest.mark.parametrize(
    ("verdicts", "cases", "line", "status"),
    [
        ({"units": "passed"}, [GOOD, GOOD, SKIPPED], "2 passed, 0 failed, 1 skipped", 0),
        ({"units": "passed", "lint": "failed"}, [GOOD], "1 passed, 1 failed, 0 skipped", 1),
        ({"units": "failed"}, [GOOD, BAD, BAD, BAD], "1 passed, 3 failed, 0 skipped", 1),
        ({"units": "failed"}, [GOOD], "1 passed, 1 failed, 0 skipped", 1),
        ({"units": "ended"}, [GOOD], "1 passed, 1 failed, 0 skipped", 1),
        ({"units": "not run"}, [], "0 passed, 1 failed, 0 skipped", 1),
        ({"units": "passed"}, [BAD], "0 passed, 1 failed, 0 skipped", 1),
        ({"units": "passed"}, [SKIPPED], "0 passed, 0 failed, 1 skipped", 1),
        ({"units": "passed"}, [GOOD, MISSING_TOOL], "1 passed, 0 failed, 1 skipped", 0),
        ({"units": "passed"}, [], "1 passed, 0 failed, 0 skipped", 0),
        ({}, [], "0 passed, 0 failed, 0 skipped", 1),
    ],
)
def test_summary_counts_decide_the_status(summary, verdicts, cases, line, status):
    answer, lines = summary(verdicts, **({"units": cases} if cases else {}))
    assert (answer, lines[-1]) == (status, line)


def test_summary_truncated_report_is_a_failure(summary, reports):
    (reports / "units-3.8.xml").write_text("<testsuites><testsuite")
    answer, lines = summary({"units": "passed"})
    assert (answer, lines[-1]) == (1, "0 passed, 1 failed, 0 skipped")
    assert "  failed: units-3.8.xml" in lines


@pytest.mark.parametrize(
    ("ci", "line", "status"), [("", "1 passed, 0 failed, 1 skipped", 0), ("1", "1 passed, 1 failed, 0 skipped", 1)]
)
def test_not_run_is_a_failure_on_ci_alone(summary, monkeypatch, ci, line, status):
    monkeypatch.setenv("CI", ci)
    monkeypatch.setenv("GATES_NAME", "units")
    assert _common.not_run("no Python 3.13") == status
    answer, lines = summary({"units": "failed" if ci else "passed"}, units=[GOOD])
    assert (answer, lines[-1]) == (status, line)
    assert any("no Python 3.13" in each for each in lines)


def test_skip_without_a_tool_is_a_failure_on_ci(summary, monkeypatch):
    monkeypatch.setenv("CI", "1")
    answer, lines = summary({"units": "passed"}, units=[GOOD, SKIPPED, MISSING_TOOL])
    assert (answer, lines[-1]) == (1, "1 passed, 1 failed, 1 skipped")
    assert "  failed: a.b test_real" in lines
    assert "skipped in units: 1 x not concerned: kmod is here" in lines


def test_failed_tests_are_named_with_the_reason_of_the_first(summary):
    other = Case("a.b", "test_other", "failed", "E   other")
    lines = summary({"units": "failed"}, units=[BAD, other])[1]
    assert lines[lines.index("✗ units (all it printed: units.log)") :] == [
        "✗ units (all it printed: units.log)",
        "  failed: a.b test_bad[1]",
        "  failed: a.b test_other",
        "    E   assert 1 == 2",
        "    x.py:3: AssertionError",
        "",
        "0 passed, 2 failed, 0 skipped",
    ]


def test_gate_without_tests_shows_the_error_that_it_printed(summary, reports):
    noise = "".join(f"noise {number}\n" for number in range(30))
    (reports / "units.log").write_text("error: of another gate\n")
    (reports / "lint.log").write_text(f"{noise}x.yml:1: \x1b[31merror: wrong\x1b[0m\nmore\n")
    lines = summary({"units": "passed", "lint": "failed"}, units=[GOOD])[1]
    assert lines[-4:-2] == ["    x.yml:1: error: wrong", "    more"]


def test_json_of_a_run_in_parts_has_the_gates_of_all_parts_of_one_commit(reports):
    path, facts = reports / "test-all.json", {"commit": "abc", "modified": False}
    first, second = ([{"name": name, "passed": 1, "failed": 0, "skipped": 0}] for name in ("units", "lint"))
    assert _report.gates_of(path, facts) == []
    path.write_text(_report.as_json(first, **facts))
    assert _report.gates_of(path, facts) == first
    assert _report.gates_of(path, {**facts, "commit": "def"}) == []
    assert _report.gates_of(path, {**facts, "modified": True}) == []
    whole = json.loads(_report.as_json(first + second + second, ["lint", "units"], **facts))
    assert (whole["passed"], whole["missing"], whole["gates"]) == (2, [], first + second)


@pytest.mark.parametrize(("gate", "outcome"), [("units", "failed"), ("nodes", "skipped"), ("core-2.18", "skipped")])
def test_skip_on_ci_is_a_failure_except_in_minimal_environments(monkeypatch, gate, outcome):
    monkeypatch.setenv("CI", "1")
    assert _report.apply_ci_rule(MISSING_TOOL, gate).outcome == outcome
    assert _report.apply_ci_rule(SKIPPED, gate) == SKIPPED


def test_report_has_no_characters_that_xml_forbids(reports):
    _report.write("units", [Case("a", "b", "failed", "\x1b[31mred\x1b[0m \x00 <&> ✗")])
    assert _report.read(reports / "units.xml") == [Case("a", "b", "failed", "red  <&> ✗")]


def events(*those):
    return [json.dumps(dict(zip(("Package", "Test", "Action", "Output"), each))) for each in those]


def test_go_tests_count_once_each():
    found = go_tests.cases(
        [
            "go: downloading something",
            *events(
                ("p", "TestA/one", "pass"),
                ("p", "TestA/two", "output", "x_test.go:1: wrong\n"),
                ("p", "TestA/two", "fail"),
                ("p", "TestA", "fail"),
                ("p", "TestB", "skip"),
                ("p", "", "fail"),
                ("q", "TestC", "pass"),
                ("q", "", "pass"),
                ("empty", "", "skip"),
            ),
        ]
    )
    assert found == [
        Case("p", "TestA/one", "passed"),
        Case("p", "TestA/two", "failed", "x_test.go:1: wrong"),
        Case("p", "TestB", "skipped"),
        Case("q", "TestC", "passed"),
    ]


def test_go_package_that_does_not_build_is_a_failure():
    built = json.dumps({"ImportPath": "p [p.test]", "Action": "build-output", "Output": "x.go:1: undefined: y\n"})
    assert go_tests.cases([built, *events(("p", "", "fail"))]) == [
        Case("p", "package", "failed", "x.go:1: undefined: y")
    ]
