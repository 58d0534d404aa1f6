# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program that writes fake trees of sysfs on nodes of the lab."""

from __future__ import annotations

import pytest
from fakes import gpu_sysfs


def read_links(folder):
    return {path.name: path.resolve() for path in folder.iterdir()}


def test_another_case_replaces_the_tree_and_keeps_the_mounted_folders(tmp_path):
    mounted = [tmp_path / name for name in ("sys", "dev/dri")]
    (tmp_path / "pci/0000:02:00.0").mkdir(parents=True)
    assert gpu_sysfs.main([str(tmp_path), "mixed", "--beside", str(tmp_path / "pci")]) == 0
    assert "0000:02:00.0" in read_links(tmp_path / "sys/bus/pci/devices")
    former = [folder.stat().st_ino for folder in mounted]
    assert sorted(read_links(mounted[1])) == [
        "by-path",
        "card0",
        "card1",
        "card2",
        "renderD128",
        "renderD129",
        "renderD130",
    ]
    assert gpu_sysfs.main([str(tmp_path), "amd-cpx"]) == 0
    assert [folder.stat().st_ino for folder in mounted] == former
    assert sorted(read_links(mounted[1]))[:4] == ["card0", "card1", "card8", "card9"]
    assert gpu_sysfs.main([str(tmp_path), "none"]) == 0
    assert [path.name for path in (tmp_path / "sys").iterdir()] == ["fs"]
    assert list(mounted[1].iterdir()) == []


@pytest.mark.parametrize("case", gpu_sysfs.CASES)
def test_links_of_each_case_lead_to_files_of_the_tree(tmp_path, case):
    gpu_sysfs.main([str(tmp_path), case])
    for path in tmp_path.rglob("*"):
        if path.is_symlink():
            assert tmp_path in path.resolve(strict=True).parents


def test_root_of_the_machine_is_refused(capsys):
    with pytest.raises(SystemExit):
        gpu_sysfs.main(["/", "amd"])
    assert "ROOT is the root of this machine" in capsys.readouterr().err
