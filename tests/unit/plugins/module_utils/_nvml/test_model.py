# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The model: addresses, and the conversion to JSON and back."""

from __future__ import annotations

import json

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml.model import (
    Facts,
    Gpu,
    MigDevice,
    get_sort_key,
    parse_address,
)


@pytest.mark.parametrize(
    ("written", "address"),
    [
        ("00000000:41:00.0", "0000:41:00.0"),
        ("0000:BD:00.0", "0000:bd:00.0"),
        ("41:00.0", "0000:41:00.0"),
        ("00010000:E1:1F.3", "10000:e1:1f.3"),
        (" 0000:00:1e.0\n", "0000:00:1e.0"),
        ("0000:00:1e", "0000:00:1e.0"),
    ],
)
def test_parse_address_returns_linux_form(written: str, address: str) -> None:
    assert parse_address(written) == address


@pytest.mark.parametrize("text", ["", "[N/A]", "GPU-1234", "0000:xx:00.0"])
def test_parse_address_of_other_text_raises(text: str) -> None:
    with pytest.raises(ValueError):
        parse_address(text)


def test_get_sort_key_compares_numbers() -> None:
    addresses = ["10000:01:00.0", "0000:bd:00.0", "0000:07:00.1", "0000:07:00.0"]
    assert sorted(addresses, key=get_sort_key) == ["0000:07:00.0", "0000:07:00.1", "0000:bd:00.0", "10000:01:00.0"]


def test_facts_round_trip_through_json() -> None:
    partition = MigDevice(index=0, uuid="MIG-1", memory_total_bytes=5)
    facts = Facts(source="nvml", gpus=(Gpu(index=0, mig_devices=(partition,), power_draw_watts=54.21), Gpu(lost=True)))
    assert Facts.from_dict(json.loads(json.dumps(facts.as_dict()))) == facts
