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
def job(tmp_path: Path, settings: Any, container: dict[str, Any]) -> Any:
    """Run a job of the example project on the lab. AWX has the kubeconfig in a credential, and no path for the report."""
    command = ["ansible-inventory", "-i", str(settings.state / "inventory.yml"), "--list"]
    inventory = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    for variables in inventory["_meta"]["hostvars"].values():
        for name in LAB_VARIABLES:
            variables.pop(name, None)
    kubeconfig = (settings.state / "kubeconfig").read_text(encoding="utf-8")

    def run(playbook: str, options: str = "", **answers: Any) -> Job:
        return run_job(tmp_path, playbook, answers, kubeconfig, inventory, options, container)

    return run


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
