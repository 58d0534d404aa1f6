# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""After state absent there is no pod and no namespace of the smoke test."""

from __future__ import annotations

from typing import Any


def test_nothing_of_ours_is_left(api: Any) -> None:
    ours = "app.kubernetes.io/managed-by=gpu.kubernetes"
    assert api.list_pod_for_all_namespaces(label_selector=ours).items == []
    assert api.list_namespace(label_selector=ours).items == []
