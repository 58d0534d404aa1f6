# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action and the node's half together, as a playbook runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

FIXTURES = ROOT / "tests" / "unit" / "plugins" / "module_utils" / "_kubelet" / "fixtures"
KUBEADM = (FIXTURES / "kubeadm-1.34.4.yaml").read_text()
VALUES = {"kubeReserved": {"cpu": 1, "memory": "1Gi"}}


@pytest.fixture
def kubelet(tmp_path: Path, hear):
    """Run tasks of the module on one node: what each of them returned."""
    config = tmp_path / "config.yaml"
    config.write_text(KUBEADM)

    def run(*requested, check=False):
        tasks = []
        for number, options in enumerate(requested):
            given = {"path": str(config), "state_dir": str(tmp_path / "state"), "values": VALUES, **options}
            task = {"gpu.kubernetes.kubelet_config": given, "register": f"said_{number}"}
            tasks.append({**task, "ignore_errors": True, "check_mode": check, "diff": True})
        said = ", ".join(f"said_{number}" for number in range(len(requested)))
        return hear({"node": {}}, [{"hosts": "all", "gather_facts": False, "tasks": tasks}], f"[{said}]")

    run.config = config
    return run


def test_check_run_check_run_and_back(kubelet, tmp_path: Path) -> None:
    [predicted] = kubelet({}, check=True)
    assert kubelet.config.read_text() == KUBEADM
    assert not (tmp_path / "state").exists()
    done, again, back, nothing = kubelet({}, {}, {"state": "absent"}, {"state": "absent"})
    assert [said["changed"] for said in (predicted, done, again, back, nothing)] == [True, True, False, True, False]
    assert done["diff"] == predicted["diff"]
    assert done["needs_restart"]
    assert done["reserved"]["kubeReserved"] == {"cpu": "1", "memory": "1Gi"}
    assert "invocation" not in done
    assert kubelet.config.read_text() == KUBEADM
