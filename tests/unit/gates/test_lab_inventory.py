# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The variables of the lab's inventory for the images of a user."""

from __future__ import annotations

import pytest

pytest.importorskip("yaml")

from lab.fakes.archive import docker_archive
from lab.inventory import image_variables
from lab.settings import Settings

REPOSITORY = "registry.example.com/acs/k8s-gpushare-schd-extender"
#: The archive of an extender, the variables of its image, and whether NVIDIA's runtime has to be the default.
EXTENDERS = {
    "published": (f"{REPOSITORY}:1.11-d170d8a", "acs/k8s-gpushare-schd-extender", "1.11-d170d8a", True),
    "own-build": (f"{REPOSITORY}:c0b6141", "acs/k8s-gpushare-schd-extender", "c0b6141", None),
    "fake": ("", "fake/gpushare-extender", None, None),
}


def test_images_of_amd_are_chosen_by_their_tags(tmp_path):
    for tag in ("labeller-1.31.0.9", "1.31.0.9"):
        docker_archive(tmp_path / f"{tag}.tar", name=f"docker.io/rocm/k8s-device-plugin:{tag}", files={"/x": b""})
    variables = image_variables(Settings(image_archives=tmp_path))
    assert variables["k8s_device_plugin_amd_image_tag"] == "1.31.0.9"
    assert variables["gpu_feature_discovery_amd_image_tag"] == "labeller-1.31.0.9"


@pytest.mark.parametrize("case", EXTENDERS)
def test_published_extender_sets_nvidias_runtime_as_default(tmp_path, case):
    name, repository, tag, default = EXTENDERS[case]
    if name:
        docker_archive(tmp_path / "extender.tar", name=name, files={"/x": b""})
    variables = image_variables(Settings(image_archives=tmp_path))
    assert variables["gpushare_extender_image_repository"] == repository
    assert tag in (None, variables["gpushare_extender_image_tag"])
    assert variables.get("containerd_nvidia_set_default") is default
