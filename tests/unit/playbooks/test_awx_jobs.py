# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs as AWX runs them: its own injectors of credentials, its form of survey answers, and ansible-runner's transmit, worker and process.

The worker runs on this machine instead of in an image. AWX itself is not among the tools of the tests.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import ansible_runner
import pytest
from awx_plugins.interfaces._temporary_private_credential_api import Credential
from awx_plugins.interfaces._temporary_private_inject_api import inject_credential
from fakes.gpushare import share_node, share_pod
from fakes.kubernetes_api import node
from fakes.loopback_api import LoopbackApi, encode_list, serve_in_thread, write_kubeconfig
from gates.awx import read_objects

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

EXAMPLES = ROOT / "docs" / "examples"
#: Where the container of a job has the private folder.
CONTAINER = "/runner"
#: The event with the artifacts of a job.
STATISTICS = "playbook_on_stats"
#: The variables of a host that is this machine.
LOCAL = {
    "ansible_connection": "local",
    "ansible_become": False,
    "gpu_node_name": "w1",
    "ansible_python_interpreter": sys.executable,
}


def write_answers(folder: Path, answers: dict[str, object]) -> None:
    """Write extra variables as AWX does: each text is unsafe."""
    lines = (
        f"!unsafe '{name}': " + (f"!unsafe '{answer}'" if isinstance(answer, str) else json.dumps(answer))
        for name, answer in answers.items()
    )
    (folder / "env" / "extravars").write_text("\n".join(lines) + "\n")


def write_inventory(folder: Path, hosts: dict[str, dict[str, object]]) -> None:
    """Write the inventory as AWX does: a program that prints all hosts with their variables."""
    groups = {name: {"hosts": list(hosts)} for name in ("all", "gpu_nodes")}
    content = {**groups, "_meta": {"hostvars": hosts}}
    path = folder / "inventory" / "hosts"
    path.write_text(f"#!{sys.executable}\nprint({json.dumps(json.dumps(content))})\n")
    path.chmod(0o700)


def inject(folder: Path, worker: Path, kubeconfig: str) -> tuple[dict[str, str], str]:
    """Inject a credential of the type that configure_awx creates: environment and arguments of the job."""
    [declared] = read_objects()["controller_credential_types"]
    kind = SimpleNamespace(inputs=declared["inputs"], injectors=declared["injectors"])
    environment: dict[str, str] = {}
    safe: dict[str, str] = {}
    arguments: list[str] = []
    inject_credential(kind, Credential({"kubeconfig": kubeconfig}), environment, safe, arguments, str(folder))
    assert kubeconfig not in json.dumps([environment, safe, arguments])
    # The worker of this test has its folder in another place than a container.
    for path in (folder / "env").iterdir():
        path.chmod(0o600)
        path.write_text(path.read_text().replace(f"{CONTAINER}/", f"{worker}/"))
    moved = {name: value.replace(CONTAINER, str(worker)) for name, value in environment.items()}
    return moved, " ".join(arguments).replace(CONTAINER, str(worker))


@pytest.fixture
def run_job(tmp_path):
    """Run a job of a playbook of the example project: status, output and artifacts."""

    def run(playbook, answers, kubeconfig="none", **hosts):
        folder, worker, results = (tmp_path / name for name in ("private", "worker", "results"))
        for name in ("env", "inventory"):
            (folder / name).mkdir(parents=True)
        results.mkdir()
        shutil.copytree(EXAMPLES / "awx", folder / "project")
        write_answers(folder, answers)
        write_inventory(folder, hosts or {"unreachable.invalid": {}})
        environment, arguments = inject(folder, worker, kubeconfig)
        environment |= {
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".ansible" / "collections"),
            "AWX_HOST": "https://awx.invalid",
        }
        transmitted, processed = tmp_path / "transmitted", tmp_path / "processed"
        with transmitted.open("wb") as stream:
            ansible_runner.run(
                streamer="transmit",
                _output=stream,
                private_data_dir=str(folder),
                playbook=playbook,
                envvars=environment,
                cmdline=arguments,
                ident="1",
            )
        with transmitted.open("rb") as source, processed.open("wb") as target:
            command = [sys.executable, "-m", "ansible_runner", "worker", "--private-data-dir", worker]
            path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
            # It ends with the exit status of the playbook.
            subprocess.run(command, stdin=source, stdout=target, env={**os.environ, "PATH": path}, check=False)
        with processed.open("rb") as source:
            job = ansible_runner.run(
                streamer="process", _input=source, private_data_dir=str(results), ident="1", quiet=True
            )
        files = (results / "artifacts" / "1" / "job_events").iterdir()
        events = sorted((json.loads(path.read_text()) for path in files), key=lambda event: event["counter"])
        artifacts = [event["event_data"].get("artifact_data") for event in events if event["event"] == STATISTICS]
        return job.status, "\n".join(event["stdout"] for event in events), *artifacts

    return run


def test_job_reads_the_cluster_with_the_injected_kubeconfig_and_the_answers(run_job, tmp_path):
    lists = {
        "/api/v1/nodes": encode_list([share_node("w1"), share_node("w2")]),
        "/api/v1/pods": encode_list([share_pod("a")]),
    }
    with serve_in_thread(LoopbackApi(lists)) as server:
        kubeconfig = write_kubeconfig(server.url, tmp_path / "kubeconfig").read_text()
        # As a survey passes them: no booleans, and nothing for a question without an answer.
        answers = {"gpushare_report_details": "true", "gpushare_report_node": "w1", "gpushare_report_fail": "false"}
        status, output, _artifacts = run_job("allocation.yml", answers, kubeconfig)
    assert status == "successful", output
    assert "Allocated : 3 (18%)" in output
    assert "w2" not in output
    assert kubeconfig not in output


def test_verification_leaves_the_artifacts_of_its_own_report(run_job, tmp_path):
    lists = {"/api/v1/nodes": encode_list([node("w1", 2)]), "/api/v1/pods": encode_list([])}
    # In a workflow, AWX passes the artifacts of earlier jobs like answers.
    earlier = {"gpu_verify_report": {"ok": True}, "gpu_verify_ok": True, "gpu_verify_problems": ["old"]}
    with serve_in_thread(LoopbackApi(lists)) as server:
        kubeconfig = write_kubeconfig(server.url, tmp_path / "kubeconfig").read_text()
        answers = {"gpu_verify_fail": "false", "gpu_verify_require_gpu": "false", "gpu_verify_expected_gpus": 3}
        status, output, artifacts = run_job("verify.yml", {**answers, **earlier}, kubeconfig, w1=LOCAL)
    assert status == "successful", output
    assert set(artifacts) == set(earlier)
    assert artifacts["gpu_verify_ok"] is artifacts["gpu_verify_report"]["ok"] is False
    assert artifacts["gpu_verify_problems"] == [each["sentence"] for each in artifacts["gpu_verify_report"]["problems"]]
    assert "old" not in artifacts["gpu_verify_problems"]


def test_plan_has_the_strategy_of_the_answers(run_job, tmp_path):
    with serve_in_thread(
        LoopbackApi({"/api/v1/nodes": encode_list([node("w1", 2)]), "/api/v1/pods": encode_list([])})
    ) as server:
        kubeconfig = write_kubeconfig(server.url, tmp_path / "kubeconfig").read_text()
        answers = {"gpu_sharing_strategy": "time_slicing", "gpu_sharing_replicas": 4, "gpu_sharing_rename": "true"}
        answers["gpu_sharing_format"] = "json"
        status, output, _artifacts = run_job("plan.yml", answers, kubeconfig, w1=LOCAL)
    assert status == "successful", output
    (line,) = (each for each in output.splitlines() if each.startswith('{"schema"'))
    [row] = json.loads(line)["nodes"]
    assert (row["host"], row["to"], row["config"]["sharing"]["timeSlicing"]["resources"][0]["replicas"]) == (
        "w1",
        "time_slicing",
        4,
    )


def test_inventory_source_lists_the_nodes_with_the_injected_kubeconfig(tmp_path):
    bare = node("w2", labels={"pool": "gpu"})
    with serve_in_thread(LoopbackApi({"/api/v1/nodes": encode_list([node("w1", 2), bare, node("other")])})) as server:
        (tmp_path / "env").mkdir()
        kubeconfig = write_kubeconfig(server.url, tmp_path / "kubeconfig").read_text()
        # An update of an inventory gets the environment of the credential and no arguments.
        environment, _arguments = inject(tmp_path, tmp_path, kubeconfig)
        environment |= {
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".ansible" / "collections"),
            "ANSIBLE_INVENTORY_UNPARSED_FAILED": "True",
        }
        program = str(Path(sys.executable).with_name("ansible-inventory"))
        source = EXAMPLES / "awx" / "inventory" / "cluster.gpu_nodes.yml"
        result = subprocess.run(
            [program, "--list", "--export", "-i", source],
            cwd=EXAMPLES / "awx",
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
        )
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert sorted(found["gpu_nodes"]["hosts"]) == ["w1", "w2"]
    assert found["_meta"]["hostvars"]["w1"]["gpu_node"]["allocatable"] == {"nvidia.com/gpu": 2}


def test_removal_without_the_confirmation_word_is_refused(run_job):
    status, output, *_artifacts = run_job("remove.yml", {"gpu_remove_confirmation": "yes"})
    assert status == "failed"
    assert "Nothing was removed; answer the question" in output
    assert "Remove the GPUs" not in output
    assert "PLAY [Connect to the GPU hosts]" not in output


def test_execution_environment_is_a_valid_definition_with_a_base_that_can_be_pinned(tmp_path):
    command = [sys.executable, "-m", "ansible_builder", "create", "--context", tmp_path / "context", "--file"]
    definition = EXAMPLES / "execution-environment" / "execution-environment.yml"
    result = subprocess.run([*command, definition], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    build = (tmp_path / "context" / "Containerfile").read_text()
    # A build argument with a digest replaces the image of the definition.
    assert re.search(r'^ARG EE_BASE_IMAGE="[^"@]+"$', build, re.MULTILINE)
    assert "FROM $EE_BASE_IMAGE as base" in build
    requirements = (tmp_path / "context" / "_build" / "requirements.yml").read_text()
    assert "gpu.kubernetes" in requirements
