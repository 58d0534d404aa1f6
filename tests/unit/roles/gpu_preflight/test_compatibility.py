# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What gpu_preflight makes of the compatibility of a host: it stops, warns or says nothing, and exports the answer."""

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


#: What a host has and is told, its kernel, how the refusal begins (or nothing), and topics of the answer.
HOSTS = {
    "sound": (nvml("580.178.04", T4), {}, "6.8.0-60-generic", "", []),
    "modules-of-somebody-else": (
        nvml(None, T4, source="pci"),
        {"gpu_preflight_wanted_driver": "570.124.06", "gpu_preflight_wanted_flavor": "none"},
        "6.18.1",
        "",
        [],
    ),
    "none": (nvml(None), {}, "6.8.0-60-generic", "", []),
    "no-longer-served": (
        nvml("580", P40),
        {"gpu_preflight_wanted_driver": "590.48.01"},
        "6.8.0-60-generic",
        "no-longer-served: Driver 590.48.01 no longer supports Tesla P40; use branch 580, the last that does, or an older one.",
        ["driver_gpu"],
    ),
    "no-longer-served-and-yet": (
        nvml("580", P40),
        {"gpu_preflight_wanted_driver": "590.48.01", "gpu_preflight_allow_known_bad": True},
        "6.8.0-60-generic",
        "",
        ["driver_gpu"],
    ),
    "works-all-the-same": (nvml("570.133.20", T4, flavor="proprietary"), {}, "6.15.3", "", []),
    "works-with-the-other-modules": (
        nvml("570.133.20", T4, flavor="open"),
        {"gpu_preflight_wanted_flavor": "proprietary"},
        "6.15.3",
        "works-with-the-other-modules: The proprietary kernel modules",
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
        {"gpu_preflight_wanted_cuda": "13.0"},
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
    "toolkit-that-is-to-come": (
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
#: What is told of a driver that is sound today changes with the time.
BY_TIME = ("driver_branch", "driver_security")
ASK = {"name": "gpu.kubernetes.gpu_preflight", "tasks_from": "compatibility"}


def plays(**keywords):
    facts = {"nvml": "{{ given }}", "kernel": "{{ release }}", "cacheable": True}
    asked = {
        "block": [{"ansible.builtin.include_role": ASK}],
        "rescue": [{"ansible.builtin.set_fact": {"why": "{{ ansible_failed_result.msg }}"}}],
    }
    return [{"hosts": "all", "gather_facts": False, "tasks": [{"ansible.builtin.set_fact": facts}, asked], **keywords}]


def test_what_stops_and_what_is_answered(hear):
    """In batches: the second one does not read again what is known."""
    hosts = {
        name: {"given": given, "release": release, "why": "", **variables}
        for name, (given, variables, release, _words, _topics) in HOSTS.items()
    }
    answers = "map('extract', hostvars, ['gpu_preflight_compatibility', 'findings'])"
    both = f"ansible_play_hosts | map('extract', hostvars, 'why') | zip(ansible_play_hosts | {answers})"
    told = hear(hosts, plays(serial=4), f"dict(ansible_play_hosts | zip({both}))")
    assert sorted(told) == sorted(HOSTS)
    for name, (_given, _variables, _release, words, topics) in HOSTS.items():
        why, findings = told[name]
        assert bool(why) == bool(words), why
        assert why.startswith(words)
        assert [finding["topic"] for finding in findings if finding["topic"] not in BY_TIME] == topics


def test_a_warning_names_its_host_and_a_sound_one_has_none(run, tmp_path):
    hosts = {
        "old": {"given": nvml("570.124.06", T4), "release": "6.1.0-28-amd64"},
        "none": {"given": nvml(None), "release": "6.1.0-28-amd64"},
    }
    playbook = tmp_path / "play.yml"
    playbook.write_text(json.dumps(plays()))
    json_lines = {"ANSIBLE_CALLBACK_RESULT_FORMAT": "json"}  # which breaks no sentence into lines
    code, said = run({"all": {"hosts": hosts, "vars": HERE}}, playbook, environment=json_lines)
    assert code == 0, said
    assert "WARNING: old: Driver 570.124.06 lacks the fixes of NVIDIA's security bulletin 5747 of 2026-01; use " in said
    assert "NVIDIA no longer supports driver branch 570 since 2026-02" in said
    assert "WARNING: none" not in said
