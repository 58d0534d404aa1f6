# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The merge of the NVIDIA runtime into a containerd configuration, decided on plain data.

`plan()` takes what a file means and what is requested, and returns what it should mean, with the reason
for every change. It reads nothing and writes nothing.
"""

from __future__ import annotations

import copy
import typing as t
from dataclasses import dataclass, field

from ..._config.draft import Managed, Plan
from ..._config.errors import ConfigError
from ..._config.formats import TOML
from ..._config.tree import MISSING, Path, Tree, get, leaves, merge, table
from ..runtime import RuntimeDraft, check_handler
from .schema import (
    CRI_NAMES,
    CRI_V2,
    CRI_V3,
    NEUTRAL_KEYS,
    RUNC_V2,
    Release,
    Schema,
    check_file,
    find_inheritable,
    is_nvidia,
    is_runc_type,
    is_version,
    schema,
)

#: Short plugin names of version 1 that have one long name; others have to be converted by hand.
_SNAPSHOTTERS = frozenset(["aufs", "btrfs", "devmapper", "native", "overlayfs", "zfs"])


@dataclass(frozen=True)
class Request:
    """What is requested. None means: not requested, the setting stays as it is. Raises ConfigError for a name that no runtime can have."""

    path: str  # for messages only
    runtime_name: str = "nvidia"
    runtime_path: str = "/usr/bin/nvidia-container-runtime"
    set_default: bool | None = None
    enable_cdi: bool | None = None
    systemd_cgroup: bool | None = None
    settings: t.Mapping[str, t.Any] = field(default_factory=dict)
    release: Release | None = None  # None: containerd's release is not known
    in_drop_in: bool = False  # whether it is for a file that *path* imports

    def __post_init__(self) -> None:
        check_handler(self.runtime_name)

    @property
    def option(self) -> str:
        """The option that names the file which is written, for messages."""
        return "drop_in" if self.in_drop_in else "path"


@dataclass
class ContainerdPlan(Plan):
    """What the file should mean, and the version in which it is written."""

    schema: Schema


def plan(
    tree: Tree,
    request: Request,
    managed: t.Mapping[Path, Managed] | None = None,
    imported: Tree | None = None,
) -> ContainerdPlan:
    """Decide what a file that means *tree* has to mean for *request*.

    *managed* are the leaves that earlier runs for this runtime changed, *imported* is the table `containerd` of
    the CRI plugin as imported files have it (only where containerd merges those leaf by leaf).
    Raises ConfigError if the file cannot be merged into, with the remedy.
    """
    check_file(tree, request.path)
    draft = _Draft(tree, request, managed or {}, imported or {})
    draft.run()
    return ContainerdPlan(draft.tree, draft.kinds, draft.reasons, draft.warnings, draft.schema)


def plan_import(tree: Tree, request: Request, drop_in: str, known: bool) -> ContainerdPlan:
    """Decide what a file that means *tree* has to mean in order to import *drop_in*; *known*: it does already.

    Raises as `plan`.
    """
    check_file(tree, request.path)
    draft = _Draft(tree, request, {}, {})
    if not known:
        draft.put(("imports",), [*tree.get("imports", []), drop_in], "import", f"import {drop_in}")
    return ContainerdPlan(draft.tree, draft.kinds, draft.reasons, draft.warnings, draft.schema)


class _Draft(RuntimeDraft):
    def __init__(self, tree: Tree, request: Request, managed: t.Mapping[Path, Managed], imported: Tree) -> None:
        super().__init__(tree, request.path, managed, TOML)
        self.request = request
        self.imported = imported
        self.schema = self._state_version()

    def run(self) -> None:
        self.reset_inherited({self._runtime(self.request.runtime_name)})
        self._switch_cri_on()
        self._merge_settings()
        self._add_runc()
        self._set_cgroup_driver()
        self._add_runtime()
        path = (*self.schema.containerd, "default_runtime_name")
        self.set_default(path, self.request.runtime_name, self.request.set_default, self._known())
        self._set_cdi()
        self.warnings.extend(_find_warnings(self.tree, self.schema, self.request, self._known()))

    # -- the file as a whole

    def _state_version(self) -> Schema:
        """Return the schema of the file; state a version where none is and one can be."""
        request, version = self.request, self.tree.get("version", MISSING)
        if version is MISSING:
            version = self._version_for_unversioned()
            self.add_reason(("version",), "version", "state the configuration version")
            self.tree = {"version": version, **self.tree}
        if not is_version(version):
            raise ConfigError(f"{request.path}: version has to be an integer such as 2 or 3; correct it and run again.")
        if version < 2:
            raise ConfigError(_version_1(request.path, f"states configuration version {version}"))
        highest = request.release.highest_file_version if request.release else None
        if highest is not None and version > highest:
            raise ConfigError(
                f"{request.path} states configuration version {version}, but containerd {request.release} reads up to"
                f" version {highest}: upgrade containerd or write the file for version {highest}."
            )
        return schema(version)

    def _version_for_unversioned(self) -> int:
        request = self.request
        if not NEUTRAL_KEYS.issuperset(self.tree):
            raise ConfigError(_version_1(request.path, "states no configuration version and so is read as version 1"))
        if request.release is None:
            raise ConfigError(
                f"{request.path} states no configuration version and there is no containerd that states its release: install"
                " containerd first, or, in a task of your own, set containerd_version (for example 2.1)."
            )
        for key in ("disabled_plugins", "required_plugins"):
            names = self.tree.get(key, MISSING)
            if names is not MISSING:
                self.put(
                    (key,), [self._long_name(key, name) for name in names], "cri", "use long plugin names in " + key
                )
        return request.release.new_file_version

    def _long_name(self, key: str, name: str) -> str:
        if name in CRI_NAMES or name.startswith("io.containerd."):
            return name
        if name in _SNAPSHOTTERS:
            return f"io.containerd.snapshotter.v1.{name}"
        raise ConfigError(
            f"{self.request.path} names {name} in {key}, which only configuration version 1 has: write its long"
            " plugin name (`ctr plugins ls`) and run again."
        )

    def _switch_cri_on(self) -> None:
        names = self.tree.get("disabled_plugins", [])
        if not CRI_NAMES.isdisjoint(names):
            self.put(("disabled_plugins",), [n for n in names if n not in CRI_NAMES], "cri", "switch the CRI plugin on")
            self.warnings.append(
                f"{self.request.path} switched the CRI plugin off through disabled_plugins; without it no kubelet can"
                " use containerd, so it is switched on."
            )

    def _merge_settings(self) -> None:
        if "version" in self.request.settings:
            raise ConfigError(
                f"settings must not hold version, which belongs to the whole file {self.request.path}: leave it out."
            )
        self.merge_settings(self.request.settings)
        check_file(self.tree, "settings")

    # -- runtimes

    def _runtime(self, name: str) -> Path:
        return (*self.schema.runtimes, name)

    def _known(self) -> Tree:
        """Return the runtimes as containerd sees them: of this file, with what imported files set, which overrides it.

        containerd 2 completes a table runc without a type, in a file of any version.
        """
        runtimes = copy.deepcopy(table(self.tree, self.schema.runtimes))
        merge(runtimes, table(self.imported, ("runtimes",)))
        release = self.request.release
        if "runc" in runtimes and (self.schema.builtin_runc or (release and release.major >= 2)):
            runtimes["runc"].setdefault("runtime_type", RUNC_V2)
        return runtimes

    def _add_runc(self) -> None:
        """Write runc where a file that names another runtime would be without it."""
        path = self._runtime("runc")
        # A drop-in is for containerd 2 alone, which keeps its own runc in a file of any version.
        builtin = self.schema.builtin_runc or self.request.in_drop_in
        if builtin or get(self.tree, path) is not MISSING or self.request.runtime_name == "runc":
            return
        # Like the runtime that the new one would inherit from, so that both see the same in every later run.
        runc = {"runtime_type": RUNC_V2, **find_inheritable(self._source()[1])}
        self.put(path, runc, "runc", "write runc, which containerd 1.x drops once a runtime is named")

    def _set_cgroup_driver(self) -> None:
        requested = self.request.systemd_cgroup
        if requested is None:
            return
        runc = self._runtime("runc")
        if requested and get(self.tree, runc) is MISSING and not table(self.imported, ("runtimes", "runc")):
            self.put(runc, {"runtime_type": RUNC_V2}, "runc", "write runc for its cgroup driver")
        here = table(self.tree, self.schema.runtimes)
        for name, runtime in self._known().items():
            if name in here and is_runc_type(runtime):
                self._set_cgroup_driver_of(name, requested)

    def _set_cgroup_driver_of(self, name: str, requested: bool) -> None:
        path = (*self._runtime(name), "options", "SystemdCgroup")
        if bool(get(self.tree, path, False)) is not requested:
            self.put(path, requested, "cgroup", f"set the cgroup driver of runtime {name}")

    def _add_runtime(self) -> None:
        name, path = self.request.runtime_name, self._runtime(self.request.runtime_name)
        runtime = table(self.tree, path)
        source_name, source = self._source()
        reason = f"inherit from runtime {source_name}"
        if not runtime.get("runtime_type"):
            inherited = source.get("runtime_type") or RUNC_V2
            self.put(
                (*path, "runtime_type"), inherited, "inherit" if source_name else "runtime", "give the runtime its type"
            )
        elif not is_runc_type(runtime, by_binary=False):
            self.warnings.append(
                f"Runtime {name} in {self.request.path} has runtime_type {runtime['runtime_type']}, which is kept although"
                " the NVIDIA runtime needs runc's."
            )
        self.put(
            (*path, "options", "BinaryName"), self.request.runtime_path, "runtime", "name the NVIDIA runtime's binary"
        )
        for leaf, value in leaves(find_inheritable(source)).items():
            if get(runtime, leaf) is MISSING:
                self.put((*path, *leaf), value, "inherit", reason)
        if self.request.systemd_cgroup is not None:
            self._set_cgroup_driver_of(name, self.request.systemd_cgroup)

    def _source(self) -> tuple[str, Tree]:
        """Return name and table of the runtime to inherit from: the default if runc-type, else runc, else another."""
        runtimes = self._known()
        default = self.imported.get("default_runtime_name") or get(
            self.tree, (*self.schema.containerd, "default_runtime_name")
        )
        for name in [default, "runc", *sorted(runtimes)]:
            if name != self.request.runtime_name and is_runc_type(runtimes.get(name)) and not is_nvidia(runtimes[name]):
                return str(name), runtimes[name]
        return "", {}

    # -- options of the plugin

    def _set_cdi(self) -> None:
        requested = self.request.enable_cdi
        path = ("plugins", self.schema.cri, "enable_cdi")
        now = get(self.tree, path)
        # From containerd 2.0 on CDI is on; the key is deprecated in 2.2 and removed in 2.4, so it is written only where it has an effect.
        if requested is None or (now is MISSING and requested is self.schema.cdi_default):
            return
        self.put(path, requested, "cdi", "switch CDI %s" % ("on" if requested else "off"))
        if requested is False and self.request.release and self.request.release >= Release(2, 4):
            self.warnings.append(f"containerd {self.request.release} no longer has enable_cdi: CDI stays on.")


def _version_1(path: str, cause: str) -> str:
    return (
        f"{path} {cause}, which has no place for the settings of today's plugins: convert it (containerd 2: `containerd"
        f" config migrate`; containerd 1.x: state `version = 2` and use long plugin names such as {CRI_V2}), then run"
        " again."
    )


def _find_warnings(tree: Tree, layout: Schema, request: Request, runtimes: Tree) -> list[str]:
    """Return warnings about settings of the result that are valid, but seldom intended."""
    found: list[str] = []
    drivers = {
        name: bool(get(runtime, ("options", "SystemdCgroup"), False))
        for name, runtime in runtimes.items()
        if is_runc_type(runtime)
    }
    driver = get(runtimes, (request.runtime_name, "options", "SystemdCgroup"))
    if driver is MISSING and request.systemd_cgroup is None:
        found.append(
            f"No runtime in {request.path} sets SystemdCgroup, so runtime {request.runtime_name} uses cgroupfs: set"
            " systemd_cgroup to true if the kubelet's cgroupDriver is systemd (kubeadm's default), or to false to"
            " confirm."
        )
    if len(set(drivers.values())) > 1:
        systemd = ", ".join(sorted(name for name, driver in drivers.items() if driver))
        others = ", ".join(sorted(name for name, driver in drivers.items() if not driver))
        found.append(
            f"The runtimes in {request.path} do not agree on SystemdCgroup (true: {systemd}; others: {others}): set"
            " systemd_cgroup to make them agree."
        )
    if layout.version >= 3 and table(tree, ("plugins", CRI_V2, "containerd")):
        found.append(
            f"{request.path} has configuration version {layout.version}, but also settings under {CRI_V2}.containerd,"
            f" which containerd 2.0 to 2.2 ignores: move them to {CRI_V3}."
        )
    return found
