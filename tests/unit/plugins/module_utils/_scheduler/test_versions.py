# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._scheduler import versions
from ansible_collections.gpu.kubernetes.plugins.module_utils._yaml_files.errors import EditError


@pytest.mark.parametrize(
    ("image", "minor"),
    [
        ("registry.k8s.io/kube-scheduler:v1.34.4", 34),
        ("10.0.0.1:5000/kube-scheduler:v1.30.0-rc.1", 30),
        ("registry/kube-scheduler:v1.34.4-eks-4b2d1a", 34),
        ("kube-scheduler:1.29.7-build.3@sha256:" + "a" * 64, 29),
    ],
)
def test_the_tag_of_the_image_tells_the_version(image: str, minor: int) -> None:
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
def test_an_image_that_tells_none_asks_for_it(image: str) -> None:
    with pytest.raises(EditError, match="give kubernetes_version"):
        versions.of_image(image)


@pytest.mark.parametrize("text", ["v1.24.17", "1.3", "2.0.0", "34", "v1.34.x", 1.34, ""])
def test_other_versions_are_refused(text: object) -> None:
    with pytest.raises(EditError, match="kubernetes_version"):
        versions.parse(text, "kubernetes_version")
