# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lock file of a host: one run at a time, also where there is no API server."""

from __future__ import annotations

import stat
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._lease.decide import (
    ACQUIRE,
    REFUSE,
    RENEW,
    TAKE_OVER,
    Request,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._lease.lock_file import (
    hold_lock,
    read_lock,
    release_lock,
)

NOW = datetime(2026, 8, 23, 7, tzinfo=timezone.utc)
ONE, TWO = Request("root@one/1.2.b.3", 600), Request("eve@two/7.8.c.9", 600)


def test_second_run_is_refused_until_the_first_one_ends(tmp_path: Path) -> None:
    path = str(tmp_path / "run" / "run-node.json")
    assert hold_lock(path, ONE, NOW, check_mode=True).action == ACQUIRE
    assert not Path(path).parent.exists()
    assert hold_lock(path, ONE, NOW).action == ACQUIRE
    assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600
    assert hold_lock(path, TWO, NOW).action == REFUSE
    assert hold_lock(path, TWO, NOW, check_mode=True).action == REFUSE
    assert hold_lock(path, ONE, NOW + timedelta(seconds=500)).action == RENEW
    assert hold_lock(path, TWO, NOW + timedelta(seconds=1099)).action == REFUSE
    assert not release_lock(path, TWO.holder)
    assert release_lock(path, ONE.holder)
    assert not release_lock(path, ONE.holder)
    assert hold_lock(path, TWO, NOW).action == ACQUIRE


def test_expired_lock_is_taken_over_and_not_released_by_its_former_run(tmp_path: Path) -> None:
    path = str(tmp_path / "run-node.json")
    hold_lock(path, ONE, NOW)
    later = NOW + timedelta(seconds=600)
    assert hold_lock(path, TWO, later).action == TAKE_OVER
    assert not release_lock(path, ONE.holder)
    found = read_lock(path)
    assert found is not None
    assert (found.holder, found.since) == (TWO.holder, later)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"holder": "x", "since": 1, "renewed": 1, "seconds": "x"}'])
def test_damaged_lock_is_free(tmp_path: Path, text: str) -> None:
    path = tmp_path / "run-node.json"
    path.write_text(text)
    assert hold_lock(str(path), ONE, NOW).action == ACQUIRE
