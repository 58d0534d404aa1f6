# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action and the node's half together, as a playbook runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

MANIFEST = (
    ROOT / "tests" / "unit" / "plugins" / "module_utils" / "_scheduler" / "fixtures" / "kubeadm-1.34.4.yaml"
).read_text()
EXTENDER = {
    "urlPrefix": "http://127.0.0.1:12345/gpushare-scheduler",
    "filterVerb": "filter",
    "bindVerb": "bind",
    "weight": 1,
    "nodeCacheCapable": True,
    "managedResources": [{"name": "aliyun.com/gpu-mem"}],
}


@pytest.fixture
def scheduler(tmp_path: Path, hear):
    """Run tasks of the module on one node: what each of them returned."""
    manifest = tmp_path / "manifests" / "kube-scheduler.yaml"
    manifest.parent.mkdir()
    manifest.write_text(MANIFEST)

    def run(*asked, check=False):
        tasks = []
        for number, options in enumerate(asked):
            given = {
                "path": str(manifest),
                "config_path": str(tmp_path / "scheduler.yaml"),
                "state_dir": str(tmp_path / "state"),
                "extenders": [EXTENDER],
                **options,
            }
            task = {"gpu.kubernetes.kube_scheduler_manifest": given, "register": f"said_{number}"}
            tasks.append({**task, "ignore_errors": True, "check_mode": check, "diff": True})
        said = ", ".join(f"said_{number}" for number in range(len(asked)))
        play = {"hosts": "all", "gather_facts": False, "tasks": tasks}
        return hear({"control-plane": {}}, [play], f"[{said}]")

    run.manifest = manifest
    return run


def test_check_run_check_run_and_back(scheduler, tmp_path: Path) -> None:
    [predicted] = scheduler({}, check=True)
    assert scheduler.manifest.read_text() == MANIFEST
    assert not (tmp_path / "state").exists()
    done, again = scheduler({}, {})
    assert [predicted["changed"], done["changed"], again["changed"]] == [True, True, False]
    assert done["diff"] == predicted["diff"]
    assert (done["api_version"], done["path"]) == ("kubescheduler.config.k8s.io/v1", str(scheduler.manifest))
    assert done["config_checksum"] in scheduler.manifest.read_text()
    assert "invocation" not in done
    [would] = scheduler({}, check=True)
    assert not would["changed"]
    back, nothing = scheduler({"state": "absent"}, {"state": "absent"})
    assert [back["changed"], nothing["changed"]] == [True, False]
    assert scheduler.manifest.read_text() == MANIFEST
    assert not (tmp_path / "scheduler.yaml").exists()


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from ansible.errors import AnsibleActionFail

    from ansible_collections.gpu.kubernetes.plugins.action.kube_scheduler_manifest import ActionModule
    from ansible_collections.gpu.kubernetes.plugins.plugin_utils import _controller_action

    monkeypatch.setattr(_controller_action._yaml, "MISSING_LIBRARY", ImportError("No module named 'ruamel'"))
    monkeypatch.setattr(_controller_action.ActionBase, "run", lambda *_arguments: {})
    with pytest.raises(AnsibleActionFail, match=r"No module named 'ruamel'.*pip install 'ruamel.yaml"):
        ActionModule.__new__(ActionModule).run()
