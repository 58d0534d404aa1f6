# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What nvidia_container_toolkit refuses before it changes a host, and what it keeps."""

from __future__ import annotations

import json

TOOLKIT = "nvidia-container-toolkit"


THERE = {"path": "/usr/bin/there", "version": "1.0", "usable": True}


NOT_THERE = {"path": None, "version": None, "usable": False}


def host(toolkit, package=None, containerd=None):
    containerd = containerd or THERE
    return {
        "program": containerd,
        "service": {"name": "containerd", "exists": containerd["usable"], "state": "active"},
        "toolkit": toolkit,
        "packages": {TOOLKIT: package},
    }


def repository(**source):
    defaults = {"url": "https://default.example.com", "key_url": "https://default.example.com/key"}
    return {
        "repository": {**defaults, **source},
        "defaults": defaults,
    }


TOOLKITS = {
    "no-toolkit-and-none-allowed": (
        host(NOT_THERE),
        False,
        {"nvidia_container_toolkit_install": "never"},
        "{}: there is no usable nvidia-container-runtime and nvidia_container_toolkit_install is never; ",
    ),
    "wrong-path-though-all-packages-are-there": (
        host(NOT_THERE, "1.0-1"),
        True,
        {"nvidia_container_toolkit_runtime_path": "/wrong"},
        "{}: the program /wrong is missing or does not run and the packages with it are installed already; ",
    ),
    "path-that-a-package-may-bring": (
        host(NOT_THERE),
        True,
        {"nvidia_container_toolkit_runtime_path": "/usr/bin/other"},
        "",
    ),
    "version-of-anothers-toolkit": (
        host(THERE),
        False,
        {"nvidia_container_toolkit_version": "1.17.8"},
        "leave them out, or set nvidia_container_toolkit_install: always.",
    ),
    "hold-of-anothers-toolkit": (
        host(THERE),
        False,
        {"nvidia_container_toolkit_hold": False},
        "leave them out, or set nvidia_container_toolkit_install: always.",
    ),
    "version-of-our-toolkit": (host(THERE), True, {"nvidia_container_toolkit_version": "1.17.8"}, ""),
    "key-without-a-checksum": (
        host(NOT_THERE),
        True,
        repository(key_url="https://example.com/key"),
        "comes from a key_url of your own without a checksum; add its key_checksum, or give the key itself as key_content.",
    ),
    "key-with-a-checksum": (
        host(NOT_THERE),
        True,
        repository(key_url="https://example.com/key", key_checksum="sha256:" + "0" * 64),
        "",
    ),
}


def test_nvidia_container_toolkit(refusals):
    hosts = {
        name: {"host": host, "managed": managed, **repository(), **variables}
        for name, (host, managed, variables, _words) in TOOLKITS.items()
    }
    given = {"__nvidia_container_toolkit_repository": "{{ repository }}"}
    given["nvidia_container_toolkit_managed"] = "{{ managed }}"
    given["nvidia_container_toolkit_host"] = "{{ host }}"
    given |= {
        "platform_package_manager": "apt",
        "platform_chooses_versions": True,
        "platform_toolkit_packages": [TOOLKIT],
        "platform_key_fingerprints": {},
    }
    given["platform_toolkit_repository"] = "{{ defaults }}"
    told = refusals("nvidia_container_toolkit", ["validate"], hosts, variables=given)
    assert sorted(told) == sorted(TOOLKITS)
    for name, (_host, _managed, _variables, words) in TOOLKITS.items():
        assert bool(told[name]) == bool(words), told[name]
        assert words.format(name) in told[name]


def test_the_toolkit_stays_while_another_configuration_names_it(run, tmp_path):
    role = {"name": "gpu.kubernetes.nvidia_container_toolkit", "tasks_from": "absent"}
    play = {"hosts": "all", "gather_facts": False, "tasks": [{"ansible.builtin.include_role": role}]}
    (tmp_path / "play.yml").write_text(json.dumps([play]))
    seen = {"other_configurations": ["/etc/docker/daemon.json"]}
    code, said = run("node ansible_connection=local\n", tmp_path / "play.yml", nvidia_container_toolkit_host=seen)
    assert code == 0, said
    said = " ".join(said.split())
    assert "KEPT: node: /etc/docker/daemon.json still names the NVIDIA runtime" in said
    assert "remove.yml" not in said
