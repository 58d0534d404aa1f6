# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The identity of a run, and whether another run of this controller has ended."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._lease.holder import (
    describe_holder,
    has_ended,
    read_start,
)

OWN = "root@one/9.900.b00t.4026"


@pytest.mark.parametrize(
    ("holder", "starts", "ended"),
    [
        ("root@one/7.700.b00t.4026", {}, True),
        ("root@one/7.700.b00t.4026", {7: "700"}, False),
        ("root@one/7.700.b00t.4026", {7: "701"}, True),
        ("eve@one/7.700.b00t.4026", {}, False),
        ("root@two/7.700.b00t.4026", {}, False),
        ("root@one/7.700.0ther.4026", {}, False),
        ("root@one/7.700.b00t.4027", {}, False),
        ("root@one/7..b00t.4026", {}, False),
        ("root@one/x.700.b00t.4026", {}, False),
        ("root@one/7", {}, False),
        ("root@one", {}, False),
        ("", {}, False),
    ],
)
def test_has_ended_only_for_a_missing_process_of_this_user_and_machine(
    holder: str, starts: dict[int, str], ended: bool
) -> None:
    assert has_ended(holder, OWN, lambda pid: starts.get(pid, "")) is ended


def test_has_ended_without_proc_is_false() -> None:
    assert not has_ended("root@one/7...", "root@one/9...", lambda _pid: "")


def test_holder_is_the_same_in_the_whole_run_and_ends_with_its_process() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        holder = describe_holder(process.pid)
        assert holder == describe_holder(process.pid)
        assert holder.partition("/")[2].startswith(f"{process.pid}.{read_start(process.pid)}.")
        assert not has_ended(holder, describe_holder(os.getpid()), read_start)
        process.kill()
        process.wait()
    assert has_ended(holder, describe_holder(os.getpid()), read_start)
