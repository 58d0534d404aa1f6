# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the node's half of the module reads. Private to this collection.

It knows no YAML. So it guesses which files the controller will ask for, and the controller asks again for what was not among them.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
import stat
import typing as t

from .. import _files
from .._probe.kubelet import KUBEADM_CONFIG, distribution
from .._yaml_files.node import described, encoded, record_path

MANIFESTS = "/etc/kubernetes/manifests"
MANIFEST = "kube-scheduler.yaml"
# Neither a manifest nor a configuration comes near it.
_LARGEST_BYTES = 1 << 20
_MOST_FILES = 100

# A top-level scalar of the kubelet's configuration; the controller reads the file as YAML, and looks whether it is so.
_STATIC_PODS = re.compile(r"""^staticPodPath:[ \t]+["']?([^\s"'#]+)""", re.MULTILINE)
_CONFIG = re.compile(r"""--config(?:=|["']?,?\s+(?:-\s+)?["']?)(/[^\s"',\]}]+)""")
_PATH = re.compile(r"""(?<![\w.:/-])/[^\s"',:\]}]*""")


def read(
    path: str | None, more: t.Sequence[str], state_dir: str, kubelet_config: str = KUBEADM_CONFIG
) -> dict[str, t.Any]:
    """Return what the controller has to know: files as {data (base64, None: no file), sha256}, by their path.

    *path* is the manifest, None to look where the kubelet's configuration says. *more* are files that are asked for. Raises FilesError.
    """
    kubelet = _files.read_bytes(kubelet_config) if path is None else None
    folder = static_pods(kubelet)
    place = path or (folder if os.path.isfile(folder) else os.path.join(folder, MANIFEST))
    manifest = _files.read_bytes(place)
    record_file = record_path(state_dir, "kube_scheduler", place)
    record = _files.read_bytes(record_file)
    wanted = [*more, *_recorded(record), *_guessed(manifest)]
    return {
        "path": place,
        "kubelet_config": None if kubelet is None else encoded(kubelet),
        "kubelet_config_path": kubelet_config,
        "manifest": described(manifest),
        "record_path": record_file,
        "record": described(record),
        "files": {name: described(_files.read_bytes(name)) for name in dict.fromkeys(wanted)},
        "neighbours": _neighbours(place),
        "distribution": distribution(os.path.exists),
    }


def static_pods(kubelet: bytes | None) -> str:
    """Return staticPodPath as the kubelet's configuration seems to have it, else kubeadm's."""
    found = _STATIC_PODS.search((kubelet or b"").decode("utf-8", "replace"))
    return found.group(1) if found else MANIFESTS


def _recorded(record: bytes | None) -> list[str]:
    """Return the configuration that the record names; the controller says so if it is damaged."""
    try:
        return [str(json.loads((record or b"").decode("utf-8"))["path"])]
    except (ValueError, LookupError, TypeError):
        return []


def _guessed(manifest: bytes | None) -> list[str]:
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
    """Return the other files that the kubelet reads beside the manifest, with the content of those that speak of kube-scheduler."""
    folder = os.path.dirname(os.path.realpath(manifest))
    found: dict[str, str | None] = {}
    try:
        names = sorted(name for name in os.listdir(folder) if not name.startswith("."))[:_MOST_FILES]
    except OSError:
        return found
    for name in names:
        file = os.path.join(folder, name)
        if name != os.path.basename(os.path.realpath(manifest)) and _is_small_file(file):
            data = _files.read_bytes(file) or b""
            found[name] = encoded(data) if b"kube-scheduler" in data else None
    return found


def _is_small_file(path: str) -> bool:
    try:
        found = os.stat(path)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size <= _LARGEST_BYTES
