# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the table of manifests does not show of the rules: objects without pods, skipped rules, ignored findings and garbage."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._lint.catalogue import RULES
from ansible_collections.gpu.kubernetes.plugins.module_utils._lint.lint import lint
from ansible_collections.gpu.kubernetes.plugins.module_utils._lint.model import Context, Document

NODE = {"metadata": {"name": "gpu1", "labels": {}}, "status": {"allocatable": {"nvidia.com/gpu": "4"}}}
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


def find(obj, **context):
    result = lint([Document("-", obj)], Context(**context))
    return [(each.rule, each.severity) for each in result.findings]


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
        # The API server copies the default limit.
        (LIMITS, {"kind": "LimitRange", "spec": {"limits": [{"default": GPU}]}}),
        (
            LIMITS,
            {"kind": "LimitRange", "spec": {"limits": [{"default": {"a.com/b": 1}, "defaultRequest": {"a.com/b": 2}}]}},
        ),
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


@pytest.mark.parametrize(
    ("kind", "workers", "found"),
    [
        ("MPIJob", make_pod(GPU), []),
        ("RayCluster", make_pod(resourceClaims=[{"name": "gpu"}]), []),
        ("MPIJob", make_pod(), [("GPU009", "warning")]),
        ("ClusterServingRuntime", make_pod(), []),
    ],
)
def test_gpu_image_needs_no_resource_if_another_pod_or_object_has_it(kind, workers, found):
    launcher = make_pod(container={"image": "nvidia/cuda:12.8.0-base"})
    specs = [{"template": {"spec": pod["spec"]}} for pod in (launcher, workers)]
    assert find({"kind": kind, "metadata": {"name": "train"}, "spec": {"replicas": specs}}) == found


def test_a_vendors_daemon_set_may_observe_all_gpus():
    pod = make_pod(container={"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]})
    assert find({"kind": "DaemonSet", "spec": {"template": pod}}) == [("GPU008", "note")]


def test_rules_without_their_facts_are_skipped_and_named():
    result = lint([Document("-", GOOD)], Context())
    assert set(result.skipped) == {rule.number for rule in RULES if rule.needs}
    assert (
        lint([], Context(nodes=[], runtime_classes=[], pods=[], device_ownership=True, default_runtime="runc")).skipped
        == {}
    )


@pytest.mark.parametrize(
    ("place", "expected"), [("team", [("GPU007", "error")]), ("", [("GPU007", "error")]), ("other", [])]
)
def test_claims_of_the_input_are_known_by_name_and_namespace(place, expected):
    """The version of the API decides where the class is."""
    requests = [{"name": "gpu", "firstAvailable": [{"name": "a", "deviceClassName": "gpu.nvidia.com"}]}]
    metadata = {"name": "gpu", **({"namespace": place} if place else {})}
    claim = {
        "kind": "ResourceClaimTemplate",
        "metadata": metadata,
        "spec": {"spec": {"devices": {"requests": requests}}},
    }
    pod = make_pod(GPU, resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "gpu"}])
    result = lint([Document("-", pod), Document("-", claim)], Context())
    assert [(each.rule, each.severity) for each in result.findings] == expected


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
