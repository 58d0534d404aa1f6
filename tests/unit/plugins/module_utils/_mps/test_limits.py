# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The limits of the clients of MPS, and the answers of the control program about them."""

from __future__ import annotations

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._mps.limits import (
    Limits,
    compute_limits,
    find_difference,
)

GIB = 2**30


@pytest.mark.parametrize(
    ("sizes", "replicas", "limits"),
    [
        ([40 * GIB], 4, Limits(25, {0: 10240})),
        ([40 * GIB, 80 * GIB], 3, Limits(33, {0: 13653, 1: 27306})),
        ([15 * GIB - 1], 48, Limits(2, {0: 319})),
        ([], 2, Limits(50, {})),
    ],
)
def test_limits_are_whole_parts_of_a_gpu(sizes: list[int], replicas: int, limits: Limits) -> None:
    gpus = [{"index": index, "memory_total_bytes": size} for index, size in enumerate(sizes)]
    assert compute_limits(gpus, replicas) == limits


#: Answers of nvidia-cuda-mps-control 535 after ``set_default_device_pinned_mem_limit 0 <number>M``.
PRINTED = {1024: "1G", 10110: "9G", 13653: "13G", 512: "512M", 1536: "1G", 27306: "26G", 2559: "2G", 2097152: "2T"}


@pytest.mark.parametrize(("mebibytes", "answer"), PRINTED.items())
def test_size_is_recognised_as_the_program_rounds_it(mebibytes: int, answer: str) -> None:
    assert find_difference(Limits(25, {0: mebibytes}), Limits("25.0", {0: answer})) == ""
    assert find_difference(Limits(25, {0: mebibytes + 1024**2 * 3}), Limits("25.0", {0: answer}))


@pytest.mark.parametrize(
    ("answers", "clause"),
    [
        (Limits("33.0", {0: "13G", 1: "13653M"}), ""),
        (Limits("33", {0: "13GB", 1: "13G"}), ""),
        # The daemon answers before it has set anything: all threads, and no limit of memory.
        (Limits("100.0", {0: "", 1: ""}), "a client gets 100.0 per cent of the threads and not 33"),
        (Limits("33.0", {0: "13G", 1: ""}), "a client gets all of the memory of GPU 1 and not 13653M"),
        (Limits("33.0", {0: "13G"}), "a client gets all of the memory of GPU 1 and not 13653M"),
        # Those of another number of clients.
        (Limits("33.0", {0: "20G", 1: "13G"}), "a client gets 20G of the memory of GPU 0 and not 13653M"),
        (Limits("no daemon\x1b[2J", {}), "a client gets no daemon?[2J per cent of the threads and not 33"),
    ],
)
def test_first_limit_that_differs_is_named(answers: Limits, clause: str) -> None:
    assert find_difference(Limits(33, {0: 13653, 1: 13653}), answers) == clause
