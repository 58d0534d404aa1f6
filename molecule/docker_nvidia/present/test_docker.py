# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Docker reports the runtime, and containers from before the role survive."""

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


def read_info(host: Any) -> dict[str, Any]:
    return json.loads(host.check_output("docker info --format '{{json .}}'"))


def list_containers(host: Any) -> list[str]:
    """The running containers, each with its start time."""
    return host.check_output(
        "docker ps --quiet | xargs docker inspect --format '{{.Name}} {{.State.StartedAt}}'"
    ).split("\n")


def test_runtime_is_configured_and_runc_stays_default(host: Any) -> None:
    info = read_info(host)
    assert info["Runtimes"]["nvidia"]["path"] == "/usr/bin/nvidia-container-runtime"
    assert info["DefaultRuntime"] == "runc"


def test_other_settings_order_and_indentation_are_kept(host: Any) -> None:
    shipped = (HERE / "files" / "daemon.json").read_text(encoding="utf-8")
    expected = {**json.loads(shipped), "runtimes": {"nvidia": {"path": "/usr/bin/nvidia-container-runtime"}}}
    assert host.file(CONFIG).content_string == json.dumps(expected, indent=2) + "\n"


def test_running_container_survives(host: Any) -> None:
    """It was started before the role ran for the first time, and dockerd was only reloaded."""
    [container] = list_containers(host)
    assert container.startswith("/stays ")
    started = host.check_output("stat --format %Y /var/lib/gpu-kubernetes")
    created = host.check_output(f"date --date {container.split()[1]} +%s")
    assert int(created) <= int(started)


def test_container_under_the_nvidia_runtime_has_only_its_gpu(host: Any) -> None:
    output = host.check_output(f"docker run --rm --runtime nvidia --env NVIDIA_VISIBLE_DEVICES=0 {SAMPLE}")
    assert "Test PASSED" in output
    assert re.findall(r"device node (/dev/nvidia\d+)", output) == ["/dev/nvidia0"]


def test_default_runtime_changes_and_back(host: Any, playbook: Playbook) -> None:
    """A reload sets the default. The former default requires a restart, which ends a container and therefore a permission."""
    containers = list_containers(host)
    other = "/usr/local/bin/nvidia-container-runtime"
    host.check_output(f"ln -s /usr/bin/nvidia-container-runtime {other}")
    enable = {"docker_nvidia_set_default": True, "nvidia_container_toolkit_runtime_path": other}
    code, _recap, output = playbook(CONVERGE, "-e", json.dumps(enable))
    assert code == 0, output
    assert read_info(host)["DefaultRuntime"] == "nvidia"
    assert read_info(host)["Runtimes"]["nvidia"]["path"] == other
    host.check_output(f"rm {other}")
    disable = [
        "-e",
        '{"docker_nvidia_set_default": false, "nvidia_container_toolkit_runtime_path": "/usr/bin/nvidia-container-runtime"}',
    ]
    code, _recap, output = playbook(CONVERGE, *disable)
    assert code == 0, output
    assert "container_runtime_restart_interrupt, which ends the 1 containers that run there" in " ".join(output.split())
    assert read_info(host)["DefaultRuntime"] == "nvidia"
    assert host.file(PENDING).exists
    assert list_containers(host) == containers
    code, _recap, output = playbook(CONVERGE, *disable, "-e", '{"container_runtime_restart_interrupt": true}')
    assert code == 0, output
    assert read_info(host)["DefaultRuntime"] == "runc"
    assert not host.file(PENDING).exists
    host.check_output("docker start stays")


def test_failed_docker_gets_its_former_file(host: Any, playbook: Playbook) -> None:
    before = host.file(CONFIG).content
    settings = {"docker_nvidia_settings": {"storage-driver": "no-such"}}
    variables = json.dumps({**settings, "container_runtime_restart_interrupt": True})
    code, _recap, output = playbook(CONVERGE, "-e", variables)
    assert code != 0
    assert "the former one was restored and works" in " ".join(output.split()), output
    assert "no-such" in output, "Docker's own message is missing"
    assert host.file(CONFIG).content == before
    assert "nvidia" in read_info(host)["Runtimes"]
    host.check_output("docker start stays")
    code, recap, output = playbook(CONVERGE)
    assert (code, [counts["changed"] for counts in recap.values()]) == (0, [0]), output


def test_toolkit_stays_while_docker_may_use_it(host: Any, playbook: Playbook) -> None:
    containers = list_containers(host)
    undo = ["-e", '{"docker_nvidia_state": "absent"}']
    for mode in (["--check"], []):
        code, _recap, output = playbook(CONVERGE, *undo, *mode)
        assert code == 0, output
        assert "KEPT: " in output
    assert host.package("nvidia-container-toolkit").is_installed
    assert list_containers(host) == containers
    code, _recap, output = playbook(CONVERGE)
    assert code == 0, output
    assert "nvidia" in read_info(host)["Runtimes"]


def test_malformed_file_is_refused(host: Any, playbook: Playbook) -> None:
    before = host.file(CONFIG).content
    host.check_output(f"cp -p {CONFIG} /root/ && echo '}}' >> {CONFIG}")
    try:
        code, _recap, output = playbook(CONVERGE)
        assert code != 0
        assert f"{CONFIG}, line" in output
    finally:
        host.check_output(f"mv /root/daemon.json {CONFIG}")
    assert host.file(CONFIG).content == before


def test_playbook_changes_nothing(playbook: Playbook) -> None:
    """Without a kubelet the runtime has to be a variable."""
    code, recap, output = playbook("prepare_gpu_nodes", "-e", "container_runtime=docker")
    assert (code, [counts["changed"] for counts in recap.values()]) == (0, [0]), output
    assert "docker_nvidia" in output
    assert "containerd_nvidia" not in output
