# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the gates tell at the end: counts that hide nothing, and why something failed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from gates import _common, _pythons, _report, go_tests, machine, matrix, scenarios, summary, with_containerd
from gates._report import Case
from lab.shell import LabError

PASSED = {"name": "units", "result": "success", "duration": 2.0}
FAILED = {**PASSED, "result": "failed"}
LINT = {"name": "lint", "result": "failed", "duration": 1.0}
GOOD = Case("a.b", "test_good", "passed")
BAD = Case(
    "a.b", "test_bad[1]", "failed", "def test():\n>   assert 1 == 2\nE   assert 1 == 2\n\nx.py:3: AssertionError"
)
SKIPPED = Case("a.b", "test_root", "skipped", "only root can")
LACKING = Case("a.b", "test_real", "skipped", "there is no containerd here")


@pytest.fixture(autouse=True)
def reports(tmp_path, monkeypatch):
    """A folder of reports, on a machine that is not CI."""
    monkeypatch.delenv("CI", raising=False)
    for module in (_common, _report, matrix):
        monkeypatch.setattr(module, "REPORTS", tmp_path)
    return tmp_path


@pytest.fixture
def told(reports, capsys):
    """The summary of some sessions and of what they left: its exit status and its lines."""

    def tell(sessions, **cases):
        (reports / "gates.txt").write_text("".join(f"{session['name']}\n" for session in sessions))
        for session in sessions:
            (reports / f"{session['name']}.nox.json").write_text(json.dumps({"sessions": [session]}))
        for name, those in cases.items():
            _report.write(name, those)
        return summary.main(reports), capsys.readouterr().out.splitlines()

    return tell


@pytest.mark.parametrize(
    ("sessions", "cases", "line", "status"),
    [
        ([PASSED], [GOOD, GOOD, SKIPPED], "2 passed, 0 failed, 1 skipped", 0),
        ([PASSED, LINT], [GOOD], "1 passed, 1 failed, 0 skipped", 1),
        ([FAILED], [GOOD, BAD, BAD, BAD], "1 passed, 3 failed, 0 skipped", 1),
        ([FAILED], [GOOD], "1 passed, 1 failed, 0 skipped", 1),
        ([PASSED], [BAD], "0 passed, 1 failed, 0 skipped", 1),
        ([PASSED], [SKIPPED], "0 passed, 0 failed, 1 skipped", 1),
        ([PASSED], [GOOD, LACKING], "1 passed, 0 failed, 1 skipped", 0),
        ([{**PASSED, "result": "skipped"}], [], "0 passed, 1 failed, 0 skipped", 1),
        ([], [], "0 passed, 1 failed, 0 skipped", 1),
    ],
)
def test_summary_counts_and_exits(told, reports, sessions, cases, line, status):
    answer, lines = told(sessions, **({"units": cases} if cases else {}))
    assert (answer, lines[-1]) == (status, line)
    assert (reports / "summary.txt").read_text() == f"{line}\n"


def test_a_gate_without_a_report_is_one_check(told):
    assert told([PASSED])[1][-1] == "1 passed, 0 failed, 0 skipped"


def test_a_report_that_is_cut_short_is_a_failure(told, reports):
    (reports / "units-3.8.xml").write_text("<testsuites><testsuite")
    answer, lines = told([PASSED])
    assert (answer, lines[-1]) == (1, "0 passed, 1 failed, 0 skipped")
    assert "  failed: units-3.8.xml" in lines


def test_a_gate_without_an_end_is_a_failure(told, reports, capsys):
    assert summary.main(reports) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "0 passed, 1 failed, 0 skipped"
    told([PASSED, LINT])
    (reports / "lint.nox.json").unlink()
    assert summary.main(reports) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "No lint.nox.json: nox ended before the gate lint did" in lines
    assert lines[-1] == "1 passed, 1 failed, 0 skipped"


def test_what_a_failed_gate_printed_is_told(told, reports, capsys):
    (reports / "lint.log").write_text("nox > Running session lint\nerror: of this gate\n")
    _status, lines = told([PASSED, LINT])
    assert lines[lines.index("✗ lint") + 1] == "    error: of this gate"


@pytest.mark.parametrize(
    ("ci", "line", "status"), [("", "1 passed, 0 failed, 1 skipped", 0), ("1", "1 passed, 1 failed, 0 skipped", 1)]
)
def test_what_was_not_run_is_counted_and_named(told, monkeypatch, ci, line, status):
    monkeypatch.setenv("CI", ci)
    monkeypatch.setenv("GATES_SESSION", "units")
    assert _common.not_run("no Python 3.13") == status
    answer, lines = told([PASSED if not ci else FAILED], units=[GOOD])
    assert (answer, lines[-1]) == (status, line)
    assert "NOT RUN in units: no Python 3.13" in lines


def test_on_ci_a_machine_that_lacks_something_is_a_failure(told, monkeypatch):
    monkeypatch.setenv("CI", "1")
    answer, lines = told([PASSED], units=[GOOD, SKIPPED, LACKING])
    assert (answer, lines[-1]) == (1, "1 passed, 1 failed, 1 skipped")
    assert "  failed: a.b test_real" in lines
    assert "    there is no containerd here" in lines


def test_reasons_of_skips_are_told(told):
    _answer, lines = told([PASSED], units=[GOOD, SKIPPED, SKIPPED])
    assert "skipped in units: 2 x only root can" in lines


def test_failed_tests_are_named_with_the_reason_of_the_first(told):
    other = Case("a.b", "test_other", "failed", "E   other")
    lines = told([FAILED], units=[BAD, other])[1]
    assert lines[lines.index("✗ units") :] == [
        "✗ units",
        "  failed: a.b test_bad[1]",
        "  failed: a.b test_other",
        "    E   assert 1 == 2",
        "    x.py:3: AssertionError",
        "",
        "0 passed, 2 failed, 0 skipped",
    ]


def test_many_failed_tests_are_told_in_short(told):
    lines = told([FAILED], units=[BAD] * (summary.NAMES + 3))[1]
    assert sum("failed: a.b" in line for line in lines) == summary.NAMES
    assert "  and 3 more" in lines


def test_a_gate_without_tests_shows_what_it_printed(told, reports):
    mine = "".join(f"noise {number}\n" for number in range(30)) + "x.yml:1: \x1b[31merror: wrong\x1b[0m\nmore\n"
    (reports / "units.log").write_text("nox > Running session units\nerror: not mine\n")
    (reports / "lint.log").write_text(f"nox > Running session lint\n{mine}")
    lines = told([PASSED, LINT], units=[GOOD])[1]
    assert lines[lines.index("✗ lint") + 1 : -2] == ["    x.yml:1: error: wrong", "    more"]


def test_why_starts_where_it_goes_wrong_and_is_short():
    said = ["ok: [a]", "  \x1b[2m│\x1b[0m fatal: [b]: FAILED! => no containerd", "  │ ", *(["later"] * 40)]
    assert _report.why(said) == ["  │ fatal: [b]: FAILED! => no containerd", *["later"] * (_report.DETAIL - 1)]
    assert _report.why([*"abc"], 2) == ["b", "c"]
    assert _report.why([]) == []


def test_reports_hold_what_xml_cannot(reports):
    _report.write("units", [Case("a", "b", "failed", "\x1b[31mred\x1b[0m \x00 <&> ✗")])
    assert summary.junit(reports / "units.xml") == [Case("a", "b", "failed", "red  <&> ✗")]


def test_commands_are_shown_as_they_run(capsys):
    status, said = _report.run(
        [sys.executable, "-c", "import sys; print('a'); print('b', file=sys.stderr); sys.exit(3)"]
    )
    assert (status, sorted(said)) == (3, ["a", "b"])
    assert capsys.readouterr().out.splitlines()[0].startswith(f"$ {sys.executable} -c")


def events(*those):
    return [json.dumps(dict(zip(("Package", "Test", "Action", "Output"), each))) for each in those]


def test_go_tests_are_counted_once_each():
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


def test_go_packages_that_cannot_be_built_are_failures():
    built = json.dumps({"ImportPath": "p [p.test]", "Action": "build-output", "Output": "x.go:1: undefined: y\n"})
    assert go_tests.cases([built, *events(("p", "", "fail"))]) == [
        Case("p", "package", "failed", "x.go:1: undefined: y")
    ]


def test_matrix_takes_its_versions_from_the_developer_requirements():
    assert {pin.split("==")[0] for pin in matrix.pins()} == set(matrix.TOOLS)
    assert not [pin for pin in matrix.pins() if pin.startswith("ansible")]


DEPRECATED = "[DEPRECATION WARNING]: x is deprecated. This feature will be removed"


@pytest.mark.parametrize(
    ("step", "status", "said", "problem"),
    [
        ("units", 0, ["12 passed"], ""),
        ("units", 1, ["E   assert 1 == 2"], "units: exit status 1\nE   assert 1 == 2"),
        ("units", 139, [], "units: exit status 139\nit said nothing"),
        ("syntax", 0, [DEPRECATED], "1 deprecation warning(s)"),
        ("scenario", 0, [f"  \x1b[2m│\x1b[0m \x1b[0;35m{DEPRECATED}\x1b[0m"], "1 deprecation warning(s)"),
        ("units", 0, [f"ok: {DEPRECATED}"], ""),
        ("scenario", 0, ["  │ [DEPRECATION WARNING]: Importing 'to_native' from"], ""),
        ("version", 0, ["ansible-playbook [core 2.20.10]"], ""),
        ("version", 0, ["ansible-playbook [core 2.19.1]"], "this is not ansible-core 2.20"),
    ],
)
def test_matrix_says_what_failed(step, status, said, problem):
    found = "\n".join(matrix.problems("2.20", step, status, said))
    assert problem in found
    assert bool(found) is bool(problem)


def test_matrix_leaves_out_what_belongs_to_another_ansible(monkeypatch):
    monkeypatch.setenv("ANSIBLE_COLLECTIONS_PATH", "/elsewhere")
    monkeypatch.setenv("MOLECULE_GLOB", "x")
    monkeypatch.setenv("VIRTUAL_ENV", "/elsewhere")
    found = matrix.surroundings(Path("/env/bin"))
    assert not {"ANSIBLE_COLLECTIONS_PATH", "MOLECULE_GLOB", "VIRTUAL_ENV"} & found.keys()
    assert found["PATH"].startswith("/env/bin:")


def test_matrix_goes_on_where_one_environment_cannot_be_made(monkeypatch, reports, capsys):
    def environment(core, _python):
        if core == "2.20":
            raise subprocess.CalledProcessError(2, ["uv", "pip", "install", "x"], output="error: no such version\n")
        return Path("/env/bin")

    monkeypatch.setattr(matrix, "environment", environment)
    monkeypatch.setattr(matrix, "commands", lambda core, _python, _scenario: {"units": ["true", core]})
    monkeypatch.setattr(matrix, "run", lambda *_words, **_more: (0, []))
    monkeypatch.setattr(matrix, "own", lambda: "2.19")
    monkeypatch.setattr(_pythons, "find", lambda version: None if version == "3.13" else Path("/usr/bin/python"))
    monkeypatch.setattr(sys, "argv", ["matrix"])
    assert matrix.main() == 1
    assert summary.junit(reports / "matrix-2.18.xml") == [Case("matrix", "ansible-core 2.18 on Python 3.11", "passed")]
    assert summary.junit(reports / "matrix-2.20.xml") == [
        Case(
            "matrix",
            "ansible-core 2.20 on Python 3.12",
            "failed",
            "its environment: uv pip install: exit status 2\nerror: no such version",
        ),
    ]
    assert "NOT RUN: ansible-core 2.21: no Python 3.13 on this machine" in capsys.readouterr().out


def test_scenarios_run_the_checkout_and_start_afresh(monkeypatch, tmp_path):
    seen = {}
    stale = tmp_path / "molecule" / "r-demo" / "state.yml"
    stale.parent.mkdir(parents=True)
    stale.write_text("created: true")
    monkeypatch.setattr(scenarios, "CACHE", tmp_path)
    monkeypatch.setattr(scenarios, "run", lambda command, env: seen.update(env, command=command) or (1, ["fatal: why"]))
    case, _seconds = scenarios.test("demo", "r", "/programs")
    assert case == Case("r", "scenario demo", "failed", "fatal: why")
    assert seen["command"] == ["molecule", "test", "--scenario-name", "demo"]
    assert seen["ANSIBLE_HOME"] == str(_common.ROOT / ".ansible")
    assert seen["MOLECULE_EPHEMERAL_DIRECTORY"] == str(stale.parent)
    assert seen["PATH"] == "/programs"
    assert not stale.exists()


def test_scenarios_run_a_quick_ansible_playbook_unless_it_is_another_environments(monkeypatch, tmp_path):
    own = Path(sys.executable).parent
    monkeypatch.setenv("PATH", f"{own}:/usr/bin")
    with scenarios.swift() as path:
        quick = shutil.which("ansible-playbook", path=path)
        assert Path(quick).parent != own
        said = subprocess.check_output([quick, "--version"], text=True)
        assert f"[core {matrix.own()}." in said
        assert "python version" in said
    theirs = tmp_path / "ansible-playbook"
    theirs.touch(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{own}")
    with scenarios.swift() as path:
        assert path == f"{tmp_path}:{own}"


@pytest.mark.parametrize(
    ("go", "pythons", "ci", "root", "status", "said"),
    [
        ((1, 26), True, "1", True, 0, ""),
        (None, True, "", True, 1, "lacks Go 1.24 or newer on PATH; install"),
        ((1, 19), True, "", True, 1, "(it is 1.19)"),
        ((1, 26), False, "1", True, 1, "lacks Python 3.8, 3.9, 3.11, 3.12, 3.13 (on PATH, in pyenv or in uv); install"),
        (None, False, "1", True, 1, "lacks Go 1.24 or newer on PATH and Python 3.8"),
        ((1, 26), False, "", True, 0, "is left out and counted as skipped"),
        ((1, 26), True, "", False, 1, "run the whole as root"),
    ],
)
def test_machine_is_asked_first(monkeypatch, capsys, go, pythons, ci, root, status, said):
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr(machine, "go_version", lambda: go)
    monkeypatch.setattr(_pythons, "find", lambda _version: Path("/usr/bin/python") if pythons else None)
    monkeypatch.setattr(machine.os, "geteuid", lambda: 0 if root else 1000)
    assert machine.main() == status
    captured = capsys.readouterr()
    lines = (captured.out + captured.err).splitlines()
    assert len(lines) == bool(said)
    assert said in "".join(lines)


@pytest.mark.parametrize(("ci", "status"), [("", 0), ("1", 1)])
def test_without_containerd_the_command_runs_and_ci_fails(monkeypatch, reports, ci, status):
    def nothing():
        raise LabError("go is\nnot there")

    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr(with_containerd, "LINES", {"2.4": nothing})
    proof = reports / "proof"
    assert with_containerd.main(["touch", str(proof)]) == status
    assert proof.exists()
    assert "tests with containerd 2.4: go is not there" in (reports / "not-run.txt").read_text()


def test_containerds_are_on_path_and_listed(monkeypatch, reports):
    for name in ("a", "b"):
        (reports / name).mkdir()
        (reports / name / "containerd").write_text("#!/bin/sh\necho containerd\n")
        (reports / name / "containerd").chmod(0o755)
    monkeypatch.setattr(with_containerd, "LINES", {"2.4": lambda: reports / "a", "1.7": lambda: reports / "b"})
    script = 'case "$PATH" in {0}/a:*) [ "$CONTAINERDS" = {0}/a/containerd:{0}/b/containerd ] && exit 7;; esac'
    assert with_containerd.main(["sh", "-c", script.format(reports)]) == 7
    assert not (reports / "not-run.txt").exists()


def test_playbooks_run_under_the_oldest_ansible_core():
    commands = {core: matrix.commands(core, python, None)["units"] for core, python in _pythons.CONTROLLERS}
    assert [core for core, words in commands.items() if matrix.PLAYBOOKS[0] in words] == ["2.19", "2.20", "2.21"]
    assert [core for core, words in commands.items() if matrix.MODULES[0] in words] == ["2.19", "2.20"]


def test_what_imports_no_ansible_is_tested_on_the_newest_python(monkeypatch):
    for newest in ("3.99", f"{sys.version_info.major}.{sys.version_info.minor}"):
        monkeypatch.setattr(_pythons, "CONTROLLERS", (("2.18", "3.11"), ("9.9", newest)))
        left_out = {
            python: matrix.GROUND[0] in matrix.commands("9.9", python, None)["units"] for python in ("3.12", newest)
        }
        assert left_out == {"3.12": True, newest: newest != "3.99"}
