# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's kernel modules: the loaded and installed ones, and the plan of what to unload and load.

``read_state`` reads, ``plan_reload`` decides; neither changes anything.
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
#: Parameters that the driver shows under another name (nv-reg.h).
SHOWN_AS: dict[str, str] = {"RestrictProfilingToAdminUsers": "RmProfilingAdminOnly"}
# DKMS moves the log of a successful build, so that an existing one is of a failure.
BUILD_LOGS = "var/lib/dkms/nvidia*/*/build/make.log"


class ModulesError(Exception):
    """The modules cannot be changed; the text is sentences with cause and remedy."""


@dataclass(frozen=True)
class Loaded:
    """A module in /proc/modules; ``holders`` are the modules that use it, each of which counts in ``refcount``."""

    refcount: int
    holders: tuple[str, ...] = ()


@dataclass(frozen=True)
class State:
    """The loaded modules, and those that modprobe would load for the running kernel ``release``."""

    release: str
    loaded: Mapping[str, Loaded] = field(default_factory=dict)
    version: str | None = None
    srcversion: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)  # as the driver shows them, without NVreg_
    installed: frozenset[str] = frozenset()  # of the modules that may be loaded
    installed_version: str | None = None
    installed_srcversion: str | None = None
    known_parameters: frozenset[str] = frozenset()  # of the installed module, with NVreg_; empty if unknown
    nouveau: bool = False
    users: Sequence[dict[str, Any]] = ()
    make_log: str | None = None


@dataclass(frozen=True)
class Desired:
    """``state`` is current, loaded or absent; ``modules`` are names as /proc/modules writes them."""

    state: str
    modules: Sequence[str] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    former_parameters: Mapping[str, Any] = field(default_factory=dict)  # removed from all files


@dataclass(frozen=True)
class Plan:
    """Modules to unload and to load, in order; or, with both empty, why a reboot is required instead."""

    unload: Sequence[str] = ()
    load: Sequence[str] = ()
    reasons: Sequence[str] = ()


def read_state(root: str, release: str, desired: Desired, run: driver.Run) -> State:
    """Return the state below *root*; *run* runs modinfo, unless nothing is to be loaded."""
    loaded = read_loaded_modules(root)
    names = () if desired.state == "absent" else {NVIDIA, *desired.modules, *find_unload_order(loaded)}
    files = {name: driver.find_module_file(name, run) for name in names}
    file = files.get(NVIDIA)
    lines = (driver.read_modinfo("parm", file, run) or "").splitlines() if file and desired.parameters else []
    return State(
        release=release,
        loaded=loaded,
        version=driver.read_text(root, "sys/module/nvidia/version"),
        srcversion=driver.read_text(root, "sys/module/nvidia/srcversion"),
        parameters=parse_shown_parameters(driver.read_text(root, "proc/driver/nvidia/params") or ""),
        installed=frozenset(name for name in files if files[name]),
        installed_version=driver.read_modinfo("version", file, run) if file else None,
        installed_srcversion=driver.read_modinfo("srcversion", file, run) if file else None,
        known_parameters=frozenset(line.split(":", 1)[0].strip() for line in lines),
        nouveau=os.path.isdir(os.path.join(root, "sys/module/nouveau")),
        users=users.read_users(root) if NVIDIA in loaded else [],
        make_log=_find_make_log(root),
    )


def read_loaded_modules(root: str) -> dict[str, Loaded]:
    """The modules of /proc/modules: name, size, refcount, holders, state, address."""
    found = {}
    for line in (driver.read_text(root, "proc/modules") or "").splitlines():
        name, _size, refcount, holders = line.split()[:4]
        names = tuple(each for each in holders.split(",") if each not in ("", "-") and not each.startswith("["))
        found[name] = Loaded(int(refcount) if refcount.isdigit() else 0, names)
    return found


def parse_shown_parameters(text: str) -> dict[str, str]:
    """Return {name: value} of the lines ``Name: value`` in /proc/driver/nvidia/params, without the quotes of strings."""
    pairs = (line.partition(":") for line in text.splitlines())
    return {name.strip(): value.strip().strip('"') for name, colon, value in pairs if colon}


def find_unload_order(loaded: Mapping[str, Loaded], name: str = NVIDIA) -> list[str]:
    """Every module that uses *name*, also through others, and itself at the end; empty if it is not loaded."""
    order: list[str] = []

    def visit(each: str) -> None:
        for holder in loaded[each].holders if each in loaded else ():
            visit(holder)
        if each in loaded and each not in order:
            order.append(each)

    visit(name)
    return order


def get_shown_name(name: str) -> str:
    """The name under which the driver shows a parameter."""
    bare = name[len(PREFIX) :] if name.startswith(PREFIX) else name
    return SHOWN_AS.get(bare, bare)


def is_same_value(desired: Any, shown: str) -> bool:
    """Whether a desired value equals the shown one; the driver shows numbers as unsigned, of 32 bits, in decimal."""
    return _normalize(desired) == _normalize(shown)


def _normalize(value: Any) -> int | str:
    if isinstance(value, (bool, int)):
        return int(value) & 0xFFFFFFFF
    text = str(value).strip().strip('"')
    try:
        # The kernel reads a number with a leading zero as octal.
        octal = len(text) > 1 and text.startswith("0") and text.isdigit()
        return int(text, 8 if octal else 0) & 0xFFFFFFFF
    except ValueError:
        return text


def find_differing_parameters(state: State, desired: Desired) -> dict[str, str]:
    """Return {desired name: shown value} of the parameters whose values differ."""
    shown = {name: state.parameters.get(get_shown_name(name)) for name in desired.parameters}
    return {
        name: value
        for name, value in shown.items()
        if value is not None and not is_same_value(desired.parameters[name], value)
    }


def find_leftover_parameters(state: State, desired: Desired) -> dict[str, str]:
    """Return {name: shown value} of removed parameters that still have their former value."""
    shown = {
        name: state.parameters.get(get_shown_name(name))
        for name in desired.former_parameters
        if name not in desired.parameters
    }
    return {
        name: value
        for name, value in shown.items()
        if value is not None and is_same_value(desired.former_parameters[name], value)
    }


def explain_other_build(state: State) -> list[str]:
    """Why the loaded module is not the installed one; empty if it is, or if one of them is unknown."""
    loaded = driver.Build(state.version, state.srcversion)
    return driver.explain_outdated(loaded, driver.Build(state.installed_version, state.installed_srcversion))


def explain_stale(state: State, desired: Desired) -> list[str]:
    """Why the loaded module differs from the one after the next boot; empty if it does not."""
    found = explain_other_build(state)
    if desired.state == "current":
        found += [
            f"the loaded kernel module has {name} = {value}, and {desired.parameters[name]} is requested"
            for name, value in find_differing_parameters(state, desired).items()
        ]
        found += [
            f"the loaded kernel module has {name} = {value}, which is no longer requested"
            for name, value in find_leftover_parameters(state, desired).items()
        ]
    return found


def plan_reload(state: State, desired: Desired) -> Plan:
    """Return the modules to unload and load. Raises ModulesError if neither that nor a reboot leads to the desired state."""
    if desired.state == "absent":
        return _block_if_busy(state, Plan(unload=find_unload_order(state.loaded)), [])
    missing = [name for name in desired.modules if name not in state.loaded]
    reasons = explain_stale(state, desired) if NVIDIA in state.loaded else []
    # Modules of another build cannot be loaded beside the loaded one.
    reload = bool(reasons and (desired.state == "current" or missing))
    found = Plan(load=_add_nvidia(state, missing))
    if reload:
        unload = find_unload_order(state.loaded)
        load = [name for name in desired.modules if name in missing or name in unload]
        load += [name for name in reversed(unload) if name not in load]
        found = Plan(unload=unload, load=sorted(load, key=lambda name: name != NVIDIA))
    _reject_missing(state, desired, found.load)
    reject_parameters(state, desired)
    if state.nouveau and NVIDIA in found.load and NVIDIA not in state.loaded:
        return Plan(reasons=["nouveau is loaded, and NVIDIA's module cannot be beside it"])
    return _block_if_busy(state, found, reasons)


def _add_nvidia(state: State, missing: list[str]) -> list[str]:
    """The modules with nvidia, which each of them would load implicitly."""
    if missing and NVIDIA not in state.loaded:
        return [NVIDIA, *(name for name in missing if name != NVIDIA)]
    return missing


def _block_if_busy(state: State, found: Plan, reasons: list[str]) -> Plan:
    busy = users.format_users(state.users) or _explain_unknown_users(state, found.unload)
    return Plan(reasons=[*reasons, *busy]) if found.unload and busy else found


def _explain_unknown_users(state: State, names: Sequence[str]) -> list[str]:
    """Why modules are in use by something other than modules, as by a text console or a memory mapping."""
    counts = {name: state.loaded[name].refcount - len(state.loaded[name].holders) for name in names}
    return [
        f"{name} is in use (by {count} that no process shows, as a console or a mapping does)"
        for name, count in counts.items()
        if count > 0
    ]


def _reject_missing(state: State, desired: Desired, load: Sequence[str]) -> None:
    """Raise ModulesError for modules that could not be loaded again."""
    needed = [NVIDIA, *load] if desired.state == "current" else load
    missing = [name for name in dict.fromkeys(needed) if name not in state.installed]
    if NVIDIA in missing:
        remedy = (
            f"install the headers of the running kernel (for {state.release}) and install the driver again; "
            "or, if the kernel's packages contain the modules, boot the newest installed kernel"
        )
        if state.make_log:
            remedy += f"; {state.make_log} has the reason why DKMS could not build it"
        raise ModulesError(f"No kernel module nvidia is installed for the running kernel {state.release}: {remedy}.")
    if missing:
        names = " and ".join(missing)
        remedy = "install its package, or, if it is not needed, leave it out of modules and unload it"
        raise ModulesError(f"No kernel module {names} is installed for the running kernel {state.release}: {remedy}.")


def reject_parameters(state: State, desired: Desired) -> None:
    """Raise ModulesError for parameters that do not exist or cannot be compared."""
    if desired.state != "current" or not desired.parameters:
        return
    names = [name for name in desired.parameters if state.known_parameters and name not in state.known_parameters]
    if names:
        remedy = "correct the name; 'modinfo -p nvidia' lists them"
        raise ModulesError(f"The installed kernel module nvidia has no parameter {' and '.join(names)}: {remedy}.")
    hidden = [name for name in desired.parameters if get_shown_name(name) not in state.parameters]
    if hidden and NVIDIA in state.loaded and not explain_other_build(state):
        remedy = "leave it out of parameters, and load the module again yourself where it changed"
        names_text = " and ".join(hidden)
        raise ModulesError(f"The driver does not show its parameter {names_text}, so it cannot be compared: {remedy}.")


def _find_make_log(root: str) -> str | None:
    """The log of the latest build by DKMS that failed."""
    paths = [path for path in glob.glob(os.path.join(root, BUILD_LOGS)) if "/nvidia-fs/" not in path]
    try:
        latest = max(paths, key=os.path.getmtime, default=None)
    except OSError:
        return None
    return os.path.join("/", os.path.relpath(latest, root)) if latest else None
