# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action and the module together, as a playbook runs them."""

from __future__ import annotations

import json
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

    def run(*requests):
        tasks = []
        for number, options in enumerate(requests):
            arguments = {
                "path": str(manifest),
                "config_path": str(tmp_path / "scheduler.yaml"),
                "state_dir": str(tmp_path / "state"),
                "extenders": [EXTENDER],
                **{name: value for name, value in options.items() if name != "check"},
            }
            task = {"gpu.kubernetes.kube_scheduler_manifest": arguments, "register": f"result_{number}"}
            tasks.append({**task, "ignore_errors": True, "check_mode": "check" in options, "diff": True})
        results = ", ".join(f"result_{number}" for number in range(len(requests)))
        play = {"hosts": "all", "gather_facts": False, "tasks": tasks}
        return evaluate({"control-plane": {}}, [play], f"[{results}]")

    run.manifest = manifest
    return run


def test_check_mode_run_repeated_run_and_undo(scheduler, tmp_path: Path) -> None:
    check, undo = {"check": True}, {"state": "absent"}
    results = scheduler(check, {}, check, {}, {**undo, **check}, undo, undo)
    # A check that writes leaves nothing to its run.
    assert [result["changed"] for result in results] == [True, True, False, False, True, True, False]
    predicted, first_run, *_later, predicted_undo, first_undo, _second_undo = results
    assert (first_run["diff"], first_undo["diff"]) == (predicted["diff"], predicted_undo["diff"])
    assert (first_run["api_version"], first_run["path"]) == ("kubescheduler.config.k8s.io/v1", str(scheduler.manifest))
    assert first_run["config_checksum"] in json.dumps(first_run["diff"])
    assert "invocation" not in first_run
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
