# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""After state absent the machine is as it was: with unmanaged toolkits, of which the administrator chose one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

testinfra_hosts = ["ansible://*-worker-1"]

CONVERGE = str(Path(__file__).parents[1] / "converge.yml")
LIMIT = ("--limit", "*-worker-1")
UNDO = ("-e", '{"cuda_state": "absent"}')


def list_left(host: Any) -> list[str]:
    return sorted(host.check_output("find /usr/local /etc -name '*cuda*'").split())


def test_only_unmanaged_toolkits_are_left(host: Any) -> None:
    folders = ["/usr/local/cuda-11.8", "/usr/local/cuda-12.6"]
    assert list_left(host) == ["/etc/alternatives/cuda", "/usr/local/cuda", *folders]
    assert not host.file("/var/lib/gpu-kubernetes").exists
    assert host.check_output("dpkg-query --list 'cuda-*' 2>/dev/null; true") == ""
    assert host.check_output("ls /var/log/nvidia/.uninstallManifests") == ""


def test_chosen_toolkit_is_the_default_again(host: Any) -> None:
    output = host.check_output("update-alternatives --query cuda")
    assert "Status: manual\n" in output
    assert "Value: /usr/local/cuda-11.8\n" in output
    assert output.count("Alternative: ") == 2
    assert host.file("/usr/local/cuda").linked_to == "/usr/local/cuda-11.8"


def test_login_shells_have_their_former_paths(host: Any) -> None:
    assert host.check_output("bash --login -c 'echo $PATH:${LD_LIBRARY_PATH-}'").count("cuda") == 0


def test_undo_restores_an_unmanaged_link(host: Any, playbook: Any) -> None:
    """Without alternatives."""
    for version in ("11.8", "12.6"):
        root = f"/usr/local/cuda-{version}"
        host.check_output(f"update-alternatives --remove cuda {root} && rm --recursive {root}")
    host.check_output("mkdir /opt/cuda && ln -s /opt/cuda /usr/local/cuda")
    code, _recap, output = playbook(CONVERGE, *LIMIT)
    assert code == 0, output
    assert host.file("/usr/local/cuda").linked_to == "/usr/local/cuda-12.8"
    code, _recap, output = playbook(CONVERGE, *LIMIT, *UNDO)
    assert code == 0, output
    assert host.check_output("readlink /usr/local/cuda") == "/opt/cuda"
    assert list_left(host) == ["/usr/local/cuda"]
    assert host.run("update-alternatives --query cuda").rc != 0


def test_second_undo_changes_nothing(playbook: Any) -> None:
    code, recap, output = playbook(CONVERGE, *LIMIT, *UNDO)
    assert (code, [counts["changed"] for counts in recap.values()]) == (0, [0]), output
