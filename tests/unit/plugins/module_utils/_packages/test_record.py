# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._packages import record
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.record import Record
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.request import PackageError, Request, upstream

DRIVER = {"nvidia-smi": "535.1-2", "libnvidia-ml1": "535.1-2", "nvidia-support": "2022-1", "dkms": "3.0-1", "bash": "5"}


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("570.124.06-0ubuntu1", "570.124.06"),
        ("3:570.124.06-1.el9", "570.124.06"),
        ("535.309.01-0+deb12u1", "535.309.01"),
        ("1.17.8", "1.17.8"),
        ("1:20220217", "20220217"),
        ("1.0-rc-1", "1.0-rc"),
    ],
)
def test_upstream(version: str, expected: str) -> None:
    assert upstream(version) == expected


@pytest.mark.parametrize(
    ("before", "installed", "packages", "company"),
    [
        (("bash",), DRIVER, ("libnvidia-ml1", "nvidia-smi"), ("dkms", "nvidia-support")),
        # what was there before is nobody's to remove
        (("bash", "dkms", "libnvidia-ml1"), DRIVER, ("nvidia-smi",), ("nvidia-support",)),
        # a transaction that never happened
        (("bash",), {"bash": "5"}, (), ()),
    ],
)
def test_what_came_with_a_transaction(
    before: tuple[str, ...], installed: dict[str, str], packages: tuple[str, ...], company: tuple[str, ...]
) -> None:
    assert Record(before=before).settled(Request(("nvidia-smi",)), installed) == Record(packages, company)


def test_an_upgrade_adds_to_what_is_known_and_forgets_what_is_gone() -> None:
    known = Record(
        ("libold", "nvidia-smi"), ("dkms", "gone"), ("libold",), before=("bash", "dkms", "libold", "nvidia-smi")
    )
    now = known.settled(
        Request(("nvidia-smi",)), {"nvidia-smi": "570.2-1", "libnew": "570.2-1", "dkms": "3.0-1", "bash": "5"}
    )
    assert now == Record(("libnew", "nvidia-smi"), ("dkms",), ("libold",))


def test_nothing_changes_without_a_transaction() -> None:
    assert Record(("a",), ("b",)).settled(Request(("c",)), {"c": "1"}) == Record(("a",), ("b",))


def test_a_record_is_written_and_read_and_an_empty_one_is_no_file(tmp_path: Path) -> None:
    file = tmp_path / "state" / "packages.json"
    assert record.read(str(file)) == Record()
    whole = Record(("a",), ("b",), ("a",), before=("c",))
    record.write(str(file), whole)
    assert record.read(str(file)) == whole
    assert oct(file.stat().st_mode)[-3:] == "600"
    record.write(str(file), Record())
    assert not file.exists()


@pytest.mark.parametrize("text", ["", "[]", '{"packages": 3}', '{"other": []}', "\xff"])
def test_a_damaged_record_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "record").write_bytes(text.encode("latin-1"))
    with pytest.raises(PackageError, match="repair it, or take it away"):
        record.read(str(tmp_path / "record"))


def test_what_has_a_version_of_its_own_brings_no_family() -> None:
    request = Request(("nvidia-smi", "dkms"), unversioned=frozenset({"dkms"}))
    installed = {**DRIVER, "libdkms": "3.0-1"}
    assert Record(before=("bash",)).settled(request, installed) == Record(
        ("dkms", "libnvidia-ml1", "nvidia-smi"), ("libdkms", "nvidia-support"), free=("dkms",)
    )


def test_what_had_no_version_is_known_until_it_goes_or_gets_one() -> None:
    known = Record(("headers-1", "headers-2", "daemon"), free=("headers-1", "headers-2", "daemon"), before=("bash",))
    request = Request(("driver", "daemon", "headers-3"), unversioned=frozenset({"headers-3"}))
    installed = {"driver": "2-1", "daemon": "2-1", "headers-2": "1", "headers-3": "1"}
    assert known.settled(request, installed).free == ("headers-2", "headers-3")
