# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._packages import record
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.record import Record
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.request import (
    PackageError,
    Request,
    get_upstream_version,
)

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
def test_get_upstream_version(version: str, expected: str) -> None:
    assert get_upstream_version(version) == expected


@pytest.mark.parametrize(
    ("before", "installed", "packages", "dependencies"),
    [
        (("bash",), DRIVER, ("libnvidia-ml1", "nvidia-smi"), ("dkms", "nvidia-support")),
        # Packages from before the transaction are not recorded.
        (("bash", "dkms", "libnvidia-ml1"), DRIVER, ("nvidia-smi",), ("nvidia-support",)),
        # The transaction installed nothing.
        (("bash",), {"bash": "5"}, (), ()),
    ],
)
def test_complete_record_of_transaction(
    before: tuple[str, ...], installed: dict[str, str], packages: tuple[str, ...], dependencies: tuple[str, ...]
) -> None:
    assert Record(before=before).complete(Request(("nvidia-smi",)), installed) == Record(packages, dependencies)


def test_complete_record_of_upgrade_adds_new_and_drops_removed_packages() -> None:
    record_before = Record(
        ("libold", "nvidia-smi"), ("dkms", "removed"), ("libold",), before=("bash", "dkms", "libold", "nvidia-smi")
    )
    record_after = record_before.complete(
        Request(("nvidia-smi",)), {"nvidia-smi": "570.2-1", "libnew": "570.2-1", "dkms": "3.0-1", "bash": "5"}
    )
    assert record_after == Record(("libnew", "nvidia-smi"), ("dkms",), ("libold",))


def test_complete_record_without_transaction_is_unchanged() -> None:
    assert Record(("a",), ("b",)).complete(Request(("c",)), {"c": "1"}) == Record(("a",), ("b",))


def test_write_and_read_record_and_remove_empty_one(tmp_path: Path) -> None:
    file = tmp_path / "state" / "packages.json"
    assert record.read(str(file)) == Record()
    full = Record(("a",), ("b",), ("a",), before=("c",))
    record.write(str(file), full)
    assert record.read(str(file)) == full
    assert oct(file.stat().st_mode)[-3:] == "600"
    record.write(str(file), Record())
    assert not file.exists()


@pytest.mark.parametrize("text", ["", "[]", '{"packages": 3}', '{"other": []}', "\xff"])
def test_read_damaged_record_raises(tmp_path: Path, text: str) -> None:
    (tmp_path / "record").write_bytes(text.encode("latin-1"))
    with pytest.raises(PackageError, match="repair it, or remove it"):
        record.read(str(tmp_path / "record"))


def test_complete_record_ignores_versions_of_unversioned_packages() -> None:
    request = Request(("nvidia-smi", "dkms"), unversioned=frozenset({"dkms"}))
    installed = {**DRIVER, "libdkms": "3.0-1"}
    assert Record(before=("bash",)).complete(request, installed) == Record(
        ("dkms", "libnvidia-ml1", "nvidia-smi"), ("libdkms", "nvidia-support"), unversioned=("dkms",)
    )


def test_complete_record_keeps_unversioned_until_removed_or_versioned() -> None:
    record_before = Record(
        ("headers-1", "headers-2", "daemon"), unversioned=("headers-1", "headers-2", "daemon"), before=("bash",)
    )
    request = Request(("driver", "daemon", "headers-3"), unversioned=frozenset({"headers-3"}))
    installed = {"driver": "2-1", "daemon": "2-1", "headers-2": "1", "headers-3": "1"}
    assert record_before.complete(request, installed).unversioned == ("headers-2", "headers-3")
