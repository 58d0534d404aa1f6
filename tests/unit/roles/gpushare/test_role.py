# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role gpushare makes of its variables and of what it sees, and what it refuses."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
import yaml

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT, check_pods, task_of

NOW = datetime.now(timezone.utc)
#: When the role runs.
DAY = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
TODAY, YESTERDAY = "2026-03-01", "2026-02-28"
RUNNING = "__gpushare_running"


def before(moment, days, form="%Y-%m-%dT%H:%M:%SZ"):
    return (moment - timedelta(days=days)).strftime(form)


def running(record, *days, moment=DAY):
    """What was found of the device plugin, last started anew on a day, and of the pods, so many days old."""
    marks = {"gpu-kubernetes/restarted": record} if record is not None else {}
    plugin = {"spec": {"template": {"metadata": {"annotations": marks}}}}
    pods = [{"metadata": {"creationTimestamp": before(moment, each)}} for each in days]
    return {RUNNING: {"found": [[plugin], pods, []]}}


#: What is there, and on which day all start anew.
AGES = {
    "young": (running("", 10, 179), ""),
    "of-age": (running("", 10, 181), TODAY),
    "of-age-without-a-mark": (running(None, 181), TODAY),
    "of-age-again": (running(before(DAY, 181, "%Y-%m-%d"), 181), TODAY),
    # The node is away, and keeps the pod from before.
    "started-anew-already": (running(YESTERDAY, 0, 200), YESTERDAY),
    "sooner": ({"gpushare_restart_after_days": 5, **running("", 6)}, TODAY),
    "never": ({"gpushare_restart_after_days": 0, **running("", 400)}, ""),
}


def test_when_pods_start_anew(made):
    clock = int(DAY.timestamp())
    told = made(
        "gpushare", {name: host for name, (host, _day) in AGES.items()}, "__gpushare_restarted", __gpushare_clock=clock
    )
    assert {name: day or "" for name, day in told.items()} == {name: day for name, (_host, day) in AGES.items()}


@pytest.mark.parametrize("role", ["gpushare", "nano_gpu"])
@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Pago_Pago"])
def test_the_age_of_pods_is_the_same_in_each_time_zone(made, role, zone):
    hosts = {
        name: {f"__{role}_running": running("", days, moment=NOW)[RUNNING]}
        for name, days in (("young", 179.9), ("old", 180.1))
    }
    assert made(role, hosts, f"__{role}_aged", environment={"TZ": zone}) == {"young": False, "old": True}


def service(address):
    found = [{"spec": {"clusterIP": address}}] if address else []
    return {"gpushare_extender_topology": "service", "__gpushare_service": {"found": [found]}}


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


def test_where_kube_scheduler_asks(made):
    told = made(
        "gpushare",
        {name: host for name, (host, _url) in URLS.items()},
        "[__gpushare_scheduler_extender.urlPrefix, __gpushare_scheduler_extender.enableHTTPS,"
        " __gpushare_extender_objects | map(attribute='kind') | list | last]",
    )
    assert {name: url or "" for name, (url, _https, _kind) in told.items()} == {
        name: url for name, (_host, url) in URLS.items()
    }
    assert {name: kind for name, (_url, _https, kind) in told.items()} == {
        name: "DaemonSet" if name == "beside" else "Service" for name in URLS
    }
    assert [name for name, (_url, https, _kind) in told.items() if https] == ["own"]


LOCKED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


def test_accounts_and_containers_may_do_what_the_programs_do_and_no_more(made):
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
    image = {"registry": "registry.example.com:5000", "repository": "mine", "tag": "sha256:abc"}
    own = {
        f"gpushare_{part}_image_{name}": value
        for part in ("extender", "device_plugin")
        for name, value in image.items()
    }
    host = {"gpushare_extender_topology": "service", "gpushare_extender_port": 9, "gpushare_memory_unit": "MiB", **own}
    told = made("gpushare", {"own": host}, "[__gpushare_extender_workload, __gpushare_plugin_pod_spec]")
    workload, plugin = told["own"]
    [extender], [container] = workload["spec"]["template"]["spec"]["containers"], plugin["containers"]
    assert [extender["image"], container["image"]] == ["registry.example.com:5000/mine@sha256:abc"] * 2
    assert "--memory-unit=MiB" in container["command"]
    assert [each["containerPort"] for each in extender["ports"]] == [9]
    assert {"name": "PORT", "value": "9"} in extender["env"]


def test_extender_pods_beside_kube_scheduler_run_on_control_planes_of_either_label(made):
    told = made("gpushare", {"beside": {}}, "__gpushare_extender_workload.spec.template.spec")
    affinity = told["beside"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    keys = {term["matchExpressions"][0]["key"].rpartition("/")[2] for term in affinity["nodeSelectorTerms"]}
    assert keys == {"control-plane", "master"}
    assert {each["key"].rpartition("/")[2] for each in told["beside"]["tolerations"]} >= keys


def test_the_service_finds_the_extender_of_its_topology_alone(made):
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
#: GPUs and variables of hosts, and how much their node is to offer, of how many GPUs with how much each, or why not.
FACTS = {
    "one-small": (gpus(1, 4), OWN, "[4096, 1, 4096]"),
    "two-small": (gpus(2, 6), OWN, "[12288, 2, 6144]"),
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
    "different-allowed": (gpus(1, 4) + gpus(1, 6), {**OWN, "gpushare_allow_unequal_gpus": True}, "[8192, 2, 4096]"),
}


def test_what_a_node_is_to_offer(refusals):
    hosts = {name: {"gpus": found, **variables} for name, (found, variables, _words) in FACTS.items()}
    # Hosts of one play have to agree on the extender.
    published = {"published": hosts.pop("published")}
    told = refusals(
        "gpushare",
        ["facts"],
        hosts,
        published,
        facts={"nvml": {"source": "nvml", "error": None, "gpus": "{{ gpus }}"}},
        fact="[__gpushare_host.expected, __gpushare_host.gpus, __gpushare_host.each] | string",
        extra={
            "gpu_preflight_gpus": {"ansible_facts": {}},
            "gpu_preflight_container_runtime": "containerd",
            "__gpushare_runtime_probe": {"default_runtime": "runc"},
        },
    )
    for name, (_found, _variables, words) in FACTS.items():
        assert str(told[name]).startswith(words), told[name]


def test_the_plugin_finds_the_kubelets_folder(made):
    hosts = {"usual": {}, "elsewhere": {"gpushare_kubelet_dir": "/var/lib/k0s/kubelet"}}
    told = made("gpushare", hosts, "__gpushare_plugin_pod_spec")
    folders = {name: spec["volumes"][0]["hostPath"]["path"] for name, spec in told.items()}
    assert folders == {"usual": "/var/lib/kubelet/device-plugins", "elsewhere": "/var/lib/k0s/kubelet/device-plugins"}
    # The plugin knows but one.
    for spec in told.values():
        assert spec["containers"][0]["volumeMounts"][0]["mountPath"] == "/var/lib/kubelet/device-plugins"


def offers(capacity, expected, held=0, unit="GiB", elsewhere=0, **more):
    """A host whose node offers so much, of which pods hold some; a device plugin of a unit; what pods hold on another node."""
    node = {"name": "{{ inventory_hostname }}", "capacity": capacity, "expected": expected, "allocated": held}
    containers = [{"command": ["gpushare-device-plugin-v2", f"--memory-unit={unit}"]}]
    plugin = {"spec": {"template": {"spec": {"containers": containers}}}}
    return {
        "__gpushare_before": {"nodes": [node]},
        "__gpushare_everywhere": {"nodes": [node, {"name": "far", "allocated": elsewhere}]},
        "__gpushare_plugin_before": {"found": [[plugin] if unit else []]},
        "__gpushare_host": {"node": "{{ inventory_hostname }}"},
        **more,
    }


#: The host, and whose pods would be counted wrong.
HELD = {
    "as-it-is": (offers(16, 16, held=8), []),
    "idle": (offers(16, 16384, unit="MiB"), []),
    "new": (offers(0, 16, unit=""), []),
    # Its kubelet has joined anew, or its plugin is away, which a run mends.
    "away": (offers(0, 16, held=8), []),
    "other-unit": (offers(16, 16384, held=8, gpushare_memory_unit="MiB"), ["far", "other-unit"]),
    "other-unit-beyond": (offers(0, 16, unit="MiB", elsewhere=5), ["far"]),
    "away-and-other-unit": (offers(0, 16, held=8, unit="MiB"), ["away-and-other-unit"]),
    "fewer-gpus": (offers(32, 16, held=8), ["fewer-gpus"]),
    "no-gpus": (offers(16, 0, held=8), []),
    "allowed": (offers(32, 16, held=8, gpushare_change_used=True), []),
    "emptied": (offers(32, 16, held=8, __gpushare_emptied=["emptied"]), []),
    "another-emptied": (offers(32, 16, held=8, __gpushare_emptied=["far"]), ["another-emptied"]),
}
HELD["other-unit"][0]["__gpushare_everywhere"]["nodes"][1]["allocated"] = 3
ABSENT = {"gpushare_state": "absent"}
#: The same where gpushare is removed, and whose pods would keep GPUs that others get.
REMOVED = {
    "removed-idle": (offers(16, 0, **ABSENT), []),
    "removed-held": (offers(16, 0, held=8, **ABSENT), ["removed-held"]),
    "removed-allowed": (offers(16, 0, held=8, gpushare_remove_used=True, **ABSENT), []),
    "removed-emptied": (offers(16, 0, held=8, __gpushare_emptied=["removed-emptied"], **ABSENT), []),
    "removed-another-emptied": (
        offers(16, 0, held=8, __gpushare_emptied=["far"], **ABSENT),
        ["removed-another-emptied"],
    ),
}


def test_pods_that_hold_memory_stop_a_change_of_it_and_its_removal(made):
    tasks = [
        {**task_of("gpushare", f"check_{state}", words), "when": f"gpushare_state == '{state}'"}
        for state, words in (("present", "Require that the unit of allocated"), ("absent", "Require that no pod uses"))
    ]
    rows = {**HELD, **REMOVED}
    told = made("gpushare", {name: host for name, (host, _nodes) in rows.items()}, "''", {"block": tasks})
    for name, (_host, nodes) in rows.items():
        assert bool(told[name]) == bool(nodes), (name, told[name])
        assert told[name] is None or told[name].startswith(f"Node {', '.join(nodes)}: pods use" if nodes else "")


def counted(ready=True, ok=True, pod="p"):
    return {"name": "n", "ready": ready, "ok": ok, "plugin_pod": pod}


def test_the_plugin_starts_anew_where_it_has_not_told_its_gpus(made):
    nodes = [
        {**counted(), "name": "good"},
        {**counted(ok=False), "name": "zero"},
        {**counted(ok=False, ready=False), "name": "away"},
        {**counted(ok=False, pod=""), "name": "new"},
    ]
    host = {"__gpushare_host": {"node": "n", "expected": 32, "gpus": 2}, "__gpushare_counts_before": {"nodes": nodes}}
    told = made(
        "gpushare", {"n": host}, "[__gpushare_uncounted | map(attribute='name') | list, __gpushare_expected_counts]"
    )
    assert told == {"n": [["zero"], {"n": 2}]}


def test_a_node_that_has_lost_its_gpus_keeps_no_number_of_them(made):
    """The argument of the task, as Ansible computes it."""
    task = task_of("gpushare", "present", "Remove the GPU count")
    nodes = task["gpu.kubernetes.node_extended_resources"]["nodes"]
    hosts = {
        name: {"__gpushare_host": {"node": name, "expected": memory}} for name, memory in (("has", 32), ("lost", 0))
    }
    seen = {"ansible.builtin.set_fact": {"nodes": nodes}, "when": task["when"]}
    assert made("gpushare", hosts, "nodes", seen) == {"has": ["lost"], "lost": ["lost"]}


PUBLISHED = {"__gpushare_runtime_probe": {"default_runtime": "runc"}}
#: The default runtime of a host whose pods cannot ask for one, and whether that is refused; where they can, nobody looks.
RUNTIMES = {
    "runc": (PUBLISHED, True),
    "nobody-answers": ({"__gpushare_runtime_probe": {"default_runtime": None}}, True),
    "nvidia": ({"__gpushare_runtime_probe": {"default_runtime": "nvidia"}}, False),
    "declared": ({**PUBLISHED, "containerd_nvidia_set_default": True}, False),
    "declared-for-another": ({**PUBLISHED, "docker_nvidia_set_default": True}, True),
    "of-another-name": (
        {"__gpushare_runtime_probe": {"default_runtime": "gpu"}, "containerd_nvidia_runtime_name": "gpu"},
        False,
    ),
}


def test_pods_that_cannot_ask_for_a_runtime_have_to_get_nvidias(made):
    task = task_of("gpushare", "facts_runtime", "Require NVIDIA's runtime")
    told = made("gpushare", {name: host for name, (host, _refused) in RUNTIMES.items()}, "''", task)
    assert {name for name, why in told.items() if why} == {
        name for name, (_host, refused) in RUNTIMES.items() if refused
    }
    assert "Host runc: pods get the runtime runc and see no GPU, because the extender acs/" in told["runc"]
    assert "set containerd_nvidia_set_default to true" in told["runc"]
    assert "the runtime of a daemon that does not answer" in told["nobody-answers"]


UNSEEN = {"spec": {}, "status": {"phase": "Pending"}}
WAITING = {"spec": {"nodeName": "n"}, "status": {"containerStatuses": [{"state": {"waiting": {"reason": "ErrImage"}}}]}}
REFUSED = {"spec": {}, "status": {"conditions": [{"type": "PodScheduled", "message": "0/3 nodes"}]}}
#: The pods of a workload that is not ready, and what is told of them.
TROUBLES = {
    "no-pod": ([], "it has no pod"),
    "no-scheduler": ([UNSEEN], "no scheduler has processed its pods; check that kube-scheduler runs"),
    "refused": ([REFUSED], "0/3 nodes"),
    "waits": ([WAITING, UNSEEN], "ErrImage"),
}


def test_pods_that_no_scheduler_has_looked_at_are_told_of(made):
    hosts = {name: {"__kube_objects_waited": {"found": [[], pods]}} for name, (pods, _words) in TROUBLES.items()}
    told = made("kube_objects", hosts, "__kube_objects_trouble")
    for name, (_pods, words) in TROUBLES.items():
        assert told[name].startswith(words), told[name]
    assert "playbook deploy_gpushare" in told["no-scheduler"]


def test_every_entry_point_of_the_playbooks_is_described():
    specs = yaml.safe_load((ROOT / "roles" / "gpushare" / "meta" / "argument_specs.yml").read_text())["argument_specs"]
    used = {"main"}
    for playbook in (ROOT / "playbooks").glob("*.yml"):
        for play in yaml.safe_load(playbook.read_text()):
            for task in play.get("tasks", []):
                included = next((task[key] for key in task if key.endswith(("import_role", "include_role"))), {})
                if included.get("name") == "gpu.kubernetes.gpushare":
                    used.add(included.get("tasks_from", "main"))
    assert sorted(used) == sorted(specs)
