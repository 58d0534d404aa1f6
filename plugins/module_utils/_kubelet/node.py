# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the node's half of the module kubelet_config reads."""

from __future__ import annotations

import os
import typing as t
from dataclasses import asdict

from .._config import files
from .._config.node import read_files
from .._config.record import encode_bytes
from .._distributions import DEFAULT, OwnKubelet, detect, find_unit, named
from .._distributions.settings import list_files
from .._edge import find_agent
from .._probe.host import Runner
from .._probe.kubelet import Reader, list_processes, read_path
from . import command

_DROP_IN = ".conf"
_LIMITS = ("/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max")


def read(
    path: str | None,
    state_dir: str,
    run: Runner,
    look_at: Reader = read_path,
    list_processes: t.Callable[[], t.Sequence[t.Sequence[str]]] = list_processes,
) -> dict[str, t.Any]:
    """Return what the controller needs: files as `read_files` returns them, flags as [name, value, source].

    *path* is the configuration, None for the one that the kubelet is started with. Raises FilesError.
    """
    own = None if path else find_own()
    if own:
        return read_own(own, state_dir, run, look_at)
    words = command.find(run, look_at, list_processes())
    flags = None if words is None else command.flags(words)
    main = command.last(flags or (), "config")
    # A relative one starts where systemd starts services.
    main = main and os.path.join("/", main)
    place = path or main or DEFAULT.kubelet_config
    folder = command.last(flags or (), "config-dir")
    return {
        **read_files(place, "kubelet", state_dir),
        "named": main,
        "is_named": main is None or os.path.realpath(main) == os.path.realpath(place),
        "flags": None if flags is None else [[flag.name, flag.value, flag.source] for flag in flags],
        "drop_ins": _drop_ins(os.path.join("/", folder)) if folder else [],
        "processes": _limit(look_at),
        "distribution": detect(os.path.exists),
        "agent": find_agent(os.path.exists),
        "service": command.PROGRAM,
    }


def find_own(exists: t.Callable[[str], bool] = os.path.exists) -> tuple[OwnKubelet, str] | None:
    """Return the kubelet that this node's distribution starts itself with a folder of drop-ins, and its unit; None without one.

    Where kubeadm's kubelet is, the marker of another distribution is a leftover of it.
    """
    row = named(detect(exists))
    if row.own_kubelet is None or row.own_containerd is None or exists(DEFAULT.kubelet_flags):
        return None
    return (row.own_kubelet, find_unit(row.own_containerd, exists)) if exists(row.own_kubelet.defaults) else None


def read_own(own: tuple[OwnKubelet, str], state_dir: str, run: Runner, look_at: Reader) -> dict[str, t.Any]:
    """Return what the controller needs of a kubelet that the distribution starts itself. Raises FilesError."""
    row, unit = own
    _status, shown = run(("systemctl", "show", "--property=ExecStart", "--", unit))
    settings = list_files(row.settings_folder)
    return {
        **read_files(row.drop_in, "kubelet", state_dir),
        "named": row.drop_in,
        "is_named": True,
        "flags": [],
        "drop_ins": _drop_ins(os.path.dirname(row.drop_in)),
        "processes": _limit(look_at),
        "distribution": detect(os.path.exists),
        "agent": find_agent(os.path.exists),
        "service": unit,
        "own": asdict(row),
        "settings": [[path, encode_bytes(files.read_bytes(path))] for path in settings],
        "command": shown,
    }


def _drop_ins(folder: str) -> list[list[str]]:
    """Return the drop-ins with their content, in the order in which the kubelet reads them: folder by folder, by name."""
    found: list[list[str]] = []
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return found
    for name in names:
        path = os.path.join(folder, name)
        if os.path.isdir(path) and not os.path.islink(path):
            found += _drop_ins(path)
        elif name.endswith(_DROP_IN):
            data = encode_bytes(files.read_bytes(path))
            found += [] if data is None else [[path, data]]
    return found


def _limit(look_at: Reader) -> int | None:
    """Return how many processes the node can have."""
    limits = [str(look_at(path) or "").strip() for path in _LIMITS]
    return min((int(text) for text in limits if text.isdigit()), default=None)
