# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._scheduler import versions
from ansible_collections.gpu.kubernetes.plugins.module_utils._yaml_files.errors import EditError


def test_what_is_written_is_read_by_every_kube_scheduler() -> None:
    written = {minor: versions.wanted(minor) for minor in range(19, 37)}
    assert [minor for minor in written if written[minor] == "v1beta1"] == [19, 20, 21]
    assert [minor for minor in written if written[minor] == "v1beta2"] == [22]
    assert [minor for minor in written if written[minor] == "v1beta3"] == [23, 24]
    assert [minor for minor in written if written[minor] == "v1"] == list(range(25, 37))
    assert all(version in versions.readable(minor) for minor, version in written.items())
    # kubeadm upgrade goes one minor version on, and the file stays.
    outlived = [minor for minor, version in written.items() if version not in versions.readable(minor + 1)]
    assert outlived == [], "what kube-scheduler does not start with after an upgrade"


@pytest.mark.parametrize(
    ("minor", "read"),
    [
        (21, ["v1beta1"]),
        (22, ["v1beta1", "v1beta2"]),
        (24, ["v1beta2", "v1beta3"]),
        (27, ["v1beta2", "v1beta3", "v1"]),
        (28, ["v1beta3", "v1"]),
        (29, ["v1"]),
    ],
)
def test_what_a_kube_scheduler_reads(minor: int, read: list[str]) -> None:
    assert versions.readable(minor) == read


@pytest.mark.parametrize(
    ("version", "minor", "target"),
    [
        ("v1beta1", 34, "v1"),
        ("v1beta3", 25, "v1"),
        ("v1beta2", 22, "v1beta2"),
        ("v1beta2", 24, "v1beta3"),
        ("v1", 36, "v1"),
    ],
)
def test_a_version_is_brought_forward_and_never_back(version: str, minor: int, target: str) -> None:
    assert versions.target(version, minor) == target


@pytest.mark.parametrize(("version", "minor"), [("v1", 24), ("v1beta3", 22), ("v1alpha1", 25), ("v2", 36), ("", 34)])
def test_what_cannot_be_brought_there_is_named(version: str, minor: int) -> None:
    with pytest.raises(EditError, match=rf"kubescheduler\.config\.k8s\.io/{version} "):
        versions.target(version, minor)


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


@pytest.mark.parametrize("text", ["v1.18.20", "1.3", "2.0.0", "34", "v1.34.x", 1.34, ""])
def test_other_versions_are_refused(text: object) -> None:
    with pytest.raises(EditError, match="kubernetes_version"):
        versions.parse(text, "kubernetes_version")
