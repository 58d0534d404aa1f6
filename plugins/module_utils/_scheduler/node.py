# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the node's half of the module kube_scheduler_manifest reads.

It reads no YAML. So it guesses which files the controller needs, and the controller requests those that are missing.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
import stat
import typing as t
from dataclasses import asdict

from .._config import files
from .._config.node import read_files
from .._config.paths import StatePaths
from .._config.record import DAMAGED, encode_bytes
from .._config.validate import Run, run
from .._distributions import DEFAULT, OwnScheduler, detect, named
from .._distributions.settings import list_files
from .._probe.kubelet import list_configurations, list_processes, read_path

MANIFEST = "kube-scheduler.yaml"
_KIND = "kube_scheduler"  # of records
# Neither a manifest nor a configuration comes near it.
_LARGEST_BYTES = 1 << 20
_MOST_FILES = 100

# A top-level scalar of the kubelet's configuration; the controller reads the file as YAML, and checks it.
_STATIC_PODS = re.compile(r"""^staticPodPath:[ \t]+["']?([^\s"'#]+)""", re.MULTILINE)
_CONFIG = re.compile(r"""--config(?:=|["']?,?\s+(?:-\s+)?["']?)(/[^\s"',\]}]+)""")
_PATH = re.compile(r"""(?<![\w.:/-])/[^\s"',:\]}]*""")


def read(path: str | None, more: t.Sequence[str], state_dir: str) -> dict[str, t.Any]:
    """Return what the controller needs: files as `read_files` returns them, and what lies beside the manifest.

    *path* is the manifest, None for the one that the kubelet's configuration names. *more* are files that the controller requests.
    Raises FilesError.
    """
    own = None if path else find_own()
    if own:
        return read_own(own, state_dir)
    kubelet = _kubelet() if path is None else {}
    folder = static_pods(kubelet.values())
    place = path or (folder if os.path.isfile(folder) else os.path.join(folder, MANIFEST))
    record = files.read_bytes(StatePaths(state_dir).record(place, _KIND))
    names = [*more, *_recorded_config(record), *_guess_configs(files.read_bytes(place))]
    return {
        **read_files(place, _KIND, state_dir, names),
        "kubelet": [[file, encode_bytes(data)] for file, data in kubelet.items()],
        "neighbours": _neighbours(place),
        "distribution": detect(os.path.exists),
    }


def find_own() -> OwnScheduler | None:
    """Return the kube-scheduler that this node's distribution starts itself, None if it is a static pod.

    Where kubeadm's kubelet is, the marker of another distribution is a leftover of it.
    """
    if os.path.exists(DEFAULT.kubelet_flags):
        return None
    return named(detect(os.path.exists)).own_scheduler


def read_own(own: OwnScheduler, state_dir: str, execute: Run = run) -> dict[str, t.Any]:
    """Return what the controller needs of a kube-scheduler that the distribution starts itself. Raises FilesError or ConfigError."""
    _status, shown, _errors = execute(["systemctl", "show", "--property=ExecStart", "--", own.unit])
    settings = list_files(os.path.dirname(own.file)) if own.way == "settings" else []
    return {
        **read_files(own.file, _KIND, state_dir, [own.config]),
        "kubelet": [],
        "neighbours": {},
        "distribution": detect(os.path.exists),
        "own": asdict(own),
        "settings": [[path, encode_bytes(files.read_bytes(path))] for path in settings],
        "command": shown,
    }


def _kubelet() -> dict[str, bytes]:
    """Return the files of the kubelet's configuration that are there, each overriding those before it."""
    found = {file: files.read_bytes(file) for file in list_configurations(list_processes(), read_path)}
    return {file: data for file, data in found.items() if data is not None}


def static_pods(kubelet: t.Iterable[bytes]) -> str:
    """Return staticPodPath as the files of the kubelet's configuration seem to have it, the last first; else the usual one."""
    found = [_STATIC_PODS.search(data.decode("utf-8", "replace")) for data in kubelet]
    return next((each.group(1) for each in reversed(found) if each), DEFAULT.static_pods)


def _recorded_config(record: bytes | None) -> list[str]:
    """Return the configuration that the record names; the controller reports a damaged record."""
    try:
        return [str(json.loads((record or b"").decode("utf-8"))["record"]["config_path"])]
    except DAMAGED:
        return []


def _guess_configs(manifest: bytes | None) -> list[str]:
    """Return the configurations that the manifest may name: --config, seen through each pair of paths that may be a mount."""
    text = (manifest or b"").decode("utf-8", "replace")
    paths = list(dict.fromkeys(posixpath.normpath(path) for path in _PATH.findall(text)))[:_MOST_FILES]
    guesses = []
    for name in dict.fromkeys(_CONFIG.findall(text)):
        guesses.append(name)
        for inside in paths:
            if name == inside or name.startswith(inside.rstrip("/") + "/"):
                guesses += [posixpath.normpath(outside + name[len(inside.rstrip("/")) :]) for outside in paths]
    return [guess for guess in dict.fromkeys(guesses) if _is_small_file(guess)][:_MOST_FILES]


def _neighbours(manifest: str) -> dict[str, str | None]:
    """Return the other files that the kubelet reads beside the manifest, with the content of those that name kube-scheduler."""
    # The kubelet follows a link, and reads the files beside the link.
    folder = os.path.dirname(manifest)
    found: dict[str, str | None] = {}
    try:
        names = sorted(name for name in os.listdir(folder) if not name.startswith("."))[:_MOST_FILES]
    except OSError:
        return found
    for name in names:
        file = os.path.join(folder, name)
        if name != os.path.basename(manifest) and _is_small_file(file):
            data = files.read_bytes(file) or b""
            found[name] = encode_bytes(data) if b"kube-scheduler" in data else None
    return found


def _is_small_file(path: str) -> bool:
    try:
        found = os.stat(path)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size <= _LARGEST_BYTES
