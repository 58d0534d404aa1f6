# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An interrupted run of nano_gpu never loses the programs of a host."""

from __future__ import annotations

import os

import pytest
import yaml

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

ROLE = ROOT / "roles" / "nano_gpu"
NODE_PRESENT = yaml.safe_load((ROLE / "tasks" / "node_present.yml").read_text())

#: What the agent's pod does when it starts, in shell: it replaces the host's programs, and moves one aside.
INSTALL = "mv toolkit toolkit-bak; rm hook; for name in hook toolkit; do echo agent $0 > $name; done"
UPGRADE = "echo -n release 2 | tee nvidia-ctk > hook.new; chmod 751 hook.new; mv hook.new hook; ln -sfn hook toolkit"


def programs(folder):
    return {
        path.name: os.readlink(path) if path.is_symlink() else (path.read_text(), path.stat().st_mode & 0o7777)
        for path in folder.iterdir()
        if path.name != "nvidia-ctk"
    }


def install_package(folder):
    """Install the toolkit's package for the first time."""
    folder.mkdir()
    (folder / "hook").write_text("release 1")
    (folder / "hook").chmod(0o751)
    (folder / "toolkit").symlink_to("hook")
    (folder / "nvidia-ctk").write_text("release 1")
    return programs(folder)


def shell(script, *arguments, **more):
    return {"ansible.builtin.command": {"argv": ["sh", "-ec", script, *arguments], "chdir": "{{ bin }}"}, **more}


def include_file(file, **more):
    return [{"ansible.builtin.include_tasks": str(ROLE / "tasks" / file), **more}]


def restore(**variables):
    """The role's tasks that record the replacements or restore the programs."""
    return include_file("restore.yml", vars=variables)


def steps(version, only):
    """Those of the steps ``only`` of node_present, in its order. A script is the agent, and starts as its DaemonSet would start it."""
    template = {"version": version, "restarted": "{{ _extender_sharing_restarted }}"}
    deploy = [
        shell(INSTALL, version, when="deployed != desired", vars={"desired": template}),
        {"ansible.builtin.set_fact": {"deployed": template}},
    ]
    _back_up, _bring, record, _report = NODE_PRESENT
    known = {"Back up": include_file("back_up.yml"), "Deploy": deploy, "Record": restore(**record["vars"])}
    return [{"block": known[step], "when": f"'{step}' in {only}"} for step in known]


ALL = "['Back up', 'Deploy', 'Record']"
#: Before the second run either the toolkit is upgraded or another version of the agent is requested; it is interrupted after some steps, and a third
#: one follows or not. The tests of the filter have all combinations.
CASES = {
    "back-up-upgraded-again": {"upgraded": True, "version": "1", "steps": ["Back up"], "again": True},
    "deploy-changed-end": {"upgraded": False, "version": "2", "steps": ["Back up", "Deploy"], "again": False},
}


def role_variables():
    files = [*sorted((ROLE / "vars" / "main").glob("*.yml")), ROLE / "defaults" / "main.yml"]
    return {
        **{name: value for file in files for name, value in yaml.safe_load(file.read_text()).items()},
        "nano_gpu_replace_host_binaries": True,
        "_extender_sharing_host": {"expected": 1},
        # As the internal role has it, for a strategy whose pods were last restarted as the DaemonSet has it.
        "_extender_sharing_restarted": "{{ now_of_run if _extender_sharing_restart | bool else deployed.restarted }}",
        "__nano_gpu_programs": ["{{ bin }}/hook", "{{ bin }}/toolkit"],
        "__nano_gpu_leftovers": ["{{ bin }}/toolkit-bak"],
        "__nano_gpu_package_files": ["{{ bin }}/nvidia-ctk"],
        "nano_gpu_state_dir": "{{ bin }}-state",
    }


@pytest.mark.thorough
def test_interrupted_run_is_resumed(evaluate, tmp_path):
    variables = role_variables()

    def play(tasks, hosts=tuple(CASES), **more):
        return {"hosts": ",".join(hosts), "gather_facts": False, "vars": {**variables, **more}, "tasks": tasks}

    hosts, after = {}, {}
    for name, case in CASES.items():
        folder = tmp_path / name
        before = install_package(folder)
        after[name] = {**before, "hook": ("release 2", 0o751)} if case["upgraded"] else before
        hosts[name] = {**case, "bin": str(folder), "deployed": {"version": "0", "restarted": ""}}
    again = [name for name, case in CASES.items() if case["again"]]
    found = evaluate(
        hosts,
        [
            play(steps("1", ALL), now_of_run="first"),
            play([shell(UPGRADE, when="upgraded"), *steps("{{ version }}", "steps")], now_of_run="second"),
            play(
                [*steps("{{ version }}", ALL), shell("cat hook toolkit", register="shown")],
                again,
                now_of_run="third",
            ),
            # Removed, or not allowed any more.
            play(restore(__nano_gpu_restores=True, __nano_gpu_cleans=False), nano_gpu_replace_host_binaries=False),
        ],
        "dict(groups.all | zip(groups.all | map('extract', hostvars) | map(attribute='shown.stdout_lines', default=[])))",
    )
    for name, case in CASES.items():
        # Also where the package had restored its own programs before the interrupted run.
        assert found[name] == ([f"agent {case['version']}"] * 2 if case["again"] else []), name
        assert programs(tmp_path / name) == after[name], name
        assert not list((tmp_path / f"{name}-state").rglob("*.json")), name


@pytest.mark.thorough
def test_newer_package_stays_and_damaged_copy_stops_the_restore(evaluate, tmp_path):
    hosts = {
        name: {"bin": str(tmp_path / name), "deployed": {"version": "0", "restarted": ""}, "now_of_run": "first"}
        for name in ("upgraded", "damaged")
    }
    for name in hosts:
        install_package(tmp_path / name)
    remove = {
        "block": restore(__nano_gpu_restores=True, __nano_gpu_cleans=False),
        "rescue": [{"ansible.builtin.set_fact": {"message": "{{ ansible_failed_result.results[0].msg }}"}}],
    }
    damage = shell("for copy in ../damaged-state/backups/*; do echo > $copy; done")
    found = evaluate(
        hosts,
        [
            {"hosts": "all", "gather_facts": False, "vars": role_variables(), "tasks": steps("1", ALL)},
            {"hosts": "upgraded", "gather_facts": False, "tasks": [shell(UPGRADE)]},
            {"hosts": "damaged", "gather_facts": False, "tasks": [damage]},
            {"hosts": "all", "gather_facts": False, "vars": role_variables(), "tasks": [remove]},
        ],
        "dict(groups.all | zip(groups.all | map('extract', hostvars) | map(attribute='message', default='')))",
    )
    assert programs(tmp_path / "upgraded") == {"hook": ("release 2", 0o751), "toolkit": "hook"}
    assert found["upgraded"] == ""
    assert programs(tmp_path / "damaged")["hook"][0] == "agent 1\n"
    assert "is missing or damaged; reinstall the package of" in found["damaged"]
    state = tmp_path / "damaged-state"
    assert (state / "state" / "nano-gpu-programs.json").stat().st_mode & 0o777 == 0o600
    assert (state / "backups").stat().st_mode & 0o777 == 0o700
