# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Queries a container runtime with crictl: version, conditions, runtime handlers and the running configuration.

Source: https://github.com/kubernetes-sigs/cri-tools/blob/master/docs/crictl.md
"""

from __future__ import annotations

import json
from typing import Any, Mapping

from .client import CALL_SECONDS, Runner, read_output
from .errors import ClientError


def query(program: str, socket: str, run: Runner) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """Return what the runtime behind *socket* reports, and its running configuration, which is empty if it reports none.

    The former is {source, api_version, runtime_name, runtime_version, conditions: {name: {status, reason, message}},
    handlers: [name]}. Raises QueryError and ClientError.
    """
    command = [program, "--runtime-endpoint", f"unix://{socket}", "--timeout", f"{CALL_SECONDS}s"]
    version = read_version(read_output(run, [*command, "version"]))
    info = read_info(read_output(run, [*command, "info", "--output", "json"]))
    answer = {"source": "crictl", **version, "conditions": read_conditions(info), "handlers": read_handlers(info)}
    return answer, _get_table(info, "config")


def read_version(printed: str) -> dict[str, Any]:
    """Read the lines of ``crictl version``. Raises ClientError."""
    pairs = (line.partition(":") for line in printed.splitlines())
    values = {name.strip(): value.strip() for name, _colon, value in pairs}
    if not values.get("RuntimeName"):
        raise ClientError("crictl version printed no RuntimeName")
    return {
        "api_version": values.get("RuntimeApiVersion") or None,
        "runtime_name": values["RuntimeName"],
        "runtime_version": values.get("RuntimeVersion") or None,
    }


def read_info(printed: str) -> Mapping[str, Any]:
    """Read the JSON object of ``crictl info``. Raises ClientError."""
    try:
        info = json.loads(printed)
    except (ValueError, RecursionError) as error:
        raise ClientError("crictl info printed something other than JSON") from error
    if not isinstance(info, dict) or not isinstance(info.get("status"), dict):
        raise ClientError("crictl info printed no status")
    return info


def read_conditions(info: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the runtime's conditions by name."""
    return {
        str(condition["type"]): {
            "status": condition.get("status") is True,
            "reason": str(condition.get("reason") or ""),
            "message": str(condition.get("message") or ""),
        }
        for condition in _list_entries(_get_table(info, "status"), "conditions")
        if condition.get("type")
    }


def read_handlers(info: Mapping[str, Any]) -> list[str]:
    """Return the names of the runtime handlers; older runtimes report none. The default handler has no name of its own."""
    return sorted({str(handler["name"]) for handler in _list_entries(info, "runtimeHandlers") if handler.get("name")})


def _get_table(parent: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = parent.get(key)
    return value if isinstance(value, dict) else {}


def _list_entries(parent: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    value = parent.get(key)
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
