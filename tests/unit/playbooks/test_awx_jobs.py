# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs of the example project, as AWX runs them. The worker runs on this machine; AWX itself is not among the tools of the tests."""

from __future__ import annotations

import json
import os
import re
import ssl
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from fakes import awx_job
from fakes.gpushare import share_node, share_pod
from fakes.kubernetes_api import node
from fakes.loopback_api import LoopbackApi, encode_list, serve_in_thread, write_kubeconfig

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

EXAMPLES = ROOT / "docs" / "examples"
#: The variables of a host that is this machine.
LOCAL = {
    "ansible_connection": "local",
    "ansible_become": False,
    "gpu_node_name": "w1",
    "ansible_python_interpreter": sys.executable,
}


@pytest.fixture
def run_job(tmp_path):
    """Run a job of a playbook of the example project on hosts with these variables."""

    def run(playbook, answers, credential="none", **hosts):
        variables = hosts or {"unreachable.invalid": {}}
        groups = {name: {"hosts": list(variables)} for name in ("all", "gpu_nodes")}
        inventory = {**groups, "_meta": {"hostvars": variables}}
        return awx_job.run_job(tmp_path, playbook, answers, credential, inventory)

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
        status, output, *_more = run_job("allocation.yml", answers, kubeconfig)
    assert status == "successful", output
    assert "Allocated : 3 (18%)" in output
    assert "w2" not in output
    assert kubeconfig not in output


def test_job_reads_the_cluster_with_an_injected_token_and_without_a_certificate_authority(run_job, tmp_path):
    certificate = tmp_path / "server.pem"
    options = ("-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=api")
    subprocess.run(["openssl", "req", *options, "-out", certificate, "-keyout", certificate], check=True)
    server = LoopbackApi({"/api/v1/nodes": encode_list([share_node("w1")]), "/api/v1/pods": encode_list([])})
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    # The run does not warn of an address of this machine such as 127.0.0.1.
    url = server.url.replace("http://127.0.0.1", "https://0.0.0.0")
    with serve_in_thread(server):
        credential = {"host": url, "bearer_token": "opensesame", "verify_ssl": True}
        status, output, *_more = run_job("allocation.yml", {"gpushare_report_fail": "false"}, credential)
    assert status == "successful", output
    assert "w1" in output
    assert "WARNING: K8S_AUTH_VERIFY_SSL is False" in output
    assert server.authorizations == {"Bearer opensesame"}
    assert "opensesame" not in output


def test_verification_leaves_the_artifacts_of_its_own_report(run_job, tmp_path):
    lists = {"/api/v1/nodes": encode_list([node("w1", 2)]), "/api/v1/pods": encode_list([])}
    # In a workflow, AWX passes the artifacts of earlier jobs like answers.
    earlier = {"gpu_verify_report": {"ok": True}, "gpu_verify_ok": True, "gpu_verify_problems": ["old"]}
    with serve_in_thread(LoopbackApi(lists)) as server:
        kubeconfig = write_kubeconfig(server.url, tmp_path / "kubeconfig").read_text()
        answers = {"gpu_verify_fail": "false", "gpu_verify_require_gpu": "false", "gpu_verify_expected_gpus": 3}
        status, output, artifacts, _changed = run_job("verify.yml", {**answers, **earlier}, kubeconfig, w1=LOCAL)
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
        answers["gpu_sharing_plan_format"] = "json"
        status, output, *_more = run_job("plan.yml", answers, kubeconfig, w1=LOCAL)
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
        environment, _arguments = awx_job.inject(tmp_path, tmp_path, kubeconfig)
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
    status, output, *_more = run_job("remove.yml", {"gpu_remove_confirmation": "yes"})
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
    assert "FROM $EE_BASE_IMAGE AS base" in build
    # Until the collection is on Galaxy, where someone else may have its name: the archive of the release.
    version = yaml.safe_load((ROOT / "galaxy.yml").read_text())["version"]
    source = f"https://files.example.com/gpu-kubernetes-{version}.tar.gz"
    for path in (tmp_path / "context" / "_build", EXAMPLES / "awx" / "collections"):
        requirements = yaml.safe_load((path / "requirements.yml").read_text())["collections"]
        assert {"name": "gpu.kubernetes", "type": "url", "source": source} in requirements
