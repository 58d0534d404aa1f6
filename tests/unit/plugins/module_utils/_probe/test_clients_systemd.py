# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._probe import clients

FATAL = 'time="2026-08-01T10:00:00Z" level=fatal msg="x"'
PLUGIN = (
    'time="2026-08-01T10:00:00Z" level=warning msg="failed to load plugin" error="no corresponding runtime" '
    "id=io.containerd.grpc.v1.cri type=io.containerd.grpc.v1"
)
OTHER_PLUGIN = 'level=warning msg="failed to load plugin" error="no zfs" id=io.containerd.snapshotter.v1.zfs'
BARE = "containerd: failed to load TOML: /etc/containerd/config.toml: invalid"


def test_parse_show_returns_properties() -> None:
    shown = clients.parse_show("ActiveState=active\nResult=\nExecStart={ path=/usr/bin/containerd }\nnonsense\n")
    assert shown == {"ActiveState": "active", "Result": "", "ExecStart": "{ path=/usr/bin/containerd }"}


@pytest.mark.parametrize(
    ("lines", "limit", "result"),
    [
        ([], 8, []),
        (["level=info msg=one", "", "  level=info msg=two"], 8, ["level=info msg=one", "level=info msg=two"]),
        (["level=info msg=one", FATAL], 8, ['level=fatal msg="x"']),
        (["level=error msg=x proxy=http://me:opensesame@p"], 8, ["level=error msg=x proxy=http://********@p"]),
        ([FATAL, "level=info msg=one", FATAL.replace("10:00", "10:05")], 8, ['level=fatal msg="x"']),
        ([OTHER_PLUGIN, PLUGIN], 8, [PLUGIN.split(" ", 1)[1]]),
        ([BARE, "containerd.service: Failed with result 'exit-code'."], 8, [BARE]),
        ([f"level=error msg={number}" for number in range(9)], 2, ["level=error msg=7", "level=error msg=8"]),
    ],
)
def test_find_error_lines_of_each_log(lines: list[str], limit: int, result: list[str]) -> None:
    assert clients.find_error_lines(lines, limit) == result


def test_build_journal_command_selects_current_start() -> None:
    assert clients.build_journal_command("containerd", {"InvocationID": "abc"})[-1] == "_SYSTEMD_INVOCATION_ID=abc"
    assert clients.build_journal_command("containerd", {"InvocationID": "abc", "NRestarts": "0"})[-1].endswith("=abc")
    assert "_SYSTEMD" not in " ".join(clients.build_journal_command("containerd", {}))


def test_build_journal_command_after_restarts_selects_all() -> None:
    command = clients.build_journal_command("containerd", {"InvocationID": "abc", "NRestarts": "1"})
    assert "_SYSTEMD" not in " ".join(command)
    assert "containerd" in clients.build_show_command("containerd")
