# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports of vendor_packages about unreadable sources of a package manager."""

from __future__ import annotations

import os

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import DEBIAN


def test_check_mode_with_unreadable_sources_names_the_managed_source(refusals, tmp_path):
    (tmp_path / "apt-get").write_text("#!/bin/sh\necho 'E: Conflicting values set' >&2\nexit 100\n")
    (tmp_path / "apt-get").chmod(0o755)
    source = tmp_path / "managed.sources"
    source.touch()
    messages = refusals(
        "vendor_packages",
        ["repository_host"],
        {"check": {}},
        variables={"vendor_packages_manager": "apt", "vendor_packages_repository": {"suite": "bookworm"}},
        facts=DEBIAN,
        extra={"__vendor_packages_sources_file": str(source)},
        environment={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        check_mode=True,
    )
    assert messages["check"].startswith("check: apt cannot read its sources (E: Conflicting values set). ")
    assert f"{source} of an earlier run may be the cause;" in messages["check"]
    assert source.exists()
