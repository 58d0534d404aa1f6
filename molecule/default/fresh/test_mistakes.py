# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A mistake ends the run in one sentence (host, cause, remedy) before any host or the cluster is changed.

What needs no cluster to be found out is in tests/unit/playbooks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import testinfra
import yaml

HOST = "molecule-worker-2"
LAB = Path(__file__).resolve().parents[3] / ".lab" / "molecule"


@contextmanager
def spoiled(machine: Any, spoil: str, mend: str) -> Iterator[None]:
    """The machine with something wrong on it."""
    machine.check_output(spoil)
    try:
        yield
    finally:
        machine.check_output(mend)


def refusals(said: str) -> list[str]:
    """What the failed tasks of a run told, one string a host."""
    flat = " ".join(said.split())
    return re.findall(r"(?:fatal|failed): \[\S+?\].*?\"msg\": \"(.*?)\"(?:,|\}| \})", flat) or re.findall(
        r"\[ERROR\]: Task failed: (?:Module failed: |Action failed: )?(.*?)(?= Origin: | Task failed|$)", flat
    )


@pytest.fixture
def machine() -> Any:
    """The last GPU node: the first one must stay untouched too."""
    return testinfra.get_host(f"ansible://{HOST}?ansible_inventory={LAB / 'inventory.yml'}")


@pytest.fixture
def nobody_home(tmp_path: Path) -> Path:
    """A kubeconfig of a cluster whose API server does not answer."""
    config = yaml.safe_load((LAB / "kubeconfig").read_text())
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


def refused(
    playbook: Callable[..., Any], fingerprint: Callable[[], dict[str, str]], options: list[str], *words: str
) -> None:
    """Site ends without a change, and one sentence has all the words."""
    before = fingerprint()
    code, _recap, said = playbook("site", *options)
    assert code != 0, said
    told = refusals(said)
    assert told, said
    assert any(all(word in sentence for word in words) for sentence in told), told
    assert "Traceback" not in said
    after = fingerprint()
    assert {key: after[key] for key in before} == before


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("k8s_device_plugin_provider=acme", ("acme", "nvidia")),
        # a host that has no GPU is one of the cluster's own
        (
            "gpu_nodes_group=kube_control_plane",
            ("molecule-control-plane", "no NVIDIA GPU was found", "take the host out"),
        ),
    ],
    ids=["provider", "no GPU"],
)
def test_wrong_settings(playbook: Any, fingerprint: Any, option: str, words: tuple[str, ...]) -> None:
    refused(playbook, fingerprint, ["-e", option], *words)


def test_object_of_somebody_else(playbook: Any, fingerprint: Any, api: Any) -> None:
    name = "nvidia-device-plugin-config"
    api.create_namespaced_config_map("kube-system", {"metadata": {"name": name}, "data": {"theirs": "yes"}})
    try:
        refused(playbook, fingerprint, [], name, "kube-system")
    finally:
        api.delete_namespaced_config_map(name, "kube-system")


def test_api_server_away(playbook: Any, fingerprint: Any, nobody_home: Path) -> None:
    refused(playbook, fingerprint, ["-e", f"gpu_kubeconfig={nobody_home}"], "127.0.0.1:1")


@pytest.mark.parametrize(
    ("spoil", "mend", "words"),
    [
        (
            "cp -p /etc/containerd/config.toml /root/ && echo 'broken = [' >> /etc/containerd/config.toml",
            "mv /root/config.toml /etc/containerd/config.toml",
            (HOST, "/etc/containerd/config.toml", "line"),
        ),
        (
            # the running daemon stays: nothing of the cluster may suffer from this test
            "mount --bind /dev/null $(command -v containerd)",
            "umount /usr/local/bin/containerd",
            (HOST, "there is no containerd program", "install containerd"),
        ),
        (
            (
                "cp -p /usr/lib/os-release /root/ && sed -i 's/VERSION_ID=.*/VERSION_ID=\"3\"/' /usr/lib/os-release"
                " && cp -p /etc/debian_version /root/ && echo 3.1 > /etc/debian_version"
            ),
            "mv /root/os-release /usr/lib/os-release; mv /root/debian_version /etc/debian_version",
            (HOST, "Debian 3 is not supported", "gpu_preflight_allow_unsupported"),
        ),
    ],
    ids=["malformed config.toml", "no containerd", "distribution"],
)
def test_host_that_is_not_fit(
    playbook: Any, fingerprint: Any, machine: Any, spoil: str, mend: str, words: tuple[str, ...]
) -> None:
    with spoiled(machine, spoil, mend):
        refused(playbook, fingerprint, [], *words)
