# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The values for NVIDIA's chart have the same effect as the manifests, as far as the chart has the values."""

from __future__ import annotations

import pytest
import yaml

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT, find_task

MPS = {"version": "v1", "sharing": {"mps": {"resources": [{"name": "nvidia.com/gpu", "replicas": 4}]}}}
SLICED = {"version": "v1", "sharing": {"timeSlicing": {"resources": [{"name": "nvidia.com/gpu", "replicas": 2}]}}}
DEVICES = {"version": "v1", "flags": {"plugin": {"passDeviceSpecs": True}}}
#: Variables of hosts. All but the method apply to both.
VARIABLES = {
    "plain": {},
    "mps": {"k8s_device_plugin_config": MPS},
    "named": {"k8s_device_plugin_configs": {"time_slicing-2": SLICED, "exclusive-0": {"version": "v1"}}},
    "devices": {"k8s_device_plugin_config": DEVICES},
    "other": {
        "k8s_device_plugin_image_tag": f"sha256:{'a' * 64}",
        "k8s_device_plugin_image_pull_secrets": ["secret"],
        "k8s_device_plugin_tolerations": [{"key": "team", "operator": "Exists"}],
        "k8s_device_plugin_resources": {"limits": {"memory": "64Mi"}},
        "k8s_device_plugin_runtime_class": "",
        "k8s_device_plugin_driver_root": "/driver",
    },
}
FIELDS = ("nodeSelector", "affinity", "tolerations", "priorityClassName", "imagePullSecrets")


@pytest.fixture
def rendered(evaluate_role):
    """By host, the objects of the manifests and those beside the chart, and the values of the chart."""
    load = {"ansible.builtin.include_vars": {"dir": str(ROOT / "roles/k8s_device_plugin/vars/nvidia")}}
    values = find_task("k8s_device_plugin", "nvidia_present", "Apply NVIDIA's chart")["kubernetes.core.helm"]["values"]
    hosts = {
        f"{name}-{method}": {**variables, "k8s_device_plugin_method": method, "values": values}
        for name, variables in VARIABLES.items()
        for method in ("manifest", "helm")
    }
    expression = "{'objects': __k8s_device_plugin_objects, 'values': values, 'kinds': __k8s_device_plugin_owned | map(attribute='kind') | list}"
    found = evaluate_role("k8s_device_plugin", hosts, expression, task=load)
    return {name: (found[f"{name}-manifest"], found[f"{name}-helm"]) for name in VARIABLES}


def test_values_have_the_settings_of_the_manifests(rendered):
    check_values(rendered)
    check_privileges(rendered)
    check_config_maps(rendered)


def check_values(rendered):
    """What both have, is the same."""
    for name, (manifest, helm) in rendered.items():
        values, template = helm["values"], manifest["objects"]["daemon_set"]["spec"]["template"]
        spec = template["spec"]
        plugin = next(each for each in spec["containers"] if each["name"] == "nvidia-device-plugin-ctr")
        assert {field: values[field] for field in FIELDS} == {field: spec[field] for field in FIELDS}, name
        assert (values["podSecurityContext"], values["resources"]) == (spec["securityContext"], plugin["resources"])
        assert values.get("runtimeClassName") == spec.get("runtimeClassName")
        assert f"{values['image']['repository']}:{values['image']['tag']}" == plugin["image"]
        assert values["image"]["pullPolicy"] == plugin["imagePullPolicy"]
        assert set(values["podAnnotations"]) == set(template["metadata"]["annotations"])
        roots = [each["value"] for each in plugin["env"] if each["name"] == "NVIDIA_DRIVER_ROOT"]
        assert ([values["nvidiaDriverRoot"]] if "nvidiaDriverRoot" in values else []) == roots, name


def check_privileges(rendered):
    """The chart does not read the configuration."""
    contexts = {name: helm["values"]["securityContext"] for name, (_manifest, helm) in rendered.items()}
    assert contexts == {name: {"privileged": True} if name == "devices" else {} for name in VARIABLES}


def check_config_maps(rendered):
    """The chart reads the ConfigMap of this role, which has the same configurations."""
    for name, (manifest, helm) in rendered.items():
        config, values = helm["objects"]["config_map"], helm["values"]["config"]
        assert (values["name"], helm["kinds"]) == (config["metadata"]["name"], ["ConfigMap"])
        documents = {key: yaml.safe_load(text) for key, text in config["data"].items()}
        # Without a label, a node has the configuration of all nodes.
        former = {key: yaml.safe_load(text) for key, text in manifest["objects"]["config_map"]["data"].items()}
        default = former.pop("default", None) or former.pop("config.yaml")
        assert documents == {values["default"]: default, **former}, name
    assert {
        name
        for name, (_manifest, helm) in rendered.items()
        if "mps" in helm["objects"]["config_map"]["data"]["default"]
    } == {"mps"}
