# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The texts of the page in each language."""

from __future__ import annotations

import re
import string
from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._checks.health import HEALTH
from ansible_collections.gpu.kubernetes.plugins.module_utils._report.fleet_map import FAULTS
from ansible_collections.gpu.kubernetes.plugins.module_utils._report.page import SEVERITY
from ansible_collections.gpu.kubernetes.plugins.module_utils._report.texts import LANGUAGES, TEXTS, get_texts

ROOT = Path(__file__).resolve().parents[5]
TEMPLATE = ROOT / "plugins" / "plugin_utils" / "_html_report" / "report.html.j2"
CHECKS = ROOT / "plugins" / "module_utils" / "_report" / "checks.py"
#: Keys that the template makes of a kind and a value.
KINDS = ("code", "change", "state", "unit", "smoke")
SECTIONS = ("problems", "changes", "map", "versions", "allocation", "drift", "cost", "nodes", "about")
#: The report is English, so that its page needs no note on that.
EMPTY = {("english", "en")}


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_language_has_every_text(language: str) -> None:
    texts = get_texts(language)
    assert texts.keys() == TEXTS.keys()
    assert {(key, language) for key, text in texts.items() if not text} <= EMPTY


@pytest.mark.parametrize("key", [key for key in TEXTS if key != "english"])
def test_languages_have_the_same_values_in_a_text(key: str) -> None:
    names = [
        {name for _text, name, _form, _conversion in string.Formatter().parse(text) if name} for text in TEXTS[key]
    ]
    assert names[0] == names[1]


def test_template_uses_each_text_and_no_other() -> None:
    used = set(re.findall(r"\bt\.(\w+)", TEMPLATE.read_text(encoding="utf-8"))) | {*SECTIONS, "title"}
    made = {key for key in TEXTS if key.split("_")[0] in KINDS and "_" in key}
    assert used - TEXTS.keys() == set()
    assert TEXTS.keys() - used - made == set()


def test_each_code_has_a_rank_and_a_text() -> None:
    codes = set(re.findall(r'(?:yield|(?<!get)\()\s*\(?\s*"([a-z_]+)",', CHECKS.read_text(encoding="utf-8")))
    assert {"gpu_lost", "drift", "unreachable", "runtime_class", "api"} <= codes
    assert codes - set(SEVERITY) == set()
    # These only warn.
    assert set(HEALTH) - {"hw.pci_link", "hw.mig_pending"} == FAULTS
    assert set(SEVERITY) >= FAULTS
    assert {f"code_{code}" for code in SEVERITY} == {key for key in TEXTS if key.startswith("code_")}


def test_unknown_language_raises() -> None:
    with pytest.raises(ValueError, match="de"):
        get_texts("de")
