# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What vendor_packages reports when a package manager cannot read its sources."""

from __future__ import annotations

import os

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import DEBIAN


def test_a_check_says_that_it_cannot_take_away_what_keeps_apt_from_reading(refusals, tmp_path):
    (tmp_path / "apt-get").write_text("#!/bin/sh\necho 'E: Conflicting values set' >&2\nexit 100\n")
    (tmp_path / "apt-get").chmod(0o755)
    source = tmp_path / "ours.sources"
    source.touch()
    told = refusals(
        "vendor_packages",
        ["repository_host"],
        {"check": {}},
        variables={"vendor_packages_manager": "apt", "vendor_packages_repository": {"suite": "bookworm"}},
        facts=DEBIAN,
        extra={"__vendor_packages_sources_file": str(source)},
        environment={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        check_mode=True,
    )
    assert told["check"].startswith("check: apt cannot read its sources (E: Conflicting values set). ")
    assert f"{source} of an earlier run may be the cause;" in told["check"]
    assert source.exists()
