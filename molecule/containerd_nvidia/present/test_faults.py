# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes wrong on a node: containerd that does not come back, a file nobody can read, a run that was cut off."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

testinfra_hosts = ["ansible://gpu_nodes"]

CONFIG = "/etc/containerd/config.toml"
CONVERGE = str(Path(__file__).parents[1] / "converge.yml")
Playbook = Callable[..., tuple[int, dict[str, dict[str, int]], str]]


@pytest.fixture
def here(host: Any) -> list[str]:
    """Options of ansible-playbook which restrict a run to this machine."""
    return ["--limit", host.check_output("hostname")]


def _daemon(host: Any) -> str:
    return host.check_output("systemctl show containerd --property=MainPID,ActiveState")


def test_daemon_that_does_not_come_back_gets_its_file_back(host: Any, playbook: Playbook, here: list[str]) -> None:
    before = host.file(CONFIG).content
    # containerd accepts the file and then cannot listen there
    wrong = '{"containerd_nvidia_settings": {"grpc": {"address": "/proc/no/such.sock"}}, "containerd_nvidia_probe_timeout": 15}'
    code, _recap, said = playbook(CONVERGE, *here, "-e", wrong)
    assert code != 0
    assert "the former one was put back and works" in " ".join(said.split()), said
    assert "/proc/no" in said, "the daemon's own words are missing"
    assert host.file(CONFIG).content == before
    assert host.service("containerd").is_running
    code, recap, said = playbook(CONVERGE, *here)
    assert (code, [counts["changed"] for counts in recap.values()]) == (0, [0]), said


def test_a_file_that_nobody_can_read_is_named_and_left_alone(host: Any, playbook: Playbook, here: list[str]) -> None:
    before, daemon = host.file(CONFIG).content, _daemon(host)
    modules = "/etc/modules-load.d/gpu-kubernetes.conf"
    host.check_output(f"cp -p {CONFIG} /root/config.toml && echo 'broken = [' >> {CONFIG} && mv {modules} /root/")
    try:
        damaged = host.file(CONFIG).content
        code, _recap, said = playbook(CONVERGE, *here)
        assert code != 0
        assert CONFIG in said
        assert "line" in said
        assert host.file(CONFIG).content == damaged
        assert _daemon(host) == daemon
        assert not host.file(modules).exists, "something was changed before the refusal"
    finally:
        host.check_output(f"mv /root/config.toml {CONFIG}; mv /root/gpu-kubernetes.conf {modules}")
    assert host.file(CONFIG).content == before


def test_a_restart_that_was_due_is_made_up_for(host: Any, playbook: Playbook, here: list[str]) -> None:
    """As after a run that was killed between merge and restart: the file is new, the daemon is not."""
    daemon = _daemon(host)
    asked = ["-e", '{"containerd_nvidia_set_default": true}']
    code, _recap, said = playbook(CONVERGE, *here, *asked, "-e", '{"containerd_nvidia_restart_ok": false}')
    assert code == 0, said
    assert _daemon(host) == daemon
    code, _recap, said = playbook(CONVERGE, *here, *asked)
    assert code == 0, said
    assert _daemon(host) != daemon
    assert "default_runtime_name" in host.file(CONFIG).content_string
    code, _recap, said = playbook(CONVERGE, *here, "-e", '{"containerd_nvidia_set_default": false}')
    assert code == 0, said
    assert "default_runtime_name = 'nvidia'" not in host.file(CONFIG).content_string.replace('"', "'")


def test_a_restart_by_somebody_else_is_taken_note_of(host: Any, playbook: Playbook, here: list[str]) -> None:
    """As after a reboot: the daemon runs with the new file, and only the mark of a pending restart is left."""
    asked = ["-e", '{"containerd_nvidia_settings": {"oom_score": -1}}']
    # a word, as key=value gives it
    code, _recap, said = playbook(CONVERGE, *here, *asked, "-e", "containerd_nvidia_restart_ok=false")
    assert code == 0, said
    assert host.file("/var/lib/gpu-kubernetes/pending/containerd.restart").exists
    host.check_output("systemctl restart containerd")
    daemon = _daemon(host)
    code, _recap, said = playbook(CONVERGE, *here, *asked)
    assert code == 0, said
    assert _daemon(host) == daemon
    assert not host.file("/var/lib/gpu-kubernetes/pending/containerd.restart").exists


def test_a_program_that_is_not_there_is_refused(host: Any, playbook: Playbook, here: list[str]) -> None:
    before, daemon = host.file(CONFIG).content, _daemon(host)
    code, _recap, said = playbook(CONVERGE, *here, "-e", "containerd_nvidia_runtime_path=/usr/bin/no-such-runtime")
    assert code != 0
    assert "the program /usr/bin/no-such-runtime is missing or does not run" in " ".join(said.split())
    assert (host.file(CONFIG).content, _daemon(host)) == (before, daemon)


def test_toolkit_stays_as_long_as_containerd_may_use_it(host: Any, playbook: Playbook, here: list[str]) -> None:
    daemon = _daemon(host)
    undo = '{"containerd_nvidia_state": "absent", "containerd_nvidia_restart_ok": false}'
    code, _recap, said = playbook(CONVERGE, *here, "-e", undo)
    assert code == 0, said
    assert "KEPT: " in said
    assert host.package("nvidia-container-toolkit").is_installed
    assert _daemon(host) == daemon
    code, _recap, said = playbook(CONVERGE, *here)
    assert code == 0, said
    assert "nvidia-container-runtime" in host.check_output("containerd config dump 2>/dev/null")
