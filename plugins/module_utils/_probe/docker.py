# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Queries dockerd for its version, state and runtimes.

Source: the Docker Engine API, https://docs.docker.com/reference/api/engine/ (``GET /info``, since 1.18).
"""

from __future__ import annotations

import json
from typing import Any, Callable, Mapping

from .errors import QueryError

#: Takes the path of a request and returns the body of the answer; raises QueryError.
Caller = Callable[[str], bytes]


def query(get: Caller) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what dockerd reports of itself and its runtimes, as query.query does. Raises QueryError."""
    try:
        info = json.loads(get("/info"))
    except ValueError as error:
        raise QueryError("the answer is not JSON") from error
    if not isinstance(info, dict):
        raise QueryError("the answer is not a JSON object")
    runtimes = info.get("Runtimes") or {}
    answer = {
        "source": "http",
        "api_version": None,
        "runtime_name": "docker",
        "runtime_version": info.get("ServerVersion"),
        "conditions": {"RuntimeReady": {"status": True, "reason": "", "message": ""}},
        "handlers": sorted(runtimes),
    }
    return answer, {
        "default_runtime": info.get("DefaultRuntime"),
        # Docker 25 and newer report the folders of specifications if CDI is enabled.
        "enable_cdi": bool(info.get("CDISpecDirs")) if "CDISpecDirs" in info else None,
        # Without it, the containers that run end when dockerd restarts.
        "live_restore": info.get("LiveRestoreEnabled"),
        "containers_running": info.get("ContainersRunning"),
        "runtimes": {
            name: _build_runtime(runtime, info.get("CgroupDriver") == "systemd")
            for name, runtime in sorted(runtimes.items())
        },
    }


def _build_runtime(runtime: Mapping[str, Any], systemd: bool) -> dict[str, Any]:
    return {"type": runtime.get("runtimeType"), "binary": runtime.get("path") or None, "systemd_cgroup": systemd}
