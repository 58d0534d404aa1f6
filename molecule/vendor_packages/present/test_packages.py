# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real dnf, zypper and pacman with stub packages in signed repositories on the machine; each test removes everything."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import HOLD, INSTALL, RELEASE, REMOVE, STUBS, Machine

testinfra_hosts = ["ansible://gpu_nodes"]

CONVERGE = str(Path(__file__).parents[1] / "converge.yml")
SETS = str(Path(__file__).parents[1] / "sets.yml")
FAMILY = {"nvidia-stub-smi", "libnvidia-stub-ml"}
ALL = FAMILY | {"stub-helper"}


def make_family(version: str) -> dict[str, str]:
    return {**dict.fromkeys(FAMILY, f"{version}-1"), "stub-helper": "3.2-1"}


def make_variables(machine: Machine, folder: str = "rpm", signed: str = "metadata", **more: object) -> dict[str, Any]:
    """Return variables of the role with the vendor's key, also for repositories with another key."""
    key = machine.host.file(f"{STUBS}/vendor.asc").content_string
    repository = {"url": f"file:{STUBS}/{folder}", "key_content": key, "signed": signed}
    return {
        "vendor_packages_manager": machine.manager,
        "vendor_packages_repository": {} if machine.manager == "pacman" else repository,
        **{f"vendor_packages_{name}": value for name, value in more.items()},
    }


@pytest.fixture(autouse=True)
def check_clean_machine(machine: Machine) -> Iterator[None]:
    """Check before and after each test that no package exists, and afterwards no lock, repository, key or record."""
    if machine.manager == "pacman":
        machine.set_pacman_version("2.0.0")
    assert machine.installed == {}
    yield
    if machine.manager != "pacman":
        assert machine.locked == set()
    assert machine.installed == {}
    assert "vendor" not in machine.keys
    where = "/etc/yum.repos.d /etc/zypp/repos.d /etc/pki /var/lib/gpu-kubernetes"
    assert machine.host.run(f"find {where} -type f").stdout == ""


def undo(machine: Machine) -> None:
    machine.run(CONVERGE, **make_variables(machine, state="absent"))


def test_install_and_undo_in_check_mode_and_run(machine: Machine) -> None:
    """Packages without the vendor's signature are rejected. Packages that others need stay."""
    if machine.manager == "pacman":
        machine.set_pacman_version("other-key")
        assert "PGP signature" in machine.run_failing(CONVERGE, **make_variables(machine))
        machine.set_pacman_version("2.0.0")
        machine.host.check_output("rm /var/lib/pacman/sync/*")  # The role downloads it.
    else:
        for folder, signed in (("rpm-other-key", "metadata"), ("rpm-unsigned", "packages")):
            output = machine.run_failing(CONVERGE, **make_variables(machine, folder, signed))
            assert f"{machine.manager} failed for nvidia-stub-smi" in output
            assert re.search("sign|gpg", output.partition("failed for")[2], re.IGNORECASE), output
    assert machine.installed == {}
    variables = make_variables(machine)
    assert machine.run(CONVERGE, "--check", **variables)[0]
    assert machine.installed == {}
    machine.run(CONVERGE, **variables)
    assert machine.installed == make_family("2.0.0")
    for mode in (["--check"], []):
        assert machine.run(CONVERGE, *mode, **variables)[0] == 0
    machine.run_manager(INSTALL, "stub-dashboard", "stub-neighbour")
    before = machine.installed
    assert before.keys() == ALL | {"stub-dashboard", "stub-neighbour"}
    absent = make_variables(machine, state="absent")
    assert "because stub-dashboard would be removed too" in machine.run_failing(CONVERGE, **absent)
    assert machine.installed == before
    machine.run_manager(REMOVE, "stub-dashboard")
    for mode, expected in ((["--check"], before.keys() - {"stub-dashboard"}), ([], {"stub-helper", "stub-neighbour"})):
        assert machine.run(CONVERGE, *mode, **absent)[0]
        assert machine.installed.keys() == expected
    assert machine.run(CONVERGE, **absent)[0] == 0
    machine.run_manager(REMOVE, "stub-neighbour", "stub-helper")


@pytest.mark.parametrize("machine", ["dnf", "zypper"], indirect=True)
def test_versions_and_holds(machine: Machine) -> None:
    variables = make_variables(machine, hold=True, signed="packages")
    # All parts are downgraded together, in spite of their managed holds.
    for version, found in (("2.*", "2.0.0"), ("1.*", "1.10.0"), ("1.2.0", "1.2.0")):
        machine.run(CONVERGE, **{**variables, "vendor_packages_version": version})
        assert (machine.installed, machine.locked) == (make_family(found), FAMILY)
    assert machine.run(CONVERGE, "--check", **{**variables, "vendor_packages_version": "1.*"})[0] == 0
    for version, replaced in (("1.2.0", []), ("2.*", ["nvidia-stub-smi"])):
        pending = {**variables, "vendor_packages_version": version, "entry_point": "pending", "expected": replaced}
        assert machine.run(CONVERGE, **pending)[0] == 0
    for entry_point, words in (("main", "0.*"), ("available", "has no version 0.* of nvidia-stub-smi")):
        assert words in machine.run_failing(
            CONVERGE, **{**variables, "vendor_packages_version": "0.*", "entry_point": entry_point}
        )
    changes = machine.run(CONVERGE, **{**variables, "vendor_packages_version": "1.10.0", "entry_point": "available"})[0]
    assert changes == 0
    assert (machine.installed, machine.locked) == (make_family("1.2.0"), FAMILY)

    assert not machine.has_upgrade
    assert machine.run(CONVERGE, **make_variables(machine, hold=False, signed="packages"))[0] == 1
    assert machine.locked == set()
    assert machine.has_upgrade, "without holds there is an upgrade"

    machine.run_manager(HOLD, "nvidia-stub-smi")
    for more in ({"version": "2.*"}, {"state": "absent"}):
        output = machine.run_failing(CONVERGE, **make_variables(machine, signed="packages", **more))
        assert "Cannot change nvidia-stub-smi, because of an unmanaged hold" in output
        assert (machine.installed, machine.locked) == (make_family("1.2.0"), {"nvidia-stub-smi"})
    machine.run_manager(RELEASE, "nvidia-stub-smi")
    undo(machine)


@pytest.mark.parametrize("machine", ["pacman"], indirect=True)
def test_undo_after_upgrade_by_pacman(machine: Machine) -> None:
    """The role does not change packages that pacman upgraded, and the undo removes them. The other managers have holds."""
    assert "hold is not supported with pacman" in machine.run_failing(CONVERGE, **make_variables(machine, hold=True))
    machine.set_pacman_version("1.2.0")
    machine.run(CONVERGE, **make_variables(machine))
    assert machine.installed == make_family("1.2.0")
    assert "leave the version out" in machine.run_failing(CONVERGE, **make_variables(machine, version="2.0.0"))
    machine.set_pacman_version("2.0.0")
    machine.host.check_output("pacman --sync --sysupgrade --noconfirm")
    assert machine.installed == make_family("2.0.0")
    assert machine.run(CONVERGE, **make_variables(machine))[0] == 0
    undo(machine)


@pytest.mark.parametrize("machine", ["dnf", "zypper"], indirect=True)
def test_undo_with_unreachable_repository(machine: Machine) -> None:
    """Packages, dependencies and holds are removed, and an unmanaged hold stays."""
    machine.run(CONVERGE, **make_variables(machine, hold=True))
    machine.run_manager(INSTALL, "stub-neighbour")
    machine.run_manager(HOLD, "stub-neighbour")
    folder = {"dnf": "/etc/yum.repos.d", "zypper": "/etc/zypp/repos.d"}[machine.manager]
    text = "[unreachable]\\nname=unreachable\\nenabled=1\\nautorefresh=1\\nbaseurl=file:///nowhere\\n"
    machine.host.check_output(f"printf '{text}' > {folder}/unreachable.repo")
    undo(machine)
    machine.host.check_output(f"rm {folder}/unreachable.repo")
    assert (machine.installed.keys(), machine.locked) == ({"stub-helper", "stub-neighbour"}, {"stub-neighbour"})
    machine.run_manager(RELEASE, "stub-neighbour")
    machine.run_manager(REMOVE, "stub-neighbour", "stub-helper")


@pytest.mark.parametrize("repeat", [True, False], ids=["repeated", "undone"])
def test_interrupted_run(machine: Machine, repeat: bool) -> None:
    """The run and the package manager are killed during the transaction."""
    variables = make_variables(machine, hold=None if machine.manager == "pacman" else True)
    machine.host.check_output("touch /run/kill-installers")
    machine.run_failing(CONVERGE, **variables)
    assert not machine.host.file("/run/kill-installers").exists
    assert machine.installed
    if repeat:
        machine.run(CONVERGE, **variables)
        assert machine.installed == make_family("2.0.0")
    undo(machine)


@pytest.mark.parametrize("machine", ["dnf", "zypper"], indirect=True)
def test_last_of_two_sets_removes_shared_key_and_plugin(machine: Machine) -> None:
    """The vendor's key in rpm, and the versionlock plugin of dnf."""
    versionlock = {"python3-dnf-plugin-versionlock": "4.0-1"} if machine.manager == "dnf" else {}
    enterprise = {"platform_version_lock": "".join(versionlock), "vendor_packages_hold": True}
    first = make_variables(machine, signed="packages", set="first", names=["nvidia-stub-smi"]) | enterprise
    second = make_variables(machine, signed="packages", set="second", names=["stub-neighbour"]) | enterprise
    for each in (first, second):
        assert machine.run(CONVERGE, **each)[0]
        assert machine.run(CONVERGE, **each)[0] == 0
    assert machine.installed == {**make_family("2.0.0"), "stub-neighbour": "7.0-1", **versionlock}
    assert machine.run(CONVERGE, **first, vendor_packages_state="absent")[0]
    assert machine.installed == {"stub-neighbour": "7.0-1", "stub-helper": "3.2-1", **versionlock}
    assert machine.locked == {"stub-neighbour"}
    assert "vendor" in machine.keys
    assert machine.run(CONVERGE, **second)[0] == 0
    absent = {**second, "vendor_packages_state": "absent"}
    assert machine.run(CONVERGE, "--check", **absent)[0]
    assert machine.run(CONVERGE, **absent)[0]
    # It was installed with the first set, and the second one needed it.
    machine.run_manager(REMOVE, "stub-helper")


@pytest.mark.parametrize("machine", ["dnf"], indirect=True)
def test_unmanaged_repository_replaces_managed_one(machine: Machine) -> None:
    """The managed repository is removed, and its packages stay."""
    folder = "/etc/yum.repos.d"
    machine.run(CONVERGE, **make_variables(machine))
    assert machine.host.file(f"{folder}/gpu-kubernetes-stubs.repo").exists
    unmanaged = make_variables(machine, manage_repository=False)
    for mode, exists in (["--check"], True), ([], False):
        assert machine.run(CONVERGE, *mode, **unmanaged)[0] == 1
        assert machine.host.file(f"{folder}/gpu-kubernetes-stubs.repo").exists is exists
    assert machine.run(CONVERGE, **unmanaged)[0] == 0
    assert machine.installed == make_family("2.0.0")
    undo(machine)


@pytest.mark.parametrize("machine", ["dnf"], indirect=True)
def test_check_mode_before_repository_of_another_set(machine: Machine) -> None:
    variables = make_variables(machine, hold=True)
    assert machine.run(SETS, "--check", **variables)[0]
    assert machine.run(SETS, **variables)[0]
    assert machine.installed == make_family("2.0.0")
    assert machine.run(SETS, **variables)[0] == 0
    assert machine.run(SETS, "--check", **variables)[0] == 0
    for name in ("stubs", "repository"):
        machine.run(CONVERGE, **make_variables(machine, state="absent", set=name))


@pytest.mark.parametrize("machine", ["dnf"], indirect=True)
def test_former_name_that_obsoletes_the_new_one(machine: Machine) -> None:
    """nvidia_driver therefore excludes the former name, and rejects a host with that package."""
    former, new = "nvidia-stub-fabric-manager", "nvidia-stub-fabricmanager"
    variables = make_variables(machine, names=[new])
    assert f"{new} is not installed" in machine.run_failing(CONVERGE, **variables)
    assert machine.installed == {former: "1.10.0-1"}, "dnf installed the package that provides the name"
    machine.run_manager(REMOVE, former)
    variables["vendor_packages_repository"]["exclude"] = [former]
    machine.run(CONVERGE, **variables)
    assert machine.installed == {new: "2.0.0-1"}
    assert machine.run(CONVERGE, **variables)[0] == 0
    # A return to the former name is possible, and then the new one cannot be installed.
    machine.run(CONVERGE, **make_variables(machine, names=[former]))
    assert machine.installed == {former: "1.10.0-1"}
    variables["vendor_packages_version"] = "2.0.0"
    assert f"{former}-1.10.0-1.noarch obsoletes {new}" in machine.run_failing(CONVERGE, **variables)
    assert machine.installed == {former: "1.10.0-1"}
    undo(machine)
