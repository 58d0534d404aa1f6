# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""SIGKILL at any moment leaves the file wholly old or wholly new, and the next run leaves nothing else behind."""

from __future__ import annotations

import random
import typing as t
from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.tests.unit.effort import PROFILE
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes import samples
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.node import (
    CrioNode,
    DockerNode,
    Node,
)
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils.mortal import run_and_die, run_and_kill

#: How often each daemon's file is at risk.
MOMENTS = {"containerd": 40 if PROFILE == "quick" else 200, "docker": 40, "crio": 40}
DOCKER = '{\n  "log-driver": "json-file",\n  "runtimes": {}\n}\n'
MAKERS: dict[str, t.Callable[[Path], Node]] = {
    "containerd": lambda root: Node(root, samples.DEFAULT_V3 % 3),
    "docker": lambda root: DockerNode(root, DOCKER),
    "crio": lambda root: CrioNode(root, "# theirs\n"),
}


def content(node: Node) -> bytes | None:
    return node.config.read_bytes() if node.config.exists() else None


@pytest.mark.parametrize("daemon", MAKERS)
def test_killed_at_random_moments(tmp_path: Path, daemon: str) -> None:
    def make(name: str) -> Node:
        return MAKERS[daemon](tmp_path / name)

    model = make("model")
    old = content(model)
    new = model.present(set_default=True).after
    killed, span = 0, 0.01
    for number in range(MOMENTS[daemon]):
        node = make(str(number))
        died = run_and_kill(lambda node=node: node.present(set_default=True), random.uniform(0, span))  # type: ignore[misc] # noqa: S311
        killed += died
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
    assert killed > MOMENTS[daemon] / 5, "most runs were over before they could be killed"


class TestEveryStep:
    @pytest.mark.parametrize("name", ["docker on 2.1"])
    def test_at_every_step_of_a_run(self, tmp_path: Path, name: str) -> None:
        text, release = samples.FILES[name]
        wanted = Node(tmp_path / "model", text, release).present(set_default=True).after
        for at in range(1, 400):
            node = Node(tmp_path / str(at), text, release)
            if not run_and_die(lambda node=node: node.present(set_default=True), at):  # type: ignore[misc]
                break
            content = node.config.read_bytes()
            assert content in (text.encode(), wanted)
            healed = node.present(set_default=True)
            assert healed.restart_required, f"step {at}: nobody would restart containerd"
            assert node.config.read_bytes() == wanted
            assert node.without_temps()
            node.absent()
            assert node.config.read_bytes() == text.encode()
        else:
            pytest.fail("the run never came to its end")
        assert at > 20

    def test_at_every_step_of_a_removal(self, tmp_path: Path) -> None:
        text = samples.KUBEADM_V3
        for at in range(1, 400):
            node = Node(tmp_path / str(at), text)
            wanted = node.present(set_default=True).after
            node.confirm()
            if not run_and_die(node.absent, at):
                break
            content = node.config.read_bytes()
            assert content in (text.encode(), wanted)
            restart = node.absent().restart_required
            assert node.config.read_bytes() == text.encode()
            assert restart, f"step {at}: nobody would restart containerd"
            assert node.without_temps()
            assert not list((node.root / "state" / "state").rglob("*.json"))
        else:
            pytest.fail("the run never came to its end")
        assert at > 10

    def test_second_run_that_dies_does_not_forget_the_first(self, tmp_path: Path) -> None:
        for at in range(1, 400):
            node = Node(tmp_path / str(at), samples.KUBEADM_V3)
            node.present()
            if not run_and_die(lambda node=node: node.present(set_default=True, systemd_cgroup=False), at):  # type: ignore[misc]
                break
            node.absent()
            assert node.text() == samples.KUBEADM_V3, f"step {at}"
        assert at > 10
