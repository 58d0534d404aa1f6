# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel modules that the distribution builds, as SUSE does: libraries get the same version, and both are held."""

from __future__ import annotations

import json
import os

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


LATEST = {KMP: NEW, LIBRARIES: "580.95.05-1", DAEMON: "580.95.05-1"}
OLDER = {KMP: OLD, LIBRARIES: "580.82.07-1", DAEMON: "580.82.07-1"}
ALL = sorted(LATEST)
MIXED = {KMP: NEW, LIBRARIES: "580.82.07-1", DAEMON: "580.82.07-1"}
#: Variables of a host, its packages before, the start of the message, and its packages and locks afterwards. ``library`` is the driver's version.
HOSTS = {
    "nothing": ({}, {}, "", LATEST, ALL),
    "branch": ({"nvidia_driver_branch": "580"}, {}, "", LATEST, ALL),
    "version": ({"nvidia_driver_version": "580.82.07"}, {}, "", OLDER, ALL),
    "predicted": ({"nvidia_driver_version": "580.82.07", "check": True}, {}, "", {}, []),
    "installed": ({}, {KMP: OLD}, "", OLDER, ALL),
    "not-built": (
        {"nvidia_driver_version": "580.105.08"},
        {},
        f"not-built: the distribution has {KMP} of the driver 580.82.07, 580.95.05, and not of 580.105.08; request one of these",
        {},
        [],
    ),
    "older-libraries": (
        {"library": "580.82.07"},
        MIXED,
        f"older-libraries: {KMP} has version 580.95.05 of the driver, but the libraries have 580.82.07, ",
        MIXED,
        None,
    ),
}
#: Variables of a host with driver 580.82.07, and the message before any change.
SWAPS = {
    "same": ({"nvidia_driver_branch": "580"}, ""),
    "newer": (
        {"nvidia_driver_version": "580.95.05"},
        f"newer: the host has the driver 580.82.07, and 580.95.05 is requested; {KMP}, which the distribution builds, cannot",
    ),
    "generation": (
        {"nvidia_driver_branch": "595"},
        "generation: the host has the driver 580.82.07, and 595.* is requested; nvidia-open-driver-G07-signed-cuda-kmp-default, ",
    ),
    "libraries-alone": ({"nvidia_driver_version": "580.95.05", "nvidia_driver_kernel_modules": "none"}, ""),
}


def test_libraries_get_the_version_of_the_kernel_modules_and_all_are_held(refusals, tmp_path):
    """Of the modules that are installed, else of those that the distribution has; another version is refused before any change."""
    hosts = {
        **{name: {"part": "packages", "packages": before, **more} for name, (more, before, *_rest) in HOSTS.items()},
        **{
            name: {"part": "validate_managed", "library": "580.82.07", **more} for name, (more, _words) in SWAPS.items()
        },
    }
    for name, host in hosts.items():
        folder = tmp_path / name
        (folder / "bin").mkdir(parents=True)
        for program in ("zypper", "rpm"):
            (folder / "bin" / program).write_text(PROGRAMS)
            (folder / "bin" / program).chmod(0o755)
        (folder / "available").write_text(json.dumps(AVAILABLE))
        (folder / "installed").write_text(json.dumps(host.pop("packages", {})))
        if name in SWAPS:
            (folder / "state" / "state").mkdir(parents=True)
            (folder / "state" / "state" / "packages-nvidia-driver.json").write_text("{}")
    common = {"library": "", "check": False, "nvidia_driver_require_gpu": False}
    driver = {"library_version": "{{ library }}", "installed_module_version": "{{ library }}", "secure_boot": False}
    nvml = {"gpus": [], "nvswitches": 0, "error": None, "driver": driver}
    messages = refusals(
        "nvidia_driver",
        ["set_vars", "{{ part }}"],
        {name: {**common, **host} for name, host in hosts.items()},
        variables={
            "__nvidia_driver_entry_point": "present",
            "nvidia_driver_manage_repository": False,
            "nvidia_driver_state_dir": f"{tmp_path}/{{{{ inventory_hostname }}}}/state",
        },
        facts=LEAP,
        extra={"__nvidia_driver_facts": {"ansible_facts": {"nvml": nvml}}},
        environment={"PATH": f"{tmp_path}/{{{{ inventory_hostname }}}}/bin:{os.environ['PATH']}"},
        check_mode="{{ check }}",
    )
    expected = {name: words for name, (*_rest, words) in SWAPS.items()}
    expected |= {name: words for name, (_more, _before, words, *_rest) in HOSTS.items()}
    for name, words in expected.items():
        assert bool(messages[name]) == bool(words), (name, messages[name])
        assert messages[name].startswith(words), messages[name]
    for name, (*_rest, packages, locked) in HOSTS.items():
        assert json.loads((tmp_path / name / "installed").read_text()) == packages, name
        path = tmp_path / name / "locked"
        # The libraries that the test installs have no lock before.
        assert locked is None or sorted(json.loads(path.read_text()) if path.exists() else []) == locked, name
    calls = (tmp_path / "version" / "calls").read_text()
    assert [KMP in line for line in calls.splitlines()] == [True, False]
