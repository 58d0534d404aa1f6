# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs as AWX runs them, on a deployed cluster: survey answers, the credential with the kubeconfig, and ansible-runner in the execution environment."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes import awx_job
from fakes.awx_job import Job, run_job
from lab import execution_environment, nodes
from lab.shell import run

pytestmark = pytest.mark.thorough
LAB_VARIABLES = ("gpu_kubeconfig", "gpu_verify_report_path")


@pytest.fixture(scope="module")
def container(settings: Any) -> Iterator[dict[str, Any]]:
    """The container of a job: ansible-builder's image of this checkout, with the lab's network and the key of its hosts."""
    image = execution_environment.build(settings)
    yield {
        "container_image": image,
        "container_options": ["--user=root", "--network=host", "--runtime=runc", *nodes.limits()],
        "container_volume_mounts": [f"{settings.state}:{settings.state}:ro"],
    }
    run(["podman", "rmi", image])


@pytest.fixture
def kubeconfig(settings: Any) -> str:
    """The text of the lab's kubeconfig, which AWX has in a credential."""
    return (settings.state / "kubeconfig").read_text(encoding="utf-8")


@pytest.fixture
def lab_inventory(settings: Any) -> dict[str, Any]:
    """The inventory of the lab without kubeconfig, and without a path for the report."""
    command = ["ansible-inventory", "-i", str(settings.state / "inventory.yml"), "--list"]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    for variables in found["_meta"]["hostvars"].values():
        for name in LAB_VARIABLES:
            variables.pop(name, None)
    return found


@pytest.fixture
def job(tmp_path: Path, kubeconfig: str, lab_inventory: dict[str, Any], container: dict[str, Any]) -> Any:
    """Run a job of the example project on the lab."""

    def run(playbook: str, options: str = "", source: dict[str, Any] | None = None, **answers: Any) -> Job:
        return run_job(tmp_path, playbook, answers, kubeconfig, source or lab_inventory, options, container)

    return run


@pytest.fixture
def nodes_source(tmp_path: Path, kubeconfig: str, container: dict[str, Any]) -> dict[str, Any]:
    """What an update of the inventory source of the example project prints, in the container, with the environment of the credential."""
    folder = tmp_path / "source"
    (folder / "env").mkdir(parents=True)
    environment, _arguments = awx_job.inject(folder, awx_job.CONTAINER, kubeconfig)
    environment = awx_job.ENVIRONMENT | environment | {"ANSIBLE_COLLECTIONS_PATH": awx_job.IMAGE_COLLECTIONS}
    # The first volume holds the folders of the others.
    volumes = [f"{folder}:{awx_job.CONTAINER}", f"{awx_job.PROJECT}:{awx_job.CONTAINER}/project:ro"]
    command = [
        *("podman", "run", "--rm", f"--workdir={awx_job.CONTAINER}/project", *container["container_options"]),
        *(f"--volume={volume}" for volume in [*volumes, *container["container_volume_mounts"]]),
        *(f"--env={name}={value}" for name, value in environment.items()),
        *(container["container_image"], "ansible-inventory", "--list", "--export"),
        *("-i", "inventory/cluster.gpu_nodes.yml"),
    ]
    found: dict[str, Any] = json.loads(run(command))
    return found


def test_site_in_check_mode_reports_no_change(job: Any) -> None:
    """With the limit of the job; test_site.py has all hosts."""
    # Answers as a survey passes them.
    found = job(
        "site.yml", "--check --diff --limit molecule-worker-1", gpu_verify_fail="true", nvidia_driver_reboot="never"
    )
    assert found.status == "successful", found.output
    assert set(found.changed.values()) <= {0}, found.output


def test_verification_is_an_artifact_of_its_job(job: Any) -> None:
    found = job("verify.yml", gpu_verify_fail="true", gpu_verify_require_gpu="true")
    assert found.status == "successful", found.output
    assert (found.artifacts["gpu_verify_ok"], found.artifacts["gpu_verify_problems"]) == (True, [])
    assert len(found.artifacts["gpu_verify_report"]["nodes"]) == 2


def test_doctor_examines_all_hosts_and_finds_no_fault(job: Any) -> None:
    found = job("doctor.yml", gpu_doctor_fail_on="never", gpu_doctor_connect="true", gpu_doctor_format="json")
    assert found.status == "successful", found.output
    [line] = [each for each in found.output.splitlines() if each.startswith('{"schema"')]
    report = json.loads(line)
    hosts = report["hosts"]
    assert [host["examined"] for host in hosts] == [True] * len(hosts)
    assert len(hosts) >= 2
    assert (report["status"], report["causes"]) == ("pass", [])


def test_inventory_source_lists_the_nodes_for_a_job(
    job: Any, nodes_source: dict[str, Any], lab_inventory: dict[str, Any], api: Any
) -> None:
    """The hosts are those of the cluster, with the user and the key that AWX has in another credential."""
    names = sorted(lab_inventory["gpu_nodes"]["hosts"])
    assert [sorted(nodes_source[group]["hosts"]) for group in ("gpu_nodes", "gpu_sharing_exclusive")] == [names, names]
    products = [nodes_source[group]["hosts"] for group in nodes_source if group.startswith("gpu_product_")]
    assert sorted(host for hosts in products for host in hosts) == names
    hosts = nodes_source["_meta"]["hostvars"]
    for name in names:
        assert hosts[name]["gpu_node"]["gpus"] == int(api.read_node(name).metadata.labels["nvidia.com/gpu.count"])
    for name, variables in hosts.items():
        of_lab = lab_inventory["_meta"]["hostvars"][name]
        variables |= {key: of_lab[key] for key in of_lab if key.startswith("ansible_") and key != "ansible_host"}
    found = job("verify.yml", source=nodes_source, gpu_verify_fail="true", gpu_verify_require_gpu="true")
    assert found.status == "successful", found.output
    assert sorted(each["node"] for each in found.artifacts["gpu_verify_report"]["nodes"]) == names
