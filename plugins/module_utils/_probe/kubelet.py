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

# Where kubeadm writes the kubelet's kubeconfig; only this line of it is read.
KUBECONFIG = "/etc/kubernetes/kubelet.conf"
_SERVER = re.compile(r"^\s*server:\s*[\"']?([^\s\"']+)", re.MULTILINE)

# A setting as a flag and in the file.
_ENDPOINT = ("--container-runtime-endpoint", "containerRuntimeEndpoint")
_CGROUP_DRIVER = ("--cgroup-driver", "cgroupDriver")
# A top-level scalar of a YAML document; a parser is not needed for it.
_SETTING = r"""^%s:[ \t]+(?:"([^"\n]*)"|'([^'\n]*)'|([^\s#'"]+))"""
# The first runtimes that answer RuntimeConfig of the CRI with their cgroup driver.
_RUNTIME_CONFIG = {"containerd": (2, 0), "crio": (1, 28)}
# A part of the socket's name or folder, as these daemons have it by default: the runtime behind it.
_SOCKETS = (("crio", "crio"), ("docker", "docker"), ("containerd", "containerd"))


def describe_kubelet(processes: Sequence[Sequence[str]], read: Reader) -> dict[str, Any]:
    """Describe the kubelet: {running, endpoint, daemon, cgroup_driver}.

    ``processes`` are the arguments of the host's processes. ``endpoint`` and ``cgroup_driver`` are None on a host that never had a kubelet.
    ``daemon`` is containerd, crio, docker (behind cri-dockerd), or None where the socket has another name.
    """
    running = _find_running(processes)
    arguments = running if running is not None else _read_written(read)
    if arguments is None:
        return {"running": False, "endpoint": None, "daemon": None, "cgroup_driver": None}
    left_out = DOCKERSHIM if get_flag(arguments, "--container-runtime") == "docker" else DEFAULT_ENDPOINT
    endpoint = _find_setting(arguments, read, *_ENDPOINT) or left_out
    return {
        "running": running is not None,
        "endpoint": endpoint,
        "daemon": find_daemon(endpoint),
        "cgroup_driver": _find_setting(arguments, read, *_CGROUP_DRIVER) or "cgroupfs",
    }


def reads_driver_from_runtime(kubelet: str | None, daemon: str | None, runtime: str | None) -> bool:
    """Whether a kubelet of this version reads the cgroup driver from a runtime of this version, instead of its own configuration.

    True also where a version is unknown. Source: KEP-4033, which is on from Kubernetes 1.31; cri-dockerd's version is unknown.
    """
    own, other = _read_version(kubelet), _read_version(runtime)
    if own is None or other is None:
        return True
    return own >= (1, 31) and other >= _RUNTIME_CONFIG.get(daemon or "", (0, 0))


def list_configurations(processes: Sequence[Sequence[str]], read: Reader) -> list[str]:
    """Return the files of the kubelet's configuration, of which the last one with a setting counts; empty without a kubelet."""
    arguments = _find_running(processes)
    return list(_list_files(_read_written(read) or () if arguments is None else arguments, read))


def find_server(processes: Sequence[Sequence[str]], read: Reader) -> str:
    """Return the URL of the API server as the kubelet's kubeconfig has it, which is that of a local proxy on some edge nodes; empty without one."""
    path = get_flag(_find_running(processes) or (), "--kubeconfig") or KUBECONFIG
    found = _SERVER.search(read(path) or "")
    return found.group(1) if found else ""


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


def _find_setting(arguments: Sequence[str], read: Reader, flag: str, name: str) -> str | None:
    """Return a setting of the kubelet: of its flag, else of its configuration, where drop-ins go before the main file, the last one first."""
    values = [_parse_setting(read(path), name) for path in _list_files(arguments, read)]
    return get_flag(arguments, flag) or next((value for value in reversed(values) if value), None)


def _list_files(arguments: Sequence[str], read: Reader) -> Iterator[str]:
    main, folder = get_flag(arguments, "--config"), get_flag(arguments, "--config-dir")
    if main:
        yield main
    if folder:
        yield from (os.path.join(folder, name) for name in read(folder) or () if name.endswith(".conf"))


def _parse_setting(text: str | None, name: str) -> str | None:
    if not text:
        return None
    try:
        document = json.loads(text)
    except ValueError:
        found = re.search(_SETTING % name, text, re.MULTILINE)
        return next(filter(None, found.groups()), None) if found else None
    value = document.get(name) if isinstance(document, dict) else None
    return value if isinstance(value, str) else None


def _read_version(text: str | None) -> tuple[int, int] | None:
    found = re.match(r"v?(\d+)\.(\d+)", text or "")
    return (int(found.group(1)), int(found.group(2))) if found else None


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
