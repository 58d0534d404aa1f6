# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The container runtime and the files of a host's kubelet.

Sources: the kubelet's reference (``--container-runtime-endpoint``, ``--config``, ``--config-dir``) and kubeadm's ``kubeadm-flags.env``,
https://kubernetes.io/docs/reference/command-line-tools-reference/kubelet/
"""

from __future__ import annotations

import json
import os
import re
import shlex
from typing import Any, Callable, Iterator, Sequence

from .._distributions import DEFAULT

#: Takes a path; returns the text of a file or the sorted names in a folder, None if there is none.
Reader = Callable[[str], Any]

# The default of the flag and of the file, and the default before Kubernetes 1.24 with Docker.
DEFAULT_ENDPOINT, DOCKERSHIM = "unix:///run/containerd/containerd.sock", "unix:///var/run/dockershim.sock"

_FLAG = "--container-runtime-endpoint"
# A top-level scalar of a YAML document; a parser is not needed for it.
_SETTING = re.compile(r"""^containerRuntimeEndpoint:[ \t]+(?:"([^"\n]*)"|'([^'\n]*)'|([^\s#'"]+))""", re.MULTILINE)
# A part of the socket's name or folder, as these daemons have it by default: the runtime behind it.
_SOCKETS = (("crio", "crio"), ("docker", "docker"), ("containerd", "containerd"))


def describe_kubelet(processes: Sequence[Sequence[str]], read: Reader) -> dict[str, Any]:
    """Describe the kubelet: {running, endpoint, daemon}.

    ``processes`` are the arguments of the host's processes. ``endpoint`` is None on a host that never had a kubelet. ``daemon`` is
    containerd, crio, docker (behind cri-dockerd), or None where the socket has another name.
    """
    running = _find_running(processes)
    arguments = running if running is not None else _read_written(read)
    if arguments is None:
        return {"running": False, "endpoint": None, "daemon": None}
    left_out = DOCKERSHIM if get_flag(arguments, "--container-runtime") == "docker" else DEFAULT_ENDPOINT
    endpoint = get_flag(arguments, _FLAG) or _find_endpoint(arguments, read) or left_out
    return {"running": running is not None, "endpoint": endpoint, "daemon": find_daemon(endpoint)}


def list_configurations(processes: Sequence[Sequence[str]], read: Reader) -> list[str]:
    """Return the files of the kubelet's configuration, of which the last one with a setting counts; empty without a kubelet."""
    arguments = _find_running(processes)
    return list(_list_files(_read_written(read) or () if arguments is None else arguments, read))


def find_daemon(endpoint: str) -> str | None:
    """Return which daemon listens on a socket of this name."""
    places = (os.path.basename(endpoint.lower()), endpoint.lower())
    return next((daemon for place in places for part, daemon in _SOCKETS if part in place), None)


def _find_running(processes: Sequence[Sequence[str]]) -> list[str] | None:
    """Return the flags of the kubelet that runs."""
    return next(
        (list(arguments[1:]) for arguments in processes if arguments and os.path.basename(arguments[0]) == "kubelet"),
        None,
    )


def _read_written(read: Reader) -> list[str] | None:
    """Return the flags that the distribution wrote for the kubelet, None if it wrote nothing."""
    flags, config = read(DEFAULT.kubelet_flags), read(DEFAULT.kubelet_config)
    if flags is None and config is None:
        return None
    try:
        given = " ".join(shlex.split((flags or "").partition("=")[2]))
        return [f"--config={DEFAULT.kubelet_config}", *shlex.split(given)]
    except ValueError:
        return [f"--config={DEFAULT.kubelet_config}"]


def get_flag(arguments: Sequence[str], flag: str) -> str | None:
    """Return the value of a flag, as one word or two; the last one counts."""
    found = None
    for number, word in enumerate(arguments):
        if word.startswith(f"{flag}="):
            found = word[len(flag) + 1 :]
        elif word == flag:
            found = next(iter(arguments[number + 1 : number + 2]), None)
    return found or None


def _find_endpoint(arguments: Sequence[str], read: Reader) -> str | None:
    """Return the setting of the kubelet's configuration; its drop-ins go before the main file, the last one first."""
    endpoints = [_parse_endpoint(read(path)) for path in _list_files(arguments, read)]
    return next((endpoint for endpoint in reversed(endpoints) if endpoint), None)


def _list_files(arguments: Sequence[str], read: Reader) -> Iterator[str]:
    main, folder = get_flag(arguments, "--config"), get_flag(arguments, "--config-dir")
    if main:
        yield main
    if folder:
        yield from (os.path.join(folder, name) for name in read(folder) or () if name.endswith(".conf"))


def _parse_endpoint(text: str | None) -> str | None:
    if not text:
        return None
    try:
        document = json.loads(text)
    except ValueError:
        found = _SETTING.search(text)
        return next(filter(None, found.groups()), None) if found else None
    endpoint = document.get("containerRuntimeEndpoint") if isinstance(document, dict) else None
    return endpoint if isinstance(endpoint, str) else None


def read_path(path: str) -> Any:
    """Read a file or list a folder of this host; None if there is none."""
    try:
        if os.path.isdir(path):
            return sorted(os.listdir(path))
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return None


def list_processes(proc: str = "/proc") -> list[list[str]]:
    """Return the arguments of this host's processes, without those of containers with process numbers of their own."""
    # Without root, the namespaces of others' processes cannot be read.
    own = (_read_namespace(f"{proc}/self"), None)
    pids = (name for name in read_path(proc) or () if name.isdigit() and _read_namespace(f"{proc}/{name}") in own)
    return [(read_path(f"{proc}/{name}/cmdline") or "").split("\0")[:-1] for name in pids]


def _read_namespace(process: str) -> str | None:
    try:
        return os.readlink(f"{process}/ns/pid")
    except OSError:
        return None
