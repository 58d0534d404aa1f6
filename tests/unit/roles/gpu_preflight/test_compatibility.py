# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""gpu_preflight fails, warns or passes by the compatibility of a host, and exports the findings."""

from __future__ import annotations

import json

HERE = {"ansible_connection": "local", "ansible_become": False}

T4 = {"name": "Tesla T4", "pci_device_id": "1eb8", "lost": False}
P40 = {"name": "Tesla P40", "pci_device_id": "1b38", "lost": False}


def nvml(driver, *gpus, source="nvml", flavor=None):
    return {
        "source": source,
        "driver_version": driver,
        "driver": {"module_flavor": flavor} if flavor else None,
        "gpus": list(gpus),
    }


#: NVML's answer and variables of a host, its kernel, the start of the message or nothing, and topics of the findings.
HOSTS = {
    "compatible": (nvml("580.178.04", T4), {}, "6.8.0-60-generic", "", []),
    "unmanaged-modules": (
        nvml(None, T4, source="pci"),
        {"gpu_preflight_driver_version": "570.124.06", "gpu_preflight_driver_flavor": "none"},
        "6.18.1",
        "",
        [],
    ),
    "none": (nvml(None), {}, "6.8.0-60-generic", "", []),
    "unsupported-gpu": (
        nvml("580", P40),
        {"gpu_preflight_driver_version": "590.48.01"},
        "6.8.0-60-generic",
        "unsupported-gpu: Driver 590.48.01 no longer supports Tesla P40; use branch 580, the last that does, or an older one.",
        ["driver_gpu"],
    ),
    "unsupported-gpu-allowed": (
        nvml("580", P40),
        {"gpu_preflight_driver_version": "590.48.01", "gpu_preflight_allow_known_bad": True},
        "6.8.0-60-generic",
        "",
        ["driver_gpu"],
    ),
    "known-bad-but-working": (nvml("570.133.20", T4, flavor="proprietary"), {}, "6.15.3", "", []),
    "works-with-other-modules": (
        nvml("570.133.20", T4, flavor="open"),
        {"gpu_preflight_driver_flavor": "proprietary"},
        "6.15.3",
        "works-with-other-modules: The proprietary kernel modules",
        ["driver_kernel"],
    ),
    "next-kernel": (
        nvml("580.95.05", T4),
        {"gpu_preflight_kernel": "6.19.0"},
        "6.12.1",
        "next-kernel: The kernel modules of driver 580.95.05 are known not to work with kernel 6.19.0; use driver 580.126.18 or newer or",
        ["driver_kernel"],
    ),
    "other-cgroups": (
        nvml("580.178.04", T4),
        {
            "__gpu_preflight_host": {"kubelet": {"version": "1.34.4", "cgroup_driver": "systemd"}},
            "_container_runtime_config": {"systemd_cgroup": False},
        },
        "6.8.0-60-generic",
        "other-cgroups: The kubelet's cgroup driver is systemd, and the NVIDIA runtime would use cgroupfs; set containerd_nvidia_systemd",
        ["cgroup_driver"],
    ),
    "old-containerd": (
        nvml("580.178.04", T4),
        {
            "gpu_preflight_container_runtime": "containerd",
            "__gpu_preflight_host": {"kubelet": {"version": "1.36.1", "cgroup_driver": None}},
            "nvidia_container_toolkit_host": {"program": {"version": "1.7.28"}, "toolkit": {"version": None}},
            "_container_runtime_config": {"systemd_cgroup": None},
            "k8s_device_plugin_image_tag": "sha256:0123456789abcdef",
        },
        "6.8.0-60-generic",
        "",
        ["containerd"],
    ),
    "next-cuda": (
        nvml("535.309.01", T4),
        {"gpu_preflight_cuda_version": "13.0"},
        "6.8.0-60-generic",
        "next-cuda: Driver 535.309.01 is too old for programs of CUDA 13.0; use driver 580.65.06 or newer, or CUDA 12.2, the newest",
        ["cuda_driver"],
    ),
    "toolkit": (
        nvml(None),
        {"nvidia_container_toolkit_host": {"toolkit": {"version": "1.17.7"}}},
        "6.8.0-60-generic",
        "",
        ["toolkit_security", "toolkit"],
    ),
    "toolkit-too-old-for-the-default-plugin": (
        nvml(None),
        {"nvidia_container_toolkit_host": {"toolkit": {"version": "1.6.0"}}},
        "6.8.0-60-generic",
        "",
        ["toolkit_security", "device_plugin"],
    ),
    "toolkit-of-another-plugin": (
        nvml(None),
        {"gpu_sharing_strategy": "gpushare", "nvidia_container_toolkit_host": {"toolkit": {"version": "1.6.0"}}},
        "6.8.0-60-generic",
        "",
        ["toolkit_security"],
    ),
    "toolkit-to-install": (
        nvml(None),
        {
            "nvidia_container_toolkit_version": "1.17.7-1",
            "nvidia_container_toolkit_host": {"toolkit": {"version": "1.20.1"}},
        },
        "6.8.0-60-generic",
        "",
        ["toolkit_security", "toolkit"],
    ),
}
#: Findings that depend on the date.
BY_TIME = ("driver_branch", "driver_security")
INCLUDE = {"name": "gpu.kubernetes.gpu_preflight", "tasks_from": "compatibility"}


def make_plays(**keywords):
    facts = {"nvml": "{{ host_nvml }}", "kernel": "{{ release }}", "cacheable": True}
    check = {
        "block": [{"ansible.builtin.include_role": INCLUDE}],
        "rescue": [{"ansible.builtin.set_fact": {"message": "{{ ansible_failed_result.msg }}"}}],
    }
    return [{"hosts": "all", "gather_facts": False, "tasks": [{"ansible.builtin.set_fact": facts}, check], **keywords}]


def test_known_bad_combinations_are_refused_and_findings_exported(evaluate):
    """In batches: the second one does not load the tables again."""
    hosts = {
        name: {"host_nvml": host_nvml, "release": release, "message": "", **variables}
        for name, (host_nvml, variables, release, _words, _topics) in HOSTS.items()
    }
    answers = "map('extract', hostvars, ['gpu_preflight_compatibility', 'findings'])"
    both = f"ansible_play_hosts | map('extract', hostvars, 'message') | zip(ansible_play_hosts | {answers})"
    results = evaluate(hosts, make_plays(serial=4), f"dict(ansible_play_hosts | zip({both}))")
    assert sorted(results) == sorted(HOSTS)
    for name, (_nvml, _variables, _release, words, topics) in HOSTS.items():
        message, findings = results[name]
        assert bool(message) == bool(words), message
        assert message.startswith(words)
        assert [finding["topic"] for finding in findings if finding["topic"] not in BY_TIME] == topics


def test_warning_names_only_the_host_that_it_concerns(run, tmp_path):
    hosts = {
        "old": {"host_nvml": nvml("570.124.06", T4), "release": "6.1.0-28-amd64"},
        "none": {"host_nvml": nvml(None), "release": "6.1.0-28-amd64"},
    }
    playbook = tmp_path / "play.yml"
    playbook.write_text(json.dumps(make_plays()))
    json_lines = {"ANSIBLE_CALLBACK_RESULT_FORMAT": "json"}  # which breaks no sentence into lines
    code, output = run({"all": {"hosts": hosts, "vars": HERE}}, playbook, environment=json_lines)
    assert code == 0, output
    assert (
        "WARNING: old: Driver 570.124.06 lacks the fixes of NVIDIA's security bulletin 5747 of 2026-01; use " in output
    )
    assert "NVIDIA no longer supports driver branch 570 since 2026-02" in output
    assert "WARNING: none" not in output
