# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The processes that have a device of the driver open."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._driver import users

UID = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"
STATIC = "d0a1" * 8
HASH = "9f" * 32


def process(root: Path, pid: int, *targets: str, command: str = "python3", cgroup: str = "0::/user.slice") -> None:
    folder = root / f"proc/{pid}/fd"
    folder.mkdir(parents=True)
    (folder.parent / "comm").write_text(f"{command}\n")
    (folder.parent / "cgroup").write_text(f"{cgroup}\n")
    for number, target in enumerate(targets):
        (folder / str(number)).symlink_to(target)


@pytest.mark.parametrize(
    ("target", "uses"),
    [
        ("/dev/nvidia0", True),
        ("/dev/nvidiactl", True),
        ("/dev/nvidia-uvm", True),
        ("/dev/nvidia-caps/nvidia-cap1", True),
        ("/dev/nvidia0 (deleted)", True),
        ("/run/nvidia/driver/dev/nvidia0", True),
        ("/dev/gdrdrv", True),
        ("/dev/dri/card1", True),
        ("/dev/dri/card0", False),
        ("/home/dev/nvidia-notes.txt", False),
        ("/dev/null", False),
        ("socket:[4711]", False),
    ],
)
def test_read_users_by_device(tmp_path: Path, target: str, uses: bool) -> None:
    for card, name in (("card0", "ast"), ("card1", "nvidia")):
        (tmp_path / "drivers" / name).mkdir(parents=True)
        (tmp_path / "sys/class/drm" / card / "device").mkdir(parents=True)
        (tmp_path / "sys/class/drm" / card / "device/driver").symlink_to(tmp_path / "drivers" / name)
    process(tmp_path, 7, "/dev/null", target)
    assert [user["pid"] for user in users.read_users(str(tmp_path))] == ([7] if uses else [])


@pytest.mark.parametrize(
    ("cgroup", "container", "pod", "place"),
    [
        ("0::/user.slice", None, None, ""),
        (f"0::/system.slice/docker-{HASH}.scope", HASH, None, " in container 9f9f9f9f9f9f"),
        (f"12:devices:/docker/{HASH}\n0::/", HASH, None, " in container 9f9f9f9f9f9f"),
        (f"4:devices:/kubepods/besteffort/pod{UID}/{HASH}", HASH, UID, f" in pod {UID}"),
        (f"0::/kubepods/burstable/pod{STATIC}/{HASH}", HASH, STATIC, f" in pod {STATIC}"),
        (
            f"0::/kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice/cri-containerd-{HASH}.scope",
            HASH,
            UID,
            f" in pod {UID}",
        ),
        (
            f"0::/kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice/crio-{HASH}.scope/init",
            HASH,
            UID,
            f" in pod {UID}",
        ),
    ],
)
def test_read_users_of_containers_names_pod(
    tmp_path: Path, cgroup: str, container: str | None, pod: str | None, place: str
) -> None:
    process(tmp_path, 7, "/dev/nvidia0", cgroup=cgroup)
    found = users.read_users(str(tmp_path))
    assert found == [{"pid": 7, "command": "python3", "container_id": container, "pod_uid": pod}]
    assert users.format_users(found) == [f"python3 (pid 7{place}) uses the GPUs"]


def test_read_users_sorts_by_pid(tmp_path: Path) -> None:
    for pid in (10, 9):
        process(tmp_path, pid, "/dev/nvidia0")
    process(tmp_path, 11, "/dev/null")
    (tmp_path / "proc/self").mkdir()
    assert [user["pid"] for user in users.read_users(str(tmp_path))] == [9, 10]


def test_read_users_ignores_ended_process(tmp_path: Path) -> None:
    (tmp_path / "proc/7/fd").mkdir(parents=True)
    (tmp_path / "proc/7/fd/0").write_text("no link any more")
    (tmp_path / "proc/7/fd/1").symlink_to("/dev/nvidia0")
    found = users.read_users(str(tmp_path))
    assert found == [{"pid": 7, "command": None, "container_id": None, "pod_uid": None}]
    assert users.format_users(found) == ["a process (pid 7) uses the GPUs"]


def test_read_users_without_proc_is_empty(tmp_path: Path) -> None:
    assert users.read_users(str(tmp_path)) == []
