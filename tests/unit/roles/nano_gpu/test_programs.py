# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run of nano_gpu that is cut off between any two of its steps never costs a host its own programs."""

from __future__ import annotations

import os

import pytest
import yaml

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

ROLE = ROOT / "roles" / "nano_gpu"
STEPS = [task["name"].split()[0] for task in yaml.safe_load((ROLE / "tasks" / "main.yml").read_text())]

#: What the agent's pod does when it starts, in shell: its programs in place of the host's, these aside.
INSTALL = "mv toolkit toolkit-bak; rm hook; for name in hook toolkit; do echo agent $0 > $name; done"
UPGRADE = "echo -n release 2 | tee nvidia-ctk > hook.new; mv hook.new hook; ln -sfn hook toolkit"
#: What the DaemonSet was told last.
RUNNING = {"metadata": {"annotations": {"gpu-kubernetes/restarted": "{{ told.restarted }}"}}}


def programs(folder):
    return {
        path.name: os.readlink(path) if path.is_symlink() else path.read_text()
        for path in folder.iterdir()
        if path.name != "nvidia-ctk"
    }


def install_package(folder):
    """What the toolkit's package puts there first."""
    folder.mkdir()
    (folder / "hook").write_text("release 1")
    (folder / "toolkit").symlink_to("hook")
    (folder / "nvidia-ctk").write_text("release 1")
    return programs(folder)


def shell(script, *arguments, **more):
    return {"ansible.builtin.command": {"argv": ["sh", "-ec", script, *arguments], "chdir": "{{ bin }}"}, **more}


def included(name):
    return [{"ansible.builtin.include_tasks": str(ROLE / "tasks" / name)}]


def steps(version, only):
    """Those of the steps ``only`` of the role, in its order. A script is the agent, and starts as its DaemonSet would have it start."""
    told = {"version": version, "restarted": "{{ __nano_gpu_restarted }}"}
    deploy = [
        shell(INSTALL, version, when="told != wanted", vars={"wanted": told}),
        {"ansible.builtin.set_fact": {"told": told}},
    ]
    known = {"Keep": included("keep.yml"), "Deploy": deploy, "Give": included("give_back.yml")}
    order = [step for step in STEPS if step in known]
    assert order == list(known)
    return [{"block": known[step], "when": f"'{step}' in {only}"} for step in order]


ALL = "['Keep', 'Deploy', 'Give']"
#: Before the second run either the toolkit was upgraded or another version of the agent is asked for; it comes to some steps, and a third one
#: follows or not.
CASES = {
    f"{cut[-1]}-{'upgraded' if upgraded else 'changed'}-{'again' if again else 'end'}".lower(): {
        "upgraded": upgraded,
        "version": "1" if upgraded else "2",
        "steps": cut,
        "again": again,
    }
    for cut in (["Keep"], ["Keep", "Deploy"])
    for upgraded in (False, True)
    for again in (False, True)
}


@pytest.mark.thorough
def test_a_run_that_is_cut_off_is_gone_on_with(hear, tmp_path):
    files = [*sorted((ROLE / "vars" / "main").glob("*.yml")), ROLE / "defaults" / "main.yml"]
    variables = {
        **{name: value for file in files for name, value in yaml.safe_load(file.read_text()).items()},
        "nano_gpu_replace_host_binaries": True,
        "__nano_gpu_host": {"expected": 1},
        "__nano_gpu_running": {"found": [[{"spec": {"template": RUNNING}}], [], []]},
        "__nano_gpu_programs": ["{{ bin }}/hook", "{{ bin }}/toolkit"],
        "__nano_gpu_leftovers": ["{{ bin }}/toolkit-bak"],
        "__nano_gpu_package_files": ["{{ bin }}/nvidia-ctk"],
        "nano_gpu_state_dir": "{{ bin }}-state",
    }

    def play(tasks, hosts=CASES, **more):
        return {"hosts": ",".join(hosts), "gather_facts": False, "vars": {**variables, **more}, "tasks": tasks}

    hosts, after = {}, {}
    for name, case in CASES.items():
        folder = tmp_path / name
        before = install_package(folder)
        after[name] = {**before, "hook": "release 2"} if case["upgraded"] else before
        hosts[name] = {**case, "bin": str(folder), "told": {"version": "0", "restarted": ""}}
    again = [name for name, case in CASES.items() if case["again"]]
    told = hear(
        hosts,
        [
            play(steps("1", ALL), __nano_gpu_time="first"),
            play([shell(UPGRADE, when="upgraded"), *steps("{{ version }}", "steps")], __nano_gpu_time="second"),
            play(
                [*steps("{{ version }}", ALL), shell("cat hook toolkit", register="seen")],
                again,
                __nano_gpu_time="third",
            ),
            # Removed, or not allowed any more.
            play(
                included("give_back.yml"),
                nano_gpu_state="{{ 'absent' if again else 'present' }}",
                nano_gpu_replace_host_binaries=False,
            ),
        ],
        "dict(groups.all | zip(groups.all | map('extract', hostvars) | map(attribute='seen.stdout_lines', default=[])))",
    )
    for name, case in CASES.items():
        # Also where the package had put its own ones back before the run that was cut off.
        assert told[name] == ([f"agent {case['version']}"] * 2 if case["again"] else []), name
        assert programs(tmp_path / name) == after[name], name
        assert not list((tmp_path / f"{name}-state").rglob("*.json")), name


def test_the_label_that_tells_of_an_unfinished_removal_goes_last():
    """After the programs have been given back, on the hosts that have come so far."""
    assert STEPS.index("Give") < STEPS.index("Take")
    assert "unlabel.yml" in str(yaml.safe_load((ROLE / "tasks" / "main.yml").read_text())[STEPS.index("Take")])
