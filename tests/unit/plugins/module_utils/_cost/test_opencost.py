# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The values of OpenCost's chart."""

from __future__ import annotations

import pytest

pytest.importorskip("yaml")

import yaml

from ansible_collections.gpu.kubernetes.plugins.module_utils._cost.errors import CostError
from ansible_collections.gpu.kubernetes.plugins.module_utils._cost.opencost import MARK, render_values

A100, T4 = "NVIDIA-A100", "Tesla-T4"


def test_values_have_the_price_the_label_and_prometheus() -> None:
    text = render_values({A100: 8}, {"*a100*": 2.5}, "EUR", "http://prometheus:9090")
    assert text.splitlines()[0] == MARK
    assert yaml.safe_load(text) == {
        "opencost": {
            "customPricing": {
                "enabled": True,
                "createConfigmap": True,
                "provider": "custom",
                "costModel": {
                    "description": "GPU price of gpu_cost_prices",
                    "GPU": "2.5",
                    "gpuLabel": "nvidia.com/gpu.present",
                    "gpuLabelValue": "true",
                },
            },
            # Its server is on by default.
            "mcp": {"enabled": False},
            "prometheus": {
                "internal": {"enabled": False},
                "external": {"enabled": True, "url": "http://prometheus:9090"},
            },
        }
    }


def test_several_prices_become_their_mean_with_a_comment() -> None:
    text = render_values({A100: 3, T4: 1}, {"*a100*": 2, "*": 0.4}, "EUR", "")
    assert yaml.safe_load(text)["opencost"]["customPricing"]["costModel"]["GPU"] == "1.6"
    assert '# The mean of "3 x NVIDIA-A100 at 2, 1 x Tesla-T4 at 0.4"' in text
    assert "prometheus" not in yaml.safe_load(text)["opencost"]


def test_hostile_texts_stay_comments() -> None:
    text = render_values({"a\nopencost: {}": 1, T4: 1}, {"*": 1, "tesla-t4": 2}, "EUR\nx: 1", "")
    assert list(yaml.safe_load(text)) == ["opencost"]
    assert yaml.safe_load(text)["opencost"]["customPricing"]["enabled"] is True


@pytest.mark.parametrize(("gpus", "words"), [({A100: 1, T4: 1}, f"none of {A100}"), ({A100: 0}, "no node has one")])
def test_values_without_prices_fail(gpus: dict[str, float], words: str) -> None:
    with pytest.raises(CostError, match=words):
        render_values(gpus, {"tesla-t4": 1}, "EUR", "")
