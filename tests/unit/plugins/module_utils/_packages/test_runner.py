# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._packages import runner

# dnf 4.14
DNF_PROBLEM = """Error:
 Problem: conflicting requests
  - nothing provides /bin/sh needed by libtoolkit-2.0.0-1.noarch
"""
# zypper 1.14
ZYPPER_UNSIGNED = """Repository 'Stubs' is invalid.
[s|file:/srv/stubs/rpm-unsigned] Valid metadata not found at specified URL
History:
 - Signature verification failed for repomd.xml
 - Can't provide /repodata/repomd.xml

Please check if the URIs defined for this repository are pointing to a valid repository.
Some of the repositories have not been refreshed because of an error.
No provider of 'toolkit' found.
"""
ZYPPER_PROBLEM = """Resolving package dependencies...

Problem: toolkit-1.2.0-1.noarch requires base = 1.2.0-1, but this requirement cannot be provided
  not installable providers: base-1.2.0-1.noarch[stubs]
 Solution 1: downgrade of base-2.0.0-1.noarch to base-1.2.0-1.noarch
 Solution 2: do not install toolkit-1.2.0-1.noarch
 Solution 3: break toolkit-1.2.0-1.noarch by ignoring some of its dependencies

Choose from above solutions by number or cancel [1/2/3/c/d/?] (c): c
"""


@pytest.mark.parametrize(
    ("output", "errors", "words"),
    [
        ("", "", "no reason given"),
        (
            "Reading package lists...",
            "W: a warning\nE: Unable to locate package toolkit\n",
            "E: Unable to locate package toolkit",
        ),
        ("", "error: target not found: toolkit", "error: target not found: toolkit"),
        ("one\ntwo\nthree", "", "two three"),
        (
            DNF_PROBLEM,
            "",
            "Problem: conflicting requests - nothing provides /bin/sh needed by libtoolkit-2.0.0-1.noarch",
        ),
        ("", ZYPPER_UNSIGNED, "- Signature verification failed for repomd.xml"),
        (
            ZYPPER_PROBLEM,
            "",
            "Problem: toolkit-1.2.0-1.noarch requires base = 1.2.0-1, but this requirement cannot be provided",
        ),
    ],
)
def test_summarize_error(output: str, errors: str, words: str) -> None:
    assert runner.summarize_error(output, errors) == words


@pytest.mark.parametrize("open_", [True, False])
def test_break_stale_lock_keeps_open_file(tmp_path: Path, open_: bool) -> None:
    lock = tmp_path / "db.lck"
    lock.touch()
    (tmp_path / "proc" / "7" / "fd").mkdir(parents=True)
    (tmp_path / "proc" / "7" / "fd" / "3").symlink_to(lock if open_ else tmp_path / "other")
    runner.break_stale_lock(str(lock), str(tmp_path / "proc"))
    assert lock.exists() is open_
    runner.break_stale_lock(str(tmp_path / "none"), str(tmp_path / "proc"))
