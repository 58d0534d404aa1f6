# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's installer, a fake: it is verified before it runs, and deleted after."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

testinfra_hosts = ["ansible://*-worker-2"]

CONVERGE = str(Path(__file__).parents[1] / "converge.yml")
FIRST, SECOND = "570.124.06", "570.195.03"
MARK = "/root/fake-installer-ran"
Playbook = Callable[..., tuple[int, dict[str, dict[str, int]], str]]


def read_versions(host: Any) -> list[str]:
    return host.check_output("ls /usr/lib/x86_64-linux-gnu | sed -n 's/^libnvidia-ml.so.\\([0-9]*\\.\\)/\\1/p'").split()


def find_leftovers(host: Any) -> str:
    return host.check_output(
        "find /tmp /root/.ansible /var/lib/gpu-kubernetes -name driver-runfile -o -name installer.run"
    )


def run(playbook: Playbook, host: Any, *words: str, **variables: object) -> tuple[int, dict[str, int], str]:
    name = host.backend.get_hostname()
    code, recap, output = playbook(CONVERGE, "--limit", name, "-e", json.dumps(variables), *words)
    return code, recap.get(name, {}), " ".join(output.split())


def test_installer_ran_with_the_requested_options(host: Any) -> None:
    assert read_versions(host) == [FIRST]
    assert find_leftovers(host) == ""
    log = host.file("/var/log/nvidia-installer.log").content_string
    assert log == (
        f"fake for nvidia-installer {FIRST}: --silent --no-x-check --no-install-compat32-libs --no-kernel-modules\n"
    )


def test_other_version_and_back(host: Any, playbook: Playbook) -> None:
    code, predicted, output = run(playbook, host, "--check", runfile_version=SECOND)
    assert (code, predicted["changed"], read_versions(host)) == (0, 1, [FIRST]), output
    code, counts, output = run(playbook, host, runfile_version=SECOND)
    assert (code, counts["changed"] > 0, read_versions(host)) == (0, True, [SECOND]), output
    for words in (["--check"], []):
        code, again, output = run(playbook, host, *words, runfile_version=SECOND)
        assert (code, again["changed"]) == (0, 0), output
    code, _counts, output = run(playbook, host)
    assert (code, read_versions(host), find_leftovers(host)) == (0, [FIRST], ""), output


def test_wrong_checksum_executes_nothing(host: Any, playbook: Playbook) -> None:
    host.check_output(f"rm {MARK}")
    code, _counts, output = run(playbook, host, runfile_version=SECOND, runfile_checksum="0" * 64)
    assert code != 0
    assert "did not match" in output
    assert not host.file(MARK).exists
    assert (read_versions(host), find_leftovers(host)) == ([FIRST], "")


def test_failure_has_the_installers_last_lines(host: Any, playbook: Playbook) -> None:
    code, _counts, output = run(playbook, host, runfile_options=["--no-such-option"])
    assert code != 0
    assert "the installer ended with status 1 and wrote last: fake for nvidia-installer" in output
    assert "unrecognized option: --no-such-option Fix that and run again." in output
    assert find_leftovers(host) == ""
    code, _counts, output = run(playbook, host)
    assert (code, read_versions(host)) == (0, [FIRST]), output


def test_interrupted_installation_is_repeated(host: Any, playbook: Playbook) -> None:
    host.check_output("touch /root/fake-installer-is-killed")
    code, _counts, _output = run(playbook, host, runfile_version=SECOND)
    assert code != 0
    code, counts, output = run(playbook, host, runfile_version=SECOND)
    assert (code, counts["changed"] > 0, read_versions(host)) == (0, True, [SECOND]), output
    assert host.file("/usr/bin/nvidia-uninstall").exists
    code, _counts, output = run(playbook, host)
    assert (code, read_versions(host)) == (0, [FIRST]), output


def test_other_method_is_refused(host: Any, playbook: Playbook) -> None:
    code, _counts, output = run(playbook, host, nvidia_driver_method="package")
    assert code != 0
    assert (
        "this role installed the driver with the method runfile, but nvidia_driver_method is package; remove" in output
    )
