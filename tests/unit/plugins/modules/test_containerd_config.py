# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest
import yaml

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.containerd.schema import Release
from ansible_collections.gpu.kubernetes.plugins.modules import containerd_config
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes import samples

MODULE = "ansible_collections.gpu.kubernetes.plugins.modules.containerd_config"


class Node:
    """Runs the module in its own process, with arguments on its input and its result as JSON."""

    def __init__(self, root: Path, text: str | None, **arguments: t.Any) -> None:
        self.config = root / "config.toml"
        if text is not None:
            self.config.write_text(text, encoding="utf-8")
        self.state = root / "state"
        self.arguments = {
            "path": str(self.config),
            "state_dir": str(self.state),
            "containerd_version": "2.1",
            "validate": False,
            **arguments,
        }
        self.temp = root / "tmp"
        self.temp.mkdir()

    def __call__(self, check: bool = False, diff: bool = False, **arguments: t.Any) -> dict[str, t.Any]:
        internal = {"_ansible_check_mode": check, "_ansible_diff": diff, "_ansible_remote_tmp": str(self.temp)}
        code = f"import sys; sys.path[:0] = {[place for place in sys.path if place]!r}; import {MODULE} as m; m.main()"
        done = subprocess.run(
            [sys.executable, "-c", code],
            check=False,
            capture_output=True,
            text=True,
            input=json.dumps({"ANSIBLE_MODULE_ARGS": {**self.arguments, **arguments, **internal}}),
            env={**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin"},
        )
        assert done.stdout.strip(), done.stderr
        answer: dict[str, t.Any] = json.loads(done.stdout)
        return answer


class TestDocumentation:
    def test_results_are_documented(self, tmp_path: Path) -> None:
        answer = Node(tmp_path, samples.KUBEADM_V3)()
        general = {"changed", "diff", "invocation", "warnings", "deprecations"}
        assert set(answer) - general == set(yaml.safe_load(containerd_config.RETURN))


class TestFindRelease:
    @pytest.mark.parametrize(("given", "expected"), [("2.1.4", Release(2, 1)), ("1.7", Release(1, 7)), (None, None)])
    def test_requested_version_is_parsed(self, given: str | None, expected: Release | None) -> None:
        assert containerd_config.find_release(given, None) == expected

    def test_invalid_version_is_refused(self) -> None:
        with pytest.raises(ConfigError, match="containerd_version newest"):
            containerd_config.find_release("newest", None)


def test_check_run_repeat_and_undo_restore_the_file(tmp_path: Path) -> None:
    node = Node(tmp_path, samples.KUBEADM_V3)
    answer = node(check=True, diff=True, set_default=True)
    assert answer["changed"]
    assert answer["restart_required"]
    assert "default_runtime_name = 'nvidia'" in answer["diff"]["after"]
    assert answer["diff"]["before"] == samples.KUBEADM_V3
    assert "backup_file" not in answer
    assert not node.state.exists()
    assert node.config.read_text(encoding="utf-8") == samples.KUBEADM_V3

    answer = node(set_default=True)
    assert answer["changed"]
    assert "diff" not in answer
    assert (answer["config_version"], answer["plugin_id"]) == (3, samples.V3)
    assert answer["default_runtime_name"] == "nvidia"
    assert Path(answer["backup_file"]).read_text(encoding="utf-8") == samples.KUBEADM_V3
    assert "make nvidia the default runtime" in answer["reasons"]

    assert not node(check=True, set_default=True)["changed"]
    answer = node(set_default=True, diff=True)
    assert not answer["changed"]
    assert "diff" not in answer
    assert answer["restart_required"], "no restart is confirmed"
    (node.state / "pending" / "containerd.restart").unlink()
    assert not node(set_default=True)["restart_required"]

    assert node(state="absent")["changed"]
    assert node.config.read_text(encoding="utf-8") == samples.KUBEADM_V3
    assert not node(state="absent")["changed"]


def test_credentials_are_masked(tmp_path: Path) -> None:
    settings = {"plugins": {samples.V2: {"registry": {"configs": {"r.example": {"auth": {"password": "opensesame"}}}}}}}
    node = Node(tmp_path, samples.KUBESPRAY, containerd_version="1.7")
    answer = node(diff=True, settings=settings)
    assert answer["changed"]
    assert "opensesame" in node.config.read_text(encoding="utf-8")
    for secret in ("opensesame", "correct horse", "hunter2"):
        assert secret not in json.dumps(answer)
    assert "kubespray" in json.dumps(answer["warnings"])


def test_undo_without_a_backup_restores_the_file(tmp_path: Path) -> None:
    """As the documentation of `backup` states."""
    node = Node(tmp_path, samples.KUBESPRAY, containerd_version="1.7", backup=False)
    assert "backup_file" not in node()
    assert not (node.state / "backups").exists()
    (record,) = (node.state / "state").rglob("*.json")
    assert record.stat().st_mode & 0o777 == 0o600
    assert base64.b64encode(samples.KUBESPRAY.encode()).decode() in record.read_text(encoding="utf-8")
    node(state="absent")
    assert node.config.read_text(encoding="utf-8") == samples.KUBESPRAY
    assert not record.exists()


@pytest.mark.parametrize(
    ("text", "arguments", "words"),
    [
        ("version = 3\nx = [\n", {}, "line 3"),
        ("version = 1\n", {}, "convert it"),
        ("version = 3\ndisabled_plugins = 5\n", {}, "disabled_plugins has to be a list of strings"),
        ("version = 3\nplugins = 5\n", {}, "plugins has to be a table"),
        (None, {"runtime_name": ""}, "cannot be the handler"),
        (None, {"runtime_name": "../nvidia", "state": "absent"}, "cannot be the handler"),
        (None, {"containerd_version": "newest"}, "is not a version"),
        (samples.KUBEADM_V3, {"containerd_binary": "/nowhere/containerd", "validate": True}, "/nowhere/containerd"),
    ],
)
def test_failure_is_one_sentence(tmp_path: Path, text: str | None, arguments: dict[str, t.Any], words: str) -> None:
    answer = Node(tmp_path, text)(**arguments)
    assert answer["failed"]
    assert words in answer["msg"]
    assert answer["msg"].endswith(".")
    assert "Traceback" not in json.dumps(answer)


def test_program_that_refuses_the_file_prevents_the_change(tmp_path: Path) -> None:
    fake = tmp_path / "containerd"
    fake.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && { echo "containerd x 2.1.0 y"; exit 0; }\n'
        'grep -q nvidia "$2" && { echo "containerd: I cannot read $2" >&2; exit 1; }\nexit 0\n',
        encoding="utf-8",
    )
    fake.chmod(0o755)
    node = Node(tmp_path, None, containerd_version=None, containerd_binary=str(fake), validate=True)
    for check in (True, False):
        answer = node(check=check)
        assert answer["failed"]
        assert f"I cannot read {node.config}" in answer["msg"]
    assert not node.config.exists()
    assert node(validate=False)["config_version"] == 3
