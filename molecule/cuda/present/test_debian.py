# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Debian's own toolkit, from Debian's repositories: its compiler compiles, and the program runs as far as possible without a GPU."""

from __future__ import annotations

from typing import Any

testinfra_hosts = ["ansible://*-worker-2"]

PROGRAM = """\
#include <cstdio>
#include <cuda_runtime.h>
__global__ void twice(float *numbers) { numbers[threadIdx.x] *= 2; }
int main() {
    twice<<<1, 32>>>(nullptr);
    std::printf("%s\\n", cudaGetErrorName(cudaGetLastError()));
}
"""


def test_compiler_is_from_debian(host: Any) -> None:
    output = host.check_output("bash --login -c 'nvcc --version'")
    assert "Cuda compilation tools, release 11.8" in output
    assert host.package("nvidia-cuda-toolkit").is_installed


def test_program_compiles_and_runs(host: Any) -> None:
    host.check_output(f"mkdir -p /root/scratch && cat > /root/scratch/twice.cu <<'EOF'\n{PROGRAM}EOF")
    host.check_output("cd /root/scratch && bash --login -c 'nvcc -o twice twice.cu'")
    output = host.run("/root/scratch/twice").stdout.strip()
    host.check_output("rm -r /root/scratch")
    assert output in {"cudaErrorNoDevice", "cudaErrorInsufficientDriver"}


def test_no_alternative_and_no_path_are_set(host: Any) -> None:
    """Debian's toolkit is in Debian's own folders."""
    assert not host.file("/usr/local/cuda").exists
    assert host.check_output("find /etc/profile.d -name '*cuda*'") == ""
