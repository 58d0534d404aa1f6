#!/usr/bin/python3
# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fake for modprobe, rmmod and modinfo, and for what a kernel shows of its modules: a machine of the lab cannot load any.

It is the one of them by whose name it is called, as far as the collection asks that; words and exit statuses are kmod's. By its own
name it puts empty places over those that show the host's modules. The file of a module is a text with lines FIELD=VALUE. Other than
a kernel, it does not count open devices among the references, and has 0 for each parameter of the driver that nobody sets.
"""

from __future__ import annotations

import os
import shlex
import shutil
import site
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

PROGRAM = Path(sys.argv[0]).name
FOLDER = Path("/lib/modules", os.uname().release)
SHOWN, DRIVER = Path("/sys/module"), Path("/proc/driver/nvidia")
TABLE = Path("/run/fake-kernel/modules")
# A kernel without modules has no /proc/modules, and nothing can be mounted there: Python, which alone asks, is led to the table.
DETOUR = (
    "import builtins; builtins.open = (lambda real: lambda file, *rest, **named: "
    f'real("{TABLE}" if file == "/proc/modules" else file, *rest, **named))(builtins.open)\n'
)


def fail(words: str) -> NoReturn:
    """End as kmod does."""
    sys.exit(f"{PROGRAM}: {words}")


def plain(name: str) -> str:
    """The name of a module as the kernel writes it."""
    return name.replace("-", "_")


def installed(name: str) -> dict[str, list[str]]:
    """The fields of a module's file, each with all its values; none where there is no such file."""
    for path in FOLDER.rglob("*.ko"):
        if plain(path.stem) == plain(name):
            fields = {"filename": [str(path)]}
            for line in path.read_text().splitlines():
                field, _, value = line.partition("=")
                fields.setdefault(field, []).append(value)
            return fields
    return {}


def configured(kind: str, name: str) -> list[str]:
    """The words that lines of this kind, as ``options``, in modprobe.d have for a module."""
    texts = (path.read_text() for path in sorted(Path("/etc/modprobe.d").glob("*.conf")))
    lines = (shlex.split(line, comments=True) for text in texts for line in text.splitlines())
    return [word for line in lines if line[:1] == [kind] and plain(line[1]) == name for word in line[2:]]


def loaded() -> dict[str, list[str]]:
    """The modules that are loaded, the newest first, each with those that hold it."""
    rows = (line.split() for line in TABLE.read_text().splitlines())
    return {row[0]: [name for name in row[3].split(",") if name not in ("", "-")] for row in rows}


def show(modules: dict[str, list[str]]) -> None:
    """Write the table as /proc/modules has it."""
    rows = ((name, len(holders), "".join(f"{each}," for each in holders) or "-") for name, holders in modules.items())
    TABLE.write_text("".join(f"{name} 4096 {count} {names} Live 0x0000000000000000\n" for name, count, names in rows))


def modprobe(*words: str) -> None:
    """``modprobe [--ignore-install] [--] NAME`` or ``modprobe --show-depends NAME``."""
    name, fields = plain(words[-1]), installed(words[-1])
    if not fields:
        fail(f"FATAL: Module {words[-1]} not found in directory {FOLDER}")
    if "--show-depends" in words:
        print(f"insmod {fields['filename'][0]} {' '.join(configured('options', name))}")
    elif name not in loaded():
        if configured("install", name) and "--ignore-install" not in words:
            fail(f"ERROR: could not insert '{name}': Invalid argument")
        insert(name, fields)


def insert(name: str, fields: dict[str, list[str]]) -> None:
    """Load a module, after those that it depends on."""
    needed = [plain(each) for each in fields.get("depends", []) if each]
    for each in needed:
        modprobe(each)
    modules = {name: [], **loaded()}
    for each in needed:
        modules[each].append(name)
    show(modules)
    (SHOWN / name).mkdir()
    for field in {"version", "srcversion"} & fields.keys():
        (SHOWN / name / field).write_text(f"{fields[field][0]}\n")
    if name == "nvidia":
        begin(fields)


def begin(fields: dict[str, list[str]]) -> None:
    """What the driver shows of itself, and its devices, which on a real machine NVIDIA's own programs make."""
    kind = "Open Kernel Module for x86_64" if fields["license"] == ["Dual MIT/GPL"] else "x86_64 Kernel Module"
    values = {parameter.partition(":")[0]: "0" for parameter in fields["parm"]}
    given = (option.partition("=") for option in configured("options", "nvidia"))
    values.update({key: value for key, _, value in given if key in values})
    DRIVER.mkdir()
    (DRIVER / "version").write_text(f"NVRM version: NVIDIA UNIX {kind}  {fields['version'][0]}  fake\n")
    (DRIVER / "params").write_text("".join(f"{key[len('NVreg_') :]}: {value}\n" for key, value in values.items()))
    subprocess.run(["systemd-tmpfiles", "--create", "/etc/tmpfiles.d/nvidia.conf"], check=True)


def rmmod(*words: str) -> None:
    """``rmmod [--] NAME``."""
    name, modules = plain(words[-1]), loaded()
    if name not in modules:
        fail(f"ERROR: Module {name} is not currently loaded")
    if modules[name]:
        fail(f"ERROR: Module {name} is in use by: {' '.join(modules[name])}")
    opened = ["find", "/proc", "-maxdepth", "3", "-path", "*/fd/*", "-lname", "/dev/nvidia*"]
    if name == "nvidia" and subprocess.run(opened, capture_output=True, check=False).stdout:
        fail(f"ERROR: Module {name} is in use")
    show({each: [one for one in holders if one != name] for each, holders in modules.items() if each != name})
    shutil.rmtree(SHOWN / name)
    if name == "nvidia":
        shutil.rmtree(DRIVER)
        for device in Path("/dev").glob("nvidia*"):
            device.unlink()


def modinfo(_option: str, field: str, name: str) -> None:
    """``modinfo -F FIELD NAME``."""
    print("\n".join((installed(name) or fail(f"ERROR: Module {name} not found.")).get(field, [])))


def boot() -> None:
    """Have no module loaded, and show that."""
    TABLE.parent.mkdir()
    TABLE.touch()
    Path(site.getsitepackages()[0], "fake-kernel.pth").write_text(DETOUR)
    for folder in (SHOWN, DRIVER.parent):
        subprocess.run(["mount", "-t", "tmpfs", "fake-kernel", folder], check=True)


if __name__ == "__main__":
    programs = {"modprobe": modprobe, "rmmod": rmmod, "modinfo": modinfo}
    programs.get(PROGRAM, boot)(*sys.argv[1:])
