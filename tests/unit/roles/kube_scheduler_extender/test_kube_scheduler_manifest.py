# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action and the module together, as a playbook runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.tests.unit.roles.kube_scheduler_extender.control_planes import MANIFEST

EXTENDER = {
    "urlPrefix": "http://127.0.0.1:12345/gpushare-scheduler",
    "filterVerb": "filter",
    "bindVerb": "bind",
    "weight": 1,
    "nodeCacheCapable": True,
    "managedResources": [{"name": "aliyun.com/gpu-mem"}],
}


@pytest.fixture
def scheduler(tmp_path: Path, evaluate):
    """Run tasks of the module on one node: the result of each."""
    manifest = tmp_path / "manifests" / "kube-scheduler.yaml"
    manifest.parent.mkdir()
    manifest.write_text(MANIFEST)

    def run(*requests, check=False):
        tasks = []
        for number, options in enumerate(requests):
            arguments = {
                "path": str(manifest),
                "config_path": str(tmp_path / "scheduler.yaml"),
                "state_dir": str(tmp_path / "state"),
                "extenders": [EXTENDER],
                **options,
            }
            task = {"gpu.kubernetes.kube_scheduler_manifest": arguments, "register": f"result_{number}"}
            tasks.append({**task, "ignore_errors": True, "check_mode": check, "diff": True})
        results = ", ".join(f"result_{number}" for number in range(len(requests)))
        play = {"hosts": "all", "gather_facts": False, "tasks": tasks}
        return evaluate({"control-plane": {}}, [play], f"[{results}]")

    run.manifest = manifest
    return run


def test_check_mode_run_repeated_run_and_undo(scheduler, tmp_path: Path) -> None:
    [predicted] = scheduler({}, check=True)
    assert scheduler.manifest.read_text() == MANIFEST
    assert not (tmp_path / "state").exists()
    first_run, second_run = scheduler({}, {})
    assert [predicted["changed"], first_run["changed"], second_run["changed"]] == [True, True, False]
    assert first_run["diff"] == predicted["diff"]
    assert (first_run["api_version"], first_run["path"]) == ("kubescheduler.config.k8s.io/v1", str(scheduler.manifest))
    assert first_run["config_checksum"] in scheduler.manifest.read_text()
    assert "invocation" not in first_run
    [checked] = scheduler({}, check=True)
    assert not checked["changed"]
    first_undo, second_undo = scheduler({"state": "absent"}, {"state": "absent"})
    assert [first_undo["changed"], second_undo["changed"]] == [True, False]
    assert scheduler.manifest.read_text() == MANIFEST
    assert not (tmp_path / "scheduler.yaml").exists()


def test_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from ansible.errors import AnsibleActionFail

    from ansible_collections.gpu.kubernetes.plugins.action.kube_scheduler_manifest import ActionModule
    from ansible_collections.gpu.kubernetes.plugins.plugin_utils import _controller_action

    monkeypatch.setattr(_controller_action._yaml, "MISSING_LIBRARY", ImportError("No module named 'ruamel'"))
    monkeypatch.setattr(_controller_action.ActionBase, "run", lambda *_arguments: {})
    with pytest.raises(AnsibleActionFail, match=r"No module named 'ruamel'.*pip install 'ruamel.yaml"):
        ActionModule.__new__(ActionModule).run()
