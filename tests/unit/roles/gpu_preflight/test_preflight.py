# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What gpu_preflight refuses, and which container runtime it finds."""

from __future__ import annotations

import json


def test_relative_kubeconfig_is_refused(refusals):
    # The file exists relative to the folder in which Ansible runs.
    hosts = {"node": {"gpu_kubeconfig": "galaxy.yml", "gpu_preflight_require_helm": False}}
    messages = refusals("gpu_preflight", ["controller"], hosts)
    assert "the kubeconfig galaxy.yml is a relative path; set gpu_kubeconfig to the absolute path" in messages["node"]


def test_token_without_a_certificate_authority_is_warned_of(run, tmp_path):
    playbook = tmp_path / "play.yml"
    task = {"ansible.builtin.include_role": {"name": "gpu.kubernetes.gpu_preflight", "tasks_from": "controller"}}
    play = {"hosts": "all", "gather_facts": False, "tasks": [task], "vars": {"gpu_preflight_require_helm": False}}
    playbook.write_text(json.dumps([play]))
    # As AWX does.
    environment = {"K8S_AUTH_HOST": "https://api.example.com:6443", "K8S_AUTH_VERIFY_SSL": "False"}
    code, output = run("one\ntwo\n", playbook, environment=environment)
    assert code == 0, output
    assert " ".join(output.split()).count("WARNING: K8S_AUTH_VERIFY_SSL is False, so that whoever answers for") == 1


#: What the entry point needs of a host on which nothing is wrong.
FACTS = {
    **dict.fromkeys(("distribution_major_version", "distribution_version"), "{{ release | default('12') }}"),
    "distribution_release": "",
    "kernel": "6.1.0",
    "architecture": "{{ processor | default('x86_64') }}",
}


def kubelet(endpoint=None, daemon=None, distribution=None):
    service = {"running": endpoint is not None, "endpoint": endpoint, "daemon": daemon}
    own = {"socket": "/run/k0s/containerd.sock"} if distribution else {}
    return {
        "observed": {
            "kubelet": service,
            "kubernetes_distribution": distribution,
            "own_containerd": own,
            "files_found": [],
        }
    }


CRIO = kubelet("unix:///run/crio/crio.sock", "crio")


ODD = kubelet("unix:///run/odd.sock")


#: Observed state and variables of a host, and its container runtime or the message.
RUNTIMES = {
    "kubelet-on-crio": (CRIO, "crio"),
    "auto": ({**CRIO, "container_runtime": "auto"}, "crio"),
    "another-requested": (
        {**CRIO, "container_runtime": "docker"},
        "another-requested: container_runtime is docker, but the kubelet uses unix:///run/crio/crio.sock, so that",
    ),
    "by-another-name": (kubelet("unix:///var/run/containerd/containerd.sock", "containerd"), "containerd"),
    "two-of-a-kind": (
        kubelet("unix:///run/second/containerd.sock", "containerd"),
        "two-of-a-kind: the kubelet uses /run/second/containerd.sock, and not /run/containerd/containerd.sock, whose daemon would",
    ),
    "the-second": (
        {
            **kubelet("unix:///run/second/containerd.sock", "containerd"),
            "containerd_nvidia_socket": "/run/second/containerd.sock",
        },
        "containerd",
    ),
    "cri-dockerd": (kubelet("unix:///run/cri-dockerd.sock", "docker"), "docker"),
    "no-kubelet": (kubelet(), "containerd"),
    "odd-socket": (
        ODD,
        "odd-socket: the kubelet uses unix:///run/odd.sock, whose name does not identify the container runtime; set ",
    ),
    "forged": (
        kubelet("unix:///run/odd.sock", "../../../../tmp/evil"),
        "forged: the kubelet uses unix:///run/odd.sock, whose name does not identify the container runtime; set ",
    ),
    "odd-socket-requested": ({**ODD, "container_runtime": "containerd"}, "containerd"),
    "own": (kubelet("unix:///run/k0s/containerd.sock", "containerd", "k0s"), "containerd"),
    "own-beside-another": (
        kubelet("unix:///run/containerd/containerd.sock", "containerd", "k0s"),
        "own-beside-another: the kubelet uses /run/containerd/containerd.sock, and not /run/k0s/containerd.sock, whose",
    ),
    "kubelet-inside": (kubelet(distribution="k3s"), "containerd"),
    # k3s does not use Docker's configuration
    "k3s-docker": ({**kubelet(distribution="k3s"), "container_runtime": "docker"}, "docker"),
}


def test_container_runtime_of_each_host(refusals):
    hosts = {name: variables for name, (variables, _words) in RUNTIMES.items()}
    # This overrides what the module reads on this machine.
    extra = {"__gpu_preflight_host": "{{ observed }}"}
    messages = refusals(
        "gpu_preflight", ["runtime", "host"], hosts, fact="gpu_preflight_container_runtime", extra=extra, facts=FACTS
    )
    assert sorted(messages) == sorted(RUNTIMES)
    for name, (_variables, words) in RUNTIMES.items():
        assert messages[name].startswith(words), messages[name]


#: Facts and variables of a host, and the start of the message, or "" for an accepted host.
PLATFORMS = {
    "unsupported": ({"release": "3"}, {}, "unsupported: Debian 3 is not supported; use a distribution and a release "),
    "allowed": ({"release": "3"}, {"gpu_preflight_allow_unsupported": True, "gpu_preflight_require_gpu": False}, ""),
    "processor": (
        {"processor": "riscv64"},
        {},
        "processor: the processor architecture riscv64 is not supported; use a",
    ),
    "no-gpu": ({}, {}, "no-gpu: no NVIDIA GPU was found; take the host out of the group of GPU nodes, "),
    "none-required": ({}, {"gpu_preflight_require_gpu": False}, ""),
}


def test_unsupported_hosts_are_refused(refusals, tmp_path):
    common = {"__gpu_preflight_host": kubelet()["observed"], "gpu_preflight_container_runtime": "containerd"}
    hosts = {name: {**common, **facts, **variables} for name, (facts, variables, _words) in PLATFORMS.items()}
    messages = refusals(
        "gpu_preflight",
        ["host", "gpu"],
        hosts,
        facts=FACTS,
        # A host without a GPU, whatever this machine has.
        module_defaults={"gpu.kubernetes.nvml_facts": {"library": str(tmp_path / "none"), "pci_path": str(tmp_path)}},
    )
    assert sorted(messages) == sorted(PLATFORMS)
    for name, (_facts, _variables, words) in PLATFORMS.items():
        assert bool(messages[name]) == bool(words), messages[name]
        assert messages[name].startswith(words), messages[name]
    assert "gpu_preflight_allow_unsupported" in messages["unsupported"]
