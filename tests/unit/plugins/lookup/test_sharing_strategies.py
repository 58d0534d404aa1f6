# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lookup returns rows of the catalogue as plain types."""

from __future__ import annotations

import pytest

pytest.importorskip("ansible.errors")

from ansible.errors import AnsibleLookupError

from ansible_collections.gpu.kubernetes.plugins.lookup.sharing_strategies import LookupModule
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.catalogue import STRATEGIES


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch):
    lookup = LookupModule()
    # Ansible's own loader sets the options; this test does not use it.
    monkeypatch.setattr(lookup, "set_options", lambda **_options: None)
    return lookup.run


def test_rows_of_names_in_their_order_or_all_rows(rows):
    assert [row["name"] for row in rows([])] == list(STRATEGIES)
    assert [row["label"] for row in rows(["gpushare", "exclusive"])] == [{"gpushare": "true"}, {}]


def test_name_without_a_row_is_refused(rows):
    with pytest.raises(AnsibleLookupError, match="other is not a strategy; choose one of exclusive, time_slicing"):
        rows(["other"])
