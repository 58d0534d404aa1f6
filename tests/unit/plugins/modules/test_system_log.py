# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""No module writes its parameters or its result to the syslog or journal of a node or the controller."""

from __future__ import annotations

import base64
import socket
import typing as t
from pathlib import Path

import pytest

pytest.importorskip("ansible.module_utils.basic")

from ansible.module_utils import basic

from ansible_collections.gpu.kubernetes.plugins.module_utils import _module
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.files import sha256
from ansible_collections.gpu.kubernetes.tests.unit.plugins.modules import node_module

FILES = sorted((node_module.PLUGINS / "modules").glob("*.py"))
# All modules but action plugins, which only document their arguments there.
NAMES = [path.stem for path in FILES if "def main(" in path.read_text(encoding="utf-8")]
SECRET = "opensesame"
# Fakes of the modules that ansible.module_utils.basic logs with. Messages are sent to a socket, as to /dev/log.
FAKES = """
import socket, sys, types
def send(*words, **fields):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as stream:
        stream.sendto(repr((words, fields)).encode(), {path!r})
def fake(name, **content):
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(content)
fake("syslog", LOG_USER=8, LOG_INFO=6, openlog=lambda *_words: None, syslog=send)
sys.modules["systemd"] = None
if {journal}:
    fake("systemd.journal", send=send, sendv=send)
    fake("systemd.daemon", booted=lambda: True)
    fake("systemd", journal=sys.modules["systemd.journal"], daemon=sys.modules["systemd.daemon"])
"""


class Log:
    """The node's log, in which each message is a datagram."""

    def __init__(self, folder: Path, journal: bool) -> None:
        self.stream = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.stream.bind(str(folder / "log"))
        self.stream.setblocking(False)
        self.fakes = FAKES.format(path=str(folder / "log"), journal=journal)

    def run(self, name: str, arguments: dict[str, t.Any], check: bool = False) -> dict[str, t.Any]:
        """Run a module on the node. The controller always sends the task's no_log."""
        return node_module.run(name, {**arguments, "_ansible_no_log": False}, check=check, first=self.fakes)

    def read(self) -> str:
        """Return all messages since the last call."""
        messages = []
        while True:
            try:
                messages.append(self.stream.recv(1 << 20).decode())
            except BlockingIOError:
                return "".join(messages)


@pytest.fixture(params=["syslog", "journal"])
def log(tmp_path: Path, request: pytest.FixtureRequest) -> t.Iterator[Log]:
    log = Log(tmp_path, request.param == "journal")
    yield log
    log.stream.close()


def runtime_arguments(folder: Path, file: str) -> dict[str, t.Any]:
    """Arguments with a password for a module of a container runtime."""
    settings = {"plugins": {"x": {"password": SECRET}}} if file != "daemon.json" else {"log-opts": {"token": SECRET}}
    own = {"containerd_version": "2.1"} if file == "config.toml" else {}
    return {
        "path": str(folder / file),
        "state_dir": str(folder / "state"),
        "settings": settings,
        "validate": False,
        **own,
    }


def request_arguments(folder: Path) -> dict[str, t.Any]:
    """Arguments of the node's part of a module, which writes a file with a password."""
    path = str(folder / "file.yaml")
    data = base64.b64encode(f"password: {SECRET}\n".encode()).decode()
    order = {"path": path, "data": data, "owner": None, "backup": False, "private": False}
    places = {"state_dir": str(folder / "state"), "backup_dir": str(folder / "backups")}
    return {"_request": {"do": "write", "path": path, "orders": [order], "expected": {path: sha256(None)}, **places}}


ARGUMENTS: dict[str, t.Callable[[Path], dict[str, t.Any]]] = {
    "containerd_config": lambda folder: runtime_arguments(folder, "config.toml"),
    "crio_config": lambda folder: runtime_arguments(folder, "crio.conf"),
    "docker_daemon_config": lambda folder: runtime_arguments(folder, "daemon.json"),
    "kube_scheduler_manifest": request_arguments,
    "kubelet_config": request_arguments,
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_module_that_edits_a_daemons_file_logs_nothing(tmp_path: Path, log: Log, name: str) -> None:
    arguments = ARGUMENTS[name](tmp_path)
    for check in (True, False):
        answer = log.run(name, arguments, check)
        assert not answer.get("failed"), answer
        assert log.read() == ""
        shown = {key: value for key, value in answer.items() if key != "invocation"}
        assert SECRET not in str(shown)
    written = "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file() and "state" not in path.parts)
    assert SECRET in written


@pytest.mark.parametrize("name", NAMES)
def test_module_is_built_without_a_log(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[basic.AnsibleModule] = []

    def stop(self: basic.AnsibleModule, *_arguments: t.Any, **_options: t.Any) -> None:
        built.append(self)
        raise SystemExit

    monkeypatch.setattr(basic.AnsibleModule, "__init__", stop)
    # Those that use the API server cannot be imported on nodes.
    module = pytest.importorskip(node_module.PREFIX + name)
    with pytest.raises(SystemExit):
        module.main()
    assert [type(each).log for each in built] == [_module._log_nothing]


def test_fakes_read_what_ansible_logs(log: Log) -> None:
    log.fakes += "from ansible.module_utils.basic import AnsibleModule\nAnsibleModule({'secret': {}}).exit_json()"
    log.run("kubelet_config", {"secret": SECRET})
    assert SECRET in log.read()
