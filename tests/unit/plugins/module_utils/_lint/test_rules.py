# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each rule finds its mistake, alone, and stays silent for the corrected manifest."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._lint.catalogue import RULES
from ansible_collections.gpu.kubernetes.plugins.module_utils._lint.lint import lint
from ansible_collections.gpu.kubernetes.plugins.module_utils._lint.model import Context, Document


def make_node(name="gpu1", taints=(), labels=None, handlers=(), **resources):
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {"taints": list(taints)},
        "status": {
            "allocatable": {
                "cpu": "8",
                **{key.replace("__", "/").replace("_", "."): str(value) for key, value in resources.items()},
            },
            "runtimeHandlers": [{"name": handler} for handler in handlers],
        },
    }


NODE = make_node(nvidia_com__gpu=4)
TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists"}
CLASS = {"kind": "RuntimeClass", "metadata": {"name": "nvidia"}, "handler": "nvidia"}


def make_pod(limits=None, requests=None, container=None, **spec):
    resources = {key: value for key, value in (("limits", limits), ("requests", requests)) if value is not None}
    return {
        "kind": "Pod",
        "metadata": {"name": "train", "namespace": "team"},
        "spec": {
            "containers": [{"name": "main", "image": "busybox", "resources": resources, **(container or {})}],
            **spec,
        },
    }


GPU = {"nvidia.com/gpu": 1}
GOOD = make_pod(GPU)
ROWS = [
    # rule, severity, pod, corrected pod, context
    ("GPU001", "error", make_pod(requests=GPU), GOOD, {}),
    ("GPU002", "error", make_pod({"nvidia.com/gpu": 2}, GPU), make_pod({"nvidia.com/gpu": "1000m"}, GPU), {}),
    ("GPU003", "error", make_pod({"nvidia.com/gpu": "500m"}), make_pod({"nvidia.com/gpu": "1Ki"}), {}),
    ("GPU003", "error", make_pod({"nvidia.com/gpu": 0.5}), GOOD, {}),
    ("GPU003", "error", make_pod({"nvidia.com/gpu": "one"}), GOOD, {}),
    ("GPU004", "error", make_pod({"gpu": 1}), GOOD, {}),
    ("GPU004", "error", make_pod({"alpha.kubernetes.io/nvidia-gpu": 1}), GOOD, {}),
    ("GPU004", "error", make_pod({"requests.nvidia.com/gpu": 1}), GOOD, {}),
    ("GPU004", "warning", make_pod({"nvidia.com/gpus": 1}), GOOD, {}),
    (
        "GPU004",
        "warning",
        make_pod({"example.com/fpga2": 1}),
        make_pod({"example.com/fpga": 1}),
        {"nodes": [make_node(example_com__fpga=1)]},
    ),
    ("GPU005", "warning", make_pod({"nvidia.com/gpu": 0}), GOOD, {}),
    ("GPU005", "error", make_pod({"nvidia.com/gpu": 0}), GOOD, {"default_runtime": "nvidia"}),
    ("GPU005", "error", make_pod({"nvidia.com/gpu": -1}), GOOD, {}),
    ("GPU006", "error", make_pod(GPU, resources={"limits": GPU}), GOOD, {}),
    (
        "GPU007",
        "error",
        make_pod({**GPU, "aliyun.com/gpu-mem": 4}),
        make_pod({"aliyun.com/gpu-mem": 4, "aliyun.com/gpu-count": 1}),
        {},
    ),
    ("GPU006", "error", make_pod(resources={"requests": {"gpu": 1}}), make_pod(resources={"requests": {"cpu": 1}}), {}),
    ("GPU007", "error", make_pod({**GPU, "nvidia.com/mig-1g.10gb": 1}), make_pod({"nvidia.com/mig-1g.10gb": 1}), {}),
    ("GPU007", "error", make_pod({**GPU, "amd.com/gpu": 1}), make_pod({"amd.com/gpu": 1}), {}),
    (
        "GPU008",
        "warning",
        make_pod(GPU, container={"env": [{"name": "CUDA_VISIBLE_DEVICES", "value": "1"}]}),
        make_pod(GPU, container={"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "none"}]}),
        {},
    ),
    ("GPU008", "error", make_pod(container={"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}), GOOD, {}),
    ("GPU009", "warning", make_pod(container={"image": "nvidia/cuda:12.8.0-base-ubuntu22.04"}), GOOD, {}),
    ("GPU009", "warning", make_pod(runtimeClassName="nvidia"), make_pod(GPU, runtimeClassName="nvidia"), {}),
    (
        "GPU010",
        "error",
        GOOD,
        make_pod(GPU, tolerations=[TOLERATION]),
        {"nodes": [make_node(taints=[TAINT], nvidia_com__gpu=1)]},
    ),
    (
        "GPU011",
        "error",
        GOOD,
        make_pod(GPU, runtimeClassName="nvidia"),
        {"runtime_classes": [CLASS], "default_runtime": "runc"},
    ),
    (
        "GPU012",
        "error",
        make_pod(GPU, runtimeClassName="gpu"),
        make_pod(GPU, runtimeClassName="nvidia"),
        {"nodes": [NODE], "runtime_classes": [CLASS]},
    ),
    (
        "GPU012",
        "error",
        make_pod(GPU, runtimeClassName="nvidia"),
        GOOD,
        {"nodes": [make_node(handlers=["runc"], nvidia_com__gpu=1)], "runtime_classes": [CLASS]},
    ),
    ("GPU013", "error", make_pod(GPU, nodeSelector={"accelerator": "a100"}), GOOD, {"nodes": [NODE]}),
    ("GPU013", "error", make_pod({"nvidia.com/mig-1g.10gb": 1}), GOOD, {"nodes": [NODE]}),
    ("GPU014", "error", make_pod({"nvidia.com/gpu": 8}), make_pod({"nvidia.com/gpu": 4}), {"nodes": [NODE]}),
    (
        "GPU014",
        "error",
        make_pod({"nvidia.com/gpu": 2}),
        GOOD,
        {"nodes": [make_node(labels={"nvidia.com/gpu.sharing-strategy": "mps"}, nvidia_com__gpu=32)]},
    ),
    (
        "GPU015",
        "warning",
        make_pod({"aliyun.com/gpu-mem": 8, "aliyun.com/gpu-count": 2}),
        make_pod({"aliyun.com/gpu-mem": 8}),
        {},
    ),
    (
        "GPU015",
        "warning",
        make_pod(
            initContainers=[{"name": "load", "image": "busybox", "resources": {"limits": {"aliyun.com/gpu-mem": 4}}}]
        ),
        make_pod({"aliyun.com/gpu-mem": 8}),
        {},
    ),
    (
        "GPU016",
        "error",
        make_pod(GPU, container={"image": "nvcr.io/nvidia/cuda:13.0.1-base"}),
        make_pod(GPU, container={"image": "nvcr.io/nvidia/cuda:12.2.2-base"}),
        {
            "nodes": [
                make_node(
                    labels={"nvidia.com/cuda.runtime.major": "12", "nvidia.com/cuda.runtime.minor": "4"},
                    nvidia_com__gpu=1,
                )
            ]
        },
    ),
    (
        "GPU016",
        "warning",
        make_pod(GPU, container={"image": "pytorch/pytorch:2.6.0-cuda12.6-cudnn9-runtime"}),
        GOOD,
        {
            "nodes": [
                make_node(
                    labels={"nvidia.com/cuda.runtime.major": "12", "nvidia.com/cuda.runtime.minor": "4"},
                    nvidia_com__gpu=1,
                )
            ]
        },
    ),
    (
        "GPU017",
        "warning",
        make_pod(volumes=[{"name": "d", "hostPath": {"path": "/dev/nvidia0"}}]),
        make_pod(volumes=[{"name": "d", "hostPath": {"path": "/dev/shm"}}]),
        {},
    ),
    (
        "GPU017",
        "warning",
        make_pod(GPU, container={"image": "nvidia/cuda:12.2.2-base", "securityContext": {"privileged": True}}),
        make_pod(GPU, container={"image": "nvidia/cuda:12.2.2-base"}),
        {},
    ),
    (
        "GPU019",
        "warning",
        make_pod({"amd.com/gpu": 1}, securityContext={"runAsUser": 1000}),
        make_pod({"amd.com/gpu": 1}, securityContext={"runAsUser": 1000, "supplementalGroups": [44, 110]}),
        {"device_ownership": False},
    ),
    (
        "GPU021",
        "warning",
        make_pod({"gpu.intel.com/i915": 1}),
        make_pod({"gpu.intel.com/xe": 1}),
        {"nodes": [make_node(gpu_intel_com__xe=1)]},
    ),
]


def find(obj, **context):
    result = lint([Document("-", obj)], Context(**context))
    return [(each.rule, each.severity) for each in result.findings]


@pytest.mark.parametrize(("rule", "severity", "wrong", "right", "context"), ROWS)
def test_rule_finds_the_mistake_in_pods_and_templates(rule, severity, wrong, right, context):
    template = {
        "kind": "PyTorchJob",
        "spec": {"pytorchReplicaSpecs": {"Worker": {"template": {key: wrong[key] for key in ("metadata", "spec")}}}},
    }
    for obj in (wrong, template):
        found = find(obj, **context)
        assert (rule, severity) in found
        # GPU013 and GPU021 say of one mistake what is missing and what is there.
        assert {each for each, _severity in found} <= {rule, "GPU013"}
    assert rule not in [each for each, _severity in find(right, **context)]


QUOTA = {"kind": "ResourceQuota", "spec": {"hard": {"limits.nvidia.com/gpu": 4}}}
LIMITS = {
    "kind": "LimitRange",
    "spec": {"limits": [{"type": "Container", "default": GPU, "defaultRequest": {"nvidia.com/gpu": 0}}]},
}


@pytest.mark.parametrize(
    ("obj", "right"),
    [
        (QUOTA, {"kind": "ResourceQuota", "spec": {"hard": {"requests.nvidia.com/gpu": 4, "pods": 3}}}),
        (LIMITS, {"kind": "LimitRange", "spec": {"limits": [{"default": GPU, "defaultRequest": GPU}]}}),
    ],
)
def test_quotas_and_defaults_that_do_not_count(obj, right):
    assert find(obj) == [("GPU018", "error")]
    assert find(right) == []


def make_deployment(**strategy):
    template = {key: GOOD[key] for key in ("metadata", "spec")}
    return {"kind": "Deployment", "spec": {"replicas": 2, "template": template, "strategy": strategy}}


@pytest.mark.parametrize(
    ("strategy", "held", "found"),
    [
        ({"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}, 4, True),
        ({"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}, 3, False),
        ({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}, 4, False),
        ({"type": "Recreate"}, 4, False),
        ({}, 4, True),  # 25 per cent of 2 are 0 pods that may be unavailable
    ],
)
def test_rollout_without_room_for_its_surge(strategy, held, found):
    pods = []
    for number in range(held):
        pod = copy.deepcopy(GOOD)
        pod["metadata"]["name"], pod["spec"]["nodeName"] = str(number), "gpu1"
        pods.append(pod)
    rules = find(make_deployment(**strategy), nodes=[NODE], pods=pods)
    assert rules == ([("GPU020", "note")] if found else [])


@pytest.mark.parametrize(
    "more",
    [
        {"volumes": [{"name": "p", "hostPath": {"path": "/var/lib/kubelet/device-plugins"}}]},
        {"volumes": [{"name": "p", "hostPath": {"path": "/var/lib/kubelet/pod-resources"}}]},
        {"container": {"image": "nvcr.io/nvidia/k8s-device-plugin:v0.20.0"}},
    ],
)
def test_device_plugins_and_exporters_need_all_gpus(more):
    container = {"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}], **more.pop("container", {})}
    devices = [{"name": "d", "hostPath": {"path": "/dev/dri"}}]
    pod = make_pod(container=container, volumes=devices + more.pop("volumes", []))
    assert find(pod) == []
    pod["spec"]["volumes"], container["image"] = devices, "busybox"
    assert find(make_pod(container=container, volumes=devices)) == [("GPU008", "error"), ("GPU017", "warning")]


SHARED = {"nvidia.com/gpu.sharing-strategy": "time-slicing"}
DRIVER = {"nvidia.com/cuda.runtime.major": "12", "nvidia.com/cuda.runtime.minor": "4"}
PLENTY = make_node(labels=SHARED, nvidia_com__gpu=32)
TWO = [{"name": name, "image": "busybox", "resources": {"limits": {"nvidia.com/gpu": 1}}} for name in ("one", "two")]
NEWER = {"image": "nvcr.io/nvidia/cuda:13.0.1-base"}


@pytest.mark.parametrize(
    ("obj", "context", "found"),
    [
        # HAMi's own manifest.
        (make_pod({**GPU, "nvidia.com/gpumem": 3000, "nvidia.com/gpucores": 30}), {}, []),
        # A program that hides the GPUs from itself takes none.
        *(
            (make_pod(container={"env": [{"name": name, "value": value}]}), {}, [])
            for name, value in (
                ("CUDA_VISIBLE_DEVICES", ""),
                ("CUDA_VISIBLE_DEVICES", "-1"),
                ("NVIDIA_VISIBLE_DEVICES", ""),
                ("NVIDIA_VISIBLE_DEVICES", "void"),
            )
        ),
        (make_pod(container={"env": [{"name": "CUDA_VISIBLE_DEVICES", "value": "0"}]}), {}, [("GPU008", "warning")]),
        # The device plugin judges each container, and refuses more than one share only with failRequestsGreaterThanOne.
        (make_pod(containers=TWO), {"nodes": [PLENTY]}, []),
        (make_pod({"nvidia.com/gpu": 2}), {"nodes": [PLENTY]}, [("GPU014", "warning")]),
        # A chart with 0 GPUs runs on a cluster without any.
        (make_pod({"nvidia.com/gpu": 0}), {"nodes": [make_node()]}, [("GPU005", "warning")]),
        # The API server copies the default limit.
        ({"kind": "LimitRange", "spec": {"limits": [{"default": GPU}]}}, {}, []),
        (
            {"kind": "LimitRange", "spec": {"limits": [{"default": {"a.com/b": 1}, "defaultRequest": {"a.com/b": 2}}]}},
            {},
            [],
        ),
        # NVIDIA's images have the libraries for an older driver of a data centre GPU.
        *(
            (
                make_pod(GPU, container=NEWER),
                {"nodes": [make_node(labels={**DRIVER, "nvidia.com/gpu.product": product}, nvidia_com__gpu=1)]},
                [("GPU016", severity)],
            )
            for product, severity in (
                ("NVIDIA-A100-SXM4-40GB", "warning"),
                ("Tesla-T4", "warning"),
                ("NVIDIA-GeForce-RTX-4090", "error"),
                ("NVIDIA-RTX-A6000", "error"),
            )
        ),
        # A vendor's DaemonSet may observe all GPUs.
        (
            {
                "kind": "DaemonSet",
                "spec": {"template": make_pod(container={"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]})},
            },
            {},
            [("GPU008", "note")],
        ),
        # A template of Argo Workflows has one container.
        (
            {
                "kind": "Workflow",
                "spec": {
                    "templates": [
                        {"name": "t", "container": {"image": "b", "resources": {"limits": {"nvidia.com/gpu": 8}}}}
                    ]
                },
            },
            {"nodes": [NODE]},
            [("GPU014", "error")],
        ),
    ],
)
def test_manifests_that_work_have_no_grave_finding(obj, context, found):
    assert find(obj, **context) == found


def test_admission_plugin_adds_the_toleration():
    nodes = [make_node(taints=[TAINT], nvidia_com__gpu=1)]
    assert find(GOOD, nodes=nodes, admission_plugins=("ExtendedResourceToleration",)) == []


def test_rules_without_their_facts_are_skipped_and_named():
    result = lint([Document("-", GOOD)], Context())
    assert set(result.skipped) == {rule.number for rule in RULES if rule.needs}
    assert (
        lint([], Context(nodes=[], runtime_classes=[], pods=[], device_ownership=True, default_runtime="runc")).skipped
        == {}
    )


def test_findings_are_ignored_for_a_reason_only():
    wrong = make_pod({"nvidia.com/gpu": 0})
    for reason, ignored in (("the job checks that", True), ("  ", False)):
        wrong["metadata"]["annotations"] = {"gpu.kubernetes/ignore-GPU005": reason}
        result = lint([Document("-", wrong)], Context())
        assert (len(result.ignored), len(result.findings)) == (int(ignored), int(not ignored))
    assert "has no reason" in result.findings[0].message


@pytest.mark.parametrize(
    "garbage", [None, 1, "x", [], {"limits": 3}, {"limits": [1]}, {"limits": {"nvidia.com/gpu": {"a": 1}}}]
)
def test_wrong_types_are_a_finding_at_most(garbage):
    pod = make_pod()
    pod["spec"]["containers"][0]["resources"] = garbage
    for key in ("tolerations", "volumes", "nodeSelector", "securityContext", "affinity", "initContainers"):
        pod["spec"][key] = None if key in ("affinity", "tolerations") else garbage
    found = find(pod, nodes=[NODE], pods=[pod], runtime_classes=[CLASS], default_runtime="runc", device_ownership=False)
    assert {rule for rule, _severity in found} <= {"GPU000", "GPU003", "GPU011", "GPU013"}
    assert bool(found) is (bool(garbage) and garbage not in ({"limits": 3}, {"limits": [1]}))


def test_guide_has_the_catalogue():
    """The table of the guide is the catalogue."""
    guide = (Path(__file__).parents[5] / "docs" / "docsite" / "rst" / "guide_lint.rst").read_text(encoding="utf-8")
    rows = [
        f"    * - {rule.number}\n      - {rule.severity}\n      - {rule.title}\n"
        f"      - {', '.join(rule.needs).replace('_', ' ') or '-'}\n"
        for rule in RULES
    ]
    assert "".join(rows) in guide
