# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The systemd unit of a distribution's containerd, and where it searches for the program of the NVIDIA runtime."""

from __future__ import annotations

import os.path
import re
import shlex
import typing as t
from dataclasses import dataclass

from ..._config import files
from ..._config.errors import ConfigError
from ..._distributions import find_unit

if t.TYPE_CHECKING:
    from ..._config.validate import Run
    from ..._distributions import OwnContainerd

#: The PATH of systemd's services that set none.
SERVICE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Place:
    """The containerd of the distribution *name* on this host. Folders and programs are parameters for tests."""

    name: str
    own: OwnContainerd
    exists: t.Callable[[str], bool] = os.path.exists

    @property
    def unit(self) -> str:
        """The systemd unit that runs it."""
        return find_unit(self.own, self.exists)


@dataclass(frozen=True)
class Unit:
    """How systemd starts a unit: its PATH, and the default runtime among its arguments."""

    path: tuple[str, ...]
    default_runtime: str | None = None


def read_unit(place: Place, execute: Run) -> Unit:
    """Return how systemd starts the unit of *place*."""
    command = ["systemctl", "show", "--property=Environment,EnvironmentFiles,ExecStart", "--", place.unit]
    _status, output, _errors = execute(command)
    return parse_unit(output, read_text, place.own.default_key)


def describe_search(place: Place, execute: Run) -> str:
    """Return what to do if the unit of *place* has started without the runtime; empty if the distribution does not search for it."""
    if place.own.way != "automatic":
        return ""
    folders = [*place.own.program_folders, *read_unit(place, execute).path]
    return (
        f"when it starts, {place.unit} searches for the runtime's program in {', '.join(folders)}; install it there, or add its folder to PATH"
        f" in the environment of {place.unit}"
    )


def parse_unit(shown: str, read: t.Callable[[str], str], flag: str) -> Unit:
    """Return what `systemctl show` prints of a unit.

    *read* returns the text of an environment file, and *flag* is the name of the flag for the default runtime.
    """
    words: list[str] = []
    later: list[str] = []
    default = None
    for line in shown.splitlines():
        key, _equals, value = line.partition("=")
        if key == "Environment":
            words += _split(value)
        elif key == "EnvironmentFiles":
            # A file's variables override those of the unit.
            later += [word for each in read(value.partition(" (")[0]).splitlines() for word in _split(each)]
        elif key == "ExecStart":
            found = re.search(rf"\s--{re.escape(flag)}[= ](\S+)", value)
            default = found.group(1).strip("\"'") if found else None
    found_path = [word[len("PATH=") :] for word in [*words, *later] if word.startswith("PATH=")]
    return Unit(tuple((found_path or [SERVICE_PATH])[-1].split(":")), default)


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text, comments=True)
    except ValueError:
        return []


def read_text(path: str) -> str:
    """Return the text of a file; empty if it is missing."""
    return (files.read_bytes(path) or b"").decode("utf-8", "replace")


def check_program(place: Place, program: str, path: t.Sequence[str]) -> None:
    """Raise ConfigError for a *program* of the runtime that the distribution does not find when it starts with *path*."""
    folders = [*place.own.program_folders, *path]
    if os.path.dirname(program) not in (os.path.normpath(folder) for folder in folders if folder):
        raise ConfigError(
            f"{place.name} searches for {os.path.basename(program)} when it starts, and {program} is in none of the folders of {place.unit}"
            f" ({', '.join(folders)}): install the toolkit from packages, or add {os.path.dirname(program)} to PATH in the environment of"
            f" {place.unit}, and run again."
        )
