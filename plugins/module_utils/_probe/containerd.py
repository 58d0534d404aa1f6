# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runtimes in containerd's configuration, as the running daemon reports it or as ``containerd config dump`` prints it."""

from __future__ import annotations

import os
from typing import Any, Mapping, Sequence

from .._toml import TomlError, loads
from .client import Runner, read_output
from .errors import ClientError, QueryError
from .kubelet import get_flag

#: The plugins that have the runtimes, of configuration version 3 and newer and of version 2.
PLUGINS = ("io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri")


def read_runtimes(config: Mapping[str, Any]) -> dict[str, Any]:
    """Read the settings of containerd's CRI plugin, by their names in JSON or in TOML.

    Returns {default_runtime: str or None, enable_cdi: bool or None, runtimes: {name: {type, binary, systemd_cgroup}}}.
    """
    containerd = _get_table(config, "containerd")
    runtimes = {}
    for name, runtime in sorted(_get_table(containerd, "runtimes").items()):
        options = _get_table(runtime, "options")
        runtimes[name] = {
            "type": _get_field(runtime, "runtimeType", "runtime_type"),
            "binary": _get_field(options, "BinaryName", "binary_name") or None,
            "systemd_cgroup": bool(_get_field(options, "SystemdCgroup", "systemd_cgroup")),
        }
    return {
        "default_runtime": _get_field(containerd, "defaultRuntimeName", "default_runtime_name"),
        "enable_cdi": _get_field(config, "enableCDI", "enable_cdi"),
        "runtimes": runtimes,
    }


def dump_runtimes(arguments: Sequence[str], run: Runner) -> dict[str, Any]:
    """Return what read_runtimes returns, of the files that the containerd with these *arguments* reads at its next start.

    Raises ClientError.
    """
    if not arguments or os.path.basename(arguments[0]) != "containerd":
        raise ClientError("the runtimes are unknown: the service's process is not containerd")
    path = get_flag(arguments, "--config") or get_flag(arguments, "-c")
    command = [arguments[0], *(["--config", path] if path else []), "config", "dump"]
    try:
        return read_runtimes(read_dump(read_output(run, command)))
    except (ClientError, QueryError) as error:
        raise ClientError(f"the runtimes are unknown: {error}") from error


def read_dump(printed: str) -> Mapping[str, Any]:
    """Return the settings of the CRI plugin from the output of ``containerd config dump``. Raises ClientError."""
    try:
        plugins = _get_table(loads(printed), "plugins")
    except (TomlError, RecursionError) as error:
        raise ClientError("containerd config dump printed something other than TOML") from error
    return next((_get_table(plugins, name) for name in PLUGINS if "containerd" in _get_table(plugins, name)), {})


def _get_table(parent: Any, key: str) -> Mapping[str, Any]:
    value = parent.get(key) if isinstance(parent, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _get_field(parent: Any, *names: str) -> Any:
    if not isinstance(parent, Mapping):
        return None
    return next((parent[name] for name in names if name in parent), None)
