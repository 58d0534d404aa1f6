# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each problem of the report: its code and its sentence."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._report import build
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._report.observations import (
    MISMATCH,
    cluster,
    gpu,
    host,
)

LOST = {"gpus": [gpu(), gpu(1, lost=True)], "error": "1 of 2 GPUs are lost to the driver (0000:47:00.0); reboot."}


RESTART_DUE = (
    "worker-1: no run has confirmed a restart of {} since its configuration changed; run prepare_gpu_nodes with container_runtime_restart_ok set to true,"
    " and if the restart would end containers, also with container_runtime_restart_interrupt."
)


@pytest.mark.parametrize(
    ("observation", "result", "codes", "sentence"),
    [
        (
            host(nvml={"gpus": [], "source": "none"}),
            cluster(),
            ["no_gpu"],
            "worker-1: no NVIDIA GPU; remove the host from the group of GPU nodes, or check its slots and its hypervisor.",
        ),
        (host(nvml={"gpus": [], "source": "none"}, require_gpu=False), cluster(), [], None),
        (
            host(nvml={"source": "pci"}),
            cluster(),
            ["driver_missing"],
            "worker-1: 1 GPUs on the PCI bus but no NVIDIA driver; install the driver.",
        ),
        (host(nvml=MISMATCH), cluster(), ["driver_error"], "worker-1: Driver/library version mismatch; reboot."),
        (
            host(nvml=LOST),
            cluster(),
            ["gpu_lost"],
            (
                "worker-1: GPU GPU-1 is lost [1 of 2 GPUs are lost to the driver (0000:47:00.0)]; "
                "drain the node, reboot it and look for Xid errors and NVRM in its log."
            ),
        ),
        (
            host(kubelet={"cgroup_driver": "systemd"}, runtime={"runtimes": {"nvidia": {"systemd_cgroup": False}}}),
            cluster(),
            ["cgroup_driver"],
            (
                "worker-1: the kubelet's cgroup driver is systemd, and the runtime nvidia of containerd uses cgroupfs; "
                "set containerd_nvidia_systemd_cgroup to true and run prepare_gpu_nodes."
            ),
        ),
        (
            host(
                kubelet={"cgroup_driver": "cgroupfs"},
                runtime={"runtimes": {"nvidia": {"systemd_cgroup": True}}},
                daemon="docker",
            ),
            cluster(),
            ["cgroup_driver"],
            (
                "worker-1: the kubelet's cgroup driver is cgroupfs, and the runtime nvidia of Docker uses systemd; "
                "configure the cgroup driver cgroupfs for Docker."
            ),
        ),
        (
            host(kubelet={"cgroup_driver": "systemd"}, runtime={"runtimes": {"nvidia": {"systemd_cgroup": True}}}),
            cluster(),
            [],
            None,
        ),
        (
            host(gpus=[gpu(ecc={"uncorrected_volatile": 3}), gpu(1, row_remapping={"failed": True})]),
            cluster(),
            ["hw.ecc", "hw.remap"],
            (
                "worker-1: GPU 0 at 0000:40:00.0 has 3 uncorrectable memory errors since the driver was loaded; "
                "drain the node and reset the GPU; if the errors return, run the field diagnostics and replace it."
            ),
        ),
        (
            host(gpus=[gpu(fabric={"state": "in_progress"}, pcie={"width": 16, "width_max": 16})]),
            cluster(),
            ["hw.fabric"],
            None,
        ),
        (
            host(nvml={"xid_errors": [{"xid": 119, "pci_address": "0000:40:00.0"}]}),
            cluster(),
            ["kernel.xid"],
            None,
        ),
        (
            host(toolkit={"usable": False, "path": None}),
            cluster(),
            ["toolkit"],
            "worker-1: nvidia-container-runtime is missing; run prepare_gpu_nodes.",
        ),
        (
            host(runtime={"ok": False, "cause": "it is failed", "remedy": "read", "log": ["a", "bad TOML"]}),
            cluster(),
            ["runtime"],
            "worker-1: it is failed [bad TOML]; read.",
        ),
        (
            host(configuration={"reasons": ["add the runtime"], "restart_required": True}),
            cluster(),
            ["drift"],
            (
                "worker-1: the configuration of containerd is not as declared (to do: add the runtime); "
                "run prepare_gpu_nodes, and find the other program that writes the file."
            ),
        ),
        # one cause, one problem: a daemon that answers lacks the runtime because its file does
        (
            host(runtime={"ok": False, "cause": "x"}, configuration={"reasons": ["add the runtime"]}),
            cluster(),
            ["drift"],
            None,
        ),
        (
            host(configuration={"restart_required": True}),
            cluster(),
            ["restart_due"],
            RESTART_DUE.format("containerd"),
        ),
        (
            host(daemon="crio", configuration={"restart_required": True}),
            cluster(),
            ["restart_due"],
            RESTART_DUE.format("CRI-O"),
        ),
        (
            {**host(), "configuration": {"msg": "line 3: invalid; correct it."}},
            cluster(),
            ["configuration"],
            "worker-1: line 3: invalid; correct it.",
        ),
        ({**host(), "configuration": {"skipped": True, "msg": "no"}}, cluster(), [], None),
        (
            host(),
            cluster(node={"ok": False, "allocatable": 0, "reason": "0 of 1: no plugin pod; deploy it"}),
            ["node"],
            "worker-1: 0 of 1: no plugin pod; deploy it.",
        ),
        (
            host(),
            cluster(smoke=[{"node": "worker-1", "passed": False, "skipped": False, "reason": "exit code 1; read"}]),
            ["smoke_test"],
            "worker-1: the smoke test failed: exit code 1; read.",
        ),
        (host(), cluster(smoke_error="forbidden"), ["smoke_test"], "cluster: forbidden; run it alone to see why."),
        (
            host(),
            cluster(error="the API server is away", runtime_class={}),
            ["api"],
            "cluster: the API server is away; check gpu_kubeconfig and the API server.",
        ),
        (
            host(),
            cluster(runtime_class={"name": "nvidia", "found": False}),
            ["runtime_class"],
            "cluster: there is no RuntimeClass nvidia; run the playbook that deploys the device plugin.",
        ),
        (
            host(),
            cluster(runtime_class={"name": "nvidia", "found": True, "handler": "old", "expected_handler": "nvidia"}),
            ["runtime_class"],
            None,
        ),
        (host(), cluster(runtime_class={"name": ""}), [], None),
        (
            host(),
            cluster(runtime_class={"name": "nvidia", "found": True, "handler": "odd", "expected_handler": ""}),
            [],
            None,
        ),
        (
            host(),
            cluster(hosts=["worker-1", "worker-9"]),
            ["unreachable"],
            "worker-9: the host could not be examined; read its errors above.",
        ),
    ],
)
def test_build_report_with_each_problem_names_it(
    observation: dict[str, Any], result: dict[str, Any], codes: list[str], sentence: str | None
) -> None:
    report = build.build_report([observation], result)
    assert [problem["code"] for problem in report["problems"]] == codes
    assert report["ok"] is not bool(codes)
    if sentence is not None:
        assert report["problems"][0]["sentence"] == sentence
