# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each version of containerd and of its configuration file is like, as data, and which runtimes in it are of runc's kind.

Source: containerd's `docs/` and behaviour measured with 1.4 to 2.4.
"""

from __future__ import annotations

import os.path
import re
import typing as t
from dataclasses import dataclass

from ..._config.formats import TOML
from ..._config.schema_checks import check_types
from ..._config.tree import MISSING, Path, Tree, get, table
from ..runtime import is_nvidia_path

CRI_V2 = "io.containerd.grpc.v1.cri"
CRI_V3 = "io.containerd.cri.v1.runtime"
IMAGES_V3 = "io.containerd.cri.v1.images"

RUNC_V2 = "io.containerd.runc.v2"

#: Shims that run OCI binaries with runc's command line; only their options fit the NVIDIA runtime.
RUNC_SHIMS = frozenset(["io.containerd.runc.v1", RUNC_V2])

#: Names in disabled_plugins that switch CRI off, in any version of the file.
CRI_NAMES = frozenset(["cri", CRI_V2, CRI_V3, IMAGES_V3])

#: Top-level keys that mean the same in a file without a version (read as version 1) and in versions 2 and 3.
NEUTRAL_KEYS = frozenset(
    [
        "root", "state", "temp", "oom_score", "imports", "disabled_plugins", "required_plugins",
        "grpc", "ttrpc", "debug", "metrics", "timeouts", "cgroup",
    ]
)  # fmt: skip

#: The settings that are read, with their types.
TYPES: list[tuple[Path, str]] = [
    (("imports",), "texts"),
    (("disabled_plugins",), "texts"),
    (("required_plugins",), "texts"),
    (("plugins",), "table"),
    *(
        (("plugins", plugin, *rest), kind)
        for plugin in (CRI_V2, CRI_V3)
        for rest, kind in (
            ((), "table"),
            (("enable_cdi",), "switch"),
            (("containerd",), "table"),
            (("containerd", "default_runtime_name"), "text"),
            (("containerd", "runtimes"), "table"),
            (("containerd", "runtimes", "*"), "table"),
            (("containerd", "runtimes", "*", "runtime_type"), "text"),
            (("containerd", "runtimes", "*", "options"), "table"),
            (("containerd", "runtimes", "*", "options", "BinaryName"), "text"),
            (("containerd", "runtimes", "*", "options", "SystemdCgroup"), "switch"),
        )
    ),
]

#: Keys of a runtime that are never copied: they belong to shims that containerd 2 no longer has.
_NOT_INHERITED = frozenset(["runtime_root", "runtime_engine"])


@dataclass(frozen=True)
class Schema:
    """One version of the configuration file."""

    version: int
    cri: str  # plugin id that holds the runtimes
    builtin_runc: bool  # whether containerd adds runc to a file that names other runtimes only
    cdi_default: bool  # what CDI is without enable_cdi

    @property
    def containerd(self) -> tuple[str, ...]:
        """Path of the table with default_runtime_name."""
        return ("plugins", self.cri, "containerd")

    @property
    def runtimes(self) -> tuple[str, ...]:
        """Path of the table of runtimes."""
        return (*self.containerd, "runtimes")


def check_file(tree: Tree, where: str) -> None:
    """Raise ConfigError, naming the file or option *where*, if a setting has a type that it cannot have."""
    check_types(tree, where, TYPES, TOML)


def is_version(value: object, lowest: int = 0) -> bool:
    """Whether *value* can be a configuration version (true is not 1), not lower than *lowest*."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= lowest


def schema(version: int) -> Schema:
    """Return the schema of configuration *version* (2 or newer; from 3 on all are alike here)."""
    if version < 2:
        raise ValueError(f"no schema for version {version}")
    if version == 2:
        return Schema(2, CRI_V2, builtin_runc=False, cdi_default=False)
    return Schema(version, CRI_V3, builtin_runc=True, cdi_default=True)


def schema_of(tree: t.Mapping[str, t.Any]) -> Schema | None:
    """Return the schema of a file that means *tree*; None if it states no version, or none from 2 on."""
    version: t.Any = tree.get("version")
    return schema(version) if is_version(version, 2) else None


def follow_migration(path: Path, tree: Tree) -> Path:
    """Return where the setting *path* is in *tree*: `containerd config migrate` renames CRI's plugin for version 3.

    Version 3 still has a plugin of the former name, with other settings.  A setting found there was not renamed.
    """
    layout = schema_of(tree)
    if layout is None or get(tree, path) is not MISSING:
        return path
    return tuple(layout.cri if key == CRI_V2 else key for key in path)


@dataclass(frozen=True, order=True)
class Release:
    """A release of containerd: its major and minor version."""

    major: int
    minor: int = 0

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"

    @property
    def new_file_version(self) -> int:
        """The version to state in a new file: the lowest that this line of containerd reads natively."""
        return 2 if self.major < 2 else 3

    @property
    def highest_file_version(self) -> int | None:
        """The highest version of the file that it reads; None for releases that are not known yet."""
        if self.major < 2:
            return 2
        if self < Release(2, 3):
            return 3
        return 4 if self < Release(2, 5) else None

    @property
    def migrates_imports(self) -> bool:
        """Whether an imported file of a lower version than the importing one counts, instead of being ignored."""
        return self >= Release(2, 3)

    @property
    def merges_imports(self) -> bool:
        """Whether imported files are merged leaf by leaf (2.0) or replace a plugin's whole section (1.x)."""
        return self.major >= 2


_RELEASE = re.compile(r"v?(\d+)(?:\.(\d+))?(?:[.~+-].*)?\Z")


def parse_release(text: str) -> Release | None:
    """Read `2.1.4`, `v1.7.28`, `1.6.20~ds1`, `2` or what `containerd --version` prints; None if there is no number."""
    for word in text.split():
        found = _RELEASE.match(word)
        if found and (len(text.split()) == 1 or "." in word):
            return Release(int(found.group(1)), int(found.group(2) or 0))
    return None


# -- runtimes of runc's kind, and what another one inherits from them


def is_runc_type(runtime: t.Any, by_binary: bool = True) -> bool:
    """Whether a table of a runtime describes runc or a binary with runc's command line (not Kata, not gVisor)."""
    if not isinstance(runtime, dict) or runtime.get("runtime_type") not in RUNC_SHIMS:
        return False
    binary = os.path.basename(str(get(runtime, ("options", "BinaryName"), "")))
    return not (by_binary and binary.startswith(("runsc", "kata")))


def is_nvidia(runtime: t.Any) -> bool:
    """Whether a runtime is one of NVIDIA's wrappers, whose settings are not runc's."""
    return is_nvidia_path(get(runtime, ("options", "BinaryName"), ""))


def find_inheritable(source: Tree) -> Tree:
    """Return what another runtime of runc's type inherits: what is set, without binary and type."""
    found = {
        key: value
        for key, value in source.items()
        if value and key not in ("options", "runtime_type") and key not in _NOT_INHERITED
    }
    options = {
        key: value
        for key, value in table(source, ("options",)).items()
        if key != "BinaryName" and (value or key == "SystemdCgroup")
    }
    return {**found, "options": options} if options else found
