# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._scheduler import versions


@pytest.mark.parametrize(
    ("image", "minor"),
    [
        ("registry.k8s.io/kube-scheduler:v1.34.4", 34),
        ("10.0.0.1:5000/kube-scheduler:v1.30.0-rc.1", 30),
        ("registry/kube-scheduler:v1.34.4-eks-4b2d1a", 34),
        ("gke.gcr.io/kube-scheduler-amd64:v1.31.2-gke.100", 31),
        ("rancher/hardened-kubernetes:v1.31.4-rke2r1-build20241212", 31),
        ("rancher/hyperkube:v1.30.6-rancher1", 30),
        ("rancher/k3s:v1.32.1+k3s1", 32),
        ("registry/kube-scheduler:v1.30.6.1", 30),
        ("registry/kube-scheduler:v1.30.6_vendor.2", 30),
        ("kube-scheduler:1.29.7-build.3@sha256:" + "a" * 64, 29),
    ],
)
def test_tag_of_the_image_is_the_version(image: str, minor: int) -> None:
    assert versions.of_image(image) == minor


@pytest.mark.parametrize(
    "image",
    [
        "kube-scheduler",
        "10.0.0.1:5000/kube-scheduler",
        "kube-scheduler:latest",
        "a/b@sha256:" + "1" * 64,
        "kube-scheduler:v1",
    ],
)
def test_image_without_a_version_is_refused(image: str) -> None:
    with pytest.raises(ConfigError, match="give kubernetes_version"):
        versions.of_image(image)


@pytest.mark.parametrize("text", ["v1.24.17", "1.3", "2.0.0", "34", "v1.34.x", 1.34, ""])
def test_other_versions_are_refused(text: object) -> None:
    with pytest.raises(ConfigError, match="kubernetes_version"):
        versions.parse(text, "kubernetes_version")
