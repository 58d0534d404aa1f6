# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a module that calls the API server on a fake cluster."""

from __future__ import annotations

import json
from typing import Any, Callable

import pytest


@pytest.fixture
def run_module(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:
    """Return run(module, cluster, **arguments), which returns the result of the module."""
    basic = pytest.importorskip("ansible.module_utils.basic")

    def run(module: Any, cluster: Any, **arguments: Any) -> dict[str, Any]:
        encoded = json.dumps({"ANSIBLE_MODULE_ARGS": arguments}).encode()
        monkeypatch.setattr(basic, "_ANSIBLE_ARGS", encoded)
        monkeypatch.setattr(basic, "_ANSIBLE_PROFILE", "legacy", raising=False)
        monkeypatch.setattr(module, "connect", lambda _module: cluster)
        with pytest.raises(SystemExit):
            module.main()
        result: dict[str, Any] = json.loads(capsys.readouterr().out)
        return result

    return run
