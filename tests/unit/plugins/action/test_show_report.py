# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest
import yaml

pytest.importorskip("ansible.plugins.action")

from ansible_collections.gpu.kubernetes.plugins.action import show_report
from ansible_collections.gpu.kubernetes.plugins.module_utils._report.build import build
from ansible_collections.gpu.kubernetes.plugins.modules import show_report as show_report_module


def test_every_line_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    printed: list[tuple[str, str | None]] = []
    monkeypatch.setattr(show_report.display, "display", lambda text, color=None: printed.append((text, color)))
    action = show_report.ActionModule.__new__(show_report.ActionModule)
    report = build([], {"error": "away"}, ["A note."])

    def validate(argument_spec: dict[str, Any]) -> tuple[None, dict[str, Any]]:
        assert set(argument_spec) == set(yaml.safe_load(show_report_module.DOCUMENTATION)["options"])
        return None, {"report": report, "path": "/tmp/r.json", "hosts": None, "tested": None}

    monkeypatch.setattr(action, "validate_argument_spec", validate, raising=False)
    monkeypatch.setattr(show_report.ActionBase, "run", lambda *_arguments: {})
    assert action.run() == {"changed": False}
    texts = [text for text, _color in printed]
    assert texts[0] == "GPU report: 0 nodes, 0 GPUs, 1 problem"
    assert "  - A note." in texts
    assert texts[-1] == "As JSON: /tmp/r.json"
    assert printed[0][1] != printed[texts.index("  - A note.")][1]
