# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ansible.module_utils.basic")

from ansible_collections.gpu.kubernetes.plugins.module_utils._driver import modprobe
from ansible_collections.gpu.kubernetes.plugins.module_utils._driver.modprobe import ModprobeError, render_file
from ansible_collections.gpu.kubernetes.tests.unit.plugins.modules import node_module

PARAMETERS = {
    "blacklist": ["nouveau"],
    "options": {"nvidia": {"NVreg_EnableStreamMemOPs": True, "NVreg_RegistryDwords": "a=1; b=2"}},
}
LINES = [
    "blacklist nouveau",
    "install nouveau /bin/false",
    'options nvidia NVreg_EnableStreamMemOPs=1 NVreg_RegistryDwords="a=1; b=2"',
]
# A fake of the host's tool: it prints its arguments and the files that it found.
TOOL = """#!/bin/sh
[ ! -f "{root}/broken" ] || {{ echo "no space left" >&2; exit 1; }}
[ ! -f "{root}/killed" ] || {{ kill -9 $PPID; exit 1; }}
echo "$0 $* with $(grep -c . "{root}/modprobe.d/gpu.conf" 2>/dev/null)" >> "{root}/calls"
"""


class Host:
    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("bin", "boot", "modprobe.d"):
            (root / folder).mkdir()
        self.file = root / "modprobe.d" / "gpu.conf"

    def tool(self, name: str) -> None:
        (self.root / "bin" / name).write_text(TOOL.format(root=self.root))
        (self.root / "bin" / name).chmod(0o755)

    def run(self, check: bool = False, **arguments: object) -> dict[str, Any]:
        given = {
            "path": str(self.file),
            "boot_path": str(self.root / "boot"),
            "state_dir": str(self.root / "state"),
            **PARAMETERS,
            **arguments,
        }
        return node_module.run("modprobe_config", given, check=check, folder=str(self.root / "bin"))

    @property
    def calls(self) -> list[str]:
        file = self.root / "calls"
        return [line.rpartition("/bin/")[2] for line in file.read_text().splitlines()] if file.exists() else []


@pytest.fixture
def host(tmp_path: Path) -> Host:
    (tmp_path / "h").mkdir()
    return Host(tmp_path / "h")


def test_host_without_ram_disks_needs_no_tool(host: Host) -> None:
    result = host.run(check=True)
    assert (result["changed"], host.file.exists()) == (True, False)
    done = host.run()
    assert (done["changed"], done["diff"], done["initramfs_command"]) == (True, result["diff"], [])
    header, *lines = host.file.read_text().splitlines()
    assert header.startswith("# Written by Ansible")
    assert lines == LINES
    assert [host.run(check=check)["changed"] for check in (True, False)] == [False, False]
    assert host.run(state="absent", check=True)["changed"]
    assert host.run(state="absent")["changed"]
    assert not host.file.exists()
    assert [host.run(state="absent", check=check)["changed"] for check in (True, False)] == [False, False]


@pytest.mark.parametrize(
    ("tool", "image", "command"),
    [
        ("update-initramfs", "initrd.img-6.1.0-56-amd64", "update-initramfs -u -k all"),
        ("dracut", "initramfs-5.14.0-427.el9.x86_64.img", "dracut --force --regenerate-all"),
        ("mkinitcpio", "initramfs-linux.img", "mkinitcpio -P"),
    ],
)
def test_ram_disks_are_rebuilt_once(host: Host, tool: str, image: str, command: str) -> None:
    host.tool(tool)
    (host.root / "boot" / image).touch()
    assert host.run(check=True)["initramfs_command"] == command.split()
    assert host.calls == []
    assert host.run()["initramfs_command"] == command.split()
    assert host.calls == [f"{command} with 4"]
    assert host.run()["changed"] is False
    host.run(state="absent")
    assert host.calls[1:] == [f"{command} with "]
    assert not list((host.root / "state").rglob("initramfs-due"))


def test_debian_with_dracut_uses_update_initramfs(host: Host) -> None:
    assert modprobe.find_initramfs_command({"dracut": "/x", "update-initramfs": "/y"}.get) == [
        "update-initramfs",
        "-u",
        "-k",
        "all",
    ]
    assert modprobe.find_initramfs_command({}.get) is None


@pytest.mark.parametrize("fault", ["broken", "killed"])
def test_interrupted_rebuild_is_repeated(host: Host, fault: str) -> None:
    host.tool("dracut")
    (host.root / "boot" / "initramfs-1.img").touch()
    (host.root / fault).touch()
    if fault == "broken":
        assert host.run()["msg"].startswith("dracut failed (no space left): put that right and run again; ")
    else:
        with pytest.raises(AssertionError):  # a killed process has no output
            host.run()
    (host.root / fault).unlink()
    result = host.run(check=True)
    assert (result["changed"], host.calls) == (True, [])
    assert host.run()["initramfs_command"] == ["dracut", "--force", "--regenerate-all"]
    assert host.calls == ["dracut --force --regenerate-all with 4"]
    assert host.run()["changed"] is False


@pytest.mark.parametrize("boot_path", ["boot", "not-mounted"])
def test_due_rebuild_stays_due_until_it_succeeds(host: Host, boot_path: str) -> None:
    host.tool("dracut")
    (host.root / "boot" / "initramfs-1.img").touch()
    (host.root / "broken").touch()
    assert host.run()["failed"]
    (host.root / "broken").unlink()
    between = host.run(initramfs=boot_path != "boot", boot_path=str(host.root / boot_path))
    assert (between["changed"], host.calls) == (False, [])
    assert host.run()["initramfs_command"] == ["dracut", "--force", "--regenerate-all"]
    assert host.run()["changed"] is False


@pytest.mark.parametrize("initramfs", [True, False])
def test_due_rebuild_without_ram_disks_is_dropped_with_the_file(host: Host, initramfs: bool) -> None:
    host.tool("dracut")
    image = host.root / "boot" / "initramfs-1.img"
    image.touch()
    (host.root / "broken").touch()
    assert host.run()["failed"]
    image.unlink()
    assert host.run(state="absent", initramfs=initramfs, check=True)["changed"]
    assert host.run(state="absent", initramfs=initramfs)["changed"]
    assert bool(list((host.root / "state").rglob("initramfs-due"))) is not initramfs
    assert host.run(state="absent", initramfs=initramfs)["changed"] is False


def test_initramfs_false_rebuilds_nothing(host: Host) -> None:
    (host.root / "boot" / "initrd-1").touch()
    assert host.run(initramfs=False)["initramfs_command"] == []


@pytest.mark.parametrize(
    ("blacklist", "options"),
    [
        (["nouveau\ninstall x"], {}),
        ([], {"nvidia; rm": {"a": 1}}),
        ([], {"nvidia": {"a b": 1}}),
        ([], {"nvidia": {"a": 'x" b="y'}}),
        ([], {"nvidia": {"a": "1\ninstall x /bin/sh"}}),
        ([], {"nvidia": {"a": ""}}),
    ],
)
def test_ambiguous_values_fail(host: Host, blacklist: list[str], options: dict[str, dict[str, object]]) -> None:
    with pytest.raises(ModprobeError):
        render_file(blacklist, options)
    assert host.run(blacklist=blacklist, options=options)["msg"].endswith(".")
    assert not host.file.exists()


def test_empty_file_is_removed(host: Host) -> None:
    assert render_file([], {"nvidia": {}}) is None
    assert host.run(blacklist=[], options={})["changed"] is False


def test_dropped_parameters_are_returned_until_the_next_boot(
    host: Host,
) -> None:
    record = host.root / "state" / "state" / "parameters-due.json"
    assert (host.run()["dropped"], record.exists()) == ({}, False)
    one = {"nvidia": {"NVreg_EnableStreamMemOPs": 1}}
    left = {"nvidia": {"NVreg_RegistryDwords": "a=1; b=2"}}
    assert (host.run(options=one, check=True)["dropped"], record.exists()) == (left, False)
    assert host.run(options=one)["dropped"] == left
    both = {"nvidia": {**left["nvidia"], "NVreg_EnableStreamMemOPs": "1"}}
    assert [host.run(options={})["dropped"] for _again in range(2)] == [both, both]
    assert host.run()["dropped"] == {}
    assert not record.exists()
    host.run(options={})
    record.write_text(record.read_text().replace('"boot_id": "', '"boot_id": "another'))
    answer = host.run(options={})
    assert (answer["changed"], answer["dropped"], record.exists()) == (False, {}, False)


def test_absent_removes_file_and_marks(host: Host) -> None:
    host.run()
    host.run(options={})
    assert host.run(state="absent")["dropped"] == {}
    assert not list((host.root / "state").rglob("*.json"))
