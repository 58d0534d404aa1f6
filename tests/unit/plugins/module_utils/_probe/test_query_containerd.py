# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runtimes of containerd's configuration, from the running daemon and from its files."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._probe import query
from ansible_collections.gpu.kubernetes.plugins.module_utils._probe.errors import ClientError
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._probe import samples

UNKNOWN: dict[str, Any] = {"default_runtime": None, "enable_cdi": None, "runtimes": {}}
NVIDIA = {"type": "io.containerd.runc.v2", "binary": "/usr/bin/nvidia-container-runtime", "systemd_cgroup": True}


def test_read_runtimes_of_the_running_configuration() -> None:
    assert query.read_containerd_runtimes(samples.CRICTL_INFO["config"]) == {
        "default_runtime": "runc",
        "enable_cdi": True,
        "runtimes": {
            "kata": {"type": "io.containerd.kata.v2", "binary": None, "systemd_cgroup": False},
            "nvidia": NVIDIA,
            "runc": {"type": "io.containerd.runc.v2", "binary": None, "systemd_cgroup": True},
        },
    }


@pytest.mark.parametrize("config", [{}, {"containerd": None}, {"containerd": {"runtimes": []}}, {"containerd": 5}])
def test_read_runtimes_of_an_odd_configuration_are_unknown(config: dict[str, Any]) -> None:
    assert query.read_containerd_runtimes(config) == UNKNOWN


def test_read_runtimes_of_an_odd_runtime_has_no_values() -> None:
    config = {"containerd": {"runtimes": {"a": None, "b": {"options": 5}}}}
    nothing = {"type": None, "binary": None, "systemd_cgroup": False}
    assert query.read_containerd_runtimes(config)["runtimes"] == {"a": nothing, "b": nothing}


@pytest.mark.parametrize(
    ("printed", "default", "cdi", "runtimes"),
    [
        (samples.DUMP_3, "nvidia", None, {"nvidia": NVIDIA}),
        (
            samples.DUMP_2,
            "runc",
            False,
            {"runc": {"type": "io.containerd.runc.v2", "binary": None, "systemd_cgroup": False}},
        ),
        # without the CRI plugin
        ("version = 3\n[plugins]\n", None, None, {}),
        ("", None, None, {}),
    ],
)
def test_read_dump_of_each_configuration_version(
    printed: str, default: str | None, cdi: bool | None, runtimes: dict[str, Any]
) -> None:
    found = query.read_containerd_runtimes(query.read_containerd_dump(printed))
    assert found == {"default_runtime": default, "enable_cdi": cdi, "runtimes": runtimes}


@pytest.mark.parametrize("printed", ["no TOML", "a = [", "plugins = 1\nplugins = 2"])
def test_read_dump_of_garbage_is_an_error(printed: str) -> None:
    with pytest.raises(ClientError, match="something other than TOML"):
        query.read_containerd_dump(printed)


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (["/usr/bin/containerd"], ["/usr/bin/containerd", "config", "dump"]),
        (
            ["/usr/local/bin/containerd", "--config", "/etc/c.toml"],
            ["/usr/local/bin/containerd", "--config", "/etc/c.toml", "config", "dump"],
        ),
        (["/b/containerd", "-c=/c.toml", "-l", "debug"], ["/b/containerd", "--config", "/c.toml", "config", "dump"]),
    ],
)
def test_dump_runtimes_reads_the_files_of_the_running_daemon(arguments: list[str], command: list[str]) -> None:
    commands: list[list[str]] = []

    def run(given: Any, _seconds: float) -> tuple[int, str, str]:
        commands.append(list(given))
        return 0, samples.DUMP_3, "level=warning"

    assert query.dump_containerd_runtimes(arguments, run)["default_runtime"] == "nvidia"
    assert commands == [command]


@pytest.mark.parametrize("arguments", [[], ["/usr/local/bin/k3s", "server"]])
def test_dump_runtimes_of_another_process_is_an_error(arguments: list[str]) -> None:
    def run(_command: Any, _seconds: float) -> tuple[int, str, str]:
        raise AssertionError("nothing is run")

    with pytest.raises(ClientError, match="not containerd"):
        query.dump_containerd_runtimes(arguments, run)


@pytest.mark.parametrize(
    ("result", "message"),
    [((0, "garbage", ""), "something other than TOML"), ((1, "", "containerd: cannot connect"), "cannot connect")],
)
def test_dump_runtimes_that_fails_is_an_error(result: tuple[int, str, str], message: str) -> None:
    with pytest.raises(ClientError, match=f"the runtimes are unknown: .*{message}"):
        query.dump_containerd_runtimes(["/usr/bin/containerd"], lambda _command, _seconds: result)
