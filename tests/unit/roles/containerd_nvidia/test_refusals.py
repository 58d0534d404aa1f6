# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What containerd_nvidia refuses before it changes a host."""

from __future__ import annotations

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


#: What is on a host and asked of it, and what is said of it.
CONTAINERD = {
    "no-containerd": (
        host(NOT_THERE),
        {},
        "{}: there is no containerd program; install containerd with its service first",
    ),
    "service-without-a-program": (host(NOT_THERE, has_service=True), {}, "{}: there is no containerd program; "),
    "no-containerd-on-the-way-back": (host(NOT_THERE), {"containerd_nvidia_state": "absent"}, ""),
    "containerd": (host(THERE), {}, ""),
    "malformed": (host(THERE), {"file": "malformed.toml"}, "{}: {path}, line 3, column 1: "),
}


def test_containerd_nvidia(refusals, tmp_path):
    path = tmp_path / "malformed.toml"
    path.write_text("version = 2\nbroken = [\n")
    hosts = {
        name: {"host": host, "file": "none", **variables} for name, (host, variables, _words) in CONTAINERD.items()
    }
    told = refusals(
        "containerd_nvidia",
        ["validate"],
        hosts,
        variables={"nvidia_container_toolkit_host": "{{ host }}", "nvidia_container_toolkit_program": "/usr/bin/there"},
        # What is not refused goes on to compare a configuration, of which there is none here.
        module_defaults={"gpu.kubernetes.containerd_config": {"path": f"{tmp_path}/{{{{ file }}}}", "state": "absent"}},
    )
    assert sorted(told) == sorted(CONTAINERD)
    for name, (_host, _variables, words) in CONTAINERD.items():
        assert bool(told[name]) == bool(words), told[name]
        assert words.format(name, path=path) in told[name]
    assert path.read_text() == "version = 2\nbroken = [\n"
