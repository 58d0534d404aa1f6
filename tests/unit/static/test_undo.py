# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guide on the undo names what each role changes, and the roles that the playbooks undo."""

from __future__ import annotations

import re

import pytest

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

GUIDE = (ROOT / "docs" / "docsite" / "rst" / "guide_undo.rst").read_text(encoding="utf-8")
ROLES = sorted(path.name for path in (ROOT / "roles").iterdir() if not path.name.startswith("_"))


def test_guide_says_of_each_role_what_it_changes() -> None:
    table = GUIDE.partition("What each role changes\n---")[2].partition("\nWhat stays\n---")[0]
    assert [role for role in ROLES if f"``{role}``" not in table] == []


@pytest.mark.parametrize("role", ["mps", "gpu_operator", "nvidia_driver_upgrade"])
def test_roles_that_the_guide_names_have_no_state(role: str) -> None:
    sentence = next(line for line in GUIDE.splitlines() if "have none: the playbooks undo them" in line)
    assert f"``{role}``" in sentence
    defaults = (ROOT / "roles" / role / "defaults" / "main.yml").read_text(encoding="utf-8")
    assert not re.search(rf"^{role}_state:", defaults, re.MULTILINE)
