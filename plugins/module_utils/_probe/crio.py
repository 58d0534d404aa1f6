# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runtimes of a running CRI-O, which the CRI does not report.

Source: CRI-O's ``server/inspect.go``; ``GET /config`` on the socket of the CRI answers with the configuration in use, as TOML.
"""

from __future__ import annotations

from typing import Any

from .._toml import TomlError, loads
from .errors import QueryError


def read_runtimes(body: bytes) -> dict[str, Any]:
    """Read the answer to ``GET /config``; returns the same as containerd.read_runtimes. Raises QueryError."""
    try:
        runtime = loads(body.decode("utf-8"))["crio"]["runtime"]
        runtimes = dict(runtime["runtimes"])
    except (UnicodeDecodeError, TomlError, LookupError, TypeError, ValueError) as error:
        raise QueryError("the configuration that it reports cannot be read") from error
    systemd = runtime.get("cgroup_manager", "systemd") == "systemd"
    return {
        "default_runtime": runtime.get("default_runtime") or None,
        "enable_cdi": True,
        "runtimes": {
            name: {
                "type": table.get("runtime_type") or "oci",
                "binary": table.get("runtime_path") or None,
                "systemd_cgroup": systemd,
            }
            for name, table in sorted(runtimes.items())
        },
    }
