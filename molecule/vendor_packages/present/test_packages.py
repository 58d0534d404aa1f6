# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real dnf, zypper and pacman, with stub packages in signed repositories on the machine itself; each test leaves nothing behind."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import HOLD, INSTALL, LET_GO, REMOVE, STUBS, Machine

testinfra_hosts = ["ansible://gpu_nodes"]

CONVERGE = str(Path(__file__).parents[1] / "converge.yml")
SETS = str(Path(__file__).parents[1] / "sets.yml")
FAMILY = {"nvidia-stub-smi", "libnvidia-stub-ml"}
ALL = FAMILY | {"stub-helper"}


def family(version: str) -> dict[str, str]:
    return {**dict.fromkeys(FAMILY, f"{version}-1"), "stub-helper": "3.2-1"}


def wish(machine: Machine, folder: str = "rpm", signed: str = "metadata", **more: object) -> dict[str, Any]:
    """Variables of the role; the vendor's key is given, whoever signed."""
    key = machine.host.file(f"{STUBS}/vendor.asc").content_string
    repository = {"url": f"file:{STUBS}/{folder}", "key_content": key, "signed": signed}
    return {
        "vendor_packages_manager": machine.manager,
        "vendor_packages_repository": {} if machine.manager == "pacman" else repository,
        **{f"vendor_packages_{name}": value for name, value in more.items()},
    }


@pytest.fixture(autouse=True)
def tidy(machine: Machine) -> Iterator[None]:
    """Nothing is there at first, and nothing is left: neither packages nor locks, repository, key or record."""
    if machine.manager == "pacman":
        machine.offers("2.0.0")
    assert machine.installed == {}
    yield
    if machine.manager != "pacman":
        assert machine.locked == set()
    assert machine.installed == {}
    assert "vendor" not in machine.keys
    where = "/etc/yum.repos.d /etc/zypp/repos.d /etc/pki /var/lib/gpu-kubernetes"
    assert machine.host.run(f"find {where} -type f").stdout == ""


def undo(machine: Machine) -> None:
    machine.run(CONVERGE, **wish(machine, state="absent"))


def test_check_and_run_and_undo(machine: Machine) -> None:
    """What the vendor did not sign is refused; what somebody else needs stays."""
    if machine.manager == "pacman":
        machine.offers("stranger")
        assert "PGP signature" in machine.refused(CONVERGE, **wish(machine))
        machine.offers("2.0.0")
        machine.host.check_output("rm /var/lib/pacman/sync/*")  # the role has it fetched
    else:
        for folder, signed in (("rpm-stranger", "metadata"), ("rpm-unsigned", "packages")):
            said = machine.refused(CONVERGE, **wish(machine, folder, signed))
            assert f"{machine.manager} failed for nvidia-stub-smi" in said
            assert re.search("sign|gpg", said.partition("failed for")[2], re.IGNORECASE), said
    assert machine.installed == {}
    variables = wish(machine)
    assert machine.run(CONVERGE, "--check", **variables)[0]
    assert machine.installed == {}
    machine.run(CONVERGE, **variables)
    assert machine.installed == family("2.0.0")
    for mode in (["--check"], []):
        assert machine.run(CONVERGE, *mode, **variables)[0] == 0
    machine.do(INSTALL, "stub-dashboard", "stub-neighbour")
    before = machine.installed
    assert before.keys() == ALL | {"stub-dashboard", "stub-neighbour"}
    gone = wish(machine, state="absent")
    assert "because stub-dashboard would have to go too" in machine.refused(CONVERGE, **gone)
    assert machine.installed == before
    machine.do(REMOVE, "stub-dashboard")
    for mode, left in ((["--check"], before.keys() - {"stub-dashboard"}), ([], {"stub-helper", "stub-neighbour"})):
        assert machine.run(CONVERGE, *mode, **gone)[0]
        assert machine.installed.keys() == left
    assert machine.run(CONVERGE, **gone)[0] == 0
    machine.do(REMOVE, "stub-neighbour", "stub-helper")


@pytest.mark.parametrize("machine", ["dnf", "zypper"], indirect=True)
def test_versions_and_holds(machine: Machine) -> None:
    own = wish(machine, hold=True, signed="packages")
    # All parts go down together, and our own hold is no hindrance.
    for version, found in (("2.*", "2.0.0"), ("1.*", "1.10.0"), ("1.2.0", "1.2.0")):
        machine.run(CONVERGE, **{**own, "vendor_packages_version": version})
        assert (machine.installed, machine.locked) == (family(found), FAMILY)
    assert machine.run(CONVERGE, "--check", **{**own, "vendor_packages_version": "1.*"})[0] == 0
    for version, others in (("1.2.0", []), ("2.*", ["nvidia-stub-smi"])):
        asked = {**own, "vendor_packages_version": version, "entry_point": "pending", "expected": others}
        assert machine.run(CONVERGE, **asked)[0] == 0
    for entry_point, words in (("main", "0.*"), ("available", "has no version 0.* of nvidia-stub-smi")):
        assert words in machine.refused(
            CONVERGE, **{**own, "vendor_packages_version": "0.*", "entry_point": entry_point}
        )
    changes = machine.run(CONVERGE, **{**own, "vendor_packages_version": "1.10.0", "entry_point": "available"})[0]
    assert changes == 0
    assert (machine.installed, machine.locked) == (family("1.2.0"), FAMILY)

    assert not machine.would_upgrade
    assert machine.run(CONVERGE, **wish(machine, hold=False, signed="packages"))[0] == 1
    assert machine.locked == set()
    assert machine.would_upgrade, "it would do nothing anyway"

    machine.do(HOLD, "nvidia-stub-smi")
    for more in ({"version": "2.*"}, {"state": "absent"}):
        said = machine.refused(CONVERGE, **wish(machine, signed="packages", **more))
        assert "Cannot change nvidia-stub-smi, because somebody put a hold on it" in said
        assert (machine.installed, machine.locked) == (family("1.2.0"), {"nvidia-stub-smi"})
    machine.do(LET_GO, "nvidia-stub-smi")
    undo(machine)


@pytest.mark.parametrize("machine", ["pacman"], indirect=True)
def test_an_upgrade_goes_with_the_rest(machine: Machine) -> None:
    """What pacman's own upgrade brings is no change of ours, and goes with the rest; the others hold."""
    assert "pacman is not asked to hold" in machine.refused(CONVERGE, **wish(machine, hold=True))
    machine.offers("1.2.0")
    machine.run(CONVERGE, **wish(machine))
    assert machine.installed == family("1.2.0")
    assert "leave the version out" in machine.refused(CONVERGE, **wish(machine, version="2.0.0"))
    machine.offers("2.0.0")
    machine.host.check_output("pacman --sync --sysupgrade --noconfirm")
    assert machine.installed == family("2.0.0")
    assert machine.run(CONVERGE, **wish(machine))[0] == 0
    undo(machine)


@pytest.mark.parametrize("machine", ["dnf", "zypper"], indirect=True)
def test_a_dead_repository_of_others_does_not_keep_the_packages(machine: Machine) -> None:
    """Nor the helper that came with them, the hold, and what an administrator has on hold."""
    machine.run(CONVERGE, **wish(machine, hold=True))
    machine.do(INSTALL, "stub-neighbour")
    machine.do(HOLD, "stub-neighbour")
    folder = {"dnf": "/etc/yum.repos.d", "zypper": "/etc/zypp/repos.d"}[machine.manager]
    text = "[dead]\\nname=dead\\nenabled=1\\nautorefresh=1\\nbaseurl=file:///nowhere\\n"
    machine.host.check_output(f"printf '{text}' > {folder}/dead.repo")
    undo(machine)
    machine.host.check_output(f"rm {folder}/dead.repo")
    assert (machine.installed.keys(), machine.locked) == ({"stub-helper", "stub-neighbour"}, {"stub-neighbour"})
    machine.do(LET_GO, "stub-neighbour")
    machine.do(REMOVE, "stub-neighbour", "stub-helper")


@pytest.mark.parametrize("again", [True, False], ids=["and run again", "and undone"])
def test_a_run_that_is_killed(machine: Machine, again: bool) -> None:
    """With the package manager, in the middle of the transaction."""
    variables = wish(machine, hold=None if machine.manager == "pacman" else True)
    machine.host.check_output("touch /run/kill-installers")
    machine.refused(CONVERGE, **variables)
    assert not machine.host.file("/run/kill-installers").exists
    assert machine.installed
    if again:
        machine.run(CONVERGE, **variables)
        assert machine.installed == family("2.0.0")
    undo(machine)


@pytest.mark.parametrize("machine", ["dnf", "zypper"], indirect=True)
def test_the_last_of_two_sets_takes_along_what_both_need(machine: Machine) -> None:
    """The vendor's key in rpm, and what dnf holds packages with."""
    holder = {"python3-dnf-plugin-versionlock": "4.0-1"} if machine.manager == "dnf" else {}
    enterprise = {"platform_version_lock": "".join(holder), "vendor_packages_hold": True}
    first = wish(machine, signed="packages", set="first", names=["nvidia-stub-smi"]) | enterprise
    second = wish(machine, signed="packages", set="second", names=["stub-neighbour"]) | enterprise
    for each in (first, second):
        assert machine.run(CONVERGE, **each)[0]
        assert machine.run(CONVERGE, **each)[0] == 0
    assert machine.installed == {**family("2.0.0"), "stub-neighbour": "7.0-1", **holder}
    assert machine.run(CONVERGE, **first, vendor_packages_state="absent")[0]
    assert machine.installed == {"stub-neighbour": "7.0-1", "stub-helper": "3.2-1", **holder}
    assert machine.locked == {"stub-neighbour"}
    assert "vendor" in machine.keys
    assert machine.run(CONVERGE, **second)[0] == 0
    gone = {**second, "vendor_packages_state": "absent"}
    assert machine.run(CONVERGE, "--check", **gone)[0]
    assert machine.run(CONVERGE, **gone)[0]
    # It came with the first set and the second one needed it.
    machine.do(REMOVE, "stub-helper")


@pytest.mark.parametrize("machine", ["dnf"], indirect=True)
def test_a_repository_that_the_host_has_from_elsewhere_since(machine: Machine) -> None:
    """Ours goes, and its packages stay."""
    place = "/etc/yum.repos.d"
    machine.run(CONVERGE, **wish(machine))
    assert machine.host.file(f"{place}/gpu-kubernetes-stubs.repo").exists
    theirs = wish(machine, manage_repository=False)
    for mode, left in (["--check"], True), ([], False):
        assert machine.run(CONVERGE, *mode, **theirs)[0] == 1
        assert machine.host.file(f"{place}/gpu-kubernetes-stubs.repo").exists is left
    assert machine.run(CONVERGE, **theirs)[0] == 0
    assert machine.installed == family("2.0.0")
    undo(machine)


@pytest.mark.parametrize("machine", ["dnf"], indirect=True)
def test_a_check_before_the_repository_of_another_set_is_there(machine: Machine) -> None:
    asked = wish(machine, hold=True)
    assert machine.run(SETS, "--check", **asked)[0]
    assert machine.run(SETS, **asked)[0]
    assert machine.installed == family("2.0.0")
    assert machine.run(SETS, **asked)[0] == 0
    assert machine.run(SETS, "--check", **asked)[0] == 0
    for name in ("stubs", "repository"):
        machine.run(CONVERGE, **wish(machine, state="absent", set=name))


@pytest.mark.parametrize("machine", ["dnf"], indirect=True)
def test_a_former_name_that_obsoletes_the_new_one(machine: Machine) -> None:
    """It is why nvidia_driver has NVIDIA's repository leave out the former name, and refuses a host that has it."""
    former, new = "nvidia-stub-fabric-manager", "nvidia-stub-fabricmanager"
    asked = wish(machine, names=[new])
    assert f"{new} is not installed" in machine.refused(CONVERGE, **asked)
    assert machine.installed == {former: "1.10.0-1"}, "what dnf took it for"
    machine.do(REMOVE, former)
    asked["vendor_packages_repository"]["exclude"] = [former]
    machine.run(CONVERGE, **asked)
    assert machine.installed == {new: "2.0.0-1"}
    assert machine.run(CONVERGE, **asked)[0] == 0
    # The way back to it is open, the way forth is not.
    machine.run(CONVERGE, **wish(machine, names=[former]))
    assert machine.installed == {former: "1.10.0-1"}
    asked["vendor_packages_version"] = "2.0.0"
    assert f"{former}-1.10.0-1.noarch obsoletes {new}" in machine.refused(CONVERGE, **asked)
    assert machine.installed == {former: "1.10.0-1"}
    undo(machine)
