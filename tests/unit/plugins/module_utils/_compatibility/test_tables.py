# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables: every row has a source, every version is valid, and no range contradicts another."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Mapping

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._compatibility.gpus import identify_gpu
from ansible_collections.gpu.kubernetes.plugins.module_utils._compatibility.tables import (
    PARTS,
    Tables,
    contains_version,
    has_fix,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._compatibility.versions import (
    get_branch,
    parse_device,
    parse_version,
)

PROFILES = Path(__file__).resolve().parents[4] / "fakes" / "nvml" / "profiles"
SOURCE = re.compile(r"https://\S+|[\w.-]+/[\w.-]+: \S+")
#: Every key that a row may have, and what its value must be.
KEYS = {
    "architecture": lambda value: re.fullmatch("[a-z]+", value),
    "branch": lambda value: isinstance(value, int) and 300 <= value <= 999,
    "bulletin": lambda value: isinstance(value, int) and 5000 <= value <= 9999,
    "capability": lambda value: re.fullmatch(r"\d+\.\d", value),
    "containerd": lambda value: value and all(len(parse_version(one)) == 3 for one in value),
    "cuda": parse_version,
    "cves": lambda value: value and all(re.fullmatch(r"CVE-\d{4}-\d{4,}", one) for one in value),
    "date": lambda value: re.fullmatch(r"\d{4}-\d{2}", value),
    "driver": parse_version,
    "end": lambda value: re.fullmatch(r"\d{4}-\d{2}", value),
    "ended": lambda value: value is True,
    "fault": lambda value: value[0].islower() and value[-1] != ".",
    "first": parse_version,
    "first_branch": lambda value: isinstance(value, int),
    "first_driver": parse_version,
    "fixed": parse_version,
    "flavor": lambda value: value in ("open", "proprietary"),
    "from": lambda value: isinstance(value, str),
    "good": lambda value: all(parse_version(one) for one in value),
    "kubernetes": parse_version,
    "kernels": lambda value: all(len(parse_version(one)) in (2, 3) for one in value),
    "last": parse_version,
    "last_branch": lambda value: isinstance(value, int),
    "last_driver": lambda value: isinstance(value, int),
    "plugin": parse_version,
    "open_modules": lambda value: value in ("impossible", "possible", "required"),
    "series": lambda value: len(parse_version(value)) == 2,
    "source": SOURCE.fullmatch,
    "to": lambda value: isinstance(value, str),
    "toolkit": parse_version,
}


def test_tables_are_all_read(tables: Mapping[str, Any]) -> None:
    assert {table for table, _part in PARTS} == set(tables)
    for table, content in tables.items():
        assert {part for name, part in PARTS if name == table} == (set(content) if isinstance(content, dict) else {""})


@pytest.mark.parametrize(("table", "part"), PARTS)
def test_tables_have_valid_values_and_sources(tables: Mapping[str, Any], table: str, part: str) -> None:
    rows = Tables(tables).get_rows(table, part)
    assert rows
    for row in rows:
        assert not set(row) - set(KEYS), row
        assert "source" in row, row
        wrong = [name for name, value in row.items() if not KEYS[name](value)]
        assert not wrong, row


@pytest.mark.parametrize("part", ["devices", "others"])
def test_device_ranges_do_not_overlap(tables: Mapping[str, Any], part: str) -> None:
    ranges = sorted((parse_device(row["from"]), parse_device(row["to"])) for row in tables["gpu_driver"][part])
    assert all(first <= last for first, last in ranges)
    assert all(one[1] < other[0] for one, other in zip(ranges, ranges[1:]))


@pytest.mark.parametrize("key", ["first_driver", "last_driver", "open_modules"])
def test_exceptions_do_not_contradict(tables: Mapping[str, Any], key: str) -> None:
    rows = [row for row in tables["gpu_driver"]["exceptions"] if key in row]
    assert rows
    ranges = sorted((parse_device(row["from"]), parse_device(row["to"])) for row in rows)
    assert all(one[1] < other[0] for one, other in zip(ranges, ranges[1:]))


@pytest.mark.parametrize(
    ("table", "part", "keys"),
    [
        ("cuda_driver", "toolkits", ("cuda",)),
        ("cuda_driver", "minor_versions", ("cuda",)),
        ("cuda_driver", "newest", ("branch",)),
        ("gpu_driver", "architectures", ("architecture",)),
        ("cuda_gpu", "", ("architecture", "capability")),
        ("driver_kernel", "", ("from", "to", "kernels")),
        ("kubernetes", "containerd", ("kubernetes",)),
        ("toolkit", "security", ("fixed",)),
        ("driver_security", "", ("branch",)),
        ("driver_branches", "", ("branch",)),
        ("kernel_releases", "", ("series",)),
    ],
)
def test_tables_have_no_duplicates(tables: Mapping[str, Any], table: str, part: str, keys: tuple[str, ...]) -> None:
    result = [tuple(str(row.get(key)) for key in keys) for row in Tables(tables).get_rows(table, part)]
    assert len(result) == len(set(result))


def test_newer_toolkits_need_newer_drivers(tables: Mapping[str, Any]) -> None:
    rows = tables["cuda_driver"]["toolkits"]
    assert rows == sorted(rows, key=lambda row: parse_version(row["cuda"]))
    assert rows == sorted(rows, key=lambda row: parse_version(row["driver"]))
    newest = {row["cuda"]: row["branch"] for row in tables["cuda_driver"]["newest"]}
    for row in rows:
        minor = row["cuda"].rpartition(".")[0]
        assert newest[minor] == get_branch(parse_version(row["driver"])), row


def test_version_ranges_ascend(tables: Mapping[str, Any]) -> None:
    for row in (*tables["driver_kernel"], *tables["toolkit"]["faults"]):
        assert parse_version(row["from"]) <= (*parse_version(row["to"]), 0), row
        if "fixed" in row:
            assert parse_version(row["to"]) < parse_version(row["fixed"]), row


def test_architectures_are_known(tables: Mapping[str, Any]) -> None:
    known = {row["architecture"] for row in tables["gpu_driver"]["architectures"]}
    assert {row["architecture"] for row in (*tables["gpu_driver"]["devices"], *tables["cuda_gpu"])} <= known


def test_security_minimums_belong_to_their_branch(tables: Mapping[str, Any]) -> None:
    for row in tables["driver_security"]:
        # The bulletin prints it so.
        assert get_branch(parse_version(row["driver"])) == row["branch"], row
        assert str(row["bulletin"]) in row["source"], row


def test_good_drivers_are_within_their_kernel_rule(tables: Mapping[str, Any]) -> None:
    pairs = [(row, parse_version(good)) for row in tables["driver_kernel"] for good in row.get("good", ())]
    assert pairs
    for row, good in pairs:
        assert contains_version(row, good), row


def test_security_minimum_with_fix_passes_kernel_rule(tables: Mapping[str, Any]) -> None:
    minimums = [parse_version(row["driver"]) for row in tables["driver_security"]]
    pairs = [
        (row, minimum)
        for row in tables["driver_kernel"]
        for good in map(parse_version, row.get("good", ()))
        for minimum in minimums
        if get_branch(minimum) == get_branch(good) and minimum >= good
    ]
    assert pairs
    for row, minimum in pairs:
        assert contains_version(row, minimum), row
        assert has_fix(row, minimum), row


@pytest.mark.parametrize("profile", sorted(path.stem for path in PROFILES.glob("*.profile")))
def test_simulated_gpus_are_in_the_tables(tables: Mapping[str, Any], profile: str) -> None:
    text = PROFILES.joinpath(f"{profile}.profile").read_text(encoding="utf-8")
    ids = re.findall(r"^pci_device_id = 0x([0-9A-F]{4})10DE$", text, re.MULTILINE)
    architectures = re.findall(r"^architecture = (\w+)$", text, re.MULTILINE)
    assert len(ids) == len(architectures) == text.count("[gpu]")
    known = Tables(tables)
    assert [identify_gpu({"pci_device_id": one}, known).architecture for one in ids] == architectures
