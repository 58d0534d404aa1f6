# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t
from fractions import Fraction

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.requests import requested


def container(cpu: str | None, side: bool = False) -> dict[str, t.Any]:
    asked: dict[str, t.Any] = {} if cpu is None else {"resources": {"requests": {"cpu": cpu}}}
    return {**asked, **({"restartPolicy": "Always"} if side else {})}


@pytest.mark.parametrize(
    ("spec", "amount"),
    [
        ({}, "0"),
        ({"containers": [container("500m"), container("1"), container(None)]}, "3/2"),
        ({"containers": [container("1")], "initContainers": [container("3"), container("2")]}, "3"),
        ({"containers": [container("1")], "initContainers": [container("1", side=True), container("500m")]}, "2"),
        ({"containers": [container("1")], "initContainers": [container("1", side=True), container("3")]}, "4"),
        ({"containers": [container("1")], "initContainers": [container("3"), container("1", side=True)]}, "3"),
        ({"containers": [container("1")], "overhead": {"cpu": "250m"}}, "5/4"),
        ({"containers": [container("1")], "resources": {"requests": {"cpu": "4"}}}, "4"),
        ({"containers": [container("nonsense")]}, "0"),
    ],
)
def test_what_a_pod_asks_for(spec: dict[str, t.Any], amount: str) -> None:
    assert requested({"spec": spec, "status": {"phase": "Running"}}, "cpu") == Fraction(amount)
    assert requested({"spec": spec, "status": {"phase": "Failed"}}, "cpu") == 0
