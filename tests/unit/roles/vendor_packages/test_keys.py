# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys of NVIDIA's repositories: data of others, so that each is written down here once more."""

from __future__ import annotations

import yaml

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

#: A release as NVIDIA names it, and the key that signs its repository.
KEYS = {
    "amzn2023": "D42D0685",
    "rhel9": "D42D0685",
    "rhel10": "CDF6BA43",
    "fedora42": "D42D0685",
    "fedora43": "1940C73E",
    "fedora44": "73CD9B30",
    "sles15": "D42D0685",
    "suse16": "3A8B5622",
    "debian12": "3bf863cc",
    "debian13": "8793F200",
    "ubuntu2404": "3bf863cc",
    "ubuntu2604": "60DF8A40",
}


def test_each_release_has_its_key():
    path = ROOT / "roles" / "vendor_packages" / "vars" / "nvidia_keys.yml"
    known = yaml.safe_load(path.read_text())["__vendor_packages_nvidia_keys"]
    assert {release: known.get(release) for release in KEYS} == KEYS
    assert "fedora99" not in known
