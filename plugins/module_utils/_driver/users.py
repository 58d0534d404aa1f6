# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The processes that have a device of the NVIDIA driver open, by /proc. Nothing here queries the driver."""

from __future__ import annotations

import contextlib
import os
import re
from typing import Any, Iterable, Iterator

# The second folder is where the driver of a driver container keeps its devices.
DEVICE = re.compile(r"(/run/nvidia/driver)?/dev/(nvidia|gdrdrv)")
# A pod of a manifest on the node (static) has a hash in place of a UUID; systemd writes _ for -.
POD = re.compile(r"pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})(?![0-9a-f])")
CONTAINER = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


def read_users(root: str = "/") -> list[dict[str, Any]]:
    """The processes that hold a device of the driver open: pid, command, container_id and pod_uid (``None`` if in none).

    Processes that cannot be read are left out.
    """
    nodes = _list_display_nodes(root)
    return [
        _describe(root, pid)
        for pid in _list_pids(root)
        if any(target in nodes or DEVICE.match(target) for target in _read_files(root, pid))
    ]


def read_device_users(root: str, devices: Iterable[str]) -> list[dict[str, Any]]:
    """The processes that hold one of the *devices* open, as read_users returns them, with those that each holds as ``devices``."""
    held = {pid: sorted(set(devices).intersection(_read_files(root, pid))) for pid in _list_pids(root)}
    return [{**_describe(root, pid), "devices": names} for pid, names in held.items() if names]


def format_users(found: Iterable[dict[str, Any]]) -> list[str]:
    """One sentence for each of the processes."""
    return [
        f"{user['command'] or 'a process'} (pid {user['pid']}{_format_place(user)}) uses the GPUs" for user in found
    ]


def _format_place(user: dict[str, Any]) -> str:
    if user["pod_uid"]:
        return f" in pod {user['pod_uid']}"
    return f" in container {user['container_id'][:12]}" if user["container_id"] else ""


def _list_pids(root: str) -> list[int]:
    return sorted(int(name) for name in _list_folder(os.path.join(root, "proc")) if name.isdigit())


def _list_folder(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []


def _list_display_nodes(root: str) -> frozenset[str]:
    """The devices of nvidia_drm below /dev/dri; the others there belong to other drivers."""
    folder = os.path.join(root, "sys/class/drm")
    return frozenset(
        f"/dev/dri/{name}"
        for name in _list_folder(folder)
        if os.path.basename(os.path.realpath(os.path.join(folder, name, "device/driver"))) == "nvidia"
    )


def _read_files(root: str, pid: int) -> Iterator[str]:
    """The paths of the files that the process holds open."""
    folder = os.path.join(root, "proc", str(pid), "fd")
    for name in _list_folder(folder):
        with contextlib.suppress(OSError):
            yield os.readlink(os.path.join(folder, name))


def _describe(root: str, pid: int) -> dict[str, Any]:
    folder = os.path.join(root, "proc", str(pid))
    cgroup = _read_text(os.path.join(folder, "cgroup"))
    pod, containers = POD.search(cgroup), CONTAINER.findall(cgroup)
    return {
        "pid": pid,
        "command": _read_text(os.path.join(folder, "comm")).strip() or None,
        "container_id": containers[-1] if containers else None,
        "pod_uid": pod.group(1).replace("_", "-") if pod else None,
    }


def _read_text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
