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
from .._probe.kubelet import KUBESPRAY_CONFIG, find_distribution, list_configurations, list_processes, read_path
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


def read(path: str | None, more: t.Sequence[str], state_dir: str) -> dict[str, t.Any]:
    """Return what the controller has to know: files as {data (base64, None: no file), sha256}, by their path.

    *path* is the manifest, None to look where the kubelet's configuration says. *more* are files that are asked for. Raises FilesError.
    """
    kubelet = _kubelet() if path is None else {}
    folder = static_pods(kubelet.values())
    place = path or (folder if os.path.isfile(folder) else os.path.join(folder, MANIFEST))
    manifest = _files.read_bytes(place)
    record_file = record_path(state_dir, "kube_scheduler", place)
    record = _files.read_bytes(record_file)
    wanted = [*more, *_recorded(record), *_guessed(manifest)]
    return {
        "path": place,
        "kubelet": [[file, encoded(data)] for file, data in kubelet.items()],
        "manifest": described(manifest),
        "record_path": record_file,
        "record": described(record),
        "files": {name: described(_files.read_bytes(name)) for name in dict.fromkeys(wanted)},
        "neighbours": _neighbours(place),
        "distribution": find_distribution(os.path.exists),
        "kubespray": os.path.exists(KUBESPRAY_CONFIG),
    }


def _kubelet() -> dict[str, bytes]:
    """Return the files of the kubelet's configuration that are there, in the order in which they count."""
    files = {file: _files.read_bytes(file) for file in list_configurations(list_processes(), read_path)}
    return {file: data for file, data in files.items() if data is not None}


def static_pods(kubelet: t.Iterable[bytes]) -> str:
    """Return staticPodPath as the files of the kubelet's configuration seem to have it, the last first; else kubeadm's."""
    found = [_STATIC_PODS.search(data.decode("utf-8", "replace")) for data in kubelet]
    return next((each.group(1) for each in reversed(found) if each), MANIFESTS)


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
    # The kubelet follows a link, and looks for more beside the link.
    folder = os.path.dirname(manifest)
    found: dict[str, str | None] = {}
    try:
        names = sorted(name for name in os.listdir(folder) if not name.startswith("."))[:_MOST_FILES]
    except OSError:
        return found
    for name in names:
        file = os.path.join(folder, name)
        if name != os.path.basename(manifest) and _is_small_file(file):
            data = _files.read_bytes(file) or b""
            found[name] = encoded(data) if b"kube-scheduler" in data else None
    return found


def _is_small_file(path: str) -> bool:
    try:
        found = os.stat(path)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size <= _LARGEST_BYTES
