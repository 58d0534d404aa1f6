# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures that run ansible-playbook as users run it. The module imports no Ansible, so that the tests of plugins load it on nodes' Pythons."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = {"ansible_connection": "local", "ansible_become": False}
# Facts of the hosts; gathering them would take longer than all other tasks.
FACTS = {"distribution": "Debian", "os_family": "Debian", "nodename": "{{ inventory_hostname }}", "cacheable": True}
# All facts of a host, for roles that read the release, the kernel or the package manager.
DEBIAN = {
    "distribution": "Debian",
    "distribution_version": "12.15",
    "distribution_major_version": "12",
    "distribution_release": "bookworm",
    "os_family": "Debian",
    "architecture": "x86_64",
    "kernel": "6.1.0-56-amd64",
    "pkg_mgr": "apt",
}
# The messages of a failed task; of a loop, those of its items.
FAILURE = "{{ (ansible_failed_result.results | default([ansible_failed_result])) | map(attribute='msg', default='') | join(' ') }}"

# Loads the variables of the host's distribution.
LOAD_PLATFORM = {"ansible.builtin.include_role": {"name": "gpu.kubernetes._platform"}}

# Modules see no process of this machine, on which a lab may run whose programs hold the devices of its simulated GPUs.
LONELY = '#!/bin/sh\nexec unshare --pid --fork --mount-proc {} "$@"\n'


def write_lonely_interpreter(folder: Path) -> str:
    """A Python for ``ansible_python_interpreter`` that sees its own processes alone; it requires root."""
    path = folder / "lonely-python"
    path.write_text(LONELY.format(sys.executable))
    path.chmod(0o755)
    return str(path)


Mapping = t.Mapping[str, t.Any]
Sequence = t.Sequence[t.Any]


def ansible_playbook(*arguments: object, environment: Mapping | None = None) -> tuple[int, str]:
    """Run ansible-playbook of this Python in the checkout: exit code, standard output and standard error in one text."""
    full_environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_FORCE_COLOR": "0",
        "ANSIBLE_PIPELINING": "1",
        "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
        **(environment or {}),
    }
    process = subprocess.run(
        [str(Path(sys.executable).with_name("ansible-playbook")), *map(str, arguments)],
        cwd=ROOT,
        env=full_environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return process.returncode, process.stdout


@pytest.fixture
def run(tmp_path: Path) -> t.Callable[..., tuple[int, str]]:
    """Run a playbook on an inventory (text, or a mapping): exit code and output."""

    def run_playbook(
        inventory: str | Mapping,
        playbook: str | Path,
        *options: str,
        environment: Mapping | None = None,
        **extra: t.Any,
    ) -> tuple[int, str]:
        # All hosts are this machine, and other tests run on it.
        extra = {"_lease_lock_dir": str(tmp_path / "run"), "_restore_timer_systemd_dir": "/nonexistent", **extra}
        hosts = tmp_path / ("inventory" if isinstance(inventory, str) else "inventory.yml")
        hosts.write_text(inventory if isinstance(inventory, str) else json.dumps(inventory))
        arguments = ["--inventory", hosts, "--extra-vars", json.dumps(extra), *options, playbook]
        return ansible_playbook(*arguments, environment=environment)

    return run_playbook


@pytest.fixture
def evaluate(run: t.Callable[..., tuple[int, str]], tmp_path: Path) -> t.Callable[..., t.Any]:
    """Run plays on hosts (a mapping to their variables) and return the value of an expression after them."""

    def run_and_evaluate(
        hosts: Mapping,
        plays: Sequence,
        expression: str,
        facts: Mapping | None = None,
        environment: Mapping | None = None,
        **extra: t.Any,
    ) -> t.Any:
        playbook = tmp_path / "play.yml"
        last_task = {"ansible.builtin.debug": {"msg": "{{ " + expression + " }}"}, "run_once": True}
        facts_play = {
            "hosts": "all",
            "gather_facts": False,
            "tasks": [{"ansible.builtin.set_fact": {**FACTS, **(facts or {})}}],
        }
        playbook.write_text(
            json.dumps([facts_play, *plays, {"hosts": "all", "gather_facts": False, "tasks": [last_task]}])
        )
        _code, output = run(
            {"all": {"hosts": hosts, "vars": HERE}},
            playbook,
            environment={"ANSIBLE_CALLBACK_RESULT_FORMAT": "json", **(environment or {})},
            **extra,
        )
        results = re.findall(r"^ok: \[\S+\] => (\{.*?^\})$", output, re.MULTILINE | re.DOTALL)
        assert results, output
        return json.loads(results[-1])["msg"]

    return run_and_evaluate


@pytest.fixture
def refusals(evaluate: t.Callable[..., t.Any]) -> t.Callable[..., dict[str, t.Any]]:
    """Run task files of a role on hosts, group by group: {host: error message, else the value of a fact, or empty}."""

    def run_task_files(
        role: str,
        parts: Sequence,
        *groups: Mapping,
        variables: Mapping | None = None,
        fact: str = "",
        extra: Mapping | None = None,
        facts: Mapping | None = None,
        **keywords: t.Any,
    ) -> dict[str, t.Any]:
        block: list[dict[str, t.Any]] = [
            {"ansible.builtin.include_role": {"name": f"gpu.kubernetes.{role}", "tasks_from": part}} for part in parts
        ]
        block += [{"ansible.builtin.set_fact": {"message": "{{ " + fact + " }}"}}] if fact else []
        rescue = [{"ansible.builtin.set_fact": {"message": FAILURE}}]
        tasks = [
            {"ansible.builtin.set_fact": {"message": ""}},
            {"block": block, "vars": variables or {}, "rescue": rescue},
        ]
        plays = [{"hosts": ",".join(group), "gather_facts": False, "tasks": tasks, **keywords} for group in groups]
        hosts = {name: variables for group in groups for name, variables in group.items()}
        results: dict[str, t.Any] = evaluate(
            hosts,
            plays,
            "dict(ansible_play_hosts | zip(ansible_play_hosts | map('extract', hostvars, 'message')))",
            facts=facts,
            **(extra or {}),
        )
        return results

    return run_task_files


@pytest.fixture
def evaluate_role(evaluate: t.Callable[..., t.Any], tmp_path: Path) -> t.Callable[..., dict[str, t.Any]]:
    """Evaluate an expression with the defaults and variables of a role: {host: its value, or the message of a task that failed before}."""

    def run_and_evaluate(
        role: str, hosts: Mapping, expression: str, task: Mapping | None = None, **more: t.Any
    ) -> dict[str, t.Any]:
        # The variables of a sharing strategy's role need those of the internal role.
        sharing = (ROOT / "roles" / role / "vars" / "main" / "sharing.yml").exists()
        names = [*(["_extender_sharing"] if sharing else []), role]
        for name, folder in itertools.product(names, ("defaults", "vars")):
            shutil.copytree(ROOT / "roles" / name / folder, tmp_path / "roles" / name / folder, dirs_exist_ok=True)
        rescue = [{"ansible.builtin.set_fact": {"result": "{{ ansible_failed_result.msg }}"}}]
        record = {"ansible.builtin.set_fact": {"result": "{{ " + expression + " }}"}}
        tasks = [{"block": [task, record] if task else [record], "rescue": rescue}]
        play = {"hosts": "all", "gather_facts": False, "roles": names, "tasks": tasks}
        by_host = "dict(groups.all | zip(groups.all | map('extract', hostvars, 'result')))"
        results: dict[str, t.Any] = evaluate(hosts, [play], by_host, **more)
        return results

    return run_and_evaluate


def find_task(role: str, file: str, name: str) -> dict[str, t.Any]:
    """The first task in a role's file whose name contains *name*."""
    import yaml

    tasks = yaml.safe_load((ROOT / "roles" / role / "tasks" / f"{file}.yml").read_text())
    return next(task for task in tasks if name in task["name"])


def check_pods(objects: t.Mapping[tuple[str, str], Mapping], extender: str, plugin: str) -> None:
    """Require the resources of each container, all probes of the extender, and the priority class of each pod."""
    specs = {
        name: item["spec"]["template"]["spec"]
        for (_kind, name), item in objects.items()
        if "template" in item.get("spec", {})
    }
    priorities = {name: spec["priorityClassName"] for name, spec in specs.items()}
    assert priorities == {extender: "system-cluster-critical", plugin: "system-node-critical"}
    probe = {"path": "/version", "port": "http"}
    probes = dict.fromkeys(("startupProbe", "readinessProbe", "livenessProbe"), probe)
    for name, spec in specs.items():
        for container in [*spec.get("initContainers", []), *spec["containers"]]:
            amounts = container["resources"]
            assert {key for key in amounts if amounts[key].get("memory")} == {"requests", "limits"}
            found = {key: value["httpGet"] for key, value in container.items() if key.endswith("Probe")}
            assert found == (probes if name == extender else {})
