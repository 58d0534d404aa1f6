# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts of hosts, and tasks that load the variables of their platforms and of the role."""

from __future__ import annotations

import base64
import json

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import LOAD_PLATFORM, ROOT

ROLE = ROOT / "roles" / "nvidia_driver"
STATE = "/var/lib/gpu-kubernetes"
CUDA = "https://developer.download.nvidia.com/compute/cuda/repos"


def host(
    distribution,
    version,
    kernel,
    family="Debian",
    architecture="x86_64",
    release="",
    open_modules="possible",
    **variables,
):
    """Facts of a host, the kernel modules that its GPUs support, and variables of the role."""
    return {
        "host_facts": {
            "distribution": distribution,
            "distribution_version": version,
            "distribution_major_version": version.partition(".")[0],
            "distribution_release": release,
            "os_family": family,
            "kernel": kernel,
            "architecture": architecture,
        },
        "gpu_preflight_compatibility": {"open_kernel_modules": open_modules},
        "nvswitches": variables.pop("nvswitches", 0),
        "secure_boot": variables.pop("secure_boot", False),
        "installed": variables.pop("installed", ""),
        "nvidia_driver_state_dir": STATE,
        **variables,
    }


RUNFILE = {"nvidia_driver_method": "runfile", "nvidia_driver_version": "580.1"}
FACTS = {
    key: "{{ host_facts['" + key + "'] }}"
    for key in (
        "distribution",
        "distribution_version",
        "distribution_major_version",
        "distribution_release",
        "os_family",
        "kernel",
        "architecture",
    )
}
FOUND = {
    "gpus": [{"name": "a GPU", "lost": False}],
    "nvswitches": "{{ nvswitches }}",
    "driver": {
        "secure_boot": "{{ secure_boot }}",
        "library_version": "{{ installed }}",
        "installed_module_version": None,
    },
}
RECORDED = [{"path": f"{STATE}/state/packages-nvidia-driver.json"}]
OPTIONS = ["--silent", "--no-x-check", "--no-install-compat32-libs", "--dkms", "--kernel-module-type=open"]
RECORD = {"version": "580.1", "options": OPTIONS, "url": "https://x.example/580.run"}
NODE = ("Ubuntu", "24.04", "6.8.0-61-generic")


def load_tasks(**more):
    """Tasks that load the variables of a host's platform and role, with the facts of the host."""
    content = base64.b64encode(json.dumps(RECORD).encode()).decode()
    facts = {
        "__nvidia_driver_facts": {"ansible_facts": {"nvml": FOUND}},
        "__nvidia_driver_records": {"files": RECORDED},
        "__nvidia_driver_runfile_recorded": {"content": content},
        **FACTS,
        **more,
        "cacheable": True,
    }
    load = {"ansible.builtin.include_vars": {"file": f"{ROLE}/vars/main.yml"}}
    return [{"ansible.builtin.set_fact": facts}, LOAD_PLATFORM, load]
