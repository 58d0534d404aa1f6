# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Prometheus scrapes: the job, and the target of each host, as files and as objects of the Prometheus Operator."""

from __future__ import annotations

import json
import re
from typing import Any, Mapping

from .._config.errors import ConfigError
from .series import JOB

#: Below the folder of Prometheus' configuration. Prometheus reads relative paths from there, also where the folder is mounted into a container.
RULES_FILE = "gpu-kubernetes.rules.yml"
TARGETS_DIR = "gpu-targets"

_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]*")
_ADDRESS = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[^\s/:]+):[0-9]{1,5}")
#: Keys of the job that are not the user's.
_MANAGED = frozenset(["job_name", "file_sd_configs", "static_configs"])


def build_job(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scrape job, with more *options* of it, such as ``tls_config``. Raises ConfigError."""
    refused = sorted(_MANAGED & set(options))
    if refused:
        raise ConfigError(f"gpu_prometheus_scrape_options: {refused[0]} is set by this collection; leave it out.")
    return {"job_name": JOB, **options, "file_sd_configs": [{"files": [f"{TARGETS_DIR}/*.json"]}]}


def build_target(
    host: str, target: Mapping[str, Any], node: str, expected: int | None, labels: Mapping[str, Any]
) -> dict[str, Any]:
    """Return address, scheme and labels of a host's exporter.

    *target* is ``{address, exporter, scheme}``, *node* the name of the node, *expected* its number of GPUs (None: not known). Raises ConfigError.
    """
    address = str(target.get("address") or "")
    if not _ADDRESS.fullmatch(address):
        raise ConfigError(
            f"Host {host}: gpu_exporter_target has the address {address!r}, which is not HOST:PORT; correct it."
        )
    scheme = str(target.get("scheme") or "http")
    if scheme not in ("http", "https"):
        raise ConfigError(f"Host {host}: gpu_exporter_target has the scheme {scheme!r}; it is http or https.")
    for name, value in labels.items():
        if not _LABEL.fullmatch(name) or name.startswith("__") or isinstance(value, (dict, list)):
            raise ConfigError(
                f"Host {host}: gpu_prometheus_labels has {name}: a label has letters, digits and underscores, and a text as its value."
            )
    known = {"node": node, "exporter": str(target.get("exporter") or "")}
    if expected is not None:
        known["gpu_expected"] = str(expected)
    # What alerts read is not replaced. Empty labels are none.
    found = {**{name: str(value) for name, value in labels.items()}, **known}
    return {"address": address, "scheme": scheme, "labels": {name: value for name, value in found.items() if value}}


def build_target_file(target: Mapping[str, Any]) -> bytes:
    """Return the file of targets for one host."""
    labels = {**target["labels"], **({"__scheme__": "https"} if target["scheme"] == "https" else {})}
    return (json.dumps([{"targets": [target["address"]], "labels": labels}], indent=2, sort_keys=True) + "\n").encode()


def name_target_file(host: str) -> str:
    """Return the name of the file of targets for one host. Raises ConfigError."""
    if not _HOST.fullmatch(host):
        raise ConfigError(f"Host {host!r} has a name that cannot be the name of a file; rename it in the inventory.")
    return f"{host}.json"
