# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module with fake programs of a node; its parts are tested with _probe."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("ansible.module_utils.basic")

from ansible_collections.gpu.kubernetes.tests.unit.plugins.modules import node_module

CONFIG = {"containerd": {"defaultRuntimeName": "runc", "runtimes": {"runc": {"runtimeType": "io.containerd.runc.v2"}}}}
INFO = {"config": CONFIG, "status": {"conditions": [{"type": "RuntimeReady", "status": True}]}}
# The command is the fifth word, after those for the socket and the time limit.
CRICTL = f"""\
#!/bin/sh
case $5 in
version) printf 'RuntimeName:  containerd\\nRuntimeVersion:  2.1.4\\nRuntimeApiVersion:  v1\\n';;
info) echo '{json.dumps(INFO)}';;
esac
"""
CTR = """\
#!/bin/sh
case $7 in
version) printf 'Server:\\n  Version:  2.1.4\\n';;
plugins) printf 'TYPE ID PLATFORMS STATUS\\nio.containerd.grpc.v1 cri - ok\\n';;
esac
"""


def install(folder: Path, **programs: str) -> str:
    """Write executable programs into *folder*; its path."""
    for name, text in programs.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return str(folder)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[str]:
    """Path of a socket that accepts connections."""
    path = str(tmp_path / "c.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        yield path


def test_probe_of_a_working_daemon_is_ok(daemon: str, tmp_path: Path) -> None:
    arguments = {"socket": daemon, "service": "", "runtime": "runc"}
    answer = node_module.run("container_runtime_health_info", arguments, folder=install(tmp_path, crictl=CRICTL))
    assert answer["ok"] is True
    assert (answer["cause"], answer["remedy"], answer["log"]) == ("", "", [])
    assert (answer["source"], answer["remarks"]) == ("crictl", [])
    assert (answer["runtime_name"], answer["runtime_version"], answer["api_version"]) == ("containerd", "2.1.4", "v1")
    assert answer["default_runtime"] == "runc"
    assert answer["changed"] is False


def test_probe_of_a_daemon_without_the_runtime_is_not_ok(daemon: str, tmp_path: Path) -> None:
    arguments = {"socket": daemon, "service": "", "runtime": "nvidia"}
    answer = node_module.run(
        "container_runtime_health_info", arguments, folder=install(tmp_path, crictl=CRICTL), check=True
    )
    assert (answer["ok"], answer.get("failed", False)) == (False, False)
    assert answer["cause"] == "containerd runs without the runtime nvidia (it has runc)"


def test_probe_with_a_crictl_that_prints_garbage_uses_ctr(daemon: str, tmp_path: Path) -> None:
    folder = install(tmp_path, crictl="#!/bin/sh\necho garbage\n", ctr=CTR)
    answer = node_module.run("container_runtime_health_info", {"socket": daemon, "service": ""}, folder=folder)
    assert (answer["ok"], answer["source"], answer["runtime_version"], answer["runtimes"]) == (True, "ctr", "2.1.4", {})
    assert answer["remarks"][0] == "crictl version printed no RuntimeName"


def test_probe_of_a_failed_daemon_does_not_wait(tmp_path: Path) -> None:
    folder = install(
        tmp_path,
        systemctl="#!/bin/sh\nprintf 'LoadState=loaded\\nActiveState=failed\\nSubState=failed\\nInvocationID=a\\n'\n",
        journalctl="#!/bin/sh\necho 'containerd: failed to load TOML: line 3'\necho 'containerd.service: Failed'\n",
    )
    arguments = {"socket": str(tmp_path / "none"), "wait_timeout": 3600}
    answer = node_module.run("container_runtime_health_info", arguments, folder=folder)
    assert answer["ok"] is False
    assert answer["cause"] == "the service containerd is failed (failed)"
    assert answer["log"] == ["containerd: failed to load TOML: line 3"]
