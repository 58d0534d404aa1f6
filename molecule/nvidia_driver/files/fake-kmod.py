#!/usr/bin/python3
# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fake for modprobe, rmmod and modinfo, and for the kernel's view of its modules: a machine of the lab cannot load any.

Its name selects the program; messages and exit statuses are kmod's. Under its own name it mounts empty folders over those with the
host's modules. The file of a module is a text with lines FIELD=VALUE. Unlike a kernel, it does not count open devices among the
references, and has 0 for each parameter of the driver that is not set.
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
SYS_MODULE, DRIVER = Path("/sys/module"), Path("/proc/driver/nvidia")
TABLE = Path("/run/fake-kernel/modules")
# A kernel without modules has no /proc/modules, and nothing can be mounted there: Python, the only reader, opens the table instead.
OPEN_PATCH = (
    "import builtins; builtins.open = (lambda real: lambda file, *rest, **named: "
    f'real("{TABLE}" if file == "/proc/modules" else file, *rest, **named))(builtins.open)\n'
)


def fail(words: str) -> NoReturn:
    """End as kmod does."""
    sys.exit(f"{PROGRAM}: {words}")


def normalize(name: str) -> str:
    """The name of a module as the kernel writes it."""
    return name.replace("-", "_")


def read_module(name: str) -> dict[str, list[str]]:
    """The fields of a module's file, each with all its values; empty without a file."""
    for path in FOLDER.rglob("*.ko"):
        if normalize(path.stem) == normalize(name):
            fields = {"filename": [str(path)]}
            for line in path.read_text().splitlines():
                field, _, value = line.partition("=")
                fields.setdefault(field, []).append(value)
            return fields
    return {}


def read_config_words(kind: str, name: str) -> list[str]:
    """The words of a module's lines of this kind (``options``, ``install``) in modprobe.d."""
    texts = (path.read_text() for path in sorted(Path("/etc/modprobe.d").glob("*.conf")))
    lines = (shlex.split(line, comments=True) for text in texts for line in text.splitlines())
    return [word for line in lines if line[:1] == [kind] and normalize(line[1]) == name for word in line[2:]]


def read_loaded() -> dict[str, list[str]]:
    """The loaded modules, the newest first, each with the modules that use it."""
    rows = (line.split() for line in TABLE.read_text().splitlines())
    return {row[0]: [name for name in row[3].split(",") if name not in ("", "-")] for row in rows}


def write_table(modules: dict[str, list[str]]) -> None:
    """Write the table in the form of /proc/modules."""
    rows = ((name, len(holders), "".join(f"{each}," for each in holders) or "-") for name, holders in modules.items())
    TABLE.write_text("".join(f"{name} 4096 {count} {names} Live 0x0000000000000000\n" for name, count, names in rows))


def modprobe(*words: str) -> None:
    """``modprobe [--ignore-install] [--] NAME`` or ``modprobe --show-depends NAME``."""
    name, fields = normalize(words[-1]), read_module(words[-1])
    if not fields:
        fail(f"FATAL: Module {words[-1]} not found in directory {FOLDER}")
    if "--show-depends" in words:
        print(f"insmod {fields['filename'][0]} {' '.join(read_config_words('options', name))}")
    elif name not in read_loaded():
        if read_config_words("install", name) and "--ignore-install" not in words:
            fail(f"ERROR: could not insert '{name}': Invalid argument")
        insert(name, fields)


def insert(name: str, fields: dict[str, list[str]]) -> None:
    """Load a module after its dependencies."""
    dependencies = [normalize(each) for each in fields.get("depends", []) if each]
    for each in dependencies:
        modprobe(each)
    modules = {name: [], **read_loaded()}
    for each in dependencies:
        modules[each].append(name)
    write_table(modules)
    (SYS_MODULE / name).mkdir()
    for field in {"version", "srcversion"} & fields.keys():
        (SYS_MODULE / name / field).write_text(f"{fields[field][0]}\n")
    if name == "nvidia":
        load_driver(fields)


def load_driver(fields: dict[str, list[str]]) -> None:
    """Write the driver's files in /proc, and create its devices, as NVIDIA's programs do on a real machine."""
    kind = "Open Kernel Module for x86_64" if fields["license"] == ["Dual MIT/GPL"] else "x86_64 Kernel Module"
    values = {parameter.partition(":")[0]: "0" for parameter in fields["parm"]}
    options = (option.partition("=") for option in read_config_words("options", "nvidia"))
    values.update({key: value for key, _, value in options if key in values})
    DRIVER.mkdir(exist_ok=True)  # the simulated NVML library may have written capabilities there
    (DRIVER / "version").write_text(f"NVRM version: NVIDIA UNIX {kind}  {fields['version'][0]}  fake\n")
    (DRIVER / "params").write_text("".join(f"{key[len('NVreg_') :]}: {value}\n" for key, value in values.items()))
    subprocess.run(["systemd-tmpfiles", "--create", "/etc/tmpfiles.d/nvidia.conf"], check=True)


def rmmod(*words: str) -> None:
    """``rmmod [--] NAME``."""
    name, modules = normalize(words[-1]), read_loaded()
    if name not in modules:
        fail(f"ERROR: Module {name} is not currently loaded")
    if modules[name]:
        fail(f"ERROR: Module {name} is in use by: {' '.join(modules[name])}")
    opened = ["find", "/proc", "-maxdepth", "3", "-path", "*/fd/*", "-lname", "/dev/nvidia*"]
    if name == "nvidia" and subprocess.run(opened, capture_output=True, check=False).stdout:
        fail(f"ERROR: Module {name} is in use")
    write_table({each: [one for one in holders if one != name] for each, holders in modules.items() if each != name})
    shutil.rmtree(SYS_MODULE / name)
    if name == "nvidia":
        shutil.rmtree(DRIVER)
        for device in Path("/dev").glob("nvidia*"):
            shutil.rmtree(device) if device.is_dir() else device.unlink()


def modinfo(_option: str, field: str, name: str) -> None:
    """``modinfo -F FIELD NAME``."""
    print("\n".join((read_module(name) or fail(f"ERROR: Module {name} not found.")).get(field, [])))


def boot() -> None:
    """Start without a loaded module."""
    TABLE.parent.mkdir()
    TABLE.touch()
    Path(site.getsitepackages()[0], "fake-kernel.pth").write_text(OPEN_PATCH)
    for folder in (SYS_MODULE, DRIVER.parent):
        subprocess.run(["mount", "-t", "tmpfs", "fake-kernel", folder], check=True)


if __name__ == "__main__":
    programs = {"modprobe": modprobe, "rmmod": rmmod, "modinfo": modinfo}
    programs.get(PROGRAM, boot)(*sys.argv[1:])
