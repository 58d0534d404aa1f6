# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""After SIGKILL at any moment, the file is old or new, and the next run removes temporary files."""

from __future__ import annotations

import random
import typing as t
from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes import (
    crio_files,
    docker_files,
    samples,
)
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.node import (
    CrioNode,
    DockerNode,
    Node,
)
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils.interruptions import (
    interrupt_at_each_call,
    run_and_kill,
)

#: How many runs are killed for each daemon.
MOMENTS = {"containerd": 200, "docker": 40, "crio": 40}
SEED = 24
DOCKER = '{\n  "log-driver": "json-file",\n  "runtimes": {}\n}\n'
MAKERS: dict[str, t.Callable[[Path], Node]] = {
    "containerd": lambda root: Node(root, samples.DEFAULT_V3 % 3),
    "docker": lambda root: DockerNode(root, DOCKER),
    "crio": lambda root: CrioNode(root, "# site\n"),
}
#: Nodes with configurations of a site.
EXISTING: dict[str, t.Callable[[Path], Node]] = {
    "containerd": lambda root: Node(root, *samples.FILES["docker on 2.1"]),
    "docker": lambda root: DockerNode(root, docker_files.KUBEADM),
    "crio": lambda root: CrioNode(root, crio_files.SHIPPED),
}


def content(node: Node) -> bytes | None:
    return node.config.read_bytes() if node.config.exists() else None


@pytest.mark.thorough
@pytest.mark.parametrize("daemon", MAKERS)
def test_run_killed_at_random_moments_resumes(tmp_path: Path, daemon: str) -> None:
    def make(name: str) -> Node:
        return MAKERS[daemon](tmp_path / name)

    model = make("model")
    old = content(model)
    new = model.present(set_default=True).after
    print(f"seed {SEED}")
    generator, span = random.Random(SEED), 0.01  # noqa: S311
    for number in range(MOMENTS[daemon]):
        node = make(str(number))
        was_killed = run_and_kill(lambda node=node: node.present(set_default=True), generator.uniform(0, span))  # type: ignore[misc]
        # About half of the runs are killed, on a busy machine as well.
        span *= 1.2 if was_killed else 0.85
        assert content(node) in (old, new)
        if daemon == "crio":
            assert not list(node.config.parent.glob(".*")), "CRI-O reads every file of this folder"
        node.present(set_default=True)
        assert content(node) == new
        assert node.has_no_temps()
        node.absent()
        assert content(node) == old
        assert node.has_no_temps()


class TestInterruption:
    @pytest.mark.parametrize("daemon", EXISTING)
    def test_run_interrupted_at_each_step_resumes(self, tmp_path: Path, daemon: str) -> None:
        expected = EXISTING[daemon](tmp_path / "model").present(set_default=True).after
        node = EXISTING[daemon](tmp_path / "node")
        old = content(node)
        states = 0
        for at in interrupt_at_each_call(lambda: node.present(set_default=True), node.root):
            assert content(node) in (old, expected)
            resumed = node.present(set_default=True)
            assert resumed.restart_required, f"step {at}: the restart of {daemon} is not required"
            assert content(node) == expected
            assert node.has_no_temps()
            node.absent()
            assert content(node) == old
            states += 1
        assert states > 10

    def test_removal_interrupted_at_each_step_resumes(self, tmp_path: Path) -> None:
        text = samples.KUBEADM_V3
        node = Node(tmp_path / "node", text)
        expected = node.present(set_default=True).after
        node.confirm()
        states = 0
        for at in interrupt_at_each_call(node.absent, node.root):
            assert content(node) in (text.encode(), expected)
            restart = node.absent().restart_required
            assert node.config.read_bytes() == text.encode()
            assert restart, f"step {at}: the restart of containerd is not required"
            assert node.has_no_temps()
            assert not list((node.root / "state" / "state").rglob("*.json"))
            states += 1
        assert states > 5

    def test_interrupted_second_run_keeps_the_first_record(self, tmp_path: Path) -> None:
        node = Node(tmp_path / "node", samples.KUBEADM_V3)
        node.present()
        states = 0
        for at in interrupt_at_each_call(lambda: node.present(set_default=True, systemd_cgroup=False), node.root):
            node.absent()
            assert node.text() == samples.KUBEADM_V3, f"step {at}"
            states += 1
        assert states > 5
