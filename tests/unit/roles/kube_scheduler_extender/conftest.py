# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role on control planes with fake kubelets, schedulers and API server, and real files."""

from __future__ import annotations

import json
import os
import re

import pytest
from fakes.loopback_api import serve_in_thread, write_kubeconfig
from fakes.scheduler_machine import ControlPlanes

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import HERE, find_task
from ansible_collections.gpu.kubernetes.tests.unit.roles.kube_scheduler_extender.control_planes import (
    MANIFEST,
    RECORD_PATH,
    describe_hosts,
    extender,
)


@pytest.fixture
def planes(tmp_path):
    found = ControlPlanes(tmp_path, MANIFEST, "cp1", "cp2")
    with serve_in_thread(found.cluster):
        yield found


@pytest.fixture
def plane(tmp_path):
    found = ControlPlanes(tmp_path, MANIFEST, "cp1")
    found.manifest = tmp_path / "cp1" / "manifests" / "kube-scheduler.yaml"
    found.config = tmp_path / "scheduler.yaml"
    found.record = tmp_path / "cp1" / RECORD_PATH
    with serve_in_thread(found.cluster):
        yield found


@pytest.fixture
def apply(run, tmp_path):
    """Run the role on control planes: exit code, changes by host, output in one line."""
    if os.geteuid() != 0:
        pytest.skip("only root gives files to root")

    def play(planes, *options, extenders=("one",), parts=(), **variables):
        role = "gpu.kubernetes.kube_scheduler_extender"
        tasks = [
            find_task("kube_scheduler_extender", "change", part)
            if " " in part
            else {"ansible.builtin.include_role": {"name": role, "tasks_from": part, "public": True}}
            for part in parts or ["main"]
        ]
        plays = [{"hosts": "all", "serial": 1, "any_errors_fatal": True, "gather_facts": False, "tasks": tasks}]
        playbook = tmp_path / "play.yml"
        playbook.write_text(json.dumps(plays))
        role_variables = {
            "kube_scheduler_extender_extenders": [
                extender(each) if isinstance(each, str) else each for each in extenders
            ],
            "kube_scheduler_extender_config_path": str(tmp_path / "scheduler.yaml"),
            "kube_scheduler_extender_health_url": f"{planes.cluster.url}/healthz",
            "kube_scheduler_extender_probe": False,
            "kube_scheduler_extender_timeout": 300,
            "__kube_scheduler_extender_delay": 0,
            "gpu_kubeconfig": str(write_kubeconfig(planes.cluster.url, tmp_path / "kubeconfig")),
            **variables,
        }
        code, output = run(
            {"all": {"hosts": describe_hosts(planes), "vars": HERE}}, playbook, *options, **role_variables
        )
        changes = dict(re.findall(r"^(\S+) +: ok=\d+ +changed=(\d+)", output, re.MULTILINE))
        return code, {name: int(count) for name, count in changes.items()}, " ".join(output.split())

    return play
