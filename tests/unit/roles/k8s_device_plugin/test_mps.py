# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The DaemonSet of the control daemon of MPS."""

from __future__ import annotations

import pytest

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

NAME = "nvidia-device-plugin-mps-control-daemon"
MPS = {"version": "v1", "sharing": {"mps": {"resources": [{"name": "nvidia.com/gpu", "replicas": 4}]}}}
SLICED = {"version": "v1", "sharing": {"timeSlicing": {"resources": [{"name": "nvidia.com/gpu", "replicas": 4}]}}}
#: Hosts with their variables, and whether the DaemonSet is deployed, or removed.
HOSTS = {
    "mps": ({"k8s_device_plugin_configs": {"mps-4-0": MPS}}, True),
    "tolerant": (
        {"k8s_device_plugin_configs": {"mps-4-0": MPS, "ts-4-0": SLICED}, "k8s_device_plugin_runtime_class": ""},
        True,
    ),
    "sliced": ({"k8s_device_plugin_configs": {"ts-4-0": SLICED}}, False),
    "plain": ({}, False),
    "chart": ({"k8s_device_plugin_configs": {"mps-4-0": MPS}, "k8s_device_plugin_method": "helm"}, False),
    "absent": ({"k8s_device_plugin_state": "absent"}, True),
}


@pytest.fixture
def daemon_sets(evaluate_role):
    """The DaemonSets of each host by name."""
    load = {"ansible.builtin.include_vars": {"dir": str(ROOT / "roles/k8s_device_plugin/vars/nvidia")}}
    kinds = "__k8s_device_plugin_owned | selectattr('kind', 'equalto', 'DaemonSet')"
    hosts = {name: variables for name, (variables, _deployed) in HOSTS.items()}
    found = evaluate_role("k8s_device_plugin", hosts, f"{kinds} | list", task=load)
    return {name: {item["metadata"]["name"]: item for item in items} for name, items in found.items()}


def test_control_daemon_is_deployed_for_configurations_with_mps(daemon_sets):
    assert {name: NAME in found for name, found in daemon_sets.items()} == {
        name: deployed for name, (_variables, deployed) in HOSTS.items()
    }
    check_pods(daemon_sets["mps"])
    check_containers(daemon_sets["mps"][NAME]["spec"]["template"]["spec"])
    assert "runtimeClassName" not in daemon_sets["tolerant"][NAME]["spec"]["template"]["spec"]


def check_pods(found):
    """Its pods are on nodes of MPS, are not counted as pods of the plugin, and are not replaced while they serve."""
    daemon, plugin = found[NAME], found["nvidia-device-plugin-daemonset"]
    template = daemon["spec"]["template"]
    assert daemon["spec"]["updateStrategy"] == {"type": "OnDelete"}
    assert daemon["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    selected = plugin["spec"]["selector"]["matchLabels"]
    assert not selected.items() <= template["metadata"]["labels"].items()
    spec = template["spec"]
    assert spec["nodeSelector"] == {"nvidia.com/gpu.present": "true", "nvidia.com/mps.capable": "true"}
    # It starts while the plugin is off, and leaves for another driver.
    [term] = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [{"key": "gpu-kubernetes/paused", "operator": "DoesNotExist"}]
    shared = ("serviceAccountName", "runtimeClassName", "tolerations", "priorityClassName")
    plugins = plugin["spec"]["template"]["spec"]
    assert {key: spec[key] for key in shared} == {key: plugins[key] for key in shared}
    assert (spec["hostPID"], "shareProcessNamespace" in spec) == (True, False)


def check_containers(spec):
    """As NVIDIA's chart has them, with fewer rights for those that choose the configuration."""
    containers = {each["name"]: each for each in [*spec["initContainers"], *spec["containers"]]}
    assert {name: each["command"] for name, each in containers.items()} == {
        "mps-control-daemon-mounts": ["mps-control-daemon", "mount-shm"],
        "mps-control-daemon-init": ["config-manager"],
        "mps-control-daemon-ctr": ["/usr/bin/mps-control-daemon"],
        "mps-control-daemon-sidecar": ["config-manager"],
    }
    privileged = [name for name, each in containers.items() if each["securityContext"].get("privileged")]
    assert privileged == ["mps-control-daemon-mounts", "mps-control-daemon-ctr"]
    for name in ("mps-control-daemon-init", "mps-control-daemon-sidecar"):
        assert containers[name]["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    mounts = {name: {each["mountPath"]: each for each in one["volumeMounts"]} for name, one in containers.items()}
    assert mounts["mps-control-daemon-mounts"] == {
        "/mps": {"name": "mps-root", "mountPath": "/mps", "mountPropagation": "Bidirectional"}
    }
    assert set(mounts["mps-control-daemon-ctr"]) == {"/mps", "/dev/shm", "/config", "/available-configs"}
    paths = {volume["name"]: volume.get("hostPath", {}).get("path") for volume in spec["volumes"]}
    assert paths == {
        "mps-root": "/run/nvidia/mps",
        "mps-shm": "/run/nvidia/mps/shm",
        "available-configs": None,
        "config": None,
    }
    env = {each["name"]: each.get("value") for each in containers["mps-control-daemon-sidecar"]["env"]}
    assert [env["PROCESS_TO_SIGNAL"]] == containers["mps-control-daemon-ctr"]["command"]
    assert (env["SIGNAL"], env["ONESHOT"]) == ("1", "false")
    env = [each["name"] for each in containers["mps-control-daemon-ctr"]["env"]]
    assert env == ["NODE_NAME", "CONFIG_FILE", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"]
    # The shared memory of all pods counts as the container's.
    assert "limits" not in containers["mps-control-daemon-ctr"]["resources"]
