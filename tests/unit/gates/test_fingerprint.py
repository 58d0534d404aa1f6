# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which amounts of a node belong to its fingerprint."""

from __future__ import annotations

import json

import pytest
from lab import fingerprint
from lab.settings import Settings

AMOUNTS = {"cpu": "8", "nvidia.com/gpu": "8", "aliyun.com/gpu-mem": "0", "aliyun.com/gpu-count": "2"}


@pytest.mark.parametrize(
    ("sockets", "offered"),
    [
        ("/var/lib/kubelet/device-plugins/nvidia-gpu.sock\n", ["aliyun.com/gpu-count=2", "nvidia.com/gpu=8"]),
        ("", ["aliyun.com/gpu-count=2"]),
    ],
)
def test_take_counts_kubelet_amounts_only_beside_a_plugin_socket(monkeypatch, sockets, offered):
    settings = Settings()
    name = settings.nodes[0].name
    node = {"kind": "Node", "metadata": {"name": name, "labels": {}}, "spec": {}, "status": {"allocatable": AMOUNTS}}
    answers = {fingerprint._READ_FILES: "files", fingerprint._SOCKETS: sockets}
    monkeypatch.setattr(fingerprint.nodes, "execute", lambda _node, *words: answers[words[-1]])
    monkeypatch.setattr(fingerprint.cluster, "kubectl", lambda *_words: json.dumps({"items": [node]}))
    assert fingerprint.take(settings)["Node"].splitlines() == [f"{name} offers {each}" for each in offered]
