# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads what a Prometheus reports of itself and of the exporters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ansible.module_utils.urls import open_url

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import shorten
from ansible_collections.gpu.kubernetes.plugins.module_utils._monitoring.observe import PATHS, read_answers

#: Settings with their types and defaults, as an action takes them.
SETTINGS: dict[str, Any] = {
    "url": {"type": "str", "required": True},
    "token": {"type": "str", "default": "", "no_log": True},
    "username": {"type": "str", "default": ""},
    "password": {"type": "str", "default": "", "no_log": True},
    "ca_path": {"type": "path", "default": ""},
    "validate_certs": {"type": "bool", "default": True},
    "timeout": {"type": "float", "default": 30.0},
}
#: More is not an answer to these queries.
MAX_BYTES = 64 * 1024 * 1024


def read_monitoring(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what observe.read_answers returns; only ``error``, a clause, if Prometheus cannot be read."""
    token, name = settings["token"], settings["username"]
    credentials = {"url_username": name, "url_password": settings["password"], "force_basic_auth": True} if name else {}
    answers: dict[str, Any] = {}
    try:
        for each, path in PATHS.items():
            response = open_url(
                settings["url"].rstrip("/") + path,
                headers={"Authorization": f"Bearer {token}"} if token else {},
                validate_certs=settings["validate_certs"],
                ca_path=settings["ca_path"] or None,
                timeout=settings["timeout"],
                # A token would be sent to the other server, too.
                follow_redirects="none",
                **credentials,
            )
            answers[each] = json.loads(response.read(MAX_BYTES))
    except Exception as error:
        return {
            "error": f"Prometheus cannot be read ({shorten(error)}); check gpu_doctor_prometheus_url and its credentials"
        }
    return read_answers(answers)
