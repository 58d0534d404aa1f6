# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action and the module together, as a playbook runs them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

FIXTURES = ROOT / "tests" / "unit" / "plugins" / "module_utils" / "_kubelet" / "fixtures"
KUBEADM = (FIXTURES / "kubeadm-1.34.4.yaml").read_text()
VALUES = {"kubeReserved": {"cpu": 1, "memory": "1Gi"}}


@pytest.fixture
def kubelet(tmp_path: Path, evaluate):
    """Run tasks of the module on one node: the result of each."""
    config = tmp_path / "config.yaml"
    config.write_text(KUBEADM)

    def run(*requested):
        tasks = []
        for number, options in enumerate(requested):
            arguments = {"path": str(config), "state_dir": str(tmp_path / "state"), "values": VALUES}
            arguments.update((name, value) for name, value in options.items() if name != "check")
            task = {"gpu.kubernetes.kubelet_config": arguments, "register": f"result_{number}"}
            tasks.append({**task, "ignore_errors": True, "check_mode": "check" in options, "diff": True})
        results = ", ".join(f"result_{number}" for number in range(len(requested)))
        return evaluate({"node": {}}, [{"hosts": "all", "gather_facts": False, "tasks": tasks}], f"[{results}]")

    run.config = config
    return run


def test_check_mode_run_repeated_run_and_undo(kubelet) -> None:
    results = kubelet({"check": True}, {}, {}, {"state": "absent"}, {"state": "absent"})
    # A check that writes leaves nothing to its run.
    assert [result["changed"] for result in results] == [True, True, False, True, False]
    predicted, first_run, *_later = results
    assert first_run["diff"] == predicted["diff"]
    assert first_run["needs_restart"]
    assert first_run["service"] == "kubelet"
    assert first_run["reserved"]["kubeReserved"] == {"cpu": "1", "memory": "1Gi"}
    assert "invocation" not in first_run
    assert kubelet.config.read_text() == KUBEADM


def test_inspect_looks_for_the_records_of_the_module(kubelet) -> None:
    """With another folder, reservations that are no longer declared would stay."""
    kubelet({})
    tasks = yaml.safe_load((ROOT / "roles/kubelet_reserved/tasks/inspect.yml").read_text(encoding="utf-8"))
    path = tasks[0]["ansible.builtin.stat"]["path"].replace(
        "{{ kubelet_reserved_state_dir }}", f"{kubelet.config.parent}/state"
    )
    assert list(Path(path).glob("*.json"))
