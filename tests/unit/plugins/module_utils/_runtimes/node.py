# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node in a directory, on which the tests merge and undo."""

from __future__ import annotations

import os
import stat
import typing as t
from dataclasses import replace

from ansible_collections.gpu.kubernetes.plugins.module_utils._config import files
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.apply import (
    Host,
    Outcome,
    build_result,
    ensure_absent,
    ensure_present,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.containerd.daemon import Containerd
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.containerd.drop_in import apply
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.containerd.plan import Request
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.containerd.schema import CRI_V3, parse_release
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.crio import Crio
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.docker import Docker
from ansible_collections.gpu.kubernetes.plugins.module_utils._toml import loads

if t.TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.gpu.kubernetes.plugins.module_utils._config.apply import Daemon

NVIDIA_V3 = """\
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.nvidia]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.nvidia.options]
BinaryName = "/usr/bin/nvidia-container-runtime"
"""


def load_file(file: Path) -> t.Any:
    """Return the content of a file of containerd."""
    return loads(file.read_text(encoding="utf-8"))


def load_section(file: Path) -> t.Any:
    """Return the table with the runtimes of a file in version 3 or 4."""
    return load_file(file)["plugins"][CRI_V3]["containerd"]


class Node:
    """A node in a directory: /etc/containerd/config.toml, and the state of this collection."""

    place: tuple[str, ...] = ("containerd", "config.toml")

    def __init__(self, root: Path, content: str | bytes | None, release: str = "2.1") -> None:
        self.root = root
        self.release = parse_release(release)
        self.config = root.joinpath("etc", *self.place)
        if content is not None:
            self.config.parent.mkdir(parents=True)
            self.config.write_bytes(content if isinstance(content, bytes) else content.encode())
        self.host = Host(state_dir=str(root / "state"), lock_dirs=(str(root / "lock"),))

    def present(self, check: bool = False, **requested: t.Any) -> Outcome:
        return ensure_present(self.daemon(requested), self._host(check))

    def absent(self, check: bool = False, **requested: t.Any) -> Outcome:
        return ensure_absent(self.daemon(requested), self._host(check))

    def daemon(self, requested: dict[str, t.Any]) -> Daemon:
        return Containerd(Request(path=str(self.config), release=self.release, **requested))

    def _host(self, check: bool) -> Host:
        return replace(self.host, check_mode=check)

    def answer(self, binary: str, *answers: tuple[int, str, str]) -> list[t.Sequence[str]]:
        """Fake the daemon's program with *answers*, one after the other; return the list of its calls."""
        remaining, calls = list(answers), []

        def execute(command: t.Sequence[str]) -> tuple[int, str, str]:
            calls.append(command)
            return remaining.pop(0)

        self.host = replace(self.host, binary=binary, execute=execute)
        return calls

    def apply_and_undo(self, sequence: t.Iterable[dict[str, t.Any]], edit: t.Callable[[bytes], bytes]) -> None:
        """Apply each request twice, with an edit of others after the first one, and undo both runtimes, as check mode predicts."""
        for step, requested in enumerate(sequence):
            predicted = self.present(check=True, **requested).after
            assert self.present(**requested).after == predicted
            assert not self.present(**requested).changed
            if step == 0:
                self.config.write_bytes(edit(self.config.read_bytes()))
        for runtime in ("nvidia", "nvidia-cdi"):
            predicted = self.absent(check=True, runtime_name=runtime).after
            assert self.absent(runtime_name=runtime).after == predicted

    def text(self) -> str:
        return self.config.read_bytes().decode()

    def snapshot(self) -> dict[str, tuple[t.Any, ...]]:
        found = {}
        for place in self.root.rglob("*"):
            info = place.lstat()
            content = place.read_bytes() if stat.S_ISREG(info.st_mode) else b""
            found[str(place)] = (info.st_mode, info.st_mtime_ns, info.st_ino, content)
        return found

    def confirm(self) -> None:
        os.unlink(self.host.restart_marker(self.daemon({}).name))

    def has_no_temps(self) -> bool:
        return not [place for place in self.root.rglob("*") if files.TEMP_TAG in place.name]


class DockerNode(Node):
    """A node with /etc/docker/daemon.json."""

    place = ("docker", "daemon.json")

    def daemon(self, requested: dict[str, t.Any]) -> Daemon:
        return Docker(path=str(self.config), **requested)


class CrioNode(Node):
    """A node with CRI-O: its drop-in, the main file *main*, and existing drop-ins *others* by name."""

    place = ("crio", "crio.conf.d", "99-nvidia.toml")

    def __init__(self, root: Path, main: str | None = None, **others: str) -> None:
        super().__init__(root, None)
        self.main = root / "etc" / "crio" / "crio.conf"
        self.drop_ins = {name: self.config.with_name(name.replace("_", "-")[1:] + ".conf") for name in others}
        self.config.parent.mkdir(parents=True)
        if main is not None:
            self.main.write_text(main, encoding="utf-8")
        for name, text in others.items():
            self.drop_ins[name].write_text(text, encoding="utf-8")

    def daemon(self, requested: dict[str, t.Any]) -> Daemon:
        return Crio(path=str(self.config), main=str(self.main), **requested)


class DropInNode(Node):
    """A node with containerd's config.toml, a drop-in, and existing drop-ins *others* by name."""

    def __init__(self, root: Path, content: str | None, release: str = "2.1", **others: str) -> None:
        super().__init__(root, content, release)
        self.folder = self.config.parent / "conf.d"
        self.file = self.folder / "50-nvidia.toml"
        self.line = f"imports = ['{self.file}']\n"
        for name, text in others.items():
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / f"{name[1:]}.toml").write_text(text, encoding="utf-8")

    def steps(
        self, state: str, check: bool = False, drop_in: str | None = "", **requested: t.Any
    ) -> t.Iterator[tuple[Daemon, Outcome]]:
        """Apply one file after the other. *drop_in*: None for no drop-in, empty for the default one."""
        request = Request(path=str(self.config), release=self.release, **requested)
        return apply(request, str(self.file) if drop_in == "" else drop_in, state, self._host(check))

    def run(self, state: str, **requested: t.Any) -> dict[str, t.Any]:
        """Return the result of the module."""
        done = list(self.steps(state, **requested))
        return {
            **build_result(done, True),
            "warnings": [warning for _daemon, outcome in done for warning in outcome.warnings],
        }
