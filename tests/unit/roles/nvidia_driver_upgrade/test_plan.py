# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What nvidia_driver_upgrade refuses before it changes a node."""

from __future__ import annotations

import json
import os

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import DEBIAN, find_task
from ansible_collections.gpu.kubernetes.tests.unit.roles.nvidia_driver_upgrade.upgrade_objects import (
    PLAN,
    encode_record,
    write_record,
)

ROLLBACK_BLOCKER = (
    "{}: the installed driver could not be restored if the new one failed: %s. "
    "Set nvidia_driver_upgrade_rollback to false to upgrade without a rollback."
)
NO_PACKAGES = (
    "apt has no version 535.1.0 of nvidia-smi, libnvidia-ml1, libcuda1 and nvidia-kernel-dkms: request one that its repositories have, "
    "or add a repository that has it"
)
#: Variables and records of a host, and its state or the message. Its repository has only the other driver.
ROLLBACKS = {
    "refused": ({}, {"packages-nvidia-driver": {}}, ROLLBACK_BLOCKER % NO_PACKAGES),
    # It has to be finished.
    "interrupted": (
        {},
        {"packages-nvidia-driver": {}, "driver-upgrade": {"from": "535.1.0", "phase": "installing"}},
        "due",
    ),
    # As an earlier release has recorded it, without its source.
    "installer": (
        {
            "nvidia_driver_method": "runfile",
            "nvidia_driver_kernel_modules": "none",
            "nvidia_driver_runfile": {"url": "file:///nonexistent/installer.run", "checksum": "sha256:" + "0" * 64},
        },
        {"driver-runfile": {"version": "535.1.0", "options": []}},
        ROLLBACK_BLOCKER % "the source of its installer is not recorded",
    ),
}
PROGRAMS = {
    "apt-cache": 'shift; for name; do echo "$name | 580.1.0-1 | http://deb.example.com bookworm/non-free amd64 Packages"; done',
    "apt-get": "",
    "apt-mark": "",
    "dpkg-query": "exit 1",
}


def test_upgrade_without_a_possible_rollback_is_refused(refusals, tmp_path):
    for program, text in PROGRAMS.items():
        (tmp_path / program).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / program).chmod(0o755)
    hosts = {}
    for name, (variables, records, _words) in ROLLBACKS.items():
        state = tmp_path / name / "state"
        state.mkdir(parents=True)
        for file, content in records.items():
            (state / f"{file}.json").write_text(json.dumps(content))
        hosts[name] = {"nvidia_driver_state_dir": str(state.parent), **variables}
    common = {
        "nvidia_driver_version": "580.1.0",
        "nvidia_driver_manage_repository": False,
        "nvidia_driver_require_gpu": False,
    }
    driver = {"library_version": "535.1.0", "installed_module_version": "535.1.0", "secure_boot": False}
    nvml_result = {"ansible_facts": {"nvml": {"gpus": [], "nvswitches": 0, "error": None, "driver": driver}}}
    results = refusals(
        "nvidia_driver_upgrade",
        ["plan"],
        hosts,
        variables=common,
        fact="nvidia_driver_upgrade_result.state",
        facts=DEBIAN,
        extra={"__nvidia_driver_facts": nvml_result},
        environment={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )
    assert results == {name: words.format(name) for name, (*_case, words) in ROLLBACKS.items()}


#: The phase of an upgrade, whether another driver is requested, and whether it is refused without a rollback.
PHASES = {
    "none": (None, True, True),
    "nothing-to-do": (None, False, False),
    "recorded": ("recorded", True, True),
    "stopping": ("stopping", True, False),
    "installing": ("installing", True, False),
    "rolling_back": ("rolling_back", True, False),
    "verified": ("verified", True, True),
    "only-uncordon": ("verified", False, False),
}


#: The phase of an interrupted upgrade, and whether the next run needs its target again.
TARGETS = {"recorded": True, "stopping": True, "installing": True, "rolling_back": False, "verified": False}


def test_upgrade_without_a_possible_rollback_or_target_is_refused_in_most_phases(evaluate_role, tmp_path):
    """An interrupted upgrade has its own rollback. One that has only to uncordon the node needs none; a new one after that needs one."""
    blocked = {**PLAN, "to": "580.1"}
    untargeted = {**PLAN, "to": "", "due": True, "rollback_blocker": ""}
    hosts, expected = {}, {}

    def add(name, plan, phase, words, **variables):
        hosts[name], expected[name] = {"nvidia_driver_plan": plan, **variables}, words
        if phase:
            (tmp_path / name).mkdir()
            hosts[name]["__nvidia_driver_upgrade_read"] = encode_record(write_record(tmp_path / name, phase=phase))

    for name, (phase, due, refused) in {**PHASES, "not-requested": (None, True, False)}.items():
        plan = {**blocked, "due": due, "rollback_blocker": f"{name}: its source is missing"}
        words = ROLLBACK_BLOCKER.format(name) % "its source is missing"
        add(name, plan, phase, words if refused else "", nvidia_driver_upgrade_rollback=name != "not-requested")
    for phase, refused in TARGETS.items():
        name = f"target-{phase}"
        words = f"{name}: an upgrade from driver 570.1 was interrupted, and needs its target again to resume; set"
        add(name, untargeted, phase, words if refused else "")
    words = "target-none: no other driver than 570.1 is requested; set nvidia_driver_version"
    add("target-none", untargeted, None, words)

    tasks = [
        find_task("nvidia_driver_upgrade", "plan", words)
        for words in ("Require a version or a branch", "Refuse an upgrade without a rollback")
    ]
    results = evaluate_role("nvidia_driver_upgrade", hosts, "''", {"block": tasks})
    for name, words in expected.items():
        assert bool(results[name]) == bool(words), (name, results[name])
        assert (results[name] or "").startswith(words), results[name]
