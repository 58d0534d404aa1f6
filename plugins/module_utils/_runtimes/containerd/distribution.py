# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The containerd that a Kubernetes distribution brings: what is written so that it gets the NVIDIA runtime, and where.

The file that it reads is rendered by the distribution and never edited. Which way there is instead is in the catalogue of distributions.
"""

from __future__ import annotations

import os.path
import re
import shlex
import typing as t
from dataclasses import dataclass, replace

from ..._config import files
from ..._config.apply import ensure
from ..._config.change_log import undo_changes
from ..._config.config_file import ConfigFile, read
from ..._config.draft import Draft, Managed, Plan
from ..._config.errors import ConfigError
from ..._config.formats import JSON, TOML
from ..._config.schema_checks import check_types
from ..._config.tree import MISSING, Path, Tree, get, merge, table
from ..._config.validate import Run, Verdict
from ..._distributions import OwnContainerd, find_program, find_unit, named
from ..runtime import build_rules
from . import drop_in
from .daemon import Containerd, read_release, validate_file
from .plan import ContainerdPlan, Request, plan
from .schema import CRI_V2, RUNC_V2, Release, schema_of

if t.TYPE_CHECKING:
    from ..._config.apply import Host, Outcomes
    from ..._config.change_log import Change

#: The PATH of systemd's services that set none.
SERVICE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_NAME = "50-gpu-kubernetes.yaml"
# A top-level scalar of a YAML document; nodes have no parser for it.
_SETTING = r"""^["']?%s["']?:[ \t]+["']?([^\s"'#]+)"""


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
            each for each in decision.warnings if not any(name in each for name, _ in self.variables)
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


# -- a distribution that adds the runtime by itself when it starts


@dataclass(frozen=True)
class DefaultRuntime:
    """A drop-in of the distribution's own configuration, which names the default runtime. It is YAML, and written as JSON, which is YAML."""

    place: Place
    request: Request
    name = "containerd"
    syntax = JSON
    imported_by = None
    rules = build_rules("")

    @property
    def key(self) -> Path:
        """The setting."""
        return (self.place.own.default_key,)

    @property
    def path(self) -> str:
        """The drop-in."""
        return os.path.join(self.place.own.settings_folder, _NAME)

    @property
    def entry(self) -> str:
        """The runtime."""
        return self.request.runtime_name

    def check_owner(self, _text: str) -> list[str]:
        """Nothing: the file is of this collection."""
        return []

    def check_types(self, tree: Tree) -> None:
        """Refuse a file with settings of types that they cannot have."""
        check_types(tree, self.path, [(self.key, "text")], JSON)

    def plan(self, file: ConfigFile, managed: t.Mapping[Path, Managed]) -> Plan:
        """Decide what the file should mean."""
        check_default_runtime(_read_settings(self.place.own.settings_folder), self.path, self.key[0], self.entry)
        draft = Draft(file.tree, file.path, managed, JSON)
        draft.put(self.key, self.entry, "default", f"make {self.entry} the default runtime")
        return Plan(draft.tree, draft.kinds, draft.reasons, draft.warnings)

    def undo(self, tree: Tree, changes: t.Sequence[Change], original: Tree | None) -> tuple[Tree, list[str]]:
        """Return what *tree* means without *changes*."""
        return undo_changes(tree, changes, (), self.rules, original), []

    def validate(self, _program: str, _data: bytes, _workdir: str | None, _execute: Run) -> Verdict:
        """Nothing: no program checks the file."""
        return Verdict(None, {})

    def check_effect(self, _verdict: Verdict) -> None:
        """Nothing: it is verified after the restart."""

    def check_default(self, _verdict: Verdict) -> None:
        """Nothing: without the setting, the distribution decides."""

    def has_entry(self, tree: Tree) -> bool:
        """Whether the setting is in *tree*."""
        return bool(get(tree, self.key) == self.entry)

    def facts(self, tree: Tree) -> dict[str, t.Any]:
        """What the module returns: of the rendered file, with the default runtime of its next rendering."""
        whole = Containerd(replace(self.request, path=self.place.own.config))
        facts = whole.facts(read(whole.path, TOML).tree)
        return {**facts, "default_runtime_name": get(tree, self.key, facts["default_runtime_name"])}


def _apply_automatic(place: Place, request: Request, state: str, host: Host) -> Outcomes:
    if state == "present":
        _refuse_settings(place, request)
        unit = read_unit(place, host.execute)
        check_program(place, request.runtime_path, unit.path)
        if unit.default_runtime not in (None, request.runtime_name) and request.set_default:
            raise ConfigError(
                f"{place.unit} is started with --{place.own.default_key}={unit.default_runtime}, which is stronger than a file: remove it"
                " from the unit, or leave set_default out."
            )
    wanted = "present" if state == "present" and request.set_default else "absent"
    # A default of an earlier run stays where none is requested.
    if state == "present" and request.set_default is None:
        record = host.change_log(DefaultRuntime(place, request)).entries
        wanted = "present" if request.runtime_name in record else wanted
    return ensure(DefaultRuntime(place, request), wanted, host)


def _refuse_settings(place: Place, request: Request) -> None:
    given = [
        name
        for name, value in (
            ("enable_cdi", request.enable_cdi),
            ("systemd_cgroup", request.systemd_cgroup),
            ("settings", request.settings or None),
        )
        if value is not None
    ]
    if given:
        hint = named(place.name).containerd_hint
        raise ConfigError(
            f"{' and '.join(given)} cannot be set here, since {place.name} renders {place.own.config}: {hint}."
        )


@dataclass(frozen=True)
class Unit:
    """How systemd starts a unit: its PATH, and the default runtime among its arguments."""

    path: tuple[str, ...]
    default_runtime: str | None = None


def read_unit(place: Place, execute: Run) -> Unit:
    """Return how systemd starts the unit of *place*."""
    command = ["systemctl", "show", "--property=Environment,EnvironmentFiles,ExecStart", "--", place.unit]
    _status, output, _errors = execute(command)
    return parse_unit(output, _read_text, place.own.default_key)


def parse_unit(shown: str, read_text: t.Callable[[str], str], flag: str) -> Unit:
    """Return what `systemctl show` prints of a unit.

    *read_text* returns the text of an environment file, and *flag* is the name of the flag for the default runtime.
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
            later += [word for each in read_text(value.partition(" (")[0]).splitlines() for word in _split(each)]
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


def _read_text(path: str) -> str:
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


def _read_settings(folder: str) -> dict[str, str]:
    """Return the files of the distribution's configuration with their text, in the order in which they are read."""
    main = folder[: -len(".d")]
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith((".yaml", ".yml")))
    except OSError:
        names = []
    return {path: _read_text(path) for path in [main, *(os.path.join(folder, name) for name in names)]}


def check_default_runtime(texts: t.Mapping[str, str], path: str, key: str, name: str) -> None:
    """Raise ConfigError if a file that is read after *path* sets *key* to another value than *name*; the last one counts."""
    at = list(texts).index(path) if path in texts else None
    for other, text in texts.items():
        is_later = list(texts).index(other) > at if at is not None else other > path
        found = re.search(_SETTING % re.escape(key), text, re.MULTILINE)
        if found and is_later and found.group(1) != name:
            raise ConfigError(
                f"{other} sets {key} to {found.group(1)}, and is read after {path}: remove it there, or leave set_default out."
            )


_WAYS: dict[str, t.Callable[[Place, Request, str, Host], Outcomes]] = {
    "automatic": _apply_automatic,
    "drop_in": _apply_drop_in,
    "template": _apply_template,
}
