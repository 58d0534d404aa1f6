# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The limits of the control daemon of MPS are read through its pipe, until they are set."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

pytest.importorskip("ansible.module_utils.basic")

from ansible_collections.gpu.kubernetes.tests.unit.plugins.modules.mps_node import Node

GPUS = [
    {"index": 0, "memory_total_bytes": 40 * 2**30, "lost": False},
    {"index": 1, "memory_total_bytes": None, "lost": True},
    {"index": 2, "memory_total_bytes": 80 * 2**30, "lost": False},
]
UNSET = "get_default_active_thread_percentage = 100.0\n"
SET = (
    "get_default_active_thread_percentage = 25.0\n"
    "get_default_device_pinned_mem_limit 0 = 10G\nget_default_device_pinned_mem_limit 2 = 20G\n"
)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    host = Node(tmp_path)
    host.leave()
    return host


def test_limits_are_awaited(node: Node) -> None:
    """The daemon answers before it sets them."""
    (node.pipe / "answers").write_text(UNSET)

    def set_limits() -> None:
        while not node.commands():
            time.sleep(0.05)
        (node.pipe / "new").write_text(SET)
        (node.pipe / "new").replace(node.pipe / "answers")

    thread = threading.Thread(target=set_limits)
    thread.start()
    done = node.run("mps_info", replicas=4, gpus=GPUS, wait_timeout=60)
    thread.join()
    assert (done["changed"], done["limits"]) == (False, {"percentage": 25, "memory": {"0": 10240, "2": 20480}}), done
    assert done["program"] == str(node.programs / "nvidia-cuda-mps-control")
    assert node.commands()[0] == "MPS/nvidia.com/gpu/pipe: get_default_active_thread_percentage"


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        (UNSET, "a client gets 100.0 per cent of the threads and not 25;"),
        ("", "a client gets all per cent of the threads and not 25;"),
        (None, "no control daemon answers at "),
    ],
)
def test_limits_that_are_not_set_in_time_fail(node: Node, answers: str | None, words: str) -> None:
    if answers is not None:
        (node.pipe / "answers").write_text(answers)
    failed = node.run("mps_info", replicas=4, gpus=GPUS)
    assert failed["msg"].startswith(f"MPS does not limit its clients after 0 s: {words}")


def test_program_is_reported_without_a_daemon(node: Node) -> None:
    assert node.run("mps_info")["program"] == str(node.programs / "nvidia-cuda-mps-control")
    assert node.commands() == []
