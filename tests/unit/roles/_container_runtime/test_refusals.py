# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role refuses before it changes a host, with the description of containerd."""

from __future__ import annotations

import yaml

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

USABLE = {"path": "/usr/bin/present", "version": "1.0", "usable": True}


MISSING = {"path": None, "version": None, "usable": False}


def host(containerd, has_service=None):
    exists = containerd["usable"] if has_service is None else has_service
    return {
        "program": containerd,
        "service": {"name": "containerd", "exists": exists, "state": "active"},
        "toolkit": USABLE,
        "packages": {"nvidia-container-toolkit": None},
    }


#: State of a host, variables of the role containerd_nvidia, and the refusal.
CONTAINERD = {
    "no-containerd": (
        host(MISSING),
        {},
        "{}: there is no containerd program; install containerd with its service first.",
    ),
    "service-without-a-program": (host(MISSING, has_service=True), {}, "{}: there is no containerd program; "),
    "undo-without-containerd": (host(MISSING), {"containerd_nvidia_state": "absent"}, ""),
    "undo-with-containerd": (host(USABLE), {"containerd_nvidia_state": "absent"}, ""),
    "malformed": (host(USABLE), {"file": "malformed.toml"}, "{}: {path}, line 3, column 1: "),
}


def test_host_without_containerd_or_with_malformed_file_is_refused(refusals, tmp_path):
    path = tmp_path / "malformed.toml"
    path.write_text("version = 2\nbroken = [\n")
    role = ROOT / "roles" / "containerd_nvidia"
    defaults = yaml.safe_load((role / "defaults" / "main.yml").read_text())
    daemon = yaml.safe_load((role / "vars" / "main.yml").read_text())["__containerd_nvidia_daemon"]
    hosts = {
        name: {**defaults, "host": host, "file": "none", **variables}
        for name, (host, variables, _words) in CONTAINERD.items()
    }
    messages = refusals(
        "_container_runtime",
        ["validate"],
        hosts,
        variables={
            "nvidia_container_toolkit_host": "{{ host }}",
            "nvidia_container_toolkit_program": "/usr/bin/present",
            # The role compares the configuration of an accepted host; here it does not exist.
            "_container_runtime_daemon": {**daemon, "config": {"path": f"{tmp_path}/{{{{ file }}}}"}},
        },
    )
    assert sorted(messages) == sorted(CONTAINERD)
    for name, (_host, _variables, words) in CONTAINERD.items():
        assert bool(messages[name]) == bool(words), messages[name]
        assert words.format(name, path=path) in messages[name]
    assert path.read_text() == "version = 2\nbroken = [\n"
