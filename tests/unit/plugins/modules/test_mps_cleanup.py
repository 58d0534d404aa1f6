# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a killed control daemon of MPS has left is removed, and what belongs to others stays."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("ansible.module_utils.basic")

from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml import compute_mode
from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml.library import Nvml
from ansible_collections.gpu.kubernetes.tests.unit.plugins.modules.mps_node import Node

if TYPE_CHECKING:
    from fakes.nvml.simulated import NvmlBuilder

SERVER, CONTROL = "nvidia-cuda-mps-server", "nvidia-cuda-mps-control"


@pytest.fixture
def library(nvml_builder: NvmlBuilder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The simulated NVML (fake) of an A100 and a T4, with a state of its own."""
    monkeypatch.setenv("NVML_STATE", str(tmp_path / "nvml/state"))
    monkeypatch.setenv("NVML_INFOROM", str(tmp_path / "nvml/inforom"))
    return nvml_builder.library("mixed")


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def set_modes(library: str, mode: int) -> None:
    """Set the compute mode of both GPUs, as nvidia-smi does."""
    nvml = Nvml(ctypes.CDLL(library))
    nvml.start()
    for index in range(2):
        handle = ctypes.c_void_p()
        nvml.call(["nvmlDeviceGetHandleByIndex_v2"], ctypes.c_uint(index), ctypes.byref(handle))
        assert nvml.call(["nvmlDeviceSetComputeMode"], handle, ctypes.c_uint(mode)) == 0
    nvml.stop()


def check_and_repeat(node: Node, **arguments: Any) -> dict[str, Any]:
    """Check, run and repeat both; return the result of the first run."""
    checked = node.run("mps_cleanup", check=True, **arguments)
    assert node.commands() == []
    done = node.run("mps_cleanup", **arguments)
    assert (checked["changed"], checked["left"]) == (done["changed"], done["left"]), done
    for check in (True, False):
        again = node.run("mps_cleanup", check=check, **arguments)
        assert (again["changed"], again["left"]) == (False, []), again
    return done


def test_all_that_a_killed_daemon_has_left_is_removed(node: Node, library: str) -> None:
    node.leave()
    node.start(41, CONTROL, answers="x")
    node.start(42, SERVER, pipe=str(node.pipe), answers="x")
    set_modes(library, compute_mode.EXCLUSIVE_PROCESS)
    done = check_and_repeat(node, library=library)
    assert done["left"] == [
        f"{CONTROL} runs (pid 41)",
        f"{SERVER} runs (pid 42)",
        "GPU 0 has the compute mode EXCLUSIVE_PROCESS",
        "GPU 1 has the compute mode EXCLUSIVE_PROCESS",
        f"{node.path}/shm is mounted",
        f"{node.path} exists",
    ]
    assert done["diff"]["before"].splitlines() == done["left"]
    assert node.commands() == ["MPS/nvidia.com/gpu/pipe: quit", "umount MPS/shm"]
    assert compute_mode.list_exclusive(library) == []
    assert not node.path.exists()
    assert node.path.parent.exists()


def test_each_of_several_mounts_is_unmounted(node: Node) -> None:
    node.leave()
    line = node.mounts.read_text().splitlines()[-1]
    node.mounts.write_text(f"{node.mounts.read_text()}{line}\n25 23 0:23 / {node.path}-other rw - tmpfs tmpfs rw\n")
    check_and_repeat(node, library="/nonexistent")
    assert node.commands() == ["umount MPS/shm"] * 2
    assert f"{node.path}-other" in node.mounts.read_text()


def test_daemons_and_compute_modes_of_others_stay(node: Node, library: str) -> None:
    """The device plugin's pod creates the folder on each node."""
    (node.path / "shm").mkdir(parents=True)
    node.start(41, CONTROL, pipe="/tmp/nvidia-mps")
    node.start(42, "python3")
    set_modes(library, compute_mode.EXCLUSIVE_PROCESS)
    assert check_and_repeat(node, library=library)["left"] == [f"{node.path} exists"]
    assert node.commands() == []
    assert compute_mode.list_exclusive(library) == [0, 1]


def test_host_without_mps_and_without_a_driver_is_unchanged(node: Node) -> None:
    assert check_and_repeat(node, library="/nonexistent")["changed"] is False


def test_links_below_the_folder_are_not_followed(node: Node) -> None:
    node.leave()
    other = node.root / "other"
    other.mkdir()
    (node.pipe / "link").symlink_to(other)
    check_and_repeat(node, library="/nonexistent")
    assert other.is_dir()


def test_processes_that_stay_are_named_and_nothing_else_is_removed(node: Node, library: str) -> None:
    node.leave()
    node.start(41, CONTROL, answers="x")
    (node.pipe / "busy").touch()
    set_modes(library, compute_mode.EXCLUSIVE_PROCESS)
    failed = node.run("mps_cleanup", library=library, wait_timeout=1)
    assert failed["msg"] == (
        f"{CONTROL} (pid 41) still runs, although quit was sent to it 1 s ago; end the programs that use MPS, then this process, and run again."
    )
    assert compute_mode.list_exclusive(library) == [0, 1]
    (node.pipe / "answers").unlink()
    failed = node.run("mps_cleanup", library=library)
    assert f"no control daemon answers at {node.pipe} (Cannot find MPS control daemon process)" in failed["msg"]
    assert node.path.exists()
    # Once it has ended, the next run resumes.
    (node.pipe / "busy").unlink()
    (node.pipe / "answers").touch()
    check_after = node.run("mps_cleanup", library=library)
    assert check_after["changed"]
    assert not node.path.exists()


def test_busy_mount_is_named(node: Node) -> None:
    node.leave()
    (node.root / "busy").touch()
    failed = node.run("mps_cleanup", library="/nonexistent")
    assert failed["msg"].startswith(
        f"{node.path}/shm cannot be unmounted (umount: {node.path}/shm: target is busy.); end"
    )
    assert node.path.exists()


def test_gpu_that_refuses_the_mode_is_named(nvml_builder: NvmlBuilder) -> None:
    lost = nvml_builder.library("lost-gpu")
    [clause] = compute_mode.reset(lost, [2])
    assert clause.startswith("GPU 2: ")


def test_driver_that_hangs_is_an_error(nvml_builder: NvmlBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compute_mode, "TIMEOUT", 0.2)
    with pytest.raises(compute_mode.ComputeModeError, match=r"does not answer within 0\.2 s"):
        compute_mode.list_exclusive(nvml_builder.library("hang"))
