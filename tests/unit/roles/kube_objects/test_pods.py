# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods of all roles: limits, no rights beyond need, a deadline where nothing else ends them, and an image of the given registry."""

from __future__ import annotations

import shutil

import pytest
import yaml

from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.smoke_test.pod import SmokeTest, build_manifest
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.catalogue import SharedResource
from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

DIGEST = f"sha256:{'a' * 64}"
MIRROR = "registry.example.com/mirror"
GUARDS = "__extender_sharing_guards"
#: What the filter exporter_plan returns of a host, as far as the pods need it.
EXPORTER = {
    "__gpu_exporter_plan": {
        "registry": "", "repository": "vendor/exporter", "tag": "1", "port": 9400, "arguments": [], "collectors": "", "config": "", "profiling": False,
        "resource": "example.com/gpu", "present_label": "example.com/gpu.present",
    }
}  # fmt: skip
MPS = {"version": "v1", "sharing": {"mps": {"resources": [{"name": "nvidia.com/gpu", "replicas": 4}]}}}
#: Role -> its objects, and hosts with their variables.
ROLES = {
    "gpushare": (
        f"__gpushare_shared_objects + __gpushare_plugin_objects + __gpushare_extender_objects + {GUARDS}",
        {"on-control-planes": {}, "behind-a-service": {"gpushare_extender_topology": "service"}},
    ),
    "nano_gpu": (
        f"__nano_gpu_shared_objects + __nano_gpu_agent_objects + __nano_gpu_extender_objects + {GUARDS}",
        {
            "nano": {},
            "replacing": {"nano_gpu_replace_host_binaries": True},
            "elastic": {"nano_gpu_api": "elasticgpu", "nano_gpu_extender_network_policy": False, "nano_gpu_admission_policy": False},
        },
    ),
    "k8s_device_plugin": (
        "__k8s_device_plugin_shared + __k8s_device_plugin_owned",
        {
            "plugin": {},
            "amd-plugin": {"vendor": "amd"},
            "intel-plugin": {"vendor": "intel"},
            "mps": {"k8s_device_plugin_configs": {"mps-4": MPS}},
            "device-specs": {"k8s_device_plugin_config": {"flags": {"plugin": {"passDeviceSpecs": True}}}},
            "mig": {"k8s_device_plugin_config": {"flags": {"migStrategy": "single"}}},
        },
    ),
    "kube_scheduler_extender": ("[__kube_scheduler_extender_probe_pod]", {"probe": {}}),
    "gpu_feature_discovery": (
        "__gpu_feature_discovery_gfd_objects + __gpu_feature_discovery_amd_objects",
        {"feature-discovery": {}},
    ),
    "gpu_exporter": (
        "__gpu_exporter_objects",
        {
            "nvidia-exporter": EXPORTER,
            "dcgm-exporter": {**EXPORTER, "gpu_exporter_provider": "dcgm_exporter"},
            "amd-exporter": {**EXPORTER, "gpu_exporter_provider": "amd_device_metrics_exporter"},
            "intel-exporter": {**EXPORTER, "gpu_exporter_provider": "intel_xpumd"},
        },
    ),
}  # fmt: skip
#: Containers and hosts whose pods have more rights by design, as upstream documents.
PRIVILEGED = {
    ("device-specs", "nvidia-device-plugin-ctr"): {"privileged": True},
    ("mps", "nvidia-device-plugin-sidecar"): {"capabilities": {"add": ["SYS_ADMIN"]}},
    ("mps", "mps-control-daemon-mounts"): {"privileged": True},
    ("mps", "mps-control-daemon-ctr"): {"privileged": True},
    ("feature-discovery", "labeller"): {"privileged": True, "capabilities": {"drop": ["ALL"]}},
    ("amd-exporter", "exporter"): {"privileged": True},
    ("intel-exporter", "exporter"): {"privileged": True, "runAsUser": 0, "readOnlyRootFilesystem": True},
}
SYS_ADMIN = {"mig"}
#: A limit would include the shared memory of all pods that share the GPUs, and end all of them.
UNLIMITED = {("mps", "mps-control-daemon-ctr")}
#: The MPS server identifies its clients by their process IDs on the host.
IN_HOST_PID = {"mps"}
IN_HOST_NETWORK = {"on-control-planes", "nvidia-exporter", "dcgm-exporter", "amd-exporter", "intel-exporter"}
#: Extenders of 2019 write pods back without this field.
WITHOUT_SECCOMP = {"shared-smoke-test"}
RUNTIME_DEFAULT = {"seccompProfile": {"type": "RuntimeDefault"}}


@pytest.fixture
def found(evaluate, tmp_path):
    """The objects of all roles by host, with one registry for all images, and the same with a digest in place of each tag."""
    plays = []
    for role, (expression, hosts) in ROLES.items():
        sharing = (ROOT / "roles" / role / "vars" / "main" / "sharing.yml").exists()
        names = [*(["_extender_sharing"] if sharing else []), role]
        for name in names:
            for folder in ("defaults", "vars"):
                shutil.copytree(ROOT / "roles" / name / folder, tmp_path / "roles" / name / folder, dirs_exist_ok=True)
        defaults = yaml.safe_load((ROOT / "roles" / role / "defaults" / "main.yml").read_text())
        digests = {name: DIGEST for name in defaults if name.endswith("_image_tag")}
        tasks = [
            {"ansible.builtin.set_fact": {"rendered": "{{ " + expression + " }}"}},
            {"ansible.builtin.set_fact": {"by_digest": "{{ " + expression + " }}"}, "vars": digests},
        ]
        providers = ROOT / "roles" / role / "vars"
        if (providers / "nvidia").exists():
            folder = str(providers / "{{ vendor | default('nvidia') }}")
            tasks.insert(0, {"ansible.builtin.include_vars": {"dir": folder}})
        plays.append({"hosts": ",".join(hosts), "gather_facts": False, "roles": names, "tasks": tasks})
    hosts = {name: variables for _expression, hosts in ROLES.values() for name, variables in hosts.items()}
    by_host = "dict(groups.all | zip(groups.all | map('extract', hostvars, '{}')))"
    rendered, by_digest = evaluate(
        hosts,
        plays,
        f"[{by_host.format('rendered')}, {by_host.format('by_digest')}]",
        gpu_image_registry=MIRROR,
    )
    test = SmokeTest(image=f"{MIRROR}/sample:1")
    shared = SmokeTest(image=f"{MIRROR}/sample:1", shared=[SharedResource("r", 100)])
    tests = {"smoke-test": [build_manifest(test, "n", "r")], "shared-smoke-test": [build_manifest(shared, "n", "r")]}
    return {**rendered, **tests}, by_digest


def iterate_pod_specs(items):
    """The pod specifications of objects."""
    for item in items:
        if item["kind"] == "Pod":
            yield item["spec"]
        elif "template" in item.get("spec", {}):
            yield item["spec"]["template"]["spec"]


def check_container(host, spec, container):
    amounts = container["resources"]
    assert {"cpu", "memory"} <= set(amounts["requests"]), (host, amounts)
    has_limit = "memory" in amounts.get("limits", {})
    assert has_limit is ((host, container["name"]) not in UNLIMITED), (host, amounts)
    assert container["image"].startswith(f"{MIRROR}/"), (host, container["image"])
    rights = container["securityContext"]
    if host not in WITHOUT_SECCOMP:
        profile = {**spec.get("securityContext", {}), **rights}.get("seccompProfile")
        assert profile == RUNTIME_DEFAULT["seccompProfile"], (host, container["name"])
    if (host, container["name"]) in PRIVILEGED:
        assert rights == PRIVILEGED[host, container["name"]]
    elif host in SYS_ADMIN:
        assert rights == {"capabilities": {"add": ["SYS_ADMIN"]}}
    else:
        assert (rights["allowPrivilegeEscalation"], rights["capabilities"]) == (False, {"drop": ["ALL"]}), host
        assert not rights.get("privileged"), host


def check_rights(objects):
    for host, items in objects.items():
        found = list(iterate_pod_specs(items))
        assert found, host
        for spec in found:
            for container in [*spec.get("initContainers", []), *spec["containers"]]:
                check_container(host, spec, container)
            assert "hostIPC" not in spec, host
            assert "serviceAccountName" in spec or spec["automountServiceAccountToken"] is False, host
    networks = {
        host for host, items in objects.items() if any(spec.get("hostNetwork") for spec in iterate_pod_specs(items))
    }
    assert networks == IN_HOST_NETWORK
    assert {
        host for host, items in objects.items() if any("hostPID" in spec for spec in iterate_pod_specs(items))
    } == IN_HOST_PID


def check_deadlines(objects):
    """Nothing else ends pods without a controller."""
    pods = {host: item["spec"] for host, items in objects.items() for item in items if item["kind"] == "Pod"}
    assert set(pods) == {"probe", "smoke-test", "shared-smoke-test"}
    for spec in pods.values():
        assert spec["restartPolicy"] == "Never"
        assert 60 < int(spec["activeDeadlineSeconds"]) < 3600
        assert int(spec["terminationGracePeriodSeconds"]) <= 1


def check_digests(by_digest, objects):
    """Each image has the digest in place of its tag."""
    for host, items in by_digest.items():
        specs = [*zip(iterate_pod_specs(items), iterate_pod_specs(objects[host]), strict=True)]
        for spec, tagged in specs:
            for part in ("initContainers", "containers"):
                images = [container["image"] for container in spec.get(part, [])]
                expected = [container["image"].rpartition(":")[0] for container in tagged.get(part, [])]
                assert images == [f"{name}@{DIGEST}" for name in expected], host


#: Host -> number of policies of accounts, and of the network.
GUARDED = {"on-control-planes": (2, 0), "behind-a-service": (2, 1), "nano": (2, 1), "elastic": (0, 0)}


def test_pods_of_all_roles_have_limits_deadlines_and_no_rights_beyond_need(found):
    objects, by_digest = found
    check_digests(by_digest, objects)
    check_rights(objects)
    check_deadlines(objects)
    for host, numbers in GUARDED.items():
        kinds = [item["kind"] for item in objects[host]]
        assert (kinds.count("ValidatingAdmissionPolicy"), kinds.count("NetworkPolicy")) == numbers, host
