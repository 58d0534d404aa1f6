# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("ansible.module_utils.basic")

from ansible_collections.gpu.kubernetes.plugins.module_utils._distributions import describe_own
from ansible_collections.gpu.kubernetes.tests.unit.plugins.modules import node_module

PROGRAMS = {
    "runtime": "echo 'NVIDIA Container Runtime version 1.17.8'",
    "systemctl": "printf 'LoadState=loaded\\nActiveState=active\\n'",
    "dpkg-query": 'case "$*" in *toolkit) printf "installed 1.17.8-1" ;; *) exit 1 ;; esac',
}


def test_host_with_toolkit_returns_versions(tmp_path: Path) -> None:
    for name, script in PROGRAMS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    arguments = {
        "toolkit_runtime": str(tmp_path / "runtime"),
        "packages": ["toolkit", "base"],
        "package_manager": "apt",
    }
    answer = node_module.run("container_runtime_info", arguments, folder=str(tmp_path))
    assert answer["toolkit"] == {"path": str(tmp_path / "runtime"), "version": "1.17.8", "usable": True}
    assert answer["packages"] == {"toolkit": "1.17.8-1", "base": None}
    assert answer["service"] == {"name": "containerd", "exists": True, "state": "active"}
    assert answer["package_manager"] == "apt"


def test_bare_host_returns_none(tmp_path: Path) -> None:
    arguments = {"toolkit_runtime": str(tmp_path / "none"), "service": "no-such-unit", "packages": []}
    answer = node_module.run("container_runtime_info", arguments)
    assert answer["toolkit"] == {"path": None, "version": None, "usable": False}
    assert answer["service"]["exists"] is False
    assert answer["packages"] == {}
    # the values depend on this machine
    assert set(answer["kubelet"]) == {"running", "endpoint", "daemon", "version", "cgroup_driver"}
    assert answer["own_containerd"] == describe_own(answer["kubernetes_distribution"])


def test_files_found_lists_existing_paths(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("")
    (tmp_path / "dangling").symlink_to("nowhere")
    requested = [str(tmp_path / name) for name in ("dangling", "missing", "there")]
    requested.append("~")
    answer = node_module.run("container_runtime_info", {"files": requested, "packages": []})
    assert answer["files_found"] == [requested[0], requested[2], "~"], "the paths are changed"


def test_other_configurations_lists_managed_files(tmp_path: Path) -> None:
    records = tmp_path / "state" / "settings"
    records.mkdir(parents=True)
    for name in ("a", "b", "d"):
        (tmp_path / name).write_text("")
        entries = {"nvidia": [], **({str(tmp_path / "d"): []} if name == "a" else {})}
        record = {"imported_by": str(tmp_path / "a") if name == "d" else None, "entries": entries}
        content = {"path": str(tmp_path / name), "record": {"versions": [{"record": None}, {"record": record}]}}
        (records / f"{name}.json").write_text(json.dumps(content))
    imports = {"versions": [{"record": {"imported_by": None, "entries": {str(tmp_path / "x"): []}}}]}
    (records / "imports.json").write_text(json.dumps({"path": "/import", "record": imports}))
    (records / "broken.json").write_text("{")
    (records / "list.json").write_text("[]")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    arguments = {"state_dir": str(tmp_path), "packages": []}
    every = node_module.run("container_runtime_info", arguments)["other_configurations"]
    assert every == [str(tmp_path / name) for name in ("a", "b", "d")]
    # d is a drop-in of a
    arguments["config_path"] = str(tmp_path / "link")
    assert node_module.run("container_runtime_info", arguments)["other_configurations"] == [str(tmp_path / "b")]
