# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook diagnose_gpu_nodes on this machine, which has no GPU, and on a fake API server."""

from __future__ import annotations

import json
import stat
import tarfile

import pytest
from fakes.kubernetes_api import node
from fakes.loopback_api import LoopbackApi, encode_list, serve_in_thread, write_kubeconfig

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

PLAYBOOK = ROOT / "playbooks" / "diagnose_gpu_nodes.yml"
LOCAL = "[gpu_nodes]\nw1 ansible_connection=local ansible_become=false\n"
# Nothing listens on this port.
AWAY = "[gpu_nodes]\nw1 ansible_host=127.0.0.1 ansible_port=9 ansible_become=false\n"
#: What a machine without GPUs and without Kubernetes shows.
FEW = {"gpu_doctor_checks": ["hardware", "kubelet", "pod.runtime_class"], "gpu_doctor_timeout": 10}


@pytest.fixture
def diagnose(run, tmp_path):
    """Run the playbook: exit code, output in one line, and the report if it was written."""

    def play(*options, inventory="", **variables):
        path = tmp_path / "report.json"
        outputs = {"json": str(path), "junit": str(tmp_path / "report.xml")}
        code, output = run(inventory, PLAYBOOK, *options, gpu_doctor_outputs=outputs, **variables)
        report = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
        return code, " ".join(output.split()), report

    return play


@pytest.fixture
def kubeconfig(tmp_path):
    """A kubeconfig of a fake API server with one node, whose GPU is unhealthy."""
    lists = {
        "/api/v1/nodes": encode_list([node("w1", 2, allocatable=1)]),
        "/api/v1/pods": encode_list([]),
        "/api/v1/events": encode_list([]),
        "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases": encode_list([]),
    }
    with serve_in_thread(LoopbackApi(lists)) as server:
        yield str(write_kubeconfig(server.url, tmp_path / "kubeconfig"))
    assert {method for method, _path, _query in server.requests} == {"GET"}


def test_node_has_the_name_of_the_kubelets_flag(evaluate_role):
    observed = {"kernel": {"nodename": "Own"}, "kubelet": {"node_name": ""}}
    flagged = {**observed, "kubelet": {"node_name": "Flag-7"}}
    hosts = {
        "flag": {"__gpu_doctor_host": {"observation": flagged}},
        "own": {"__gpu_doctor_host": {"observation": observed}},
        "no_kubelet": {"__gpu_doctor_host": {"observation": {**observed, "kubelet": None}}},
        "Away": {"__gpu_doctor_host": {"msg": "no route"}},
        "given": {"__gpu_doctor_host": {"observation": flagged}, "gpu_node_name": "n1"},
    }
    names = evaluate_role("gpu_doctor", hosts, "__gpu_doctor_node")
    assert names == {"flag": "flag-7", "own": "own", "no_kubelet": "own", "Away": "away", "given": "n1"}


def test_prometheus_is_read_with_its_address_and_the_api_server(evaluate_role):
    url = {"gpu_doctor_prometheus_url": "http://p:9090"}
    hosts = {
        "unset": {},
        "set": {**url, "gpu_doctor_prometheus_token": "a'b", "gpu_doctor_timeout": 5},
        "no_api": {**url, "gpu_doctor_api": False},
        "of_cost": {"gpu_cost_prometheus_url": "https://c", "gpu_cost_prometheus_validate_certs": False},
    }
    found = evaluate_role("gpu_doctor", hosts, "__gpu_doctor_prometheus")
    rest = {"username": "", "password": "", "ca_path": ""}
    assert found == {
        "unset": {},
        "set": {**rest, "url": "http://p:9090", "token": "a'b", "validate_certs": True, "timeout": 5},
        "no_api": {},
        "of_cost": {**rest, "url": "https://c", "token": "", "validate_certs": False, "timeout": 30},
    }


def test_symptom_requires_no_inventory(diagnose):
    code, output, report = diagnose(gpu_doctor_symptom="Failed to initialize NVML: Driver/library version mismatch")
    assert code == 0, output
    assert "kernel.mismatch (kernel): Versions of module and library" in output
    assert report is None


def test_host_without_gpu_fails_with_the_lowest_cause(diagnose, tmp_path):
    bundle = tmp_path / "bundle.tar.gz"
    code, output, report = diagnose(
        "--check", inventory=LOCAL, gpu_doctor_api=False, gpu_doctor_bundle=str(bundle), **FEW
    )
    assert code != 0
    assert "w1: there is no NVIDIA GPU on the PCI bus (hw.pci_count); reseat the GPU" in output
    assert (report, bundle.exists()) == (None, False)
    # An API server that is away leaves the hosts.
    kubeconfig = str(write_kubeconfig("http://127.0.0.1:9", tmp_path / "config"))
    code, output, report = diagnose(
        inventory=LOCAL, gpu_kubeconfig=kubeconfig, gpu_doctor_bundle=str(bundle), gpu_doctor_fail_on="never", **FEW
    )
    assert code == 0, output
    assert any("cannot be reached" in error for error in report["errors"])
    assert (report["status"], report["exit_code"]) == ("fail", 2)
    assert [cause["id"] for cause in report["causes"]] == ["hw.pci_count"]
    assert stat.S_IMODE(bundle.stat().st_mode) == 0o600
    with tarfile.open(bundle) as archive:
        assert any(name.endswith("-w1.json") for name in archive.getnames())


def test_unreachable_host_is_judged_by_the_api_server(diagnose, kubeconfig):
    code, output, report = diagnose(inventory=AWAY, gpu_kubeconfig=kubeconfig, **FEW)
    assert code != 0
    assert "w1: 1 of 2 nvidia.com/gpu are healthy (kl.unhealthy)" in output
    assert report["hosts"][0]["examined"] is True
    assert any(error.startswith("w1: ") for error in report["errors"])
    assert any("has no RuntimeClass" in error for error in report["errors"])


def test_api_server_alone_reports_its_nodes(diagnose, kubeconfig):
    code, output, report = diagnose(
        gpu_doctor_connect=False, gpu_kubeconfig=kubeconfig, gpu_doctor_checks=["hardware", "kl.unhealthy"]
    )
    assert code != 0
    assert [(host["host"], host["examined"]) for host in report["hosts"]] == [("w1", True)]
    assert [cause["id"] for cause in report["causes"]] == ["kl.unhealthy"], output
