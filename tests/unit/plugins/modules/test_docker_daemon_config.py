# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest

pytest.importorskip("ansible.module_utils.basic")

import yaml

from ansible_collections.gpu.kubernetes.plugins.modules import docker_daemon_config
from ansible_collections.gpu.kubernetes.tests.unit.plugins.modules import node_module

TEXT = '{\n  "log-driver": "json-file",\n  "log-opts": {"max-size": "10m"}\n}\n'


class Node:
    """Runs the module in a directory, without a dockerd unless a test writes one into its PATH."""

    def __init__(self, root: Path, content: str | None = TEXT) -> None:
        self.config = root / "daemon.json"
        if content is not None:
            self.config.write_text(content, encoding="utf-8")
        self.state = root / "state"
        self.folder = root / "bin"

    def __call__(self, check: bool = False, **arguments: t.Any) -> dict[str, t.Any]:
        given = {"path": str(self.config), "state_dir": str(self.state), "validate": False, **arguments}
        return node_module.run("docker_daemon_config", given, check=check, folder=str(self.folder))

    def dockerd(self, script: str) -> None:
        self.folder.mkdir()
        (self.folder / "dockerd").write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (self.folder / "dockerd").chmod(0o755)


def test_check_run_repeat_and_undo_restore_the_file(tmp_path: Path) -> None:
    node = Node(tmp_path)
    answer = node(check=True, set_default=True)
    assert (answer["changed"], answer["restart_required"], answer["default_runtime"]) == (True, True, "nvidia")
    assert answer["diff"]["before"] == TEXT
    predicted = answer["diff"]["after"]
    assert answer["diff"]["after_header"] == str(node.config)
    assert "backup_file" not in answer
    assert not node.state.exists()
    assert node.config.read_text(encoding="utf-8") == TEXT

    answer = node(set_default=True)
    assert answer["changed"]
    assert node.config.read_text(encoding="utf-8") == predicted
    assert json.loads(predicted)["runtimes"] == {"nvidia": {"path": "/usr/bin/nvidia-container-runtime"}}
    assert Path(answer["backup_file"]).read_text(encoding="utf-8") == TEXT
    assert answer["reasons"] == ["name the NVIDIA runtime's binary", "make nvidia the default runtime"]
    general = {"changed", "diff", "invocation", "warnings", "deprecations"}
    assert set(answer) - general == set(yaml.safe_load(docker_daemon_config.RETURN))

    assert not node(check=True, set_default=True)["changed"]
    answer = node(set_default=True)
    assert (answer["changed"], answer["restart_required"]) == (False, True), "no restart is confirmed"
    assert "diff" not in answer
    (node.state / "pending" / "docker.restart").unlink()
    assert not node(set_default=True)["restart_required"]

    answer = node(state="absent")
    assert (answer["changed"], answer["default_runtime"]) == (True, None)
    assert node.config.read_text(encoding="utf-8") == TEXT
    assert not node(state="absent")["changed"]


def test_credentials_are_masked(tmp_path: Path) -> None:
    node = Node(tmp_path, TEXT.replace('"max-size"', '"splunk-token": "hunter2", "max-size"'))
    answer = node(settings={"proxies": {"http-proxy": "http://me:opensesame@proxy.example"}}, enable_cdi=True)
    assert answer["changed"]
    assert "opensesame" in node.config.read_text(encoding="utf-8")
    for secret in ("opensesame", "hunter2"):
        assert secret not in json.dumps(answer)


@pytest.mark.parametrize(
    ("content", "arguments", "words"),
    [
        ('{"a": 1,\n}', {}, "daemon.json, line "),
        ('{\n// comment\n}', {}, "line 2, column 1: Expecting property name"),
        ('{"a": 1}\n}', {"state": "absent"}, "line 2, column 1: Extra data"),
        ('{"runtimes": []}', {}, "runtimes has to be an object"),
        ('{"runtimes": {"nvidia": {"runtimeType": "x"}}}', {}, "give another runtime_name"),
        (None, {"runtime_name": "runc"}, "reserved by Docker"),
        (None, {"runtime_name": ""}, "cannot be the handler"),
        (None, {"settings": {"a": None}}, "settings: a is null"),
        ('{"a": 1}', {"settings": {"a": {"b": 1}}}, "settings: a is a value in"),
        (TEXT, {"settings": {"log-opts": 5}}, "settings: log-opts is an object in"),
        (TEXT, {"dockerd_binary": "/nowhere/dockerd", "validate": True}, "/nowhere/dockerd"),
    ],
)  # fmt: skip
def test_failure_is_one_sentence(tmp_path: Path, content: str | None, arguments: dict[str, t.Any], words: str) -> None:
    answer = Node(tmp_path, content)(**arguments)
    assert answer["failed"]
    assert words in answer["msg"]
    assert answer["msg"].endswith(".")
    assert "Traceback" not in json.dumps(answer)


def test_change_that_dockerd_refuses_is_not_written(tmp_path: Path) -> None:
    node = Node(tmp_path)
    file = "${2#--config-file=}"
    node.dockerd(
        f'[ "$1" = --validate ] || exit 2\ngrep -q nvidia "{file}" || exit 0\necho "I refuse {file}" >&2\nexit 1'
    )
    for check in (True, False):
        answer = node(check=check, validate=True)
        assert answer["failed"]
        assert f"I refuse {node.config}; nothing was written." in answer["msg"]
    assert node.config.read_text(encoding="utf-8") == TEXT
    assert node(validate=False)["changed"]
