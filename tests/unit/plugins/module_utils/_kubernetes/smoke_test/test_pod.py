# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The manifest of the pods of a smoke test."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fakes.kubernetes_api import GPU

from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.smoke_test.pod import SmokeTest, build_manifest
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.catalogue import SharedResource

TEST = SmokeTest(image="reg/sample:1", expected_output="Test PASSED", timeout=60)


def test_manifest_goes_through_scheduler_and_device_plugin() -> None:
    made = build_manifest(TEST, "w1", "run1")
    spec = made["spec"]
    assert "nodeName" not in spec
    terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert terms == [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["w1"]}]}]
    (container,) = spec["containers"]
    assert container["resources"]["limits"] == {GPU: "1", "memory": "2Gi"}
    assert "env" not in container, "a variable of the NVIDIA runtime would pass by the device plugin"
    assert not {"runtimeClassName", "schedulerName"} & set(spec)
    assert spec["restartPolicy"] == "Never"
    assert spec["activeDeadlineSeconds"] > TEST.timeout
    assert {"key": GPU, "operator": "Exists"} in spec["tolerations"]
    assert made["metadata"]["generateName"].endswith("-")


def test_manifest_of_whole_gpus_meets_the_restricted_standard() -> None:
    spec = build_manifest(TEST, "w1", "run1")["spec"]
    inside = spec["containers"][0]["securityContext"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert (inside["allowPrivilegeEscalation"], inside["capabilities"]) == (False, {"drop": ["ALL"]})
    assert spec["automountServiceAccountToken"] is False
    assert "volumes" not in spec


def test_manifest_with_options_has_them() -> None:
    test = SmokeTest(
        "i",
        runtime_class="nvidia",
        command=["a"],
        args=["b"],
        image_pull_secrets=["s"],
        run_as_user=0,
        tolerations=[{"key": "t"}],
        scheduler_name="second",
    )
    spec = build_manifest(test, "w1", "r")["spec"]
    assert (spec["runtimeClassName"], spec["schedulerName"]) == ("nvidia", "second")
    assert (spec["containers"][0]["command"], spec["containers"][0]["args"]) == (["a"], ["b"])
    assert spec["imagePullSecrets"] == [{"name": "s"}]
    assert spec["securityContext"]["runAsUser"] == 0
    assert "runAsNonRoot" not in spec["securityContext"]
    assert {"key": "t"} in spec["tolerations"]


@pytest.mark.parametrize(("user", "rest"), [(65534, {"runAsNonRoot": True, "runAsGroup": 65534}), (0, {})])
def test_manifest_of_another_vendor_tolerates_its_taint_and_has_the_group(user: int, rest: dict[str, Any]) -> None:
    test = replace(TEST, resource="amd.com/gpu", run_as_user=user, supplemental_groups=[993])
    spec = build_manifest(test, "w1", "r")["spec"]
    assert spec["tolerations"] == [{"key": "amd.com/gpu", "operator": "Exists"}]
    assert spec["securityContext"].pop("seccompProfile")
    assert spec["securityContext"] == {"runAsUser": user, "supplementalGroups": [993], **rest}
    assert spec["containers"][0]["resources"]["limits"]["amd.com/gpu"] == "1"


def test_manifest_of_cordoned_test_tolerates_a_cordon() -> None:
    toleration = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}
    assert toleration in build_manifest(replace(TEST, cordoned=True), "w1", "r")["spec"]["tolerations"]
    assert toleration not in build_manifest(TEST, "w1", "r")["spec"]["tolerations"]


def test_manifest_of_shared_gpus_has_no_field_that_old_extenders_lose() -> None:
    spec = build_manifest(replace(TEST, shared=[SharedResource("r", 100)]), "w1", "r")["spec"]
    assert "enableServiceLinks" not in spec
    assert "seccompProfile" not in spec["securityContext"]
    assert spec["activeDeadlineSeconds"] == 2 * TEST.timeout + 60
