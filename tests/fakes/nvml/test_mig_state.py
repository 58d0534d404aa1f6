# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of the simulated NVML: processes share it, a boot or a reset clears it, /proc/driver shows it."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest
from fakes.nvml import capabilities, nvidia_smi
from fakes.nvml.mig_calls import (
    FULL,
    INVALID,
    NOT_FOUND,
    RESET_REQUIRED,
    SUCCESS,
    UNKNOWN,
    Compose,
    MigGpu,
    in_a_process,
    start_process,
)


def boot(tmp_path: Path) -> None:
    """What a boot does to the state."""
    (tmp_path / "run" / "state").unlink()


def test_processes_see_each_others_changes(compose: Compose) -> None:
    path = compose("a100-40g")
    gpu = MigGpu(path)
    assert in_a_process(path, "print(gpu.fill('3g.20gb')[0])") == "0\n"
    assert (gpu.layout(), gpu.mig_devices()) == ([("3g.20gb", 2, 4)], ["3g.20gb"])
    _code, instance = gpu.create("1g.5gb")
    assert gpu.create("4g.20gb")[0] == FULL
    destroy = (
        "found = c_void_p()\n"
        "code = gpu.call('nvmlDeviceGetGpuInstanceById', gpu.handle, {}, byref(found))\n"
        "print(code or gpu.call('nvmlGpuInstanceDestroy', found))"
    )
    assert in_a_process(path, destroy.format(13)) == f"{NOT_FOUND}\n"
    assert in_a_process(path, destroy.format(gpu.info(instance).id)) == "0\n"
    assert gpu.call("nvmlGpuInstanceGetInfo", instance, ctypes.create_string_buffer(32)) == INVALID
    assert gpu.create("4g.20gb")[0] == SUCCESS


@pytest.mark.parametrize(("indices", "shares"), [((0, 0), 1), ((0, 1), 2)], ids=["same", "two"])
def test_writers_at_once_lose_nothing(compose: Compose, indices: tuple[int, int], shares: int) -> None:
    path = compose("a100-40g")
    code = "print('ready', flush=True), input()\nprint(sum(gpu.fill('1g.5gb')[0] == 0 for _turn in range(40)))"
    writers = [start_process(path, code, index) for index in indices]
    assert [writer.stdout and writer.stdout.readline() for writer in writers] == ["ready\n"] * 2
    for writer in writers:
        assert writer.stdin
        writer.stdin.write("\n")
        writer.stdin.flush()
    made = [int(writer.communicate()[0]) for writer in writers]
    assert sum(made) == 7 * shares
    assert {len(MigGpu(path, index).mig_devices()) for index in indices} == {7}


@pytest.mark.parametrize("obstacle", ["run/state.new", "run/state.lock"])
def test_change_that_cannot_be_written_is_dropped(compose: Compose, tmp_path: Path, obstacle: str) -> None:
    gpu = MigGpu(compose("h200", mig="disabled"))
    (tmp_path / obstacle).mkdir(parents=True)
    assert gpu.set_mode(1)[0] == UNKNOWN
    assert gpu.modes() == (0, 0)
    (tmp_path / obstacle).rmdir()
    assert gpu.set_mode(1) == (SUCCESS, SUCCESS)


def test_without_state_gpus_are_as_their_profile(compose: Compose, tmp_path: Path) -> None:
    gpu = MigGpu(compose("h100-mig"))
    assert gpu.layout() == [("3g.40gb", 2, 4), ("2g.20gb", 3, 0), ("1g.10gb", 9, 2), ("1g.10gb", 10, 3)]
    assert gpu.mig_devices() == ["3g.40gb", "2g.20gb", "1g.10gb", "1g.10gb"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "mig", "mode", "after"),
    [
        ("a100-40g", "disabled", 1, (1, 1)),
        ("a100-40g", "enabled", 0, (0, 0)),
        ("a30", "enabled", 1, (1, 1)),
        ("h200", "disabled", 1, (0, 0)),
        ("h200", "enabled", 1, (0, 0)),
    ],
)
def test_boot_keeps_mode_of_ampere_only(
    compose: Compose, tmp_path: Path, name: str, mig: str, mode: int, after: tuple[int, int]
) -> None:
    path = compose(name, mig=mig)
    gpu = MigGpu(path)
    gpu.set_mode(mode)
    if gpu.modes()[0]:
        gpu.fill(gpu.profiles()[0].name)
    boot(tmp_path)
    assert (gpu.modes(), gpu.mig_devices()) == (after, [])
    assert in_a_process(path, "print((gpu.modes(), gpu.mig_devices()))") == f"{(after, [])}\n"


def test_boot_clears_unchanged_gpus(compose: Compose, tmp_path: Path) -> None:
    path = compose("h100-mig")
    assert MigGpu(path, 1).create("1g.10gb")[0] == SUCCESS
    assert len(MigGpu(path, 0).mig_devices()) == 4
    boot(tmp_path)
    assert (MigGpu(path, 0).modes(), MigGpu(path, 0).mig_devices()) == ((0, 0), [])


# -- reset


@pytest.mark.parametrize("key", ["process_pid = 1", "mig_fault = in_use"])
def test_reset_of_used_gpu_is_refused(
    compose: Compose, key: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = compose("a100-80g", mig="disabled", gpu=key)
    monkeypatch.setenv("NVML_LIBRARY", path)
    gpu = MigGpu(path)
    gpu.set_mode(1)
    assert nvidia_smi.main(["-r", "-i", "0"]) == 255
    printed = capsys.readouterr().out
    assert printed.startswith(
        "The following GPUs could not be reset:\n  GPU 00000000:07:00.0: In use by another client\n"
    )
    assert gpu.modes() == (0, 1)


def test_reset_makes_pending_current_and_removes_instances(
    compose: Compose, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = compose("a100-80g", mig="disabled")
    monkeypatch.setenv("NVML_LIBRARY", path)
    gpu, other = MigGpu(path, 0), MigGpu(path, 1)
    assert (gpu.set_mode(1), other.set_mode(1)) == ((SUCCESS, RESET_REQUIRED),) * 2
    assert nvidia_smi.main(["-r", "-i", "00000000:07:00.0"]) == 0
    assert capsys.readouterr().out == "GPU 00000000:07:00.0 was successfully reset.\nAll done.\n"
    assert (gpu.modes(), other.modes()) == ((1, 1), (0, 1))
    assert gpu.fill("7g.80gb")[0] == SUCCESS
    assert nvidia_smi.main(["--gpu-reset"]) == 0
    assert (gpu.modes(), gpu.layout(), other.modes()) == ((1, 1), [], (1, 1))
    assert nvidia_smi.main(["-r", "-i", "0,7"]) == 6


# -- files of capabilities


def test_capabilities_follow_the_instances(compose: Compose, tmp_path: Path) -> None:
    root = tmp_path / "proc"
    path = compose("h100-mig", mig="enabled", proc=str(root))
    gpu = MigGpu(path, 1)
    access = "driver/nvidia/capabilities/gpu1/mig/gi13/ci0/access"
    assert not (root / access).exists()
    assert (root / "driver/nvidia/capabilities/gpu0/mig/gi2/ci0/access").is_file()
    _code, instance = gpu.fill("1g.10gb")
    minors = dict(line.split() for line in (root / capabilities.MINORS).read_text().splitlines())
    known = ("config", "monitor", "gpu0/gi3/access", "gpu0/gi3/ci0/access")
    assert [minors[name] for name in known] == ["1", "2", "30", "31"]
    assert f"DeviceFileMinor: {minors['gpu1/gi13/ci0/access']}\n" in (root / access).read_text()
    assert (root / access).parents[1].joinpath("access").is_file()
    compute = ctypes.c_void_p()
    assert gpu.call("nvmlGpuInstanceGetComputeInstanceById", instance, 0, ctypes.byref(compute)) == SUCCESS
    assert gpu.call("nvmlComputeInstanceDestroy", compute) == SUCCESS
    assert gpu.call("nvmlGpuInstanceDestroy", instance) == SUCCESS
    assert not (root / access).parents[1].exists()


def test_capabilities_are_written_below_another_folder(
    compose: Compose, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "proc"
    assert capabilities.main([compose("h100-mig"), str(root), "--devices", "236"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "c /dev/nvidia-caps/nvidia-cap1 0444 root root - 236:1"
    found = sorted(str(path.relative_to(root)) for path in root.rglob("gpu0/**/ci0/access"))
    assert [path.split("/")[-3] for path in found] == ["gi10", "gi2", "gi3", "gi9"]
    with pytest.raises(RuntimeError, match="returned 4 for /dev/null"):
        capabilities.write(compose("h100-mig"), "/dev/null")
