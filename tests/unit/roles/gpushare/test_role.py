# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects and requirements of the role gpushare."""

from __future__ import annotations

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import check_pods, task_of


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


def test_address_of_the_extender_follows_the_topology(made):
    told = made(
        "gpushare",
        {name: host for name, (host, _url) in URLS.items()},
        "[__extender_sharing_own_url, __gpushare_extender_objects | map(attribute='kind') | list | last]",
    )
    assert {name: url or "" for name, (url, _kind) in told.items()} == {
        name: url for name, (_host, url) in URLS.items()
    }
    assert {name: kind for name, (_url, kind) in told.items()} == {
        name: "DaemonSet" if name == "beside" else "Service" for name in URLS
    }


LOCKED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


def test_accounts_and_containers_have_only_the_rights_that_the_programs_need(made):
    hosts = {
        "beside": {"gpushare_extender_image_tag": "1.12"},
        "service": {"gpushare_extender_topology": "service"},
    }
    told = made("gpushare", hosts, "__gpushare_extender_objects + __gpushare_plugin_objects")
    objects = {name: {(item["kind"], item["metadata"]["name"]): item for item in items} for name, items in told.items()}
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
    may = {
        (host, name): {
            (resource, verb) for rule in item["rules"] for resource in rule["resources"] for verb in rule["verbs"]
        }
        for host, items in objects.items()
        for (kind, name), item in items.items()
        if kind == "ClusterRole"
    }
    reads = {(what, verb) for what in ("nodes", "pods") for verb in ("get", "list", "watch")}
    binds = {("pods", "update"), ("pods", "patch"), ("pods/binding", "create")}
    # Later images than the published one read which GPUs are unhealthy.
    assert may["service", "gpushare-schd-extender"] == reads | binds
    more = {("configmaps", verb) for verb in ("get", "list", "watch")}
    assert may["beside", "gpushare-schd-extender"] == reads | binds | more
    assert may["beside", "gpushare-device-plugin"] == {
        ("nodes", "get"),
        ("nodes/status", "patch"),
        *((("pods", verb)) for verb in ("get", "list", "patch", "update")),
    }


def test_images_unit_and_port_are_variables(made):
    image = {"registry": "registry.example.com:5000", "repository": "mine", "tag": f"sha256:{'0a' * 32}"}
    own = {
        f"gpushare_{part}_image_{name}": value
        for part in ("extender", "device_plugin")
        for name, value in image.items()
    }
    host = {"gpushare_extender_topology": "service", "gpushare_extender_port": 9, "gpushare_memory_unit": "MiB", **own}
    told = made("gpushare", {"own": host}, "[__gpushare_extender_workload, __gpushare_plugin_pod_spec]")
    workload, plugin = told["own"]
    [extender], [container] = workload["spec"]["template"]["spec"]["containers"], plugin["containers"]
    assert [extender["image"], container["image"]] == [f"registry.example.com:5000/mine@sha256:{'0a' * 32}"] * 2
    assert "--memory-unit=MiB" in container["command"]
    assert [each["containerPort"] for each in extender["ports"]] == [9]
    assert {"name": "PORT", "value": "9"} in extender["env"]


def test_extender_pods_beside_kube_scheduler_run_on_control_planes_of_either_label(made):
    told = made("gpushare", {"beside": {}}, "__gpushare_extender_workload.spec.template.spec")
    affinity = told["beside"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    keys = {term["matchExpressions"][0]["key"].rpartition("/")[2] for term in affinity["nodeSelectorTerms"]}
    assert keys == {"control-plane", "master"}
    assert {each["key"].rpartition("/")[2] for each in told["beside"]["tolerations"]} >= keys


def test_service_selects_only_the_extender_of_its_topology(made):
    """The other one goes last when the topology changes. Selectors of workloads cannot be changed and stay as they were."""
    hosts = {name: {"gpushare_extender_topology": name} for name in ("control_plane", "service")}
    told = made("gpushare", hosts, "[__gpushare_extender_workload.spec, __gpushare_extender_service.spec.selector]")
    labels = {name: spec["template"]["metadata"]["labels"].items() for name, (spec, _selector) in told.items()}
    for spec, _selector in told.values():
        assert spec["selector"] == {"matchLabels": {"app": "gpushare", "component": "gpushare-schd-extender"}}
    selector = told["service"][1].items()
    assert selector <= labels["service"]
    assert not selector <= labels["control_plane"]


def gpus(number, gibibytes):
    return [{"name": "GPU", "lost": False, "memory_total_bytes": gibibytes * 2**30}] * number


OWN = {"gpushare_memory_unit": "MiB", "gpushare_extender_image_tag": "c0b6141"}
#: GPUs and variables of hosts, and how much memory their node is going to report, of how many GPUs, or why not.
FACTS = {
    "one-small": (gpus(1, 4), OWN, "[4096, 1]"),
    "two-small": (gpus(2, 6), OWN, "[12288, 2]"),
    # Its pods cannot ask for a runtime, and get the one that is asked about there alone.
    "published": (gpus(2, 16), {}, "Host published: pods get the runtime runc and see no GPU"),
    "large": (
        gpus(1, 80),
        OWN,
        "Host large has 81920 MiB of GPU memory, and the kubelet rejects messages of more than 4 MiB",
    ),
    "different": (
        gpus(1, 6) + gpus(1, 4),
        OWN,
        "Host different has GPUs with 6.00 GB, 4.00 GB, and gpushare counts the memory of the first GPU for each",
    ),
    "different-allowed": (gpus(1, 4) + gpus(1, 6), {**OWN, "gpushare_allow_unequal_gpus": True}, "[8192, 2]"),
}


def test_expected_memory_of_a_node_and_hosts_that_are_refused(made):
    """The tasks of the preflight that need the host alone."""
    files = {
        "preflight": ["Refuse GPUs of different size", "Refuse more units"],
        "runtime": ["Require NVIDIA's runtime"],
    }
    tasks = [task_of("gpushare", file, words) for file, names in files.items() for words in names]
    tasks[-1] = {**tasks[-1], "when": "not gpushare_extender_keeps_runtime_class | bool"}
    hosts = {name: {"gpus": found, **variables} for name, (found, variables, _words) in FACTS.items()}
    told = made(
        "gpushare",
        hosts,
        "[_extender_sharing_expected | int, _extender_sharing_count | int] | string",
        {"block": tasks},
        facts={"nvml": {"source": "nvml", "error": None, "gpus": "{{ gpus }}"}},
        gpu_preflight_container_runtime="containerd",
        __gpushare_runtime_probe={"default_runtime": "runc"},
    )
    for name, (_found, _variables, words) in FACTS.items():
        assert str(told[name]).startswith(words), told[name]


def test_device_plugin_uses_the_folder_of_the_kubelet(made):
    hosts = {"usual": {}, "elsewhere": {"gpushare_kubelet_dir": "/var/lib/k0s/kubelet"}}
    told = made("gpushare", hosts, "__gpushare_plugin_pod_spec")
    folders = {name: spec["volumes"][0]["hostPath"]["path"] for name, spec in told.items()}
    assert folders == {"usual": "/var/lib/kubelet/device-plugins", "elsewhere": "/var/lib/k0s/kubelet/device-plugins"}
    # The plugin knows but one.
    for spec in told.values():
        assert spec["containers"][0]["volumeMounts"][0]["mountPath"] == "/var/lib/kubelet/device-plugins"


def offers(capacity, expected, held=0, unit="GiB", elsewhere=0, drained=(), **more):
    """A host whose node offers so much, of which pods hold some; a device plugin of a unit; what pods hold on another node; nodes that are drained."""
    node = {"name": "{{ inventory_hostname }}", "capacity": capacity, "expected": expected, "allocated": held}
    containers = [{"command": ["gpushare-device-plugin-v2", f"--memory-unit={unit}"]}]
    plugin = {"spec": {"template": {"spec": {"containers": containers}}}}
    return {
        "__gpushare_before": {"nodes": [node]},
        "__gpushare_everywhere": {"nodes": [node, {"name": "far", "allocated": elsewhere}]},
        "__gpushare_plugin_before": {"found": [[plugin] if unit else []]},
        "gpu_sharing_plan": {"nodes": [{"node": name, "drain": "gpu"} for name in drained]},
        **more,
    }


#: The host, and the nodes whose pods would be counted wrong.
HELD = {
    "as-it-is": (offers(16, 16, held=8), []),
    "idle": (offers(16, 16384, unit="MiB"), []),
    "new": (offers(0, 16, unit=""), []),
    # Its kubelet has rejoined, or its plugin is away; a run corrects that.
    "away": (offers(0, 16, held=8), []),
    "other-unit": (offers(16, 16384, held=8, gpushare_memory_unit="MiB"), ["far", "other-unit"]),
    "other-unit-beyond": (offers(0, 16, unit="MiB", elsewhere=5), ["far"]),
    "away-and-other-unit": (offers(0, 16, held=8, unit="MiB"), ["away-and-other-unit"]),
    "fewer-gpus": (offers(32, 16, held=8), ["fewer-gpus"]),
    "no-gpus": (offers(16, 0, held=8), []),
    "allowed": (offers(32, 16, held=8, gpushare_change_used=True), []),
    "emptied": (offers(32, 16, held=8, drained=["emptied"]), []),
    "another-emptied": (offers(32, 16, held=8, drained=["far"]), ["another-emptied"]),
}
HELD["other-unit"][0]["__gpushare_everywhere"]["nodes"][1]["allocated"] = 3


def test_pods_that_hold_memory_block_a_change_of_its_amount(made):
    task = task_of("gpushare", "api_units", "Require that the unit of allocated")
    told = made("gpushare", {name: host for name, (host, _nodes) in HELD.items()}, "''", task)
    for name, (_host, nodes) in HELD.items():
        assert bool(told[name]) == bool(nodes), (name, told[name])
        assert told[name] is None or told[name].startswith(f"Node {', '.join(nodes)}: pods use" if nodes else "")


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


def test_default_runtime_of_pods_without_a_runtime_class_has_to_be_nvidias(made):
    task = task_of("gpushare", "runtime", "Require NVIDIA's runtime")
    told = made("gpushare", {name: host for name, (host, _refused) in RUNTIMES.items()}, "''", task)
    assert {name for name, why in told.items() if why} == {
        name for name, (_host, refused) in RUNTIMES.items() if refused
    }
    assert "Host runc: pods get the runtime runc and see no GPU, because the extender acs/" in told["runc"]
    assert "set containerd_nvidia_set_default to true" in told["runc"]
    assert "the runtime of a daemon that does not answer" in told["no-answer"]
