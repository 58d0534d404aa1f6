# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way of NVIDIA's installer, walked by a fake: nothing is executed unproved, and nothing of it stays."""

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


def installed(host: Any) -> list[str]:
    return host.check_output("ls /usr/lib/x86_64-linux-gnu | sed -n 's/^libnvidia-ml.so.\\([0-9]*\\.\\)/\\1/p'").split()


def leftovers(host: Any) -> str:
    return host.check_output(
        "find /tmp /root/.ansible /var/lib/gpu-kubernetes -name driver-runfile -o -name installer.run"
    )


def run(playbook: Playbook, host: Any, *words: str, **variables: object) -> tuple[int, dict[str, int], str]:
    name = host.backend.get_hostname()
    code, recap, said = playbook(CONVERGE, "--limit", name, "-e", json.dumps(variables), *words)
    return code, recap.get(name, {}), " ".join(said.split())


def test_the_installer_ran_as_asked(host: Any) -> None:
    assert installed(host) == [FIRST]
    assert leftovers(host) == ""
    log = host.file("/var/log/nvidia-installer.log").content_string
    assert log == (
        f"fake for nvidia-installer {FIRST}: --silent --no-x-check --no-install-compat32-libs --no-kernel-modules\n"
    )


def test_another_version_and_back(host: Any, playbook: Playbook) -> None:
    code, told, said = run(playbook, host, "--check", runfile_version=SECOND)
    assert (code, told["changed"], installed(host)) == (0, 1, [FIRST]), said
    code, done, said = run(playbook, host, runfile_version=SECOND)
    assert (code, done["changed"] > 0, installed(host)) == (0, True, [SECOND]), said
    for words in (["--check"], []):
        code, again, said = run(playbook, host, *words, runfile_version=SECOND)
        assert (code, again["changed"]) == (0, 0), said
    code, _done, said = run(playbook, host)
    assert (code, installed(host), leftovers(host)) == (0, [FIRST], ""), said


def test_nothing_is_executed_with_a_wrong_checksum(host: Any, playbook: Playbook) -> None:
    host.check_output(f"rm {MARK}")
    code, _done, said = run(playbook, host, runfile_version=SECOND, runfile_checksum="0" * 64)
    assert code != 0
    assert "did not match" in said
    assert not host.file(MARK).exists
    assert (installed(host), leftovers(host)) == ([FIRST], "")


def test_a_failure_is_told_in_the_installers_words(host: Any, playbook: Playbook) -> None:
    code, _done, said = run(playbook, host, runfile_options=["--no-such-option"])
    assert code != 0
    assert "the installer ended with status 1 and wrote last: fake for nvidia-installer" in said
    assert "unrecognized option: --no-such-option Fix that and run again." in said
    assert leftovers(host) == ""
    code, _done, said = run(playbook, host)
    assert (code, installed(host)) == (0, [FIRST]), said


def test_an_installation_that_was_cut_off_is_made_up_for(host: Any, playbook: Playbook) -> None:
    host.check_output("touch /root/fake-installer-is-killed")
    code, _done, _said = run(playbook, host, runfile_version=SECOND)
    assert code != 0
    code, done, said = run(playbook, host, runfile_version=SECOND)
    assert (code, done["changed"] > 0, installed(host)) == (0, True, [SECOND]), said
    assert host.file("/usr/bin/nvidia-uninstall").exists
    code, _done, said = run(playbook, host)
    assert (code, installed(host)) == (0, [FIRST]), said


def test_a_driver_of_another_method_is_not_put_over_it(host: Any, playbook: Playbook) -> None:
    code, _done, said = run(playbook, host, nvidia_driver_method="package")
    assert code != 0
    assert "this role installed the driver with the method runfile, but nvidia_driver_method is package; remove" in said
