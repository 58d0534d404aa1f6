# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What nvidia_container_toolkit refuses before it changes a host, and what it keeps."""

from __future__ import annotations

import json

import pytest

TOOLKIT = "nvidia-container-toolkit"


USABLE = {"path": "/usr/bin/present", "version": "1.0", "usable": True}


MISSING = {"path": None, "version": None, "usable": False}


def host(toolkit, package=None, containerd=None):
    containerd = containerd or USABLE
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
        host(MISSING),
        False,
        {"nvidia_container_toolkit_install": "never"},
        "{}: there is no usable nvidia-container-runtime and nvidia_container_toolkit_install is never; ",
    ),
    "wrong-path-with-all-packages-installed": (
        host(MISSING, "1.0-1"),
        True,
        {"nvidia_container_toolkit_runtime_path": "/wrong"},
        "{}: the program /wrong is missing or does not run and the packages with it are installed already; ",
    ),
    "path-that-a-package-may-provide": (
        host(MISSING),
        True,
        {"nvidia_container_toolkit_runtime_path": "/usr/bin/other"},
        "",
    ),
    "version-of-an-unmanaged-toolkit": (
        host(USABLE),
        False,
        {"nvidia_container_toolkit_version": "1.17.8"},
        "leave them out, or set nvidia_container_toolkit_install: always.",
    ),
    "hold-of-an-unmanaged-toolkit": (
        host(USABLE),
        False,
        {"nvidia_container_toolkit_hold": False},
        "leave them out, or set nvidia_container_toolkit_install: always.",
    ),
    "version-of-a-managed-toolkit": (host(USABLE), True, {"nvidia_container_toolkit_version": "1.17.8"}, ""),
    # Answers of a survey that ansible-core has read as a number and as nothing.
    "version-that-is-a-number": (
        host(USABLE),
        False,
        {"nvidia_container_toolkit_version": 1.17},
        "nvidia_container_toolkit_version is 1.17, a number that may have lost its last digits",
    ),
    "removal-with-a-version-that-is-a-number": (
        host(USABLE),
        False,
        {"nvidia_container_toolkit_version": 1.17, "nvidia_container_toolkit_state": "absent"},
        "",
    ),
    "version-that-is-nothing": (host(USABLE), False, {"nvidia_container_toolkit_version": None}, ""),
    "key-without-a-checksum": (
        host(MISSING),
        True,
        repository(key_url="https://example.com/key"),
        "comes from a key_url of your own without a checksum; add its key_checksum, or give the key itself as key_content.",
    ),
    "key-with-a-checksum": (
        host(MISSING),
        True,
        repository(key_url="https://example.com/key", key_checksum="sha256:" + "0" * 64),
        "",
    ),
}


def test_unsuitable_hosts_and_variables_are_refused(refusals):
    hosts = {
        name: {"host": host, "managed": managed, **repository(), **variables}
        for name, (host, managed, variables, _words) in TOOLKITS.items()
    }
    role_variables = {"__nvidia_container_toolkit_repository": "{{ repository }}"}
    role_variables["nvidia_container_toolkit_managed"] = "{{ managed }}"
    role_variables["nvidia_container_toolkit_host"] = "{{ host }}"
    role_variables |= {
        "platform_package_manager": "apt",
        "platform_chooses_versions": True,
        "platform_toolkit_packages": [TOOLKIT],
        "platform_key_fingerprints": {},
    }
    role_variables["platform_toolkit_repository"] = "{{ defaults }}"
    messages = refusals("nvidia_container_toolkit", ["validate"], hosts, variables=role_variables)
    assert sorted(messages) == sorted(TOOLKITS)
    for name, (_host, _managed, _variables, words) in TOOLKITS.items():
        assert bool(messages[name]) == bool(words), messages[name]
        assert words.format(name) in messages[name]


def test_toolkit_is_kept_while_another_configuration_names_it(run, tmp_path):
    role = {"name": "gpu.kubernetes.nvidia_container_toolkit", "tasks_from": "absent"}
    play = {"hosts": "all", "gather_facts": False, "tasks": [{"ansible.builtin.include_role": role}]}
    (tmp_path / "play.yml").write_text(json.dumps([play]))
    observed = {"other_configurations": ["/etc/docker/daemon.json"]}
    code, output = run("node ansible_connection=local\n", tmp_path / "play.yml", nvidia_container_toolkit_host=observed)
    assert code == 0, output
    output = " ".join(output.split())
    assert "KEPT: node: /etc/docker/daemon.json still names the NVIDIA runtime" in output
    assert "remove.yml" not in output


@pytest.mark.parametrize("install", ["auto", "never"])
def test_usable_toolkit_of_others_is_left_alone(run, tmp_path, install):
    program = tmp_path / "nvidia-container-runtime"
    program.write_text("#!/bin/sh\necho NVIDIA Container Runtime version 1.17.8\n")
    program.chmod(0o755)
    play = {"hosts": "all", "gather_facts": False, "roles": [{"role": "gpu.kubernetes.nvidia_container_toolkit"}]}
    (tmp_path / "play.yml").write_text(json.dumps([play]))
    variables = {
        "nvidia_container_toolkit_install": install,
        "nvidia_container_toolkit_runtime_path": str(program),
        "nvidia_container_toolkit_state_dir": str(tmp_path / "state"),
    }
    code, output = run("node ansible_connection=local\n", tmp_path / "play.yml", "--check", **variables)
    assert code == 0, output
    assert "Decide whether to install the toolkit" in output
    assert "vendor_packages" not in output
