# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel modules that the distribution builds, as SUSE does: libraries get the same version, and both are held."""

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
#: All versions in the repositories, the latest last. The distribution has not built NVIDIA's latest yet.
AVAILABLE = {
    KMP: [OLD, NEW],
    **{name: ["580.82.07-1", "580.95.05-1", "580.105.08-1"] for name in (LIBRARIES, DAEMON)},
}
# Both programs read the available and the installed packages and the locks from files.
PROGRAMS = """#!/usr/bin/env python3
import json, os, re, sys
folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
def state(name, value=None):
    path = os.path.join(folder, name)
    if value is not None:
        json.dump(value, open(path, "w"))
    return json.load(open(path)) if os.path.exists(path) else {}
installed, available, locked = state("installed"), state("available"), list(state("locked"))
words = sys.argv[1:]
if sys.argv[0].endswith("rpm"):
    form = words[words.index("--queryformat") + 1].replace("\\\\n", "\\n")
    names = list(installed) if "--all" in words else [words[-1]]
    if not set(names) <= set(installed):
        sys.exit(f"package {names[0]} is not installed")
    for name in names:
        version, release = installed[name].rsplit("-", 1)
        print(form.replace("%{NAME}", name).replace("%{VERSION}", version).replace("%{RELEASE}", release), end="")
elif "search" in words:
    for name in words:
        for edition in available.get(name, []):
            print(f'<solvable status="not-installed" name="{name}" kind="package" edition="{edition}" repository="x"/>')
elif "install" in words:
    with open(os.path.join(folder, "calls"), "a") as calls:
        calls.write(" ".join(word for word in words if word[0] != "-") + "\\n")
    for word in words[words.index("install") + 1:]:
        name, relation, version = re.fullmatch("([^=<]+)([=<]?)(.*)", word).groups()
        if name in available:
            fit = [each for each in available[name] if relation != "=" or version in (each, each.rsplit("-", 1)[0])]
            installed[name] = fit[-1]
    state("installed", installed)
elif "addlock" in words:
    state("locked", locked + words[words.index("addlock") + 1:])
elif "removelock" in words:
    state("locked", [name for name in locked if name not in words])
elif "locks" in words:
    for number, name in enumerate(locked):
        print(f"{number} | {name} | package | (any)")
"""


@pytest.fixture
def suse(refusals, tmp_path):
    """Run package tasks of the role on a host with a driver and packages: message, installed packages, locked packages."""
    (tmp_path / "bin").mkdir()
    for name in ("zypper", "rpm"):
        (tmp_path / "bin" / name).write_text(PROGRAMS)
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "available").write_text(json.dumps(AVAILABLE))

    def run_tasks(library=None, installed=None, check=False, file="packages", hosts=None, **variables):
        if installed is not None:
            (tmp_path / "installed").write_text(json.dumps(installed))
        driver = {"library_version": library, "installed_module_version": library, "secure_boot": False}
        nvml = {"gpus": [], "nvswitches": 0, "error": None, "driver": driver}
        messages = refusals(
            "nvidia_driver",
            ["set_vars", file],
            {
                name: {**host, "nvidia_driver_require_gpu": False}
                for name, host in (hosts or {"node": variables}).items()
            },
            variables={
                "__nvidia_driver_entry_point": "present",
                "nvidia_driver_manage_repository": False,
                "nvidia_driver_state_dir": str(tmp_path / "state"),
            },
            facts=LEAP,
            extra={"__nvidia_driver_facts": {"ansible_facts": {"nvml": nvml}}},
            environment={"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"},
            check_mode=check,
        )
        found = [
            json.loads((tmp_path / name).read_text() if (tmp_path / name).exists() else "{}")
            for name in ("installed", "locked")
        ]
        return messages if hosts else messages["node"], found[0], sorted(found[1])

    return run_tasks


#: Variables, and the version of the kernel modules.
REQUESTS = {
    "nothing": ({}, NEW),
    "branch": ({"nvidia_driver_branch": "580"}, NEW),
    "version": ({"nvidia_driver_version": "580.82.07"}, OLD),
}


@pytest.mark.parametrize(
    "request_name", ["nothing", *(pytest.param(name, marks=pytest.mark.thorough) for name in ("branch", "version"))]
)
def test_libraries_get_the_version_of_the_kernel_modules_and_all_are_held(suse, tmp_path, request_name):
    variables, edition = REQUESTS[request_name]
    version = edition.partition("_k")[0] + "-1"
    if request_name == "version":
        assert suse(check=True, **variables) == ("", {}, [])
    assert suse(**variables) == (
        "",
        {KMP: edition, LIBRARIES: version, DAEMON: version},
        sorted([KMP, LIBRARIES, DAEMON]),
    )
    calls = (tmp_path / "calls").read_text()
    assert [KMP in line for line in calls.splitlines()] == [True, False]


def test_installed_kernel_modules_are_held_at_their_version(suse):
    message, installed, locked = suse(installed={KMP: OLD})
    assert (message, installed[KMP], installed[LIBRARIES], locked) == (
        "",
        OLD,
        "580.82.07-1",
        sorted([KMP, LIBRARIES, DAEMON]),
    )


def test_version_without_kernel_modules_is_refused(suse):
    message, installed, locked = suse(nvidia_driver_version="580.105.08")
    assert message.startswith(
        f"node: the distribution has {KMP} of the driver 580.82.07, 580.95.05, and not of 580.105.08; request one of these"
    )
    assert (installed, locked) == ({}, [])


def test_libraries_older_than_the_kernel_modules_are_reported(suse):
    installed = {KMP: NEW, LIBRARIES: "580.82.07-1", DAEMON: "580.82.07-1"}
    message, after, _locked = suse(library="580.82.07", installed=installed)
    assert message.startswith(f"node: {KMP} has version 580.95.05 of the driver, but the libraries have 580.82.07, ")
    assert after == installed


#: Variables of a host with driver 580.82.07, and the message before any change.
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


def test_another_version_is_refused_before_any_change(suse, tmp_path):
    (tmp_path / "state" / "state").mkdir(parents=True)
    (tmp_path / "state" / "state" / "packages-nvidia-driver.json").write_text("{}")
    hosts = {name: variables for name, (variables, _words) in SWAPS.items()}
    messages, _installed, _locked = suse(library="580.82.07", file="validate_managed", hosts=hosts)
    for name, (_variables, words) in SWAPS.items():
        assert bool(messages[name]) == bool(words), messages[name]
        assert messages[name].startswith(words.format(name))
