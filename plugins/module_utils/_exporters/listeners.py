# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The processes that listen on TCP ports of a host, by /proc."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import socket
import struct
from typing import Any, Iterator

LISTEN = "0A"
UNIT = re.compile(r"/([^/\n]+)\.service(?=/|\n|$)")


def read_listeners(root: str = "/") -> list[dict[str, Any]]:
    """Return each listening socket of the host's own network: address, port, pid, program, unit and container.

    *program* is the name of the process' file, *unit* that of its systemd service without the suffix; both are empty if they cannot be read, as pid is
    None then. *container* is whether a pod or another container has the process.
    """
    proc = os.path.join(root, "proc")
    sockets = [
        found for name in ("tcp", "tcp6") for found in parse_sockets(_read_text(os.path.join(proc, "net", name)))
    ]
    owners = _find_owners(proc, {inode for _address, _port, inode in sockets})
    return [
        {"address": address, "port": port, **_describe(proc, owners.get(inode))} for address, port, inode in sockets
    ]


def parse_sockets(text: str) -> Iterator[tuple[str, int, str]]:
    """Yield address, port and inode of each listening socket in /proc/net/tcp or tcp6."""
    for line in text.splitlines()[1:]:
        words = line.split()
        if len(words) > 9 and words[3] == LISTEN:
            address, _colon, port = words[1].partition(":")
            yield decode_address(address), int(port, 16), words[9]


def decode_address(text: str) -> str:
    """Return an address of /proc/net/tcp, which has the words of 32 bits in the processor's order."""
    words = [struct.pack("=I", int(text[at : at + 8], 16)) for at in range(0, len(text), 8)]
    if len(words) == 1:
        return socket.inet_ntoa(words[0])
    address = ipaddress.IPv6Address(b"".join(words))
    return str(address.ipv4_mapped or address)


def _find_owners(proc: str, inodes: set[str]) -> dict[str, int]:
    """Return the process that has each of the sockets."""
    owners: dict[str, int] = {}
    wanted = {f"socket:[{inode}]": inode for inode in inodes}
    for pid in sorted(int(name) for name in _list_folder(proc) if name.isdigit()):
        folder = os.path.join(proc, str(pid), "fd")
        for name in _list_folder(folder):
            with contextlib.suppress(OSError):
                inode = wanted.get(os.readlink(os.path.join(folder, name)))
                if inode:
                    owners.setdefault(inode, pid)
    return owners


def _describe(proc: str, pid: int | None) -> dict[str, Any]:
    if pid is None:
        return {"pid": None, "program": "", "unit": "", "container": False}
    folder = os.path.join(proc, str(pid))
    words = _read_text(os.path.join(folder, "cmdline")).split("\0")
    program = os.path.basename(words[0]) or _read_text(os.path.join(folder, "comm")).strip()
    cgroup = _read_text(os.path.join(folder, "cgroup"))
    units = UNIT.findall(cgroup)
    container = "kubepods" in cgroup or re.search(r"[0-9a-f]{64}", cgroup) is not None
    return {
        "pid": pid,
        "program": program,
        "unit": "" if container or not units else units[-1],
        "container": container,
    }


def _list_folder(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []


def _read_text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
