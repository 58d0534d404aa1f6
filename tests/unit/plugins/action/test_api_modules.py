# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules that talk to the API server, as actions: in the process of the task on this machine, and as modules elsewhere."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest
from fakes.kubernetes_api import node
from fakes.loopback_api import LoopbackApi, encode_list, serve_in_thread, write_kubeconfig
from fakes.small_cluster import SmallCluster
from lab.wait import poll

pytest.importorskip("ansible.plugins.action")

from ansible_collections.gpu.kubernetes.plugins import filter as filters
from ansible_collections.gpu.kubernetes.plugins.plugin_utils._api_action import PRELOADED, run_module
from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

SPEC = {"kubeconfig": {"type": "raw", "no_log": True}, "names": {"type": "list"}}
# With it, no process of a module starts.
NO_PYTHON = {"ANSIBLE_PYTHON_INTERPRETER": "/nonexistent/python3"}


def module(run: Callable[[Any], None]) -> Any:
    return SimpleNamespace(ARGUMENTS=SPEC, run=run)


def test_actions_have_loaded_all_filters_before_tasks_start() -> None:
    folder = Path(filters.__path__[0])
    names = {f"{filters.__name__}.{path.stem}" for path in folder.glob("*.py") if path.stem != "__init__"}
    assert names
    assert names <= {module.__name__ for module in PRELOADED}


def test_run_module_result_is_plain_json_without_secrets() -> None:
    def end(call: Any) -> None:
        call.warn("the token s3cret is old")
        call.exit_json(changed=call.check_mode, found=("a s3cret", {1: call.params["names"]}))

    result = run_module(module(end), {"kubeconfig": {"users": [{"token": "s3cret"}]}, "names": ["x"]}, True)
    assert result == {"changed": True, "found": ["a ********", {"1": ["x"]}], "warnings": ["the token ******** is old"]}


def test_run_module_failure_in_a_handler_of_errors_ends_it() -> None:
    def end(call: Any) -> None:
        try:
            call.fail_json(msg="first", nodes=[])
        except Exception:
            call.fail_json(msg="second")

    result = run_module(module(end), {"kubeconfig": None, "names": None}, False)
    assert result == {"failed": True, "msg": "first", "nodes": []}


@pytest.fixture
def run_task(run: Any, tmp_path: Path) -> Any:
    """Run tasks that list nodes, each with these keywords: exit code and output."""

    def run_on_this_machine(kubeconfig: Path, *keywords: dict[str, Any], **environment: str) -> tuple[int, str]:
        tasks = [{"gpu.kubernetes.gpu_nodes_info": {"kubeconfig": str(kubeconfig)}, **each} for each in keywords]
        playbook = tmp_path / "play.yml"
        playbook.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": tasks}]))
        result: tuple[int, str] = run("here ansible_connection=local\n", playbook, environment=environment)
        return result

    return run_on_this_machine


def test_module_on_this_machine_needs_no_process(run_task: Any, tmp_path: Path) -> None:
    with serve_in_thread(LoopbackApi({"/api/v1/nodes": encode_list([node("w1", 2)])})) as api:
        kubeconfig = write_kubeconfig(api.url, tmp_path / "kubeconfig")
        code, output = run_task(kubeconfig, {"loop": [1, 2]}, **NO_PYTHON)
    assert code == 0, output
    assert [path for _method, path, _query in api.requests].count("/api/v1/nodes") == 2


@pytest.mark.parametrize(
    "keywords",
    [
        {"environment": {"HTTPS_PROXY": "http://127.0.0.1:1"}},
        {"become": True, "become_method": "ansible.builtin.sudo"},
        {"async": 60, "poll": 1},
        {"vars": {"ansible_connection": "ansible.builtin.ssh", "ansible_port": 1}},
    ],
    ids=lambda keywords: next(iter(keywords)),
)
def test_module_for_another_environment_has_its_process(run_task: Any, tmp_path: Path, keywords: Any) -> None:
    with serve_in_thread(LoopbackApi({"/api/v1/nodes": encode_list([])})) as api:
        code, output = run_task(write_kubeconfig(api.url, tmp_path / "kubeconfig"), keywords, **NO_PYTHON)
    assert code != 0, output
    assert api.requests == []


def test_result_is_that_of_a_process(run_task: Any, tmp_path: Path) -> None:
    with serve_in_thread(LoopbackApi({"/api/v1/nodes": encode_list([node("w1", 2)])})) as api:
        keywords = {"register": "here"}, {"register": "process", "environment": {"A": "b"}}
        same = {"failed_when": "here != process or not here.nodes", "register": "last"}
        code, output = run_task(write_kubeconfig(api.url, tmp_path / "kubeconfig"), *keywords, same)
    assert code == 0, output


def test_keys_of_a_kubeconfig_are_removed_with_the_run(run_task: Any, tmp_path: Path) -> None:
    kubeconfig = write_kubeconfig("https://127.0.0.1:1", tmp_path / "kubeconfig")
    content = json.loads(kubeconfig.read_text())
    key = base64.b64encode(b"a key").decode()
    content["users"][0]["user"] = {"client-certificate-data": key, "client-key-data": key}
    kubeconfig.write_text(json.dumps(content))
    # ansible-core 2.21 has a socket in its folder, whose path may have 107 bytes; that of tmp_path is long.
    with TemporaryDirectory() as temporary, TemporaryDirectory() as local:
        code, output = run_task(kubeconfig, {}, TMPDIR=temporary, ANSIBLE_LOCAL_TEMP=local, **NO_PYTHON)
        left = [path for folder in (temporary, local) for path in Path(folder).rglob("*")]
    assert code != 0, output
    assert "127.0.0.1:1" in output
    assert left == []


def test_rules_between_arguments_are_those_of_the_module(run: Any, tmp_path: Path) -> None:
    playbook = tmp_path / "play.yml"
    tasks = [{"gpu.kubernetes.gpu_smoke_test": {"nodes": ["w1"]}}]
    playbook.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": tasks}]))
    code, output = run("here ansible_connection=local\n", playbook, environment=NO_PYTHON)
    assert (code != 0, "state is present but all of the following are missing: image" in output) == (True, True), output


@pytest.mark.parametrize(
    ("keywords", "variables"), [({}, NO_PYTHON), ({"environment": {"A": "b"}}, {})], ids=["action", "process"]
)
def test_interrupted_smoke_test_deletes_its_pods(tmp_path: Path, keywords: Any, variables: Any) -> None:
    task = {"gpu.kubernetes.gpu_smoke_test": {"nodes": ["w1"], "image": "example.com/test:1", "timeout": 300}}
    playbook = tmp_path / "play.yml"
    playbook.write_text(json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": [{**task, **keywords}]}]))
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    with serve_in_thread(SmallCluster(namespace, {"apiVersion": "v1", "kind": "Node", **node("w1", 1)})) as cluster:
        kubeconfig = write_kubeconfig(cluster.url, tmp_path / "kubeconfig")
        settings = {"ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "KUBECONFIG": str(kubeconfig), **variables}
        command = [str(Path(sys.executable).with_name("ansible-playbook")), str(playbook)]
        options: dict[str, Any] = {"cwd": ROOT, "env": {**os.environ, **settings}, "start_new_session": True}
        output = tmp_path / "output"
        with output.open("wb") as file, subprocess.Popen(command, stdout=file, **options) as run:
            created = poll(lambda: cluster.all("Pod"), lambda pods: pods or run.poll() is not None, 300, 0.1)
            # As a terminal does for Ctrl-C.
            os.killpg(run.pid, signal.SIGINT)
        assert created, output.read_text()
        assert poll(lambda: cluster.all("Pod"), lambda pods: not pods, 60, 0.1) == [], output.read_text()
