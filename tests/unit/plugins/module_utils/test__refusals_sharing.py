# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The refusals of MPS, and of the MIG manager of NVIDIA's GPU Operator."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._refusals import find_refusals

#: Facts and parameters of each subject with which nothing is refused.
ACCEPTED: dict[str, dict[str, Any]] = {
    "mps": {
        "source": "nvml",
        "gpus": [
            {"index": 0, "name": "NVIDIA A100", "mig_mode": "disabled", "compute_capability": "8.0", "lost": False},
            {"index": 1, "name": "NVIDIA L4", "mig_mode": None, "compute_capability": "8.9", "lost": False},
        ],
        "leaving": False,
        "replicas": 48,
        "program": "/usr/bin/nvidia-cuda-mps-control",
        "handler": "nvidia",
        "nvidia": "nvidia",
        "method": "manifest",
    },
    "mig_manager": {
        "state": "success",
        "error": "",
        "config": "all-1g.10gb",
        "namespace": "gpu-operator",
        "timeout": 1800,
    },
    "client_failures": {"gpus": [{"name": "NVIDIA A16"}, {"name": "NVIDIA A16"}, {"name": "Tesla T4"}], "replicas": 5},
    "gpu_users": {
        "gpus": [
            {
                "processes": [
                    {"pid": 7, "name": "nvidia-cuda-mps", "type": "compute"},
                    {"pid": 8, "name": "Xorg", "type": "graphics"},
                ]
            },
            {"processes": None},
            {},
        ]
    },
}


def make_gpus(*capabilities: str | None, **more: Any) -> list[dict[str, Any]]:
    """GPUs of nvml_facts with these compute capabilities."""
    return [
        {
            "index": index,
            "name": f"GPU-{capability}",
            "mig_mode": None,
            "compute_capability": capability,
            "lost": False,
            **more,
        }
        for index, capability in enumerate(capabilities)
    ]


def make_users(*names: str | None, kind: str = "compute") -> list[dict[str, Any]]:
    """A GPU of nvml_facts with processes of these names."""
    return [{"processes": [{"pid": 10 + number, "name": name, "type": kind} for number, name in enumerate(names)]}]


@pytest.mark.parametrize(
    ("subject", "facts", "sentences"),
    [
        *((subject, {}, []) for subject in ACCEPTED),
        (
            "mps",
            {"gpus": make_gpus("9.0", "8.0", mig_mode="enabled")},
            [
                (
                    "GPU 0, 1 (GPU-9.0) are in MIG mode, which MPS does not support; switch it off (nvidia-smi -mig 0), or set "
                    "gpu_sharing_strategy to mig."
                )
            ],
        ),
        ("mps", {"gpus": make_gpus("9.0", mig_mode="enabled"), "leaving": True}, []),
        (
            "mps",
            {"gpus": make_gpus("7.0", "6.1"), "replicas": 16},
            [
                (
                    "GPU 1 (GPU-6.1) is of a compute capability below 7.0, where MPS limits neither memory nor threads; set another "
                    "gpu_sharing_strategy for this host."
                )
            ],
        ),
        # The device plugin counts Volta as older GPUs.
        *(
            (
                "mps",
                {"gpus": make_gpus(capability, "10.0"), "replicas": replicas},
                [
                    f"{replicas} pods are to share a GPU, and MPS serves at most {most} on a GPU of this host; set gpu_sharing_replicas to {most} or less."
                ]
                if replicas > most
                else [],
            )
            for capability, replicas, most in (
                ("7.0", 16, 16),
                ("7.0", 17, 16),
                ("7.5", 48, 48),
                ("7.5", 49, 48),
                (None, 49, 48),
            )
        ),
        (
            "mps",
            {"method": "helm"},
            [
                (
                    "k8s_device_plugin_method is helm, and NVIDIA's chart cannot start the control daemon before the device plugin; set "
                    "k8s_device_plugin_method to manifest, or another gpu_sharing_strategy for this host."
                )
            ],
        ),
        ("mps", {"gpus": [], "replicas": 48}, []),
        ("mps", {"gpus": [{"index": 0, "lost": True, "mig_mode": "enabled"}]}, []),
        (
            "mps",
            {"source": "pci", "gpus": [{"index": None, "lost": False}], "program": None},
            ["its GPUs have no working driver; install or repair the driver first."],
        ),
        (
            "mps",
            {"program": None, "handler": "runc"},
            [
                (
                    "nvidia-cuda-mps-control is missing, which NVIDIA's runtime adds to the pod of the control daemon; install the driver's package that "
                    "has it (nvidia-cuda-mps on Debian), and regenerate the CDI specification if there is one."
                ),
                (
                    "pods of the control daemon get the runtime runc, which adds no driver; set k8s_device_plugin_runtime_class, or make NVIDIA's runtime "
                    "the default (set_default of the runtime's role)."
                ),
            ],
        ),
        (
            "client_failures",
            {"replicas": 22},
            [
                f"with more than {most} pods on one {model}, clients of MPS failed for other users (NVIDIA/k8s-device-plugin#1118); try 22 before you "
                "rely on them."
                for model, most in (("A16", 5), ("T4", 21))
            ],
        ),
        ("client_failures", {"replicas": 48, "gpus": [{"name": "NVIDIA T400"}, {"name": None}]}, []),
        (
            "gpu_users",
            {
                "gpus": [
                    *make_users("python3", "dc\x1b[31m\u200bgm-exporter-long", None),
                    *make_users("python3", kind="mps"),
                ]
            },
            [
                "python3 (pid 10), dc?[31m?gm-expo (pid 11), a process (pid 12) computes on its GPUs, which MPS takes for its clients alone; end it first."
            ],
        ),
        (
            "mig_manager",
            {"state": "failed"},
            [
                (
                    "the GPU Operator's MIG manager could not apply all-1g.10gb; read its log (kubectl logs -n gpu-operator -l app=nvidia-mig-manager), and "
                    "correct gpu_sharing_mig_config or what the log names."
                )
            ],
        ),
        (
            "mig_manager",
            {"state": "", "error": "Failed to retrieve requested object: (403)"},
            [
                (
                    "after 1800 s, the node cannot be read, so that it is not known whether the GPU Operator's MIG manager has applied all-1g.10gb; "
                    "the API server's client reports: Failed to retrieve requested object: (403); check the API server and the permissions, and run "
                    "again."
                )
            ],
        ),
        *(
            (
                "mig_manager",
                {"state": state},
                [
                    (
                        f"after 1800 s, the GPU Operator's MIG manager has not applied all-1g.10gb (it reports {state or 'nothing'}); read its log "
                        "(kubectl logs -n gpu-operator -l app=nvidia-mig-manager), check that its pod runs on the node, and run again, with a larger "
                        "gpu_operator_mig_timeout if it only needs more time."
                    )
                ],
            )
            for state in ("pending", "")
        ),
        (
            "gpu_users",
            {"gpus": make_users(*"abcdefg")},
            [
                (
                    "a (pid 10), b (pid 11), c (pid 12), d (pid 13), e (pid 14) and 2 more computes on its GPUs, which MPS takes for its clients alone; end it "
                    "first."
                )
            ],
        ),
    ],
)
def test_find_refusals_returns_the_sentences_on_shared_gpus(
    subject: str, facts: dict[str, Any], sentences: list[str]
) -> None:
    assert find_refusals({subject: {**ACCEPTED[subject], **facts}}) == sentences
