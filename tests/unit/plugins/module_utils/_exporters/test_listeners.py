# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Listening sockets, from recorded lines of /proc and from this machine."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._exporters.listeners import decode_address, read_listeners

HEADER = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
TCP = HEADER + (
    "   0: 0100007F:266B 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 101 1 0 100 0 0 10 0\n"
    "   1: 0B00000A:24B8 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 102 1 0 100 0 0 10 0\n"
    "   2: 0B00000A:01BB 0C00000A:9999 01 00000000:00000000 00:00000000 00000000     0        0 103 1 0 100 0 0 10 0\n"
)
TCP6 = HEADER + (
    "   0: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 104 1\n"
)
POD = f"0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-{'a' * 64}.scope\n"


def add_process(proc: Path, pid: int, words: list[str], cgroup: str, *inodes: int) -> None:
    folder = proc / str(pid) / "fd"
    folder.mkdir(parents=True)
    (folder / "0").symlink_to("/dev/null")
    for number, inode in enumerate(inodes, 3):
        (folder / str(number)).symlink_to(f"socket:[{inode}]")
    (folder.parent / "cmdline").write_text("\0".join([*words, ""]))
    (folder.parent / "comm").write_text("a-process\n")
    (folder.parent / "cgroup").write_text(cgroup)


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    folder = tmp_path / "proc" / "net"
    folder.mkdir(parents=True)
    (folder / "tcp").write_text(TCP)
    return folder.parent


def test_sockets_have_their_processes(proc: Path, tmp_path: Path) -> None:
    (proc / "net" / "tcp6").write_text(TCP6)
    add_process(proc, 12, ["/opt/nvidia_gpu_exporter", "--x"], "0::/system.slice/nvidia_gpu_exporter.service\n", 101)
    add_process(proc, 13, ["dcgm-exporter"], POD, 102)
    add_process(proc, 14, [], "1:name=systemd:/system.slice/a.service/sub\n", 7)
    found = [tuple(row.values()) for row in read_listeners(str(tmp_path))]
    assert found == [
        ("127.0.0.1", 9835, 12, "nvidia_gpu_exporter", "nvidia_gpu_exporter", False),
        ("10.0.0.11", 9400, 13, "dcgm-exporter", "", True),
        ("::", 8080, None, "", "", False),
    ]


def test_process_without_command_line_has_its_name(proc: Path, tmp_path: Path) -> None:
    add_process(proc, 14, [], "0::/\n", 101)
    row = read_listeners(str(tmp_path))[0]
    assert (row["pid"], row["program"], row["unit"]) == (14, "a-process", "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0100007F", "127.0.0.1"),
        ("0000000000000000FFFF00000B00000A", "10.0.0.11"),
        ("B80D0120000000000000000001000000", "2001:db8::1"),
    ],
)
def test_address_is_decoded(text: str, expected: str) -> None:
    assert decode_address(text) == expected


def test_socket_of_this_process_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: Any = server.getsockname()[1]
        found = [row for row in read_listeners() if row["port"] == port]
    assert [(row["address"], row["pid"]) for row in found] == [("127.0.0.1", os.getpid())]
