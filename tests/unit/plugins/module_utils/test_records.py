# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Records that release 0.1.0 leaves on a host are undone by this one.

The fixtures are such records; a later release keeps them, and adds its own if it changes a format, with another version in it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._mig import layout
from ansible_collections.gpu.kubernetes.plugins.module_utils._mig import record as mig_record
from ansible_collections.gpu.kubernetes.plugins.module_utils._mig.layout import Desired, LayoutError, Slot
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages import record as package_record
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.record import Record
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.request import PackageError
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._mig.gpus import gpu, partition
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.docker_files import KUBEADM
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.node import DockerNode

FIRST = Path(__file__).parent / "fixtures" / "records-0.1.0"
PACKAGES = Record(("nvidia-driver",), ("dkms",), ("nvidia-driver",), ("bash",), ("nvidia-smi",))
GPUS = [gpu(0, mode=False), gpu(1, partition(3, "3g.20gb", 4, [2, 1]))]


def read_fixture(name: str, folder: Path, backup: str = "") -> str:
    text = (FIRST / name).read_text(encoding="utf-8")
    return text.replace("ROOT/", f"{folder}/").replace("BACKUP", backup)


@pytest.fixture
def changed(tmp_path: Path) -> DockerNode:
    """A host whose daemon.json this release has changed, with the record of 0.1.0 for the same change."""
    node = DockerNode(tmp_path, KUBEADM)
    node.present(set_default=True)
    node.confirm()
    [record] = (tmp_path / "state" / "state" / "settings").glob("*.json")
    backups = [str(path) for path in (tmp_path / "state" / "backups").iterdir()]
    first = read_fixture("daemon.json", tmp_path, backups[0])
    assert record.read_text(encoding="utf-8") == first, "the format has changed: give it another number, and read both"
    record.write_text(first, encoding="utf-8")
    return node


def test_configuration_of_first_release_is_undone_to_the_original_bytes(changed: DockerNode, tmp_path: Path) -> None:
    changed.absent()
    assert changed.text() == KUBEADM
    assert not list((tmp_path / "state" / "state").rglob("*.json"))


def test_configuration_record_of_later_format_is_refused(changed: DockerNode, tmp_path: Path) -> None:
    [record] = (tmp_path / "state" / "state" / "settings").glob("*.json")
    record.write_text(record.read_text(encoding="utf-8").replace('"format": 1', '"format": 2'), encoding="utf-8")
    before = changed.text()
    with pytest.raises(ConfigError, match=r"is of format 2 and not 1: run the release of gpu\.kubernetes"):
        changed.absent()
    assert changed.text() == before


def test_packages_of_first_release_are_known(tmp_path: Path) -> None:
    file = tmp_path / "packages.json"
    package_record.write(str(file), PACKAGES)
    assert file.read_text(encoding="utf-8") == read_fixture("packages.json", tmp_path)
    assert package_record.read(str(file)) == PACKAGES
    file.write_text(re.sub('"version": 1', '"version": 2', file.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(PackageError, match="is of another version than 1: run the collection that wrote it"):
        package_record.read(str(file))


def test_mig_layout_of_first_release_is_known(tmp_path: Path) -> None:
    file = tmp_path / "mig.json"
    assert mig_record.encode(GPUS, layout.describe).decode() == read_fixture("mig.json", tmp_path)
    file.write_text(read_fixture("mig.json", tmp_path), encoding="utf-8")
    content = mig_record.read(str(file))
    assert content is not None
    assert content["states"] == {"GPU-0": Desired(False), "GPU-1": Desired(True, (Slot("3g.20gb", (1, 2)),))}
    file.write_text('{"version": 2}', encoding="utf-8")
    with pytest.raises(LayoutError, match="is of version 2; run the collection that wrote it"):
        mig_record.read(str(file))
