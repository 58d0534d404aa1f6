# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role refuses before it changes a host, with the description of containerd."""

from __future__ import annotations

import yaml

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

THERE = {"path": "/usr/bin/there", "version": "1.0", "usable": True}


NOT_THERE = {"path": None, "version": None, "usable": False}


def host(containerd, has_service=None):
    exists = containerd["usable"] if has_service is None else has_service
    return {
        "program": containerd,
        "service": {"name": "containerd", "exists": exists, "state": "active"},
        "toolkit": THERE,
        "packages": {"nvidia-container-toolkit": None},
    }


#: State of a host, variables of the role containerd_nvidia, and the refusal.
CONTAINERD = {
    "no-containerd": (
        host(NOT_THERE),
        {},
        "{}: there is no containerd program; install containerd with its service first, or set containerd_nvidia_service.",
    ),
    "service-without-a-program": (host(NOT_THERE, has_service=True), {}, "{}: there is no containerd program; "),
    "no-containerd-at-the-undo": (host(NOT_THERE), {"containerd_nvidia_state": "absent"}, ""),
    "containerd-at-the-undo": (host(THERE), {"containerd_nvidia_state": "absent"}, ""),
    "malformed": (host(THERE), {"file": "malformed.toml"}, "{}: {path}, line 3, column 1: "),
}


def test_host_without_containerd_or_with_malformed_file_is_refused(refusals, tmp_path):
    path = tmp_path / "malformed.toml"
    path.write_text("version = 2\nbroken = [\n")
    role = ROOT / "roles" / "containerd_nvidia"
    defaults = yaml.safe_load((role / "defaults" / "main.yml").read_text())
    described = yaml.safe_load((role / "vars" / "main.yml").read_text())["__containerd_nvidia_daemon"]
    hosts = {
        name: {**defaults, "host": host, "file": "none", **variables}
        for name, (host, variables, _words) in CONTAINERD.items()
    }
    refused = refusals(
        "_container_runtime",
        ["validate"],
        hosts,
        variables={
            "nvidia_container_toolkit_host": "{{ host }}",
            "nvidia_container_toolkit_program": "/usr/bin/there",
            # An accepted host has its configuration compared, of which there is none here.
            "_container_runtime_daemon": {**described, "config": {"path": f"{tmp_path}/{{{{ file }}}}"}},
        },
    )
    assert sorted(refused) == sorted(CONTAINERD)
    for name, (_host, _variables, words) in CONTAINERD.items():
        assert bool(refused[name]) == bool(words), refused[name]
        assert words.format(name, path=path) in refused[name]
    assert path.read_text() == "version = 2\nbroken = [\n"
