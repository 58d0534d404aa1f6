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
QUERIES = str(Path(__file__).parents[1] / "queries.yml")
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
    assert machine.run(CONVERGE, "--check", **variables)[0] == 0
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
    for version, found in (("1.*", "1.10.0"), ("1.2.0", "1.2.0")):
        machine.run(CONVERGE, **{**variables, "vendor_packages_version": version})
        assert (machine.installed, machine.locked) == (make_family(found), FAMILY)
    assert machine.run(CONVERGE, "--check", **{**variables, "vendor_packages_version": "1.*"})[0] == 0
    assert machine.run(QUERIES, **variables)[0] == 0
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


def interrupt_run(machine: Machine, **variables: object) -> None:
    """Kill a run and its package manager during the transaction."""
    machine.host.check_output("touch /run/kill-installers")
    machine.run_failing(CONVERGE, **variables)
    assert not machine.host.file("/run/kill-installers").exists
    assert machine.installed


def test_interrupted_run_is_undone(machine: Machine) -> None:
    interrupt_run(machine, **make_variables(machine, hold=None if machine.manager == "pacman" else True))
    undo(machine)


@pytest.mark.parametrize("machine", ["pacman"], indirect=True)
def test_interrupted_run_is_repeated_and_undone_after_upgrade_by_pacman(machine: Machine) -> None:
    """The role does not change packages that pacman upgraded, and the undo removes them. The other managers have holds."""
    variables = make_variables(machine)
    machine.set_pacman_version("1.2.0")
    interrupt_run(machine, **variables)
    machine.run(CONVERGE, **variables)
    assert machine.installed == make_family("1.2.0")
    machine.set_pacman_version("2.0.0")
    machine.host.check_output("pacman --sync --sysupgrade --noconfirm")
    assert machine.installed == make_family("2.0.0")
    assert machine.run(CONVERGE, **variables)[0] == 0
    undo(machine)


@pytest.mark.parametrize("machine", ["dnf", "zypper"], indirect=True)
def test_interrupted_run_is_repeated_and_undone_with_unreachable_repository(machine: Machine) -> None:
    """Packages, dependencies and holds are removed, and an unmanaged hold stays."""
    variables = make_variables(machine, hold=True)
    interrupt_run(machine, **variables)
    machine.run(CONVERGE, **variables)
    assert (machine.installed, machine.locked) == (make_family("2.0.0"), FAMILY)
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


@pytest.mark.parametrize("machine", ["dnf"], indirect=True)
def test_last_of_two_sets_removes_shared_key_and_plugin(machine: Machine) -> None:
    """The vendor's key in rpm, and the versionlock plugin of dnf."""
    versionlock = "python3-dnf-plugin-versionlock"
    variables = make_variables(machine, signed="packages", hold=True) | {"platform_version_lock": versionlock}
    absent = {**variables, "vendor_packages_state": "absent"}
    first = {"name": "first", "packages": ["nvidia-stub-smi"]}
    second = {"name": "second", "packages": ["stub-neighbour"]}
    assert machine.run(CONVERGE, **variables, package_sets=[first, second])[0]
    assert machine.run(CONVERGE, **variables, package_sets=[first, second])[0] == 0
    assert machine.installed == {**make_family("2.0.0"), "stub-neighbour": "7.0-1", versionlock: "4.0-1"}
    assert machine.run(CONVERGE, **absent, package_sets=[first])[0]
    assert machine.installed == {"stub-neighbour": "7.0-1", "stub-helper": "3.2-1", versionlock: "4.0-1"}
    assert machine.locked == {"stub-neighbour"}
    assert "vendor" in machine.keys
    assert machine.run(CONVERGE, **variables, package_sets=[second])[0] == 0
    assert machine.run(CONVERGE, **absent, package_sets=[second])[0]
    # It was installed with the first set, and the second one needed it.
    machine.run_manager(REMOVE, "stub-helper")


@pytest.mark.parametrize("machine", ["dnf"], indirect=True)
def test_unmanaged_repository_replaces_that_of_another_set(machine: Machine) -> None:
    """Check mode predicts the packages before their repository exists. If it is no longer managed, it is removed, and the packages stay."""
    file = "/etc/yum.repos.d/gpu-kubernetes-repository.repo"
    variables = make_variables(machine, hold=True)
    assert machine.run(SETS, "--check", **variables)[0]
    assert machine.run(SETS, **variables)[0]
    assert machine.installed == make_family("2.0.0")
    assert machine.run(SETS, "--check", **variables)[0] == 0
    assert machine.host.file(file).exists
    unmanaged = make_variables(machine, set="repository", names=[], manage_repository=False)
    for mode, changes, exists in ((["--check"], 1, True), ([], 1, False), ([], 0, False)):
        assert machine.run(CONVERGE, *mode, **unmanaged)[0] == changes
        assert machine.host.file(file).exists is exists
    assert machine.installed == make_family("2.0.0")
    both = [{"name": name, "packages": []} for name in ("stubs", "repository")]
    machine.run(CONVERGE, **make_variables(machine, state="absent"), package_sets=both)


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
