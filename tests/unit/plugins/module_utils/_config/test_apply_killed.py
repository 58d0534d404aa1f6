# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""SIGKILL at any moment leaves the file wholly old or wholly new, and the next run leaves nothing else behind."""

from __future__ import annotations

import random
import typing as t
from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes import samples
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.node import (
    CrioNode,
    DockerNode,
    Node,
)
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils.mortal import deaths, run_and_kill

#: How often each daemon's file is at risk.
MOMENTS = {"containerd": 200, "docker": 40, "crio": 40}
SEED = 24
DOCKER = '{\n  "log-driver": "json-file",\n  "runtimes": {}\n}\n'
MAKERS: dict[str, t.Callable[[Path], Node]] = {
    "containerd": lambda root: Node(root, samples.DEFAULT_V3 % 3),
    "docker": lambda root: DockerNode(root, DOCKER),
    "crio": lambda root: CrioNode(root, "# theirs\n"),
}


def content(node: Node) -> bytes | None:
    return node.config.read_bytes() if node.config.exists() else None


@pytest.mark.thorough
@pytest.mark.parametrize("daemon", MAKERS)
def test_killed_at_random_moments(tmp_path: Path, daemon: str) -> None:
    def make(name: str) -> Node:
        return MAKERS[daemon](tmp_path / name)

    model = make("model")
    old = content(model)
    new = model.present(set_default=True).after
    print(f"seed {SEED}")
    chance, span = random.Random(SEED), 0.01  # noqa: S311
    for number in range(MOMENTS[daemon]):
        node = make(str(number))
        died = run_and_kill(lambda node=node: node.present(set_default=True), chance.uniform(0, span))  # type: ignore[misc]
        # Seconds in which a run is killed as often as not, on a machine that may be busy or not.
        span *= 1.2 if died else 0.85
        assert content(node) in (old, new)
        if daemon == "crio":
            assert not list(node.config.parent.glob(".*")), "CRI-O reads all that lies there"
        node.present(set_default=True)
        assert content(node) == new
        assert node.without_temps()
        node.absent()
        assert content(node) == old
        assert node.without_temps()


class TestEveryStep:
    def test_at_every_step_of_a_run(self, tmp_path: Path) -> None:
        text, release = samples.FILES["docker on 2.1"]
        wanted = Node(tmp_path / "model", text, release).present(set_default=True).after
        node = Node(tmp_path / "node", text, release)
        states = 0
        for at in deaths(lambda: node.present(set_default=True), node.root):
            content = node.config.read_bytes()
            assert content in (text.encode(), wanted)
            healed = node.present(set_default=True)
            assert healed.restart_required, f"step {at}: nobody would restart containerd"
            assert node.config.read_bytes() == wanted
            assert node.without_temps()
            node.absent()
            assert node.config.read_bytes() == text.encode()
            states += 1
        assert states > 10

    def test_at_every_step_of_a_removal(self, tmp_path: Path) -> None:
        text = samples.KUBEADM_V3
        node = Node(tmp_path / "node", text)
        wanted = node.present(set_default=True).after
        node.confirm()
        states = 0
        for at in deaths(node.absent, node.root):
            content = node.config.read_bytes()
            assert content in (text.encode(), wanted)
            restart = node.absent().restart_required
            assert node.config.read_bytes() == text.encode()
            assert restart, f"step {at}: nobody would restart containerd"
            assert node.without_temps()
            assert not list((node.root / "state" / "state").rglob("*.json"))
            states += 1
        assert states > 5

    def test_second_run_that_dies_does_not_forget_the_first(self, tmp_path: Path) -> None:
        node = Node(tmp_path / "node", samples.KUBEADM_V3)
        node.present()
        states = 0
        for at in deaths(lambda: node.present(set_default=True, systemd_cgroup=False), node.root):
            node.absent()
            assert node.text() == samples.KUBEADM_V3, f"step {at}"
            states += 1
        assert states > 5
