# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""States of GPUs in files, by UUID."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._mig import layout, record
from ansible_collections.gpu.kubernetes.plugins.module_utils._mig.layout import Desired, LayoutError, Slot
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._mig.gpus import gpu, partition


def test_record_names_gpus_by_uuid_and_not_by_index(tmp_path: Path) -> None:
    observed = [gpu(0, mode=False), gpu(1, partition(3, "3g.20gb", 4, [2, 1])), gpu(2, mode=None)]
    path = tmp_path / "mig.json"
    path.write_bytes(record.encode(observed, lambda each: None if each.mode is None else layout.describe(each), x=1))
    content = record.read(str(path))
    assert content is not None
    assert content["x"] == 1
    assert content["states"] == {"GPU-0": Desired(False), "GPU-1": Desired(True, (Slot("3g.20gb", (1, 2)),))}
    # The first GPU has fallen off the bus, so that the second has its index.
    remaining = [observed[1]._replace(index=0), gpu(1, uuid="GPU-new")]
    assert record.select(content["states"], remaining) == {0: content["states"]["GPU-1"]}


def test_missing_record_is_none(tmp_path: Path) -> None:
    assert record.read(str(tmp_path / "mig.json")) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is damaged"),
        ("[]", "is damaged"),
        ('{"version": 1, "gpus": [{"uuid": "GPU-0"}]}', "is damaged"),
        ('{"version": 2}', "is of version 2; run the collection that wrote it"),
    ],
)
def test_damaged_record_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "mig.json"
    path.write_text(text)
    with pytest.raises(LayoutError, match=words):
        record.read(str(path))
