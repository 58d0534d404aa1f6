# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collectors file of each generation of dcgm-exporter."""

from __future__ import annotations

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._exporters.collectors import (
    BASE_UNITS,
    LINE,
    REMOVED,
    find_problems,
    list_fields,
    parse_generation,
)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("4.6.0-4.8.3", (4, 8)),
        ("4.6.0-4.8.3-distroless", (4, 8)),
        ("4.7.1-4.9.0-ubuntu22", (4, 9)),
        ("4.9.0", (4, 9)),
        ("4.10.1", (4, 10)),
        ("latest", None),
        ("sha256:0", None),
    ],
)
def test_generation_of_a_version(version: str, expected: tuple[int, int] | None) -> None:
    assert parse_generation(version) == expected


@pytest.mark.parametrize("generation", [(4, 5), (4, 8), (4, 9), (4, 10), (5, 0)])
def test_fields_have_the_names_of_their_generation(generation: tuple[int, int]) -> None:
    lines = list_fields(generation)
    names = [line.partition(",")[0] for line in lines]
    assert all(LINE.match(line) for line in lines)
    assert len(set(names)) == len(names)
    assert not set(names) & set(REMOVED)
    renamed = generation >= (4, 9)
    assert any(name.endswith(BASE_UNITS) for name in names) is renamed
    assert ("DCGM_FI_DEV_GPU_UTIL" in names, "DCGM_FI_DEV_GPU_UTIL_RATIO" in names) == (not renamed, renamed)
    assert ("DCGM_FI_DEV_THRESHOLD_SRM" in names, "DCGM_FI_DEV_SRAM_EXCEEDED" in names) == (not renamed, renamed)
    # Their names have not changed.
    assert {"DCGM_FI_DEV_PCIE_LINK_WIDTH", "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH"} < set(names)
    # Health, which the exporter's own file leaves out.
    assert {"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "DCGM_FI_DEV_ROW_REMAP_PENDING", "DCGM_EXP_XID_ERRORS_COUNT"} < set(names)


@pytest.mark.parametrize(
    ("line", "generation", "words"),
    [
        ("DCGM_FI_PROF_GR_ENGINE_ACTIVE, gauge, Active engines.", (4, 8), ""),
        ("DCGM_FI_DEV_GPU_UTIL", (4, 8), "is not FIELD, gauge or counter or label, help"),
        ("DCGM_FI_DEV_GPU_UTIL, metre, x", (4, 8), "is not FIELD"),
        ("DCGM_FI_DEV_PCIE_TX_THROUGHPUT, counter, x", (4, 9), "DCGM 4 has removed DCGM_FI_DEV_PCIE_TX_THROUGHPUT"),
        ("DCGM_FI_DEV_SM_CLOCK_HERTZ, gauge, x", (4, 8), "has another unit than its name before dcgm-exporter 4.9"),
        ("DCGM_FI_DEV_SM_CLOCK_HERTZ, gauge, x", (4, 9), ""),
    ],
)
def test_line_of_the_user_is_checked(line: str, generation: tuple[int, int], words: str) -> None:
    found = find_problems([line], generation)
    assert [words in problem for problem in found] == ([True] if words else [])
