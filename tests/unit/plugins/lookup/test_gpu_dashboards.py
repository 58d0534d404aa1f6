# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lookup returns the dashboards as text, and as the part of a ConfigMap that differs."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("ansible.errors")

from ansible.errors import AnsibleLookupError

from ansible_collections.gpu.kubernetes.plugins.lookup.gpu_dashboards import LookupModule


@pytest.fixture
def find(monkeypatch: pytest.MonkeyPatch):
    def run(*terms, **options):
        lookup = LookupModule()
        # Ansible's own loader sets the options; this test does not use it.
        monkeypatch.setattr(lookup, "set_options", lambda **_options: None)
        values = {"prices": {}, "currency": "", "runbook_url": "", **options}
        monkeypatch.setattr(lookup, "get_option", values.__getitem__)
        return lookup.run(terms)

    return run


def test_dashboards_are_returned_as_text_and_for_a_config_map(find):
    found = find(prices={"*": "0.5"})
    assert [each["uid"] for each in found][:2] == ["gpu-kubernetes-fleet", "gpu-kubernetes-node"]
    for each in found:
        assert json.loads(each["text"])["title"] == each["title"]
        name = each["uid"]
        assert each["config_map"] == {"metadata": {"name": name}, "data": {f"{name}.json": each["text"]}}
    assert "* 0.5 or" in found[-1]["text"]


def test_price_that_is_not_a_number_and_terms_are_refused(find):
    with pytest.raises(AnsibleLookupError, match="takes no terms"):
        find("fleet")
    with pytest.raises(AnsibleLookupError, match="the price of T4 is 'cheap'; write it as a number"):
        find(prices={"T4": "cheap"})
