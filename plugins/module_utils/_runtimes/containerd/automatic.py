# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A distribution that adds the NVIDIA runtime to its containerd by itself when it starts, if it finds the program.

What is written is the default runtime, in the distribution's own settings, and further settings of containerd: in a drop-in if the rendered file imports
its folder, else in a template below the line for what the distribution renders.
"""

from __future__ import annotations

import os.path
import re
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
from ..._config.tree import Path, Tree, get
from ..._config.validate import Run, Verdict
from ..._distributions import named
from ..._document import DocumentError
from ..runtime import build_rules
from . import imports
from .base_template import BLOCK, TEMPLATE
from .daemon import Containerd, load_import, validate_drop_in, validate_file
from .plan import Request
from .schema import schema_of
from .unit import check_program, read_text, read_unit

if t.TYPE_CHECKING:
    from ..._config.apply import Daemon, Host, Outcomes
    from ..._config.change_log import Change
    from .unit import Place

_NAME = "50-gpu-kubernetes"
# A top-level scalar of a YAML document; nodes have no parser for it.
_SETTING = r"""^["']?%s["']?:[ \t]+["']?([^\s"'#]+)"""


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
        return os.path.join(self.place.own.settings_folder, f"{_NAME}.yaml")

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


def apply(place: Place, request: Request, state: str, host: Host) -> Outcomes:
    """Bring the distribution's settings, and containerd's further ones, to *state*. Raises ConfigError for what it cannot do."""
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
    yield from ensure(DefaultRuntime(place, request), wanted, host)
    for daemon in _list_settings(place, request, state, host):
        yield from ensure(daemon, state, host)


def _refuse_settings(place: Place, request: Request) -> None:
    given = [name for name in ("enable_cdi", "systemd_cgroup") if getattr(request, name) is not None]
    given += [f"settings.{name}" for name in request.settings if name != "plugins"]
    if given:
        raise ConfigError(
            f"{' and '.join(given)} cannot be set here, since {place.name} renders {place.own.config}: {named(place.name).containerd_hint}."
        )


# -- further settings of containerd


@dataclass(frozen=True)
class Settings:
    """Further settings for the rendered file of *place*, in a file of their own."""

    place: Place
    request: Request
    name = "containerd"

    @property
    def entry(self) -> str:
        """The runtime, with which the settings come and go."""
        return self.request.runtime_name

    @property
    def root(self) -> str:
        """The rendered file."""
        return self.place.own.config

    @property
    def folder(self) -> str:
        """The folder of the rendered file."""
        return os.path.dirname(self.root)

    def check_owner(self, _text: str) -> list[str]:
        """Nothing: the distribution reads the file, and does not write it."""
        return []

    def check_types(self, _tree: Tree) -> None:
        """Nothing: containerd checks it."""

    def check_effect(self, _verdict: Verdict) -> None:
        """Nothing: further settings have no effect that is known here."""

    def check_default(self, _verdict: Verdict) -> None:
        """Nothing: the default runtime is a setting of the distribution."""

    def facts(self, _tree: Tree) -> dict[str, t.Any]:
        """Nothing: the first file's facts are of the whole."""
        return {}


@dataclass(frozen=True)
class SettingsDropIn(Settings):
    """A drop-in of containerd in a folder that the rendered file imports."""

    syntax = TOML
    rules = build_rules("")

    @property
    def path(self) -> str:
        """The drop-in."""
        return os.path.join(f"{_template_stem(self.folder, self.root)}.d", f"{_NAME}.toml")

    @property
    def imported_by(self) -> str:
        """The rendered file."""
        return self.root

    def is_read(self) -> bool:
        """Whether the rendered file imports it."""
        return imports.is_imported(self.path, read(self.root, TOML).tree, self.folder)

    def plan(self, file: ConfigFile, managed: t.Mapping[Path, Managed]) -> Plan:
        """Decide what the drop-in should mean."""
        layout = schema_of(read(self.root, TOML).tree)
        draft = Draft(file.tree, file.path, managed, TOML)
        if layout:
            draft.put(("version",), layout.version, "version", "state the configuration version")
        draft.merge_settings(self.request.settings)
        return Plan(draft.tree, draft.kinds, draft.reasons, draft.warnings)

    def undo(self, tree: Tree, changes: t.Sequence[Change], original: Tree | None) -> tuple[Tree, list[str]]:
        """Return what *tree* means without *changes*."""
        return undo_changes(tree, changes, (), self.rules, original), []

    def validate(self, program: str, data: bytes, workdir: str | None, execute: Run) -> Verdict:
        """Let containerd load *data* instead of the drop-in, with the rendered file."""
        root = read(self.root, TOML)
        patterns = imports.absolute_patterns(root.tree, self.folder)
        names = [name for pattern in patterns for name in imports.expand(pattern, self.path)]
        return validate_drop_in(program, self.path, self.root, root.document, names, data, workdir, execute)

    def has_entry(self, tree: Tree) -> bool:
        """Whether the drop-in has settings."""
        return bool(tree)


@dataclass(frozen=True)
class SettingsTemplate(Settings):
    """A block of the distribution's template, below the line for what it renders without one."""

    syntax = TEMPLATE
    rules = build_rules("")
    imported_by = None

    @property
    def path(self) -> str:
        """The template."""
        return f"{_template_stem(self.folder, self.root)}.tmpl"

    def plan(self, file: ConfigFile, managed: t.Mapping[Path, Managed]) -> Plan:
        """Decide what the block should be."""
        draft = Draft(file.tree, file.path, managed, TEMPLATE)
        draft.put(BLOCK, TOML.dumps(self.request.settings), "settings", "add a block to the template")
        if draft.tree != file.tree:
            self._check_tables(draft.tree[BLOCK[0]])
        return Plan(draft.tree, draft.kinds, draft.reasons, draft.warnings)

    def _render(self, block: str | None) -> bytes:
        """Return the rendered file with this block instead of the present one."""
        document = TEMPLATE.from_bytes(files.read_bytes(self.root) or b"")
        document.remove(BLOCK)
        if block is not None:
            document.set(BLOCK, block)
        return document.to_bytes()

    def _check_tables(self, block: str) -> None:
        try:
            TOML.from_bytes(self._render(block))
        except DocumentError as exc:
            raise ConfigError(
                f"settings: {self.root} would have a table or setting twice with them ({exc.message}), and containerd would not start: leave out"
                f" what {self.place.name} renders itself."
            ) from exc

    def undo(self, tree: Tree, changes: t.Sequence[Change], original: Tree | None) -> tuple[Tree, list[str]]:
        """Return what *tree* means without *changes*."""
        return undo_changes(tree, changes, (), self.rules, original), []

    def validate(self, program: str, data: bytes, workdir: str | None, execute: Run) -> Verdict:
        """Let containerd load the rendered file with the block of *data*."""
        block = TEMPLATE.from_bytes(data).tree.get(BLOCK[0])
        return validate_file(program, self.root, self._render(block), workdir, execute)

    def has_entry(self, tree: Tree) -> bool:
        """Whether the template has the block."""
        return BLOCK[0] in tree


def _template_stem(folder: str, root: str) -> str:
    """Return the path of the template for the version of the rendered file, without its extension."""
    layout = schema_of(load_import(root) or {})
    return os.path.join(folder, "config-v3.toml" if layout and layout.version >= 3 else "config.toml")


def _list_settings(place: Place, request: Request, state: str, host: Host) -> list[Daemon]:
    """Return the files with further settings: that which this run writes, or those of earlier runs."""
    drop_in, template = SettingsDropIn(place, request), SettingsTemplate(place, request)
    if state == "absent":
        found: list[Daemon] = [drop_in, template]
        return [each for each in found if host.change_log(each).entries]
    if not request.settings:
        return []
    return [drop_in if drop_in.is_read() else template]


def _read_settings(folder: str) -> dict[str, str]:
    """Return the files of the distribution's configuration with their text, in the order in which they are read."""
    main = folder[: -len(".d")]
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith((".yaml", ".yml")))
    except OSError:
        names = []
    return {path: read_text(path) for path in [main, *(os.path.join(folder, name) for name in names)]}


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
