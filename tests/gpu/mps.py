#!/usr/bin/env python3
# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check on a real NVIDIA GPU that MPS limits its clients as the module mps_info expects it, and that mps_cleanup's code leaves nothing behind.

    tests/gpu/mps.py [REPLICAS]

Requires Python 3.8 or newer, root, and the driver with nvidia-cuda-mps-control. Starts a control daemon with a pipe of its own and ends it; compute modes
stay as they are. Run it while no program uses the GPUs. Prints one line per check, and exits 1 if one fails.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

MIB = 1024 * 1024
# CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT of cuda.h.
MULTIPROCESSORS = 16
# A client needs some memory itself, and the program rounds the limit to whole units.
MARGIN_MIB = 3072
CLIENT_SECONDS = 60


def be_client(sizes: list[int]) -> dict[str, Any]:
    """Return what a CUDA client of GPU 0 sees: its multiprocessors, and whether each allocation of *sizes* MiB succeeds."""
    cuda, number, pointer = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_uint64()
    steps = (
        ("cuInit", (0,)),
        ("cuDeviceGet", (ctypes.byref(number), 0)),
        ("cuCtxCreate_v2", (ctypes.byref(pointer), 0, number)),
    )
    for name, arguments in steps:
        if status := getattr(cuda, name)(*arguments):
            return {"error": f"{name} failed with {status}"}
    cuda.cuDeviceGetAttribute(ctypes.byref(number), MULTIPROCESSORS, 0)
    answer = {"multiprocessors": number.value, "allocated": []}
    for size in sizes:
        status = cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size * MIB))
        answer["allocated"].append(status == 0)
        if status == 0:
            cuda.cuMemFree_v2(pointer)
    return answer


def run_client(sizes: list[int], pipe: str = "") -> dict[str, Any]:
    """Return the same of a process of its own, which uses the control daemon at *pipe*."""
    environment = {**os.environ, **({"CUDA_MPS_PIPE_DIRECTORY": pipe} if pipe else {})}
    command = [sys.executable, __file__, "client", *map(str, sizes)]
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, text=True, check=True, timeout=CLIENT_SECONDS
    )
    return json.loads(done.stdout)


def main(replicas: int) -> int:
    """Print the checks: 0 if all pass, 1 if one fails, 2 without a driver that has MPS."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "plugins"))
    collect, compute_mode, control, limits, cleanup = (
        importlib.import_module(f"module_utils.{name}")
        for name in ("_nvml.collect", "_nvml.compute_mode", "_mps.control", "_mps.limits", "_mps.cleanup")
    )
    program = control.find_program()
    if program is None:
        print(f"{control.PROGRAM} was not found; install the driver's package that has it.", file=sys.stderr)
        return 2
    if compute_mode.list_exclusive(None):
        print("A GPU has the compute mode EXCLUSIVE_PROCESS, which the clean-up would reset.", file=sys.stderr)
        return 2
    gpus = collect.gather_facts(collect.Options(subset=())).as_dict()["gpus"]
    desired = limits.compute_limits(gpus, replicas)
    memory, whole = desired.memory[0], run_client([])
    print(f"driver: {program}; GPU 0: {gpus[0]['name']}, {whole}; limits of 1/{replicas}: {desired}")
    with tempfile.TemporaryDirectory(prefix="gpu-mps-") as folder:
        host = cleanup.Host(path=os.path.join(folder, "mps"))
        pipe = control.get_pipe(host.path, "nvidia.com/gpu")
        log = os.path.join(os.path.dirname(pipe), "log")
        for path in (pipe, log):
            os.makedirs(path)
        environment = {**os.environ, "CUDA_MPS_PIPE_DIRECTORY": pipe, "CUDA_MPS_LOG_DIRECTORY": log}
        subprocess.run([program, "-d"], env=environment, check=True, timeout=CLIENT_SECONDS)
        before = limits.find_difference(desired, control.read_limits(program, pipe, desired.memory))
        for index, mebibytes in desired.memory.items():
            control.send(program, pipe, f"set_default_device_pinned_mem_limit {index} {mebibytes}M")
        control.send(program, pipe, f"set_default_active_thread_percentage {desired.percentage}")
        after = limits.find_difference(desired, control.read_limits(program, pipe, desired.memory))
        client = run_client([memory - MARGIN_MIB, memory + MARGIN_MIB], pipe)
        left = cleanup.find_leftovers(host)
        cleanup.remove(host, left, CLIENT_SECONDS)
        remaining = cleanup.find_leftovers(host)
    share = whole["multiprocessors"] / replicas
    checks = {
        f"a daemon without limits is recognised: {before}": bool(before),
        f"the daemon's answers are the limits: {after or 'no difference'}": not after,
        f"a client has at most its share of the multiprocessors: {client}": 0
        < client.get("multiprocessors", 0)
        <= share,
        f"it gets {memory - MARGIN_MIB} MiB and not {memory + MARGIN_MIB} MiB": client.get("allocated")
        == [True, False],
        f"what runs is found: {left}": len(left.processes) == 2 and left.exists,
        f"nothing remains: {remaining}": not remaining.processes and not remaining.exists,
        "a client without the daemon has the whole GPU again": run_client([]) == whole,
    }
    for text, passed in checks.items():
        print(f"{'passed' if passed else 'FAILED'} {text}")
    return int(not all(checks.values()))


if __name__ == "__main__":
    if sys.argv[1:2] == ["client"]:
        print(json.dumps(be_client([int(size) for size in sys.argv[2:]])))
    else:
        sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 4))
