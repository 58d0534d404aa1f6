# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fake node in a folder, on which both parts of the module run."""

from __future__ import annotations

import contextlib
import copy
import typing as t
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("ruamel.yaml")

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.node import write
from ansible_collections.gpu.kubernetes.plugins.module_utils._distributions import named
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubelet import controller, node
from ansible_collections.gpu.kubernetes.plugins.plugin_utils._yaml import RoundTrip

FIXTURES = Path(__file__).parent / "fixtures"
DEFAULTS = (FIXTURES / "00-k3s-defaults.conf").read_text()
KUBEADM = (FIXTURES / "kubeadm-1.34.4.yaml").read_text()
RT = RoundTrip()

VALUES: dict[str, t.Any] = {
    "kubeReserved": {"cpu": "500m", "memory": "1Gi"},
    "systemReserved": {"cpu": 1, "memory": "512Mi"},
}
# A file maintained by hand, with what a round trip through a library would change.
HANDWRITTEN = """\
# written by the site
apiVersion: "kubelet.config.k8s.io/v1beta1"
kind: KubeletConfiguration
maxPods:   250   # a big one
kubeReserved:
    # the container runtime needs more
    memory: 2Gi   # measured
    ephemeral-storage: 1Gi
evictionHard: {memory.available: 500Mi, nodefs.available: 10%, nodefs.inodesFree: 5%, imagefs.available: 15%, imagefs.inodesFree: 5%}
clusterDNS: [10.96.0.10]
systemReserved:
"""


class Killed(BaseException):
    """Raised in place of a SIGKILL."""


class Node:
    """A node whose kubelet is started by a unit of systemd, or not at all."""

    def __init__(self, folder: Path, text: str = KUBEADM) -> None:
        self.folder = folder
        self.config = folder / "kubelet" / "config.yaml"
        self.state = folder / "state"
        self.config.parent.mkdir(parents=True)
        self.text = text
        self.config.write_text(text)
        self.config.chmod(0o644)
        self.started_with: str | None = f"--config={self.config}"
        self.requests: list[str] = []
        self.before_write: t.Callable[[], None] = lambda: None
        self.writes_left: int | None = None

    def answer(self, request: dict[str, t.Any]) -> dict[str, t.Any]:
        """Return what the part on the node returns."""
        self.requests.append(request["do"])
        given = copy.deepcopy({key: value for key, value in request.items() if key != "do"})
        if request["do"] == "write":
            self.before_write()
            if self.writes_left is not None and self.writes_left < len(given["orders"]):
                write(**{**given, "orders": given["orders"][: self.writes_left]})
                raise Killed
            return {"backups": write(**given)}
        return self.read(**given)

    def read(self, **given: t.Any) -> dict[str, t.Any]:
        """Return what the module reads on the node."""
        return node.read(**given, run=self._systemctl, look_at=self._read_proc, list_processes=list)

    def _systemctl(self, _command: t.Sequence[str]) -> tuple[int, str]:
        if self.started_with is None:
            return 1, ""
        return 0, f"# /lib/kubelet.service\n[Service]\nExecStart=/usr/bin/kubelet {self.started_with}\n"

    @staticmethod
    def _read_proc(path: str) -> str | None:
        return {"/proc/sys/kernel/pid_max": "32768\n", "/proc/sys/kernel/threads-max": "60000\n"}.get(path)

    def run(self, values: t.Any = None, check: bool = False, diff: bool = True, **options: t.Any) -> dict[str, t.Any]:
        """Run the module."""
        self.requests = []
        self.writes_left = None
        arguments = {
            "path": None,
            "values": VALUES if values is None else values,
            "state": "present",
            "state_dir": str(self.state),
            "keep_former": False,
            **options,
        }
        return controller.run(arguments, RT, self.answer, check, diff)

    def run_interrupted(self, writes: int, **options: t.Any) -> None:
        """Run the module, and interrupt it after this number of writes."""

        def limit() -> None:
            self.writes_left = writes

        self.before_write = limit
        try:
            with contextlib.suppress(Killed):
                self.run(**options)
        finally:
            self.before_write = lambda: None

    def files(self) -> dict[str, bytes]:
        """Return all files except state and backups."""
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and self.state not in path.parents
        }

    def change(self, old: str, new: str) -> None:
        """Edit the configuration as others do."""
        text = self.config.read_text()
        assert old in text
        self.config.write_text(text.replace(old, new))

    def records(self) -> list[Path]:
        """Return the records of changes."""
        return sorted(self.state.rglob("*.json"))


class DropInNode(Node):
    """A node whose Kubernetes distribution starts the kubelet with a folder of drop-ins."""

    def __init__(self, folder: Path, name: str = "k3s") -> None:
        super().__init__(folder)
        self.config.unlink()
        row = named(name).own_kubelet
        assert row is not None
        places = {key: f"{folder}{getattr(row, key)}" for key in ("drop_in", "defaults", "settings_folder")}
        self.row = replace(row, **places)
        self.config, self.settings = Path(self.row.drop_in), Path(self.row.settings_folder)
        self.config.parent.mkdir(parents=True)
        self.settings.mkdir(parents=True)
        Path(self.row.defaults).write_text(DEFAULTS)
        self.command = "ExecStart={ path=/usr/local/bin/x ; argv[]=/usr/local/bin/x agent ; ignore_errors=no ; }"

    def read(self, **given: t.Any) -> dict[str, t.Any]:
        """Return what the module reads on the node."""
        return node.read_own(
            (self.row, "agent"), given["state_dir"], lambda _command: (0, self.command), self._read_proc
        )

    def drop_in(self, name: str, text: str) -> Path:
        """Write a drop-in of others."""
        path = self.config.parent / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n{text}\n")
        return path
