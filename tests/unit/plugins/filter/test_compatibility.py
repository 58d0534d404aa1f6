# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter passes a host to the checks and converts errors to Ansible's."""

from __future__ import annotations

import datetime
import types
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ansible.errors")

from ansible.errors import AnsibleFilterError

from ansible_collections.gpu.kubernetes.plugins.filter import compatibility

yaml = pytest.importorskip("yaml")

JUDGE = compatibility.FilterModule().filters()["compatibility"]
FOLDER = Path(__file__).resolve().parents[4] / "roles" / "gpu_preflight" / "vars" / "compatibility"
TABLES = {path.stem: next(iter(yaml.safe_load(path.read_text()).values())) for path in FOLDER.glob("*.yml")}
P40 = {"name": "Tesla P40", "pci_device_id": "1b38"}


def test_compatibility_returns_documented_keys() -> None:
    result = JUDGE({"driver": "590.48.01", "gpus": [P40]}, TABLES, today="2026-01")
    documented = yaml.safe_load(compatibility.RETURN)["_value"]["contains"]
    assert set(result) == set(documented)
    assert set(result["driver_branches"]) == set(documented["driver_branches"]["sample"])
    finding = documented["findings"]["contains"]
    assert set(result["findings"][0]) == set(finding)
    assert result["findings"][0]["message"] == finding["message"]["sample"]


def test_compatibility_accepts_documented_keys() -> None:
    requested = yaml.safe_load(compatibility.DOCUMENTATION)["options"]["_input"]["suboptions"]
    assert JUDGE(dict.fromkeys(requested), TABLES)["findings"] == []
    with pytest.raises(AnsibleFilterError, match=f"it takes {', '.join(sorted(requested))}"):
        JUDGE({"other": 1}, TABLES)


def test_compatibility_uses_month_of_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    july = types.SimpleNamespace(today=lambda: datetime.date(2028, 7, 1))
    monkeypatch.setattr(compatibility, "datetime", types.SimpleNamespace(date=july))
    topics = [finding["topic"] for finding in JUDGE({"driver": "580"}, TABLES)["findings"]]
    assert topics == ["driver_branch"]
    assert JUDGE({"driver": "580"}, TABLES, "2028-06")["findings"] == []


@pytest.mark.parametrize(
    ("situation", "tables", "words"),
    [
        (None, TABLES, "needs the host and the tables as dictionaries"),
        ({}, [], "needs the host and the tables as dictionaries"),
        ({}, {}, "cannot be judged: the table cuda_driver.toolkits is missing"),
        ({"driver": "new"}, TABLES, "cannot be judged: 'new' is not a driver version; .*, as a text"),
        ({}, {**TABLES, "driver_branches": [{"branch": "x", "source": "y"}]}, ""),
        ({"driver": "580"}, {**TABLES, "driver_branches": [{"branch": "x", "source": "y"}]}, "cannot read the host or"),
    ],
)
def test_compatibility_with_invalid_input_raises(situation: Any, tables: Any, words: str) -> None:
    if not words:  # the host does not use the row
        assert JUDGE(situation, tables)["findings"] == []
        return
    with pytest.raises(AnsibleFilterError, match=words):
        JUDGE(situation, tables)
