# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The containerd that a Kubernetes distribution brings: what is written so that it gets the NVIDIA runtime, and where.

The file that it reads is rendered by the distribution and never edited. Which way there is instead is in the catalogue of distributions.
"""

from __future__ import annotations

import os.path
import typing as t
from dataclasses import dataclass, replace

from ..._config.apply import ensure
from ..._config.config_file import ConfigFile, read
from ..._config.draft import Managed
from ..._config.errors import ConfigError
from ..._config.formats import TOML
from ..._config.tree import MISSING, Path, Tree, get, merge, table
from ..._config.validate import Run, Verdict
from ..._distributions import find_program
from . import automatic, drop_in
from .daemon import Containerd, read_release, validate_file
from .plan import ContainerdPlan, Request, plan
from .schema import CRI_V2, RUNC_V2, Release, schema_of
from .unit import Place

if t.TYPE_CHECKING:
    from ..._config.apply import Host, Outcomes


def apply(place: Place, request: Request, state: str, host: Host) -> Outcomes:
    """Bring the containerd of *place* to *state*, in its distribution's way. Raises ConfigError for what that way cannot do."""
    binary = host.binary or find_program(place.own)
    host = replace(host, binary=binary)
    if state == "present":
        _check_handler(place, request)
        if binary is None:
            raise ConfigError(
                f"{place.name} has not unpacked its containerd yet ({' or '.join(place.own.programs)}): start {place.unit} once, and run again."
            )
    request = replace(request, release=request.release or (read_release(binary, host.execute) if binary else None))
    yield from _WAYS[place.own.way](place, request, state, host)


def _check_handler(place: Place, request: Request) -> None:
    if place.own.handler and request.runtime_name != place.own.handler:
        raise ConfigError(
            f"{place.name} declares the NVIDIA runtime as {place.own.handler} and not as {request.runtime_name}: set runtime_name"
            f" (containerd_nvidia_runtime_name) to {place.own.handler}, which is also the handler of the RuntimeClass."
        )


# -- a template, from which the file is rendered


@dataclass(frozen=True)
class Template(Containerd):
    """A template in which variables stand in texts, so that it is TOML, with the values of *variables* that containerd checks."""

    variables: t.Sequence[tuple[str, str]]

    def plan(self, file: ConfigFile, managed: t.Mapping[Path, Managed]) -> ContainerdPlan:
        """Decide what the template should mean."""
        decision = super().plan(file, managed)
        decision.warnings[:] = [
            each for each in decision.warnings if not any(name in each for name, _value in self.variables)
        ]
        return decision

    def validate(self, program: str, data: bytes, workdir: str | None, execute: Run) -> Verdict:
        """Let containerd load *data* with values for the variables."""
        for name, value in self.variables:
            data = data.replace(name.encode(), value.encode())
        return validate_file(program, self.path, data, workdir, execute)


def _apply_template(place: Place, request: Request, state: str, host: Host) -> Outcomes:
    path = place.own.edited
    if state == "present" and not place.exists(path):
        raise ConfigError(f"{place.name} has no template {path}: finish its installation, and run again.")
    return ensure(Template(replace(request, path=path), place.own.variables), state, host)


# -- a drop-in in a folder that the distribution reads


@dataclass(frozen=True)
class MergedDropIn(Containerd):
    """A drop-in that the distribution itself merges into the configuration of containerd 1.x, which would replace whole sections."""

    def plan(self, file: ConfigFile, managed: t.Mapping[Path, Managed]) -> ContainerdPlan:
        """Decide what the drop-in should mean. Its runtime inherits from runc as the other drop-ins together have it."""
        runc: Tree = {"runtime_type": RUNC_V2}
        for path in _list_beside(self.path):
            other = read(path, TOML).tree
            layout = schema_of(other)
            merge(runc, table(other, (*layout.runtimes, "runc")) if layout else {})
        return plan(file.tree, self.request, managed, {"runtimes": {"runc": runc}})

    def validate(self, program: str, data: bytes, workdir: str | None, execute: Run) -> Verdict:
        """Let containerd load *data* alone, since the distribution merges it."""
        return validate_file(program, self.path, data, workdir, execute)


def _apply_drop_in(place: Place, request: Request, state: str, host: Host) -> Outcomes:
    path, root = place.own.edited, place.own.config
    if state == "present":
        if request.release is None:
            raise ConfigError(f"{host.binary} does not state its release: check it, and run again.")
        check_drop_ins({name: read(name, TOML).tree for name in _list_beside(path)}, request.release, place.name)
    if request.release is not None and request.release.merges_imports:
        return drop_in.apply(replace(request, path=root), path, state, host)
    return ensure(MergedDropIn(replace(request, path=path)), state, host)


def check_drop_ins(trees: t.Mapping[str, Tree], release: Release, name: str) -> None:
    """Raise ConfigError for a drop-in with which the distribution *name* would not start containerd again, by path.

    With containerd 2 it accepts version 3 or none, and no section of the CRI plugin of version 2.
    """
    if not release.merges_imports:
        return
    for path, tree in trees.items():
        if tree.get("version", 3) != 3 or get(tree, ("plugins", CRI_V2)) is not MISSING:
            raise ConfigError(
                f"{path} is of a version other than 3 or has a section {CRI_V2}, with which {name} does not start containerd {release}:"
                " convert it (`containerd config migrate`) or remove it, and run again."
            )


def _list_beside(path: str) -> list[str]:
    folder = os.path.dirname(path)
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    return [os.path.join(folder, name) for name in names if name.endswith(".toml") and name != os.path.basename(path)]


_WAYS: dict[str, t.Callable[[Place, Request, str, Host], Outcomes]] = {
    "automatic": automatic.apply,
    "drop_in": _apply_drop_in,
    "template": _apply_template,
}
