# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What gpu_preflight refuses, and which container runtime it finds."""

from __future__ import annotations


def test_gpu_preflight_refuses_a_relative_kubeconfig(refusals):
    # It exists, seen from where Ansible runs.
    hosts = {"node": {"gpu_kubeconfig": "galaxy.yml", "gpu_preflight_require_helm": False}}
    told = refusals("gpu_preflight", ["controller"], hosts)
    assert "the kubeconfig galaxy.yml is a relative path; set gpu_kubeconfig to the absolute path" in told["node"]


def kubelet(endpoint=None, daemon=None, distribution=None):
    told = {"running": endpoint is not None, "endpoint": endpoint, "daemon": daemon}
    hint = "put a drop-in into its folder" if distribution else ""
    return {
        "given": {"kubelet": told, "kubernetes_distribution": distribution, "runtime_hint": hint, "files_found": []}
    }


CRIO = kubelet("unix:///run/crio/crio.sock", "crio")


ODD = kubelet("unix:///run/odd.sock")


#: What a host is and was told, and which container runtime it gets or why none.
RUNTIMES = {
    "kubelet-on-crio": (CRIO, "crio"),
    "auto": ({**CRIO, "container_runtime": "auto"}, "crio"),
    "told-another": (
        {**CRIO, "container_runtime": "docker"},
        "told-another: container_runtime is docker, but the kubelet uses unix:///run/crio/crio.sock, so that",
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
    "odd-socket-told": ({**ODD, "container_runtime": "containerd"}, "containerd"),
    "k0s": (
        kubelet("unix:///run/k0s/containerd.sock", "containerd", "k0s"),
        "k0s: k0s brings its own containerd; put a drop-in",
    ),
    "k3s-path": ({**kubelet(distribution="k3s"), "containerd_nvidia_config_path": "/etc/other.toml"}, "containerd"),
    # Docker beside k3s is no matter of k3s
    "k3s-docker": ({**kubelet(distribution="k3s"), "container_runtime": "docker"}, "docker"),
}


def test_which_container_runtime_it_is(refusals):
    hosts = {name: variables for name, (variables, _words) in RUNTIMES.items()}
    # What the module finds on this machine is put aside.
    given = {"__gpu_preflight_host": "{{ given }}"}
    told = refusals("gpu_preflight", ["runtime", "kubelet"], hosts, fact="gpu_preflight_container_runtime", extra=given)
    assert sorted(told) == sorted(RUNTIMES)
    for name, (_variables, words) in RUNTIMES.items():
        assert told[name].startswith(words), told[name]


#: Facts of a host, what is set for it, and the beginning of the refusal; or "" for a host that is only lacking a GPU.
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


def test_hosts_that_are_not_fit(refusals, tmp_path):
    hosts = {
        name: {"release": "12", "processor": "x86_64", **facts, **variables}
        for name, (facts, variables, _words) in PLATFORMS.items()
    }
    told = refusals(
        "gpu_preflight",
        ["platform", "gpu"],
        hosts,
        facts={
            **dict.fromkeys(("distribution_major_version", "distribution_version"), "{{ release }}"),
            "distribution_release": "",
            "kernel": "6.1.0",
            "architecture": "{{ processor }}",
        },
        # A host without a GPU, whatever this machine has.
        module_defaults={"gpu.kubernetes.nvml_facts": {"library": str(tmp_path / "none"), "pci_path": str(tmp_path)}},
    )
    assert sorted(told) == sorted(PLATFORMS)
    for name, (_facts, _variables, words) in PLATFORMS.items():
        assert bool(told[name]) == bool(words), told[name]
        assert told[name].startswith(words), told[name]
    assert "gpu_preflight_allow_unsupported" in told["unsupported"]
