# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue of platforms. The tests of nvidia_driver and cuda have the names of packages by platform."""

from __future__ import annotations

import re

import yaml

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

ROLE = ROOT / "roles" / "_platform"
FILES = {path.stem: yaml.safe_load(path.read_text()) for path in (ROLE / "platforms").glob("*.yml")}
#: The platforms' files read it, and the role that includes them sets it.
INPUT = "platform_driver_branch"

#: A release as NVIDIA calls it, and the key that signs its repository.
KEYS = {
    "amzn2023": "D42D0685",
    "debian12": "3bf863cc",
    "debian13": "8793F200",
    "fedora42": "D42D0685",
    "fedora43": "1940C73E",
    "fedora44": "73CD9B30",
    "opensuse15": "D42D0685",
    "rhel9": "D42D0685",
    "rhel10": "CDF6BA43",
    "sles15": "D42D0685",
    "suse16": "3A8B5622",
    "ubuntu2404": "3bf863cc",
    "ubuntu2604": "60DF8A40",
}

#: Distribution, version and family; package manager, version lock, NVIDIA's name, DKMS's repository, whether the release is known.
HOSTS = {
    "debian": ("Debian", "12.5", "Debian", "apt", "", "debian12", "", True),
    "ubuntu": ("Ubuntu", "24.04", "Debian", "apt", "", "ubuntu2404", "", True),
    "mint": ("Linux Mint", "22", "Debian", "apt", "", "debian22", "", False),
    "rocky": ("Rocky", "9.6", "RedHat", "dnf", "python3-dnf-plugin-versionlock", "rhel9", "EPEL", True),
    "fedora": ("Fedora", "44", "RedHat", "dnf", "", "fedora44", "", True),
    "amazon": ("Amazon", "2023", "RedHat", "dnf", "python3-dnf-plugin-versionlock", "amzn2023", "", True),
    "sles": ("SLES", "15.7", "Suse", "zypper", "", "sles15", "Package Hub", True),
    "leap": ("openSUSE Leap", "15.6", "Suse", "zypper", "", "opensuse15", "", True),
    "tumbleweed": ("openSUSE Tumbleweed", "20260101", "Suse", "zypper", "", "suse16", "", True),
    "arch": ("Archlinux", "n/a", "Archlinux", "pacman", "", "", "", True),
    "gentoo": ("Gentoo", "2.17", "Gentoo", "", "", "", "", False),
}
FACTS = ("distribution", "distribution_version", "os_family")


def test_platform_of_each_distribution_overrides_its_family(refusals):
    hosts = {name: {"host_facts": dict(zip(FACTS, row[:3]))} for name, row in HOSTS.items()}
    names = ("package_manager", "version_lock", "nvidia_release", "dkms_repository")
    found = refusals(
        "_platform",
        ["main"],
        hosts,
        fact=f"[{', '.join(f'platform_{name}' for name in names)}, ansible_facts['distribution'] in platform_releases]",
        facts={
            **{name: "{{ host_facts['" + name + "'] }}" for name in FACTS},
            "distribution_major_version": "{{ host_facts['distribution_version'].split('.')[0] }}",
            "distribution_release": "",
            "kernel": "6.1.0-56-amd64",
            "architecture": "x86_64",
        },
    )
    assert found == {name: list(row[3:]) for name, row in HOSTS.items()}


def test_keys_of_nvidias_releases_are_known():
    known = {
        release: key for values in FILES.values() for release, key in values.get("platform_nvidia_keys", {}).items()
    }
    assert {release: known.get(release) for release in KEYS} == KEYS
    assert "fedora99" not in known


#: Keys without a published full fingerprint.
UNKNOWN = {"CDF6BA43", "1940C73E"}
#: Files that are not named after their key.
UNNAMED = {"gpgkey", "rocm.gpg.key"}


def test_fingerprint_of_each_key_ends_with_the_name_of_its_file():
    """The name is the key's ID; a fingerprint of another length or key would refuse every host of the release."""
    known = FILES["common"]["platform_key_fingerprints"]
    assert {f"{key}.pub" for key in KEYS.values() if key not in UNKNOWN} | UNNAMED == set(known)
    for name, key in known.items():
        text = key["fingerprint"].replace(" ", "")
        assert re.fullmatch("[0-9A-F]{40}", text)
        assert name in UNNAMED or text.endswith(name.removesuffix(".pub").upper())
        assert key["source"]


def test_releases_of_a_distribution_are_in_one_file():
    names = [name for values in FILES.values() for name in values.get("platform_releases", {})]
    assert len(names) == len(set(names)) > 10


def test_facts_are_documented_and_have_a_common_value():
    used = {name for values in FILES.values() for name in values if name.startswith("platform_")}
    documented = set(re.findall(r"^\| `(platform_\w+)`", (ROLE / "README.md").read_text(), re.MULTILINE))
    assert used | {INPUT} == documented
    assert used == {name for name in FILES["common"] if name.startswith("platform_")}
