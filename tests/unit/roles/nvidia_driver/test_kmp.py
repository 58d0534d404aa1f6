# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel modules that the distribution builds, as SUSE's: what has to fit them comes in their version, and stays with them."""

from __future__ import annotations

import json
import os

import pytest

KMP = "nvidia-open-driver-G06-signed-cuda-kmp-default"
LIBRARIES = "nvidia-compute-utils-G06"
DAEMON = "nvidia-persistenced"
LEAP = {
    "distribution": "openSUSE Leap",
    "distribution_version": "15.6",
    "distribution_major_version": "15",
    "distribution_release": "n/a",
    "os_family": "Suse",
    "architecture": "x86_64",
    "kernel": "6.4.0-150600.23.60-default",
}
OLD, NEW = ("580.82.07_k6.4.0_150600.23.60-150600.3.1.1", "580.95.05_k6.4.0_150600.23.60-150600.3.6.1")
#: All that the repositories have, the latest last: NVIDIA's has one that the distribution has not built yet.
OFFERS = {
    KMP: [OLD, NEW],
    **{name: ["580.82.07-1", "580.95.05-1", "580.105.08-1"] for name in (LIBRARIES, DAEMON)},
}
# Both programs know what the file "offers" has, what is installed, and what is on hold.
PROGRAMS = """#!/usr/bin/env python3
import json, os, re, sys
folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
def have(name, value=None):
    path = os.path.join(folder, name)
    if value is not None:
        json.dump(value, open(path, "w"))
    return json.load(open(path)) if os.path.exists(path) else {}
there, offers, held = have("there"), have("offers"), list(have("held"))
words = sys.argv[1:]
if sys.argv[0].endswith("rpm"):
    form = words[words.index("--queryformat") + 1].replace("\\\\n", "\\n")
    names = list(there) if "--all" in words else [words[-1]]
    if not set(names) <= set(there):
        sys.exit(f"package {names[0]} is not installed")
    for name in names:
        version, release = there[name].rsplit("-", 1)
        print(form.replace("%{NAME}", name).replace("%{VERSION}", version).replace("%{RELEASE}", release), end="")
elif "search" in words:
    for name in words:
        for edition in offers.get(name, []):
            print(f'<solvable status="not-installed" name="{name}" kind="package" edition="{edition}" repository="x"/>')
elif "install" in words:
    with open(os.path.join(folder, "calls"), "a") as calls:
        calls.write(" ".join(word for word in words if word[0] != "-") + "\\n")
    for word in words[words.index("install") + 1:]:
        name, relation, version = re.fullmatch("([^=<]+)([=<]?)(.*)", word).groups()
        if name in offers:
            fit = [each for each in offers[name] if relation != "=" or version in (each, each.rsplit("-", 1)[0])]
            there[name] = fit[-1]
    have("there", there)
elif "addlock" in words:
    have("held", held + words[words.index("addlock") + 1:])
elif "removelock" in words:
    have("held", [name for name in held if name not in words])
elif "locks" in words:
    for number, name in enumerate(held):
        print(f"{number} | {name} | package | (any)")
"""


@pytest.fixture
def suse(refusals, tmp_path):
    """Have the packages of the role on a host with this driver and these packages: why not, and what is there and on hold then."""
    (tmp_path / "bin").mkdir()
    for name in ("zypper", "rpm"):
        (tmp_path / "bin" / name).write_text(PROGRAMS)
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "offers").write_text(json.dumps(OFFERS))

    def have(library=None, there=None, check=False, part="packages", hosts=None, **asked):
        if there is not None:
            (tmp_path / "there").write_text(json.dumps(there))
        driver = {"library_version": library, "installed_module_version": library, "secure_boot": False}
        nvml = {"gpus": [], "nvswitches": 0, "error": None, "driver": driver}
        told = refusals(
            "nvidia_driver",
            ["set_vars", part],
            {name: {**wish, "nvidia_driver_require_gpu": False} for name, wish in (hosts or {"node": asked}).items()},
            variables={
                "__nvidia_driver_entry_point": "present",
                "nvidia_driver_manage_repository": False,
                "nvidia_driver_state_dir": str(tmp_path / "state"),
            },
            facts=LEAP,
            extra={"__nvidia_driver_look": {"ansible_facts": {"nvml": nvml}}},
            environment={"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"},
            check_mode=check,
        )
        found = [
            json.loads((tmp_path / name).read_text() if (tmp_path / name).exists() else "{}")
            for name in ("there", "held")
        ]
        return told if hosts else told["node"], found[0], sorted(found[1])

    return have


#: What is asked for, and in which version the kernel modules come.
ASKED = {
    "nothing": ({}, NEW),
    "branch": ({"nvidia_driver_branch": "580"}, NEW),
    "version": ({"nvidia_driver_version": "580.82.07"}, OLD),
}


@pytest.mark.parametrize(
    "wish", ["nothing", *(pytest.param(wish, marks=pytest.mark.thorough) for wish in ("branch", "version"))]
)
def test_libraries_come_in_the_version_of_the_kernel_modules_and_all_are_on_hold(suse, tmp_path, wish):
    asked, edition = ASKED[wish]
    version = edition.partition("_k")[0] + "-1"
    if wish == "version":
        assert suse(check=True, **asked) == ("", {}, [])
    assert suse(**asked) == ("", {KMP: edition, LIBRARIES: version, DAEMON: version}, sorted([KMP, LIBRARIES, DAEMON]))
    calls = (tmp_path / "calls").read_text()
    assert [KMP in line for line in calls.splitlines()] == [True, False]


def test_kernel_modules_that_were_there_are_put_on_hold_as_they_are(suse):
    told, there, held = suse(there={KMP: OLD})
    assert (told, there[KMP], there[LIBRARIES], held) == ("", OLD, "580.82.07-1", sorted([KMP, LIBRARIES, DAEMON]))


def test_a_version_that_the_distribution_has_not_built_is_refused(suse):
    told, there, held = suse(nvidia_driver_version="580.105.08")
    assert told.startswith(
        f"node: the distribution has {KMP} of the driver 580.82.07, 580.95.05, and not of 580.105.08; request one of these"
    )
    assert (there, held) == ({}, [])


def test_libraries_that_an_update_has_left_behind_are_told(suse):
    there = {KMP: NEW, LIBRARIES: "580.82.07-1", DAEMON: "580.82.07-1"}
    told, after, _held = suse(library="580.82.07", there=there)
    assert told.startswith(f"node: {KMP} has version 580.95.05 of the driver, but the libraries have 580.82.07, ")
    assert after == there


#: What is asked of a host that has 580.82.07, and how it is refused before anything is touched.
SWAPS = {
    "same": ({"nvidia_driver_branch": "580"}, ""),
    "newer": (
        {"nvidia_driver_version": "580.95.05"},
        f"{{}}: the host has the driver 580.82.07, and 580.95.05 is requested; {KMP}, which the distribution builds, cannot",
    ),
    "generation": (
        {"nvidia_driver_branch": "595"},
        "{}: the host has the driver 580.82.07, and 595.* is requested; nvidia-open-driver-G07-signed-cuda-kmp-default, ",
    ),
    "libraries-alone": ({"nvidia_driver_version": "580.95.05", "nvidia_driver_kernel_modules": "none"}, ""),
}


def test_another_version_is_refused_before_a_node_is_touched(suse, tmp_path):
    (tmp_path / "state" / "state").mkdir(parents=True)
    (tmp_path / "state" / "state" / "packages-nvidia-driver.json").write_text("{}")
    hosts = {name: asked for name, (asked, _words) in SWAPS.items()}
    told, _there, _held = suse(library="580.82.07", part="validate_managed", hosts=hosts)
    for name, (_asked, words) in SWAPS.items():
        assert bool(told[name]) == bool(words), told[name]
        assert told[name].startswith(words.format(name))
