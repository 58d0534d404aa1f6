# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a control daemon of MPS leaves on a host when it is killed: processes, compute modes, a tmpfs and files."""

from __future__ import annotations

import os
import shutil
import time
from typing import Callable, NamedTuple, Sequence

from .. import _commands
from .._nvml import compute_mode
from . import control

PROGRAMS = (control.PROGRAM, "nvidia-cuda-mps-server")
_VARIABLE = b"CUDA_MPS_PIPE_DIRECTORY="
# More than a command line or an environment of the programs has.
_MOST_BYTES = 1 << 20
# A daemon quits when the servers of its clients have ended.
_QUIT_SECONDS = 30


class CleanupError(Exception):
    """Something stays; the message is a sentence with the remedy."""


class Process(NamedTuple):
    """A process of MPS below the folder: its ID, its program, and the folder of its pipe on the host."""

    pid: int
    program: str
    pipe: str


class Leftovers(NamedTuple):
    """``modes`` are the indices of GPUs in the compute mode EXCLUSIVE_PROCESS, ``mounts`` the folders with a mount, the innermost last."""

    processes: list[Process]
    modes: list[int]
    mounts: list[str]
    exists: bool

    def describe(self, path: str) -> str:
        """Return one line for each."""
        lines = [f"{each.program} runs (pid {each.pid})" for each in self.processes]
        lines += [f"GPU {index} has the compute mode EXCLUSIVE_PROCESS" for index in self.modes]
        lines += [f"{mount} is mounted" for mount in self.mounts]
        lines += [f"{path} exists"] if self.exists else []
        return "".join(f"{line}\n" for line in lines)


class Host(NamedTuple):
    """Where the folder of MPS and the processes are, and the NVML library, None for the usual one."""

    path: str = control.PATH
    proc: str = "/proc"
    library: str | None = None


def find_leftovers(host: Host) -> Leftovers:
    """Return what is left. Without a trace of MPS, the compute modes are those of an administrator. Raises CleanupError."""
    processes, mounts = _find_processes(host), _find_mounts(host)
    was_used = bool(processes) or any(entry.name != "shm" for entry in _list_folders(host.path))
    try:
        modes = compute_mode.list_exclusive(host.library) if was_used else []
    except compute_mode.ComputeModeError as error:
        raise CleanupError(
            f"The compute modes of the GPUs are unknown, because {error}; restore the driver, and run again."
        ) from error
    return Leftovers(processes, modes, mounts, os.path.isdir(host.path))


def remove(host: Host, found: Leftovers, seconds: float, sleep: Callable[[float], None] = time.sleep) -> None:
    """Remove it in the order in which it depends on each other; the next run resumes by looking. Raises CleanupError."""
    if found.processes:
        _quit(host, found.processes, seconds, sleep)
    if found.modes:
        _reset_modes(host, found.modes)
    for mount in reversed(found.mounts):
        status, output, errors = _commands.run(["umount", mount])
        if status:
            words = " ".join((errors or output).split()[-20:])
            raise CleanupError(
                f"{mount} cannot be unmounted ({words}); end the programs that use it (fuser -vm {mount}), and run again."
            )
    if found.exists:
        # Links are removed and not followed.
        shutil.rmtree(host.path)


def _quit(host: Host, processes: Sequence[Process], seconds: float, sleep: Callable[[float], None]) -> None:
    """Have the daemons quit through their pipes, and wait until no process is left. None is killed: it may serve a program."""
    program, reasons = control.find_program(), []
    for pipe in sorted({each.pipe for each in processes}):
        try:
            control.send(program or control.PROGRAM, pipe, "quit", _QUIT_SECONDS)
        except control.ControlError as error:
            reasons.append(str(error))
    end = time.monotonic() + seconds
    left = _find_processes(host)
    while left and not reasons and time.monotonic() < end:
        sleep(1)
        left = _find_processes(host)
    if left:
        names = ", ".join(f"{each.program} (pid {each.pid})" for each in left)
        reason = "; ".join(reasons) or f"although quit was sent to it {seconds:g} s ago"
        raise CleanupError(
            f"{names} still runs, {reason}; end the programs that use MPS, then this process, and run again."
        )


def _reset_modes(host: Host, indices: Sequence[int]) -> None:
    try:
        refused = compute_mode.reset(host.library, indices)
    except compute_mode.ComputeModeError as error:
        refused = [str(error)]
    if refused:
        raise CleanupError(
            f"The compute mode stays EXCLUSIVE_PROCESS, in which a GPU serves one process ({'; '.join(refused)}); set it to default "
            "(nvidia-smi -c DEFAULT), and run again."
        )


def _find_processes(host: Host) -> list[Process]:
    found = []
    for entry in _list_folders(host.proc):
        if entry.name.isdigit():
            program = os.path.basename(os.fsdecode(_read(f"{entry.path}/cmdline").split(b"\0")[0]))
            pipe = _find_pipe(host, _read(f"{entry.path}/environ")) if program in PROGRAMS else ""
            found += [Process(int(entry.name), program, pipe)] if pipe else []
    return sorted(found)


def _find_pipe(host: Host, environment: bytes) -> str:
    """Return the folder of the pipe on the host; empty for a daemon elsewhere, which is unmanaged."""
    for word in environment.split(b"\0"):
        if word.startswith(_VARIABLE):
            pipe = os.path.normpath(os.fsdecode(word[len(_VARIABLE) :]))
            for root in (control.CONTAINER_PATH, host.path):
                if pipe.startswith(f"{root}/"):
                    return host.path + pipe[len(root) :]
    return ""


def _find_mounts(host: Host) -> list[str]:
    """Return the mounts at and below the folder, in the order in which they were made; one for each that covers another."""
    lines = _read(f"{host.proc}/self/mountinfo").decode("utf-8", "surrogateescape").splitlines()
    places = [line.split()[4] for line in lines if len(line.split()) > 4]
    return [place for place in places if f"{place}/".startswith(f"{host.path}/")]


def _list_folders(path: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as entries:
            return [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _read(path: str) -> bytes:
    """Return the content of a file of /proc; empty for a process that has ended."""
    try:
        with open(path, "rb") as file:
            return file.read(_MOST_BYTES)
    except OSError:
        return b""
