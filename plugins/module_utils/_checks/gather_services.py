# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Observes the container runtime and the kubelet of a node."""

from __future__ import annotations

import glob
import json
import os
import re
from typing import Any, Mapping, Sequence

from .. import _commands
from .._config import files
from .._config.paths import StatePaths
from .._kube_error import shorten
from .._nvml import driver
from .._probe import clients, host, kubelet
from .._probe.errors import QueryError
from .._probe.query import Node, query
from .._runtimes.drift import list_drift
from .sources import MAX_FILES, MAX_LINES, MAX_PODS, Options, find_program, run_program

RUNTIME_FILES = (
    "etc/containerd/config.toml",
    "etc/containerd/conf.d/*.toml",
    "etc/crio/crio.conf",
    "etc/crio/crio.conf.d/*",
)
DOCKER_SOCKET = "/run/docker.sock"
_DAEMON_PROGRAMS = {"containerd": "containerd", "crio": "crio", "docker": "dockerd"}
#: The kubelet's folder for sockets of device plugins, whatever its --root-dir is.
PLUGIN_FOLDER = "/var/lib/kubelet/device-plugins"
_TOPOLOGY = re.compile(r"""^\s*["']?topologyManagerPolicy["']?\s*:\s*["']?([a-z-]+)""", re.MULTILINE)


def read_runtime(options: Options) -> dict[str, Any] | None:
    """The container runtime: its runtimes by name, the error if it does not answer, and files that are newer than its start.

    None if neither a kubelet names its socket nor a usual place has one.
    """
    described = kubelet.describe_kubelet(kubelet.list_processes(), kubelet.read_path)
    endpoint = str(described["endpoint"] or "")
    socket = options.socket or (endpoint.partition("://")[2] or _find_socket())
    daemon = kubelet.find_daemon(socket) if socket else None
    if daemon is None:
        return None
    if daemon == "docker":  # the kubelet's socket is that of cri-dockerd
        socket = options.socket or DOCKER_SOCKET
    shown = clients.parse_show(run_program(clients.build_show_command(daemon), options)[1])
    node = Node(
        find=find_program,
        run=lambda command, seconds: _commands.run(command, seconds=seconds),
        arguments_of=_read_arguments,
    )
    changed = _find_newer_files(options.root, shown.get("MainPID", ""), daemon)
    try:
        _answer, effective = query(daemon, socket, shown, node)
    except QueryError as error:
        return {"daemon": daemon, "error": shorten(error), "handlers": {}, "changed_files": []}
    return {"daemon": daemon, "error": "", "handlers": effective.get("runtimes") or {}, "changed_files": changed}


def read_drift(options: Options) -> list[dict[str, Any]] | None:
    """The files of container runtimes that differ from what this collection wrote, with their settings; None if its records cannot be read."""
    try:
        os.listdir(StatePaths(os.path.join(options.root, files.STATE_DIR.lstrip("/"))).records())
    except FileNotFoundError:
        return []
    except OSError:
        return None
    return [
        {
            "path": row["path"],
            "settings": row["settings"][:MAX_LINES],
            "error": shorten(row["error"]) if row["error"] else "",
        }
        for row in list_drift(options.root)[:MAX_FILES]
    ]


def _find_socket() -> str:
    """The socket of a containerd that is a part of the Kubernetes distribution."""
    return next(iter(sorted(glob.glob("/run/*/containerd/containerd.sock"))), "")


def _read_arguments(pid: str) -> list[str]:
    return (kubelet.read_path(f"/proc/{pid}/cmdline") or "").split("\0")[:-1] if pid.isdigit() else []


def _read_start(root: str, pid: str) -> float | None:
    """When a process began, in seconds since 1970; None if it is not known."""
    boot = re.search(r"(?m)^btime (\d+)$", driver.read_text(root, "proc/stat") or "")
    # The command in the second field can contain anything; the start is the 22nd field, in ticks since the boot.
    fields = (driver.read_text(root, f"proc/{pid}/stat") or "").rpartition(")")[2].split() if pid.isdigit() else []
    return int(boot.group(1)) + int(fields[19]) / os.sysconf("SC_CLK_TCK") if boot and len(fields) > 19 else None


def _find_newer_files(root: str, pid: str, daemon: str) -> list[str]:
    """The files of the runtime's configuration that changed after its process began; none if its start is not known."""
    started = _read_start(root, pid)
    paths = [path for each in RUNTIME_FILES for path in sorted(glob.glob(os.path.join(glob.escape(root), each)))]
    own = [path for path in paths if f"/{daemon}/" in path]
    return [f"/{os.path.relpath(path, root)}" for path in own if started and os.stat(path).st_mtime > started + 1][
        :MAX_LINES
    ]


def read_kubelet(options: Options) -> dict[str, Any]:
    """The kubelet: whether it runs (None where it is a part of another program), sockets of device plugins, and its checkpoint of devices."""
    processes = kubelet.list_processes()
    described = kubelet.describe_kubelet(processes, kubelet.read_path)
    unit = clients.parse_show(run_program(clients.build_show_command("kubelet"), options)[1])
    arguments = next((words for words in processes if words and os.path.basename(words[0]) == "kubelet"), [])
    place = os.path.join(options.root, PLUGIN_FOLDER.lstrip("/"))
    names = kubelet.read_path(place)
    return {
        "running": True if described["running"] else False if unit.get("LoadState") == "loaded" else None,
        "cgroup_driver": None if _reads_driver_from_runtime(described, options) else described["cgroup_driver"],
        "topology_policy": _find_topology_policy(processes),
        "node_name": kubelet.get_flag(arguments, "--hostname-override") or "",
        "plugin_folder": PLUGIN_FOLDER,
        "sockets": [name for name in names if name.endswith(".sock")][:MAX_FILES] if isinstance(names, list) else None,
        "checkpoint": _read_checkpoint(os.path.join(place, "kubelet_internal_checkpoint")),
    }


def _reads_driver_from_runtime(described: Mapping[str, Any], options: Options) -> bool:
    def attempt(command: Sequence[str]) -> tuple[int, str]:
        return run_program(command, options)[:2]

    program = _DAEMON_PROGRAMS.get(str(described["daemon"]), "")
    versions = [host.describe_program(find_program(name), attempt)["version"] for name in ("kubelet", program) if name]
    return kubelet.reads_driver_from_runtime(versions[0], described["daemon"], versions[-1] if program else None)


def _find_topology_policy(processes: Sequence[Sequence[str]]) -> str | None:
    texts = (kubelet.read_path(path) for path in kubelet.list_configurations(processes, kubelet.read_path))
    matched = [_TOPOLOGY.search(text) for text in texts if isinstance(text, str)]
    return next((each.group(1) for each in reversed(matched) if each), None)


def _read_checkpoint(path: str) -> dict[str, Any] | None:
    """The UIDs of the pods to which the kubelet has allocated devices, or the reason why its file cannot be read; None without a file."""
    text = kubelet.read_path(path)
    if not isinstance(text, str):
        return None
    try:
        entries = (json.loads(text)["Data"] or {}).get("PodDeviceEntries") or []
        return {"pods": sorted({str(entry["PodUID"]) for entry in entries})[:MAX_PODS], "error": ""}
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        return {"pods": [], "error": shorten(error)}
