# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Docker itself says what it runs with; what ran before the role goes on."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

testinfra_hosts = ["ansible://gpu_nodes"]

HERE = Path(__file__).parents[1]
CONVERGE = str(HERE / "converge.yml")
CONFIG = "/etc/docker/daemon.json"
PENDING = "/var/lib/gpu-kubernetes/pending/docker.restart"
SAMPLE = "lab.local/fake/cuda-sample:vectoradd"
Playbook = Callable[..., tuple[int, dict[str, dict[str, int]], str]]


def info(host: Any) -> dict[str, Any]:
    return json.loads(host.check_output("docker info --format '{{json .}}'"))


def running(host: Any) -> list[str]:
    """The containers that run, each with the time since when."""
    return host.check_output(
        "docker ps --quiet | xargs docker inspect --format '{{.Name}} {{.State.StartedAt}}'"
    ).split("\n")


def test_runtime_is_offered_and_runc_stays_default(host: Any) -> None:
    told = info(host)
    assert told["Runtimes"]["nvidia"]["path"] == "/usr/bin/nvidia-container-runtime"
    assert told["DefaultRuntime"] == "runc"


def test_other_settings_order_and_indentation_are_kept(host: Any) -> None:
    shipped = (HERE / "files" / "daemon.json").read_text(encoding="utf-8")
    wanted = {**json.loads(shipped), "runtimes": {"nvidia": {"path": "/usr/bin/nvidia-container-runtime"}}}
    assert host.file(CONFIG).content_string == json.dumps(wanted, indent=2) + "\n"


def test_no_container_was_ended(host: Any) -> None:
    """It was started before the role ran for the first time, and dockerd was only reloaded."""
    [container] = running(host)
    assert container.startswith("/stays ")
    started = host.check_output("stat --format %Y /var/lib/gpu-kubernetes")
    born = host.check_output(f"date --date {container.split()[1]} +%s")
    assert int(born) <= int(started)


def test_a_container_under_the_nvidia_runtime_sees_only_its_gpu(host: Any) -> None:
    said = host.check_output(f"docker run --rm --runtime nvidia --env NVIDIA_VISIBLE_DEVICES=0 {SAMPLE}")
    assert "Test PASSED" in said
    assert re.findall(r"device node (/dev/nvidia\d+)", said) == ["/dev/nvidia0"]


def test_default_runtime_there_and_back(host: Any, playbook: Playbook) -> None:
    """There by a reload. Back needs a restart, which would end a container, so that it has to be allowed."""
    containers = running(host)
    other = "/usr/local/bin/nvidia-container-runtime"
    host.check_output(f"ln -s /usr/bin/nvidia-container-runtime {other}")
    on = {"docker_nvidia_set_default": True, "nvidia_container_toolkit_runtime_path": other}
    code, _recap, said = playbook(CONVERGE, "-e", json.dumps(on))
    assert code == 0, said
    assert info(host)["DefaultRuntime"] == "nvidia"
    assert info(host)["Runtimes"]["nvidia"]["path"] == other
    host.check_output(f"rm {other}")
    off = [
        "-e",
        '{"docker_nvidia_set_default": false, "nvidia_container_toolkit_runtime_path": "/usr/bin/nvidia-container-runtime"}',
    ]
    code, _recap, said = playbook(CONVERGE, *off)
    assert code == 0, said
    assert "container_runtime_restart_interrupt, which ends the 1 containers that run there" in " ".join(said.split())
    assert info(host)["DefaultRuntime"] == "nvidia"
    assert host.file(PENDING).exists
    assert running(host) == containers
    code, _recap, said = playbook(CONVERGE, *off, "-e", '{"container_runtime_restart_interrupt": true}')
    assert code == 0, said
    assert info(host)["DefaultRuntime"] == "runc"
    assert not host.file(PENDING).exists
    host.check_output("docker start stays")


def test_docker_that_does_not_come_back_gets_its_file_back(host: Any, playbook: Playbook) -> None:
    before = host.file(CONFIG).content
    wrong = {"docker_nvidia_settings": {"storage-driver": "no-such"}}
    allowed = json.dumps({**wrong, "container_runtime_restart_interrupt": True})
    code, _recap, said = playbook(CONVERGE, "-e", allowed)
    assert code != 0
    assert "the former one was restored and works" in " ".join(said.split()), said
    assert "no-such" in said, "Docker's own words are missing"
    assert host.file(CONFIG).content == before
    assert "nvidia" in info(host)["Runtimes"]
    host.check_output("docker start stays")
    code, recap, said = playbook(CONVERGE)
    assert (code, [counts["changed"] for counts in recap.values()]) == (0, [0]), said


def test_toolkit_stays_as_long_as_docker_may_use_it(host: Any, playbook: Playbook) -> None:
    containers = running(host)
    undo = ["-e", '{"docker_nvidia_state": "absent"}']
    for mode in (["--check"], []):
        code, _recap, said = playbook(CONVERGE, *undo, *mode)
        assert code == 0, said
        assert "KEPT: " in said
    assert host.package("nvidia-container-toolkit").is_installed
    assert running(host) == containers
    code, _recap, said = playbook(CONVERGE)
    assert code == 0, said
    assert "nvidia" in info(host)["Runtimes"]


def test_a_file_that_docker_would_not_take_is_refused(host: Any, playbook: Playbook) -> None:
    before = host.file(CONFIG).content
    host.check_output(f"cp -p {CONFIG} /root/ && echo '}}' >> {CONFIG}")
    try:
        code, _recap, said = playbook(CONVERGE)
        assert code != 0
        assert f"{CONFIG}, line" in said
    finally:
        host.check_output(f"mv /root/daemon.json {CONFIG}")
    assert host.file(CONFIG).content == before


def test_the_playbook_has_nothing_left_to_do(playbook: Playbook) -> None:
    """There is no kubelet to tell which runtime it is."""
    code, recap, said = playbook("prepare_gpu_nodes", "-e", "container_runtime=docker")
    assert (code, [counts["changed"] for counts in recap.values()]) == (0, [0]), said
    assert "docker_nvidia" in said
    assert "containerd_nvidia" not in said
