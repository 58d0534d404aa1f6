# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's kernel modules: what is loaded and installed, and what there is to do about it.

``read`` looks, ``plan`` decides and touches nothing.
"""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass, field
from typing import Any, Mapping, Sequence

from .._nvml import driver
from . import users

NVIDIA = "nvidia"
PREFIX = "NVreg_"
#: Parameters that the driver shows under another name than the one they are given by (nv-reg.h).
SHOWN_AS: dict[str, str] = {"RestrictProfilingToAdminUsers": "RmProfilingAdminOnly"}
# DKMS moves the log away when a build succeeds, so one that is here tells of a failure.
MAKE_LOGS = "var/lib/dkms/nvidia*/*/build/make.log"


class ModulesError(Exception):
    """What cannot be done, in sentences with cause and remedy."""


@dataclass(frozen=True)
class Loaded:
    """A module as /proc/modules shows it; ``holders`` are the modules that use it, each of which counts in ``refcount``."""

    refcount: int
    holders: tuple[str, ...] = ()


@dataclass(frozen=True)
class State:
    """What is loaded, and what modprobe would load for the running kernel ``release``."""

    release: str
    loaded: Mapping[str, Loaded] = field(default_factory=dict)
    version: str | None = None
    srcversion: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)  # as the driver shows them, without NVreg_
    installed: frozenset[str] = frozenset()  # of the modules that may have to be loaded
    installed_version: str | None = None
    installed_srcversion: str | None = None
    known_parameters: frozenset[str] = frozenset()  # of the installed module, with NVreg_; empty if not told
    nouveau: bool = False
    users: Sequence[dict[str, Any]] = ()
    make_log: str | None = None


@dataclass(frozen=True)
class Wanted:
    """``state`` is current, loaded or absent; ``modules`` are names as /proc/modules writes them."""

    state: str
    modules: Sequence[str] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    former_parameters: Mapping[str, Any] = field(default_factory=dict)  # that no file gives any more


@dataclass(frozen=True)
class Plan:
    """Modules to unload and to load, in order; or, with both empty, why that takes a reboot."""

    unload: Sequence[str] = ()
    load: Sequence[str] = ()
    reasons: Sequence[str] = ()


def read(root: str, release: str, wanted: Wanted, run: driver.Run) -> State:
    """Look at what is below *root*, and ask modinfo by *run* unless nothing is to be loaded."""
    loaded = loaded_modules(root)
    asked = () if wanted.state == "absent" else {NVIDIA, *wanted.modules, *unload_order(loaded)}
    files = {name: driver.file_name(name, run) for name in asked}
    file = files.get(NVIDIA)
    lines = (driver.modinfo("parm", file, run) or "").splitlines() if file and wanted.parameters else []
    return State(
        release=release,
        loaded=loaded,
        version=_text(root, "sys/module/nvidia/version"),
        srcversion=_text(root, "sys/module/nvidia/srcversion"),
        parameters=shown_parameters(_text(root, "proc/driver/nvidia/params") or ""),
        installed=frozenset(name for name in files if files[name]),
        installed_version=driver.modinfo("version", file, run) if file else None,
        installed_srcversion=driver.modinfo("srcversion", file, run) if file else None,
        known_parameters=frozenset(line.split(":", 1)[0].strip() for line in lines),
        nouveau=os.path.isdir(os.path.join(root, "sys/module/nouveau")),
        users=users.read(root) if NVIDIA in loaded else [],
        make_log=_make_log(root),
    )


def loaded_modules(root: str) -> dict[str, Loaded]:
    """The modules of /proc/modules: name, size, refcount, holders, state, address."""
    found = {}
    for line in (_text(root, "proc/modules") or "").splitlines():
        name, _size, refcount, holders = line.split()[:4]
        names = tuple(each for each in holders.split(",") if each not in ("", "-") and not each.startswith("["))
        found[name] = Loaded(int(refcount) if refcount.isdigit() else 0, names)
    return found


def shown_parameters(text: str) -> dict[str, str]:
    """Return {name: value} of the lines ``Name: value`` in /proc/driver/nvidia/params, without the quotes of strings."""
    pairs = (line.partition(":") for line in text.splitlines())
    return {name.strip(): value.strip().strip('"') for name, colon, value in pairs if colon}


def unload_order(loaded: Mapping[str, Loaded], name: str = NVIDIA) -> list[str]:
    """Every module that holds *name*, through others too, and itself at the end; empty if it is not loaded."""
    order: list[str] = []

    def visit(each: str) -> None:
        for holder in loaded[each].holders if each in loaded else ():
            visit(holder)
        if each in loaded and each not in order:
            order.append(each)

    visit(name)
    return order


def shown_name(name: str) -> str:
    """The name under which the driver shows a parameter."""
    bare = name[len(PREFIX) :] if name.startswith(PREFIX) else name
    return SHOWN_AS.get(bare, bare)


def same_value(wanted: Any, shown: str) -> bool:
    """Whether a wanted value is what the driver shows; it shows numbers as unsigned, of 32 bits, in decimal."""
    return _comparable(wanted) == _comparable(shown)


def _comparable(value: Any) -> int | str:
    if isinstance(value, (bool, int)):
        return int(value) & 0xFFFFFFFF
    text = str(value).strip().strip('"')
    try:
        # As the kernel reads it: a zero in front makes it octal.
        octal = len(text) > 1 and text.startswith("0") and text.isdigit()
        return int(text, 8 if octal else 0) & 0xFFFFFFFF
    except ValueError:
        return text


def differing_parameters(state: State, wanted: Wanted) -> dict[str, str]:
    """Return {name as wanted: value as shown} of those that are shown with another value."""
    shown = {name: state.parameters.get(shown_name(name)) for name in wanted.parameters}
    return {
        name: value
        for name, value in shown.items()
        if value is not None and not same_value(wanted.parameters[name], value)
    }


def leftover_parameters(state: State, wanted: Wanted) -> dict[str, str]:
    """Return {name: value as shown} of those that are not wanted any more and are still shown with their former value."""
    shown = {
        name: state.parameters.get(shown_name(name))
        for name in wanted.former_parameters
        if name not in wanted.parameters
    }
    return {
        name: value
        for name, value in shown.items()
        if value is not None and same_value(wanted.former_parameters[name], value)
    }


def other_build(state: State) -> list[str]:
    """Why the loaded module is not the installed one; empty if it is, or if one of them is not known."""
    loaded = driver.Build(state.version, state.srcversion)
    return driver.outdated(loaded, driver.Build(state.installed_version, state.installed_srcversion))


def stale(state: State, wanted: Wanted) -> list[str]:
    """Why the loaded module is not what the next boot brings; empty if it is."""
    found = other_build(state)
    if wanted.state == "current":
        found += [
            f"the loaded kernel module has {name} = {value}, and {wanted.parameters[name]} is wanted"
            for name, value in differing_parameters(state, wanted).items()
        ]
        found += [
            f"the loaded kernel module has {name} = {value}, which is not wanted any more"
            for name, value in leftover_parameters(state, wanted).items()
        ]
    return found


def plan(state: State, wanted: Wanted) -> Plan:
    """Decide what to unload and load. Raises ModulesError where neither that nor a reboot brings what is wanted."""
    if wanted.state == "absent":
        return _unless_busy(state, Plan(unload=unload_order(state.loaded)), [])
    missing = [name for name in wanted.modules if name not in state.loaded]
    reasons = stale(state, wanted) if NVIDIA in state.loaded else []
    # Modules of another build cannot be loaded beside the one that is there.
    reload = bool(reasons and (wanted.state == "current" or missing))
    found = Plan(load=_with_nvidia(state, missing))
    if reload:
        unload = unload_order(state.loaded)
        load = [name for name in wanted.modules if name in missing or name in unload]
        load += [name for name in reversed(unload) if name not in load]
        found = Plan(unload=unload, load=sorted(load, key=lambda name: name != NVIDIA))
    _refuse_missing(state, wanted, found.load)
    refuse_parameters(state, wanted)
    if state.nouveau and NVIDIA in found.load and NVIDIA not in state.loaded:
        return Plan(reasons=["nouveau is loaded, and NVIDIA's module cannot be beside it"])
    return _unless_busy(state, found, reasons)


def _with_nvidia(state: State, missing: list[str]) -> list[str]:
    """All others bring it in with them, so that it is told too."""
    if missing and NVIDIA not in state.loaded:
        return [NVIDIA, *(name for name in missing if name != NVIDIA)]
    return missing


def _unless_busy(state: State, found: Plan, reasons: list[str]) -> Plan:
    busy = users.sentences(state.users) or _unseen(state, found.unload)
    return Plan(reasons=[*reasons, *busy]) if found.unload and busy else found


def _unseen(state: State, names: Sequence[str]) -> list[str]:
    """Modules that are held by more than other modules, as by a text console or by a process of which the file is closed."""
    counts = {name: state.loaded[name].refcount - len(state.loaded[name].holders) for name in names}
    return [
        f"{name} is in use (by {count} that no process shows, as a console or a mapping does)"
        for name, count in counts.items()
        if count > 0
    ]


def _refuse_missing(state: State, wanted: Wanted, load: Sequence[str]) -> None:
    """Nothing is unloaded that could not be loaded again."""
    needed = [NVIDIA, *load] if wanted.state == "current" else load
    missing = [name for name in dict.fromkeys(needed) if name not in state.installed]
    if NVIDIA in missing:
        remedy = (
            f"install the headers of the running kernel (for {state.release}) and install the driver again; "
            "or, where the modules come built with the kernel's packages, boot the newest kernel that is installed"
        )
        if state.make_log:
            remedy += f"; why DKMS could not build it is written in {state.make_log}"
        raise ModulesError(f"No kernel module nvidia is installed for the running kernel {state.release}: {remedy}.")
    if missing:
        names = " and ".join(missing)
        remedy = "install what brings it, or, if it is not needed, leave it out of modules and unload it"
        raise ModulesError(f"No kernel module {names} is installed for the running kernel {state.release}: {remedy}.")


def refuse_parameters(state: State, wanted: Wanted) -> None:
    """Raise ModulesError if there is a parameter that nobody can have or compare."""
    if wanted.state != "current" or not wanted.parameters:
        return
    names = [name for name in wanted.parameters if state.known_parameters and name not in state.known_parameters]
    if names:
        remedy = "look for a misspelt name; 'modinfo -p nvidia' lists them"
        raise ModulesError(f"The installed kernel module nvidia has no parameter {' and '.join(names)}: {remedy}.")
    hidden = [name for name in wanted.parameters if shown_name(name) not in state.parameters]
    if hidden and NVIDIA in state.loaded and not other_build(state):
        remedy = "leave it out of parameters, and load the module again yourself where it changed"
        names_text = " and ".join(hidden)
        raise ModulesError(f"The driver does not show its parameter {names_text}, so it cannot be compared: {remedy}.")


def _make_log(root: str) -> str | None:
    """The log of the latest build by DKMS that failed."""
    paths = [path for path in glob.glob(os.path.join(root, MAKE_LOGS)) if "/nvidia-fs/" not in path]
    try:
        latest = max(paths, key=os.path.getmtime, default=None)
    except OSError:
        return None
    return os.path.join("/", os.path.relpath(latest, root)) if latest else None


def _text(root: str, path: str) -> str | None:
    try:
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
            return file.read().strip() or None
    except OSError:
        return None
