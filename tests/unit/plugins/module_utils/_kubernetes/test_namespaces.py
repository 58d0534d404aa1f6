# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Unmanaged objects in a namespace."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.namespaces import find_tenants

OWN = {"labels": {"app.kubernetes.io/managed-by": "gpu.kubernetes"}}


def item(kind: str, name: str, owner: tuple[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    owners = [{"kind": owner[0], "name": owner[1], "controller": True}] if owner else []
    return {"kind": kind, "metadata": {"name": name, "ownerReferences": owners, **metadata}}


@pytest.mark.parametrize(
    ("contents", "tenants"),
    [
        ([], []),
        ([item("Deployment", "d", **OWN), item("ReplicaSet", "r", ("Deployment", "d")), item("Pod", "p", ("ReplicaSet", "r"))], []),
        ([item("ConfigMap", "kube-root-ca.crt"), item("ServiceAccount", "default")], []),
        ([item("Event", "e"), item("Endpoints", "e"), item("Lease", "leader")], []),
        ([item("Secret", "default-token-x", annotations={"kubernetes.io/service-account.name": "default"})], []),
        # Any kind counts, also of a custom resource.
        ([item("Role", "r"), item("Ingress", "i"), item("Widget", "w")], ["Ingress i", "Role r", "Widget w"]),
        ([item("Secret", "s"), item("Deployment", "d", labels={"app.kubernetes.io/managed-by": "Helm"})], ["Deployment d", "Secret s"]),
        # The kubelet's node is not in the namespace, so a static pod counts.
        ([item("Pod", "static", ("Node", "w1"))], ["Pod static"]),
        ([{"kind": "Pod"}, {"kind": "Pod", "metadata": None}], ["Pod ", "Pod "]),
    ],
)  # fmt: skip
def test_find_tenants_of_each_kind(contents: list[dict[str, Any]], tenants: list[str]) -> None:
    assert find_tenants(contents, "gpu.kubernetes") == tenants
