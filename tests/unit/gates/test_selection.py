# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The selection of scenarios and playbook tests for a change."""

from __future__ import annotations

import subprocess

import pytest
from gates import selection, table, unit_tests

SCENARIOS = {
    "default": ["playbooks/"],
    "sharing": ["roles/gpushare", "plugins/module_utils/_allocation"],
    "scheduler": ["roles/kube_scheduler_extender", "plugins/modules/kube_scheduler_manifest"],
    "kubelet": ["roles/kubelet_reserved"],
}


@pytest.mark.parametrize(
    ("lines", "chosen", "left"),
    [
        ({"README.md": 5}, ["default"], []),
        ({"playbooks/site.yml": 5}, ["default"], []),
        ({"roles/gpushare/tasks/main.yml": 1}, ["default", "sharing"], []),
        ({"roles/gpushare_report/tasks/main.yml": 1}, ["default"], []),
        ({"plugins/modules/kube_scheduler_manifest.py": 1}, ["default", "scheduler"], []),
        ({"molecule/kubelet/converge.yml": 1}, ["default", "kubelet"], []),
        (
            {
                "roles/kubelet_reserved/a": 3,
                "roles/gpushare/a": 1,
                "plugins/module_utils/_allocation/a.py": 8,
                "roles/kube_scheduler_extender/a": 5,
            },
            ["default", "sharing"],
            ["scheduler", "kubelet"],
        ),
        ({"tests/lab/nodes.py": 1}, ["default", "kube_scheduler_extender"], []),
    ],
)
def test_choose_takes_the_scenario_with_most_changed_lines(lines, chosen, left):
    assert selection.choose(lines, SCENARIOS) == (chosen, left)


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A repository with one commit a day, main at the second; returns a function that runs git in it."""
    monkeypatch.setattr(selection, "ROOT", tmp_path)
    monkeypatch.delenv("CI_BASE", raising=False)

    def git(*words, day="01"):
        date = f"2026-01-{day}T12:00:00Z"
        env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "GIT_COMMITTER_DATE": date, "GIT_AUTHOR_DATE": date}
        command = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b", *words]
        return subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "--quiet", "--initial-branch=main")
    for day in ("01", "02"):
        (tmp_path / f"day-{day}").write_text("a\nb\n")
        git("add", ".", day=day)
        git("commit", "--quiet", "--message", day, day=day)
    return git


def test_base_without_a_remote_is_the_commit_before_this_landing(checkout):
    assert selection.base() == checkout("rev-parse", "HEAD~1")


def test_base_that_is_not_a_commit_is_refused(checkout, monkeypatch):
    monkeypatch.setenv("CI_BASE", "HEAD~1")
    assert selection.base() == checkout("rev-parse", "HEAD~1")
    monkeypatch.setenv("CI_BASE", "origin/mian")
    with pytest.raises(SystemExit, match="origin/mian is not a commit of this checkout"):
        selection.base()


def test_base_on_a_branch_is_the_merge_base_with_main(checkout, tmp_path):
    checkout("update-ref", "refs/remotes/origin/main", "HEAD~1")
    (tmp_path / "new").write_text("a\n")
    checkout("add", ".")
    checkout("commit", "--quiet", "--message", "new", day="03")
    assert selection.base() == checkout("rev-parse", "HEAD~2")


def test_changed_counts_commits_working_tree_and_new_files(checkout, tmp_path):
    (tmp_path / "day-01").write_text("a\nc\n")
    (tmp_path / "untracked").write_text("a\nb\nc\n")
    assert selection.read_changed(selection.base()) == {"day-01": 2, "day-02": 2, "untracked": 3}


def test_every_role_module_and_package_is_on_a_line(monkeypatch):
    assert selection.problems() == []
    lines = selection.table()
    lines["cuda"] = ["roles/nonsense"]
    monkeypatch.setattr(selection, "table", lambda: lines)
    assert selection.problems() == [
        "roles/cuda: on no line of tests/scenarios.yml",
        "roles/nonsense: in tests/scenarios.yml, and not there",
    ]


def changed_roles(*names, lines=None, scenarios=None, since="0" * 40):
    return selection.changed_roles({**dict.fromkeys(names, 1), **(lines or {})}, scenarios or {}, since)


def test_changed_roles_run_all_tests_and_some_users_of_fixtures_the_first():
    whole, sampled, left = changed_roles("tests/fakes/kubernetes_api.py", "roles/cuda/tasks/main.yml")
    assert whole == ["cuda"]
    assert len(sampled) == selection.MOST_SAMPLED
    assert {"gpushare", "nvidia_driver"} <= {*sampled, *left}
    every = {"cuda", *sampled, *left}
    for name in ("roles/_cluster_api/tasks/main.yml", "requirements-dev.txt"):
        whole, sampled, left = changed_roles(name)
        assert (whole, {*sampled, *left}) == ([], every)
    whole, sampled, left = changed_roles("roles/_extender_sharing/tasks/main.yml")
    assert (whole, {*whole, *sampled, *left}) == (["_extender_sharing"], every)
    assert changed_roles("roles/gpushare/tasks/main.yml", "tests/unit/roles/cuda/test_cuda.py") == (
        ["cuda", "gpushare"],
        [],
        [],
    )
    assert changed_roles("README.md", "plugins/modules/nvml_facts.py") == ([], [], [])


def test_another_base_samples_other_users():
    _whole, sampled, left = changed_roles("requirements-dev.txt")
    bases = (f"{number:08x}" for number in range(0, len([*sampled, *left]), selection.MOST_SAMPLED))
    found = [changed_roles("requirements-dev.txt", since=since)[1] for since in bases]
    assert {role for names in found for role in names} == {*sampled, *left}


def test_of_many_changed_roles_those_with_most_lines_run_all_tests_and_the_others_the_first():
    names = ["cuda", "gpu_sharing", "gpushare", "mig", "mps", "nano_gpu", "nvidia_driver"]
    lines = {f"roles/{name}/tasks/main.yml": number for number, name in enumerate(names, start=1)}
    assert changed_roles(lines=lines) == (
        ["mps", "nano_gpu", "nvidia_driver"],
        ["cuda", "gpu_sharing", "gpushare", "mig"],
        [],
    )
    lines["tests/unit/roles/cuda/test_steps.py"] = 50
    assert changed_roles(lines=lines) == (
        ["cuda", "nano_gpu", "nvidia_driver"],
        ["gpu_sharing", "gpushare", "mig", "mps"],
        [],
    )
    # Changed roles come before users of a changed file.
    whole, sampled, left = changed_roles("requirements-dev.txt", lines=lines)
    assert {"gpu_sharing", "gpushare", "mig", "mps"} <= set(sampled)
    assert not {*whole, *sampled} & set(left)


def test_changed_roles_on_the_line_of_a_plugin_run_the_first_tests():
    scenarios = {
        "sharing": ["roles/gpushare", "roles/nano_gpu", "plugins/filter/node_capacities"],
        "cuda": ["roles/cuda"],
    }
    names = ("plugins/filter/node_capacities.py", "roles/gpushare/tasks/main.yml")
    assert changed_roles(*names, scenarios=scenarios) == (["gpushare"], ["nano_gpu"], [])
    # They come before the other roles after a change in what all share.
    for since in ("00000000", "0000000a", "00000014"):
        assert "nano_gpu" in changed_roles(*names, "requirements-dev.txt", scenarios=scenarios, since=since)[1]


def test_report_names_what_is_left():
    text = selection.report(selection.Selection("b" * 40, ["default"], ["cuda"], ["mig"], ["mps"], ["gpushare"], {}))
    assert "the first playbook test of: mps\n" in text
    left = text.partition("LEFT TO make test-all: ")[2]
    assert left.startswith(
        "scenarios cuda; the other playbook tests of sampled roles; the playbook tests of gpushare; "
    )


@pytest.mark.parametrize(
    ("name", "tests"),
    [
        ("plugins/module_utils/_toml/reader.py", "tests/unit/plugins/module_utils/_toml"),
        ("plugins/modules/nvml_facts.py", "tests/unit/plugins/modules/test_nvml_facts.py"),
        ("plugins/module_utils/_commands.py", "tests/unit/plugins/module_utils/test__commands.py"),
        ("roles/cuda/tasks/main.yml", ""),
        ("tests/unit/plugins/module_utils/_toml/test_reader.py", "tests/unit/plugins/module_utils/_toml"),
        ("tests/unit/plugins/modules/test_nvml_facts.py", "tests/unit/plugins/modules/test_nvml_facts.py"),
        ("tests/unit/plugins/modules/conftest.py", "tests/unit/plugins/modules"),
    ],
)
def test_quick_runs_the_unit_tests_beside_a_changed_file(name, tests):
    assert unit_tests.tests_of(name) == tests


def test_tests_that_only_read_files_run_for_every_change(monkeypatch):
    calls = []
    monkeypatch.setenv("GATES_TIER", "merge")
    monkeypatch.setattr(table, "find_reference_programs", lambda *_names, **_more: ({}, 0))
    monkeypatch.setattr(table, "pytest", lambda *arguments, **_environment: calls.append(arguments) or 0)
    assert table.units([]) == 0
    [arguments] = calls
    assert {"tests/unit/static/test_playbooks.py", "tests/unit/static/test_time_limits.py"} <= set(arguments)
    assert not [path for path in arguments if path.startswith(("tests/unit/roles", "tests/unit/playbooks"))]
