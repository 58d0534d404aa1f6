# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects and requirements of the role gpushare."""

from __future__ import annotations

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import check_pods, find_task

DIGEST = "sha256:" + "0a" * 32
#: Variables of the extender's image, and whether its account reads ConfigMaps and its pods keep their RuntimeClass.
EXTENDERS = {
    "default": ({}, False),
    "mirror": ({"gpu_image_registry": "registry.example.com/mirror"}, False),
    "pinned": ({"gpushare_extender_image_tag": f"1.11-d170d8a@{DIGEST}"}, False),
    "digest": ({"gpushare_extender_image_tag": DIGEST}, False),
    "own": ({"gpushare_extender_image_tag": "c0b6141"}, True),
    "own-digest": (
        {"gpushare_extender_image_repository": "own/gpushare-extender", "gpushare_extender_image_tag": DIGEST},
        True,
    ),
}


def service(address):
    found = [{"spec": {"clusterIP": address}}] if address else []
    return {"gpushare_extender_topology": "service", "__extender_sharing_service": {"found": [found]}}


URLS = {
    "beside": ({}, "http://127.0.0.1:12345/gpushare-scheduler"),
    "service": (service("10.96.0.20"), "http://10.96.0.20:12345/gpushare-scheduler"),
    "service-ipv6": (
        {**service("fd00::20"), "gpushare_extender_port": 9},
        "http://[fd00::20]:9/gpushare-scheduler",
    ),
    "no-service-yet": (service(""), ""),
    "own": ({**service(""), "gpushare_extender_url": "https://lb/gpushare-scheduler"}, "https://lb/gpushare-scheduler"),
}


LOCKED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
IMAGE = {"registry": "registry.example.com:5000", "repository": "own", "tag": DIGEST}
OWN_IMAGES = {
    f"gpushare_{part}_image_{name}": value for part in ("extender", "device_plugin") for name, value in IMAGE.items()
}
#: Variables of hosts beyond those of the tables.
VARIABLES = {
    "behind-a-service": service("10.96.0.20"),
    "newer": {"gpushare_extender_image_tag": "1.12"},
    "own-images": {**service(""), **OWN_IMAGES, "gpushare_extender_port": 9, "gpushare_memory_unit": "MiB"},
    "elsewhere": {"gpushare_kubelet_dir": "/var/lib/k0s/kubelet"},
}
SHOWN = {
    "url": "__extender_sharing_own_url",
    "kind": "__gpushare_extender_objects | map(attribute='kind') | list | last",
    "objects": "__gpushare_extender_objects + __gpushare_plugin_objects",
    "workload": "__gpushare_extender_workload",
    "selector": "__gpushare_extender_service.spec.selector",
    "plugin": "__gpushare_plugin_pod_spec",
    "newer": "[gpushare_extender_read_config_maps | bool, gpushare_extender_keeps_runtime_class | bool]",
}


def test_objects_follow_the_variables(evaluate_role):
    """One run for all hosts and all that is computed from their variables."""
    hosts = {
        **{f"address-{name}": host for name, (host, _url) in URLS.items()},
        **{f"image-{name}": variables for name, (variables, _newer) in EXTENDERS.items()},
        **VARIABLES,
    }
    expression = "{" + ", ".join(f"'{name}': {value}" for name, value in SHOWN.items()) + "}"
    found = evaluate_role("gpushare", hosts, expression)
    check_addresses({name: found[f"address-{name}"] for name in URLS})
    for name, (_variables, newer) in EXTENDERS.items():
        assert found[f"image-{name}"]["newer"] == [newer, newer], name
    check_rights({"beside": found["newer"]["objects"], "service": found["behind-a-service"]["objects"]})
    check_variables(found["own-images"]["workload"], found["own-images"]["plugin"])
    check_nodes(found["newer"]["workload"]["spec"]["template"]["spec"])
    check_selectors({"control_plane": found["newer"], "service": found["behind-a-service"]})
    check_folders({"usual": found["newer"]["plugin"], "elsewhere": found["elsewhere"]["plugin"]})


def check_addresses(found):
    """The address of the extender follows its topology."""
    assert {name: each["url"] or "" for name, each in found.items()} == {
        name: url for name, (_host, url) in URLS.items()
    }
    assert {name: each["kind"] for name, each in found.items()} == {
        name: "DaemonSet" if name == "beside" else "Service" for name in URLS
    }


def check_rights(results):
    """Accounts and containers have only the required rights."""
    objects = {
        name: {(item["kind"], item["metadata"]["name"]): item for item in items} for name, items in results.items()
    }
    extenders = {
        "beside": objects["beside"]["DaemonSet", "gpushare-schd-extender"]["spec"]["template"]["spec"],
        "service": objects["service"]["Deployment", "gpushare-schd-extender"]["spec"]["template"]["spec"],
    }
    assert {name: pod.get("hostNetwork", False) for name, pod in extenders.items()} == {
        "beside": True,
        "service": False,
    }
    for pod in extenders.values():
        [container] = pod["containers"]
        unprivileged = {"readOnlyRootFilesystem": True, "runAsNonRoot": True, "runAsUser": 65534}
        assert container["securityContext"] == {**LOCKED, **unprivileged}
    plugin = objects["beside"]["DaemonSet", "gpushare-device-plugin-ds"]["spec"]["template"]["spec"]
    assert [container["securityContext"] for container in plugin["containers"]] == [LOCKED]
    for items in objects.values():
        check_pods(items, extender="gpushare-schd-extender", plugin="gpushare-device-plugin-ds")
    permissions = {
        (host, name): {
            (resource, verb) for rule in item["rules"] for resource in rule["resources"] for verb in rule["verbs"]
        }
        for host, items in objects.items()
        for (kind, name), item in items.items()
        if kind == "ClusterRole"
    }
    reads = {(resource, verb) for resource in ("nodes", "pods") for verb in ("get", "list", "watch")}
    binds = {("pods", "update"), ("pods", "patch"), ("pods/binding", "create")}
    # Later images than the published one read which GPUs are unhealthy.
    assert permissions["service", "gpushare-schd-extender"] == reads | binds
    more = {("configmaps", verb) for verb in ("get", "list", "watch")}
    assert permissions["beside", "gpushare-schd-extender"] == reads | binds | more
    assert permissions["beside", "gpushare-device-plugin"] == {
        ("nodes", "get"),
        ("nodes/status", "patch"),
        *((("pods", verb)) for verb in ("get", "list", "patch", "update")),
    }


def check_variables(workload, plugin):
    """Images, unit and port are variables."""
    [extender], [container] = workload["spec"]["template"]["spec"]["containers"], plugin["containers"]
    assert [extender["image"], container["image"]] == [f"registry.example.com:5000/own@{DIGEST}"] * 2
    assert "--memory-unit=MiB" in container["command"]
    assert [each["containerPort"] for each in extender["ports"]] == [9]
    assert {"name": "PORT", "value": "9"} in extender["env"]


def check_nodes(pod):
    """The pods of the extender run on control planes of either label."""
    affinity = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    keys = {term["matchExpressions"][0]["key"].rpartition("/")[2] for term in affinity["nodeSelectorTerms"]}
    assert keys == {"control-plane", "master"}
    assert {each["key"].rpartition("/")[2] for each in pod["tolerations"]} >= keys


def check_selectors(found):
    """The service selects only the extender of its topology: the other one is removed last when the topology changes. Selectors of workloads are immutable."""
    specs = {name: each["workload"]["spec"] for name, each in found.items()}
    for spec in specs.values():
        assert spec["selector"] == {"matchLabels": {"app": "gpushare", "component": "gpushare-schd-extender"}}
    labels = {name: spec["template"]["metadata"]["labels"].items() for name, spec in specs.items()}
    selector = found["service"]["selector"].items()
    assert selector <= labels["service"]
    assert not selector <= labels["control_plane"]


def check_folders(specs):
    """The device plugin uses the folder of the kubelet."""
    folders = {name: spec["volumes"][0]["hostPath"]["path"] for name, spec in specs.items()}
    assert folders == {"usual": "/var/lib/kubelet/device-plugins", "elsewhere": "/var/lib/k0s/kubelet/device-plugins"}
    # The plugin supports only this path.
    for spec in specs.values():
        assert spec["containers"][0]["volumeMounts"][0]["mountPath"] == "/var/lib/kubelet/device-plugins"


def gpus(number, gibibytes):
    return [{"name": "GPU", "lost": False, "memory_total_bytes": gibibytes * 2**30}] * number


OWN = {"gpushare_memory_unit": "MiB", "gpushare_extender_image_tag": "c0b6141"}
#: GPUs and variables of hosts, and the expected memory and GPU count of their nodes, or the message.
FACTS = {
    "one-small": (gpus(1, 4), OWN, "[4096, 1]"),
    "two-small": (gpus(2, 6), OWN, "[12288, 2]"),
    # Its pods cannot request a runtime, so only here the default runtime counts.
    "published": (gpus(2, 16), {}, "Host published: pods get the runtime runc and see no GPU"),
    "large": (
        gpus(1, 80),
        OWN,
        "Host large has 81920 MiB of GPU memory, and the kubelet rejects messages of more than 4 MiB",
    ),
    "different": (
        gpus(1, 6) + gpus(1, 4),
        OWN,
        "Host different has GPUs with 6.00 GB, 4.00 GB, and gpushare counts the memory of the first GPU for each; leave this host out, or",
    ),
    "different-allowed": (gpus(1, 4) + gpus(1, 6), {**OWN, "gpushare_allow_unequal_gpus": True}, "[8192, 2]"),
}


def test_expected_memory_of_a_node_and_hosts_that_are_refused(evaluate_role):
    """The tasks of the preflight that need only the host."""
    files = {
        "preflight": ["Refuse GPUs of different size", "Refuse more units"],
        "runtime": ["Require NVIDIA's runtime"],
    }
    tasks = [find_task("gpushare", file, words) for file, names in files.items() for words in names]
    tasks[-1] = {**tasks[-1], "when": "not gpushare_extender_keeps_runtime_class | bool"}
    hosts = {name: {"gpus": found, **variables} for name, (found, variables, _words) in FACTS.items()}
    results = evaluate_role(
        "gpushare",
        hosts,
        "[_extender_sharing_expected | int, _extender_sharing_count | int] | string",
        {"block": tasks},
        facts={"nvml": {"source": "nvml", "error": None, "gpus": "{{ gpus }}"}},
        gpu_preflight_container_runtime="containerd",
        __gpushare_runtime_probe={"default_runtime": "runc"},
    )
    for name, (_found, _variables, words) in FACTS.items():
        assert str(results[name]).startswith(words), results[name]


def host_with_pods(capacity, expected, allocated=0, unit="GiB", elsewhere=0, drained=(), **more):
    """Variables of a host: capacity and allocated units of its node, the unit of the plugin, units allocated elsewhere, drained nodes."""
    node = {"name": "{{ inventory_hostname }}", "capacity": capacity, "expected": expected, "allocated": allocated}
    containers = [{"command": ["gpushare-device-plugin-v2", f"--memory-unit={unit}"]}]
    plugin = {"spec": {"template": {"spec": {"containers": containers}}}}
    return {
        "__gpushare_before": {"nodes": [node]},
        "__gpushare_everywhere": {"nodes": [node, {"name": "far", "allocated": elsewhere}]},
        "__gpushare_plugin_before": {"found": [[plugin] if unit else []]},
        "gpu_sharing_plan": {"nodes": [{"node": name, "drain": "gpu"} for name in drained]},
        **more,
    }


#: A host, and the nodes whose pods would have wrong amounts.
WITH_PODS = {
    "unchanged": (host_with_pods(16, 16, allocated=8), []),
    "idle": (host_with_pods(16, 16384, unit="MiB"), []),
    "new": (host_with_pods(0, 16, unit=""), []),
    # Its kubelet has rejoined, or its plugin does not run; a run corrects that.
    "no-capacity": (host_with_pods(0, 16, allocated=8), []),
    "other-unit": (host_with_pods(16, 16384, allocated=8, gpushare_memory_unit="MiB"), ["far", "other-unit"]),
    "other-unit-elsewhere": (host_with_pods(0, 16, unit="MiB", elsewhere=5), ["far"]),
    "no-capacity-and-other-unit": (host_with_pods(0, 16, allocated=8, unit="MiB"), ["no-capacity-and-other-unit"]),
    "fewer-gpus": (host_with_pods(32, 16, allocated=8), ["fewer-gpus"]),
    "no-gpus": (host_with_pods(16, 0, allocated=8), []),
    "allowed": (host_with_pods(32, 16, allocated=8, gpushare_change_used=True), []),
    "drained": (host_with_pods(32, 16, allocated=8, drained=["drained"]), []),
    "another-drained": (host_with_pods(32, 16, allocated=8, drained=["far"]), ["another-drained"]),
}
WITH_PODS["other-unit"][0]["__gpushare_everywhere"]["nodes"][1]["allocated"] = 3


def test_pods_that_hold_memory_block_a_change_of_its_amount(evaluate_role):
    task = find_task("gpushare", "api_units", "Require that the unit of allocated")
    results = evaluate_role("gpushare", {name: host for name, (host, _nodes) in WITH_PODS.items()}, "''", task)
    for name, (_host, nodes) in WITH_PODS.items():
        assert bool(results[name]) == bool(nodes), (name, results[name])
        assert results[name] is None or results[name].startswith(f"Node {', '.join(nodes)}: pods use" if nodes else "")


PUBLISHED = {"__gpushare_runtime_probe": {"default_runtime": "runc"}}
#: The default runtime of a host whose pods cannot request one, and whether that is refused.
RUNTIMES = {
    "runc": (PUBLISHED, True),
    "no-answer": ({"__gpushare_runtime_probe": {"default_runtime": None}}, True),
    "nvidia": ({"__gpushare_runtime_probe": {"default_runtime": "nvidia"}}, False),
    "declared": ({**PUBLISHED, "containerd_nvidia_set_default": True}, False),
    "declared-for-another": ({**PUBLISHED, "docker_nvidia_set_default": True}, True),
    "of-another-name": (
        {"__gpushare_runtime_probe": {"default_runtime": "gpu"}, "containerd_nvidia_runtime_name": "gpu"},
        False,
    ),
}


def test_default_runtime_of_pods_without_a_runtime_class_must_be_nvidias(evaluate_role):
    task = find_task("gpushare", "runtime", "Require NVIDIA's runtime")
    results = evaluate_role("gpushare", {name: host for name, (host, _refused) in RUNTIMES.items()}, "''", task)
    assert {name for name, message in results.items() if message} == {
        name for name, (_host, refused) in RUNTIMES.items() if refused
    }
    assert "Host runc: pods get the runtime runc and see no GPU, because the extender acs/" in results["runc"]
    assert "set containerd_nvidia_set_default to true" in results["runc"]
    assert "the runtime of a daemon that does not answer" in results["no-answer"]
