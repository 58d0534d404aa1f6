# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role gpushare makes of its variables and of what it sees, and what it refuses."""

from __future__ import annotations

import shutil
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

pytest.importorskip("ansible.playbook", reason="only ansible.module_utils is here")
yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parents[3]
NOW = datetime.now(timezone.utc)
RUNNING = "__gpushare_running"


def ago(days, form="%Y-%m-%dT%H:%M:%SZ"):
    return (NOW - timedelta(days=days)).strftime(form)


def today():
    return datetime.now(timezone.utc).strftime("%Y-%m-%d")


@pytest.fixture
def made(hear, tmp_path):
    """What a role's variables make of each host's: an expression, or why a task of the role fails, or empty."""

    def make(role, hosts, expression, task=None, **more):
        for folder in ("defaults", "vars"):
            shutil.copytree(ROOT / "roles" / role / folder, tmp_path / "roles" / role / folder)
        rescue = [{"ansible.builtin.set_fact": {"told": "{{ ansible_failed_result.msg }}"}}]
        asked = {"ansible.builtin.set_fact": {"told": "{{ " + expression + " }}"}}
        tasks = [{"block": [task, asked] if task else [asked], "rescue": rescue}]
        play = {"hosts": "all", "gather_facts": False, "roles": [role], "tasks": tasks}
        return hear(hosts, [play], "dict(groups.all | zip(groups.all | map('extract', hostvars, 'told')))", **more)

    return make


def task_of(role, file, name):
    tasks = yaml.safe_load((ROOT / "roles" / role / "tasks" / f"{file}.yml").read_text())
    return next(task for task in tasks if name in task["name"])


def running(record, *days):
    """What was found of the device plugin, last started anew on a day, and of the pods, so many days old."""
    marks = {"gpu-kubernetes/restarted": record} if record is not None else {}
    plugin = {"spec": {"template": {"metadata": {"annotations": marks}}}}
    pods = [{"metadata": {"creationTimestamp": ago(each)}} for each in days]
    return {RUNNING: {"found": [[plugin], pods, []]}}


TODAY = "today"
#: What is there, and on which day all start anew; the day before today's where none does.
AGES = {
    "young": (running("", 10, 179), ""),
    "of-age": (running("", 10, 181), TODAY),
    "of-age-without-a-mark": (running(None, 181), TODAY),
    "of-age-again": (running(ago(181, "%Y-%m-%d"), 181), TODAY),
    # The node is away, and keeps the pod from before.
    "started-anew-already": (running(ago(1, "%Y-%m-%d"), 0, 200), ago(1, "%Y-%m-%d")),
    "sooner": ({"gpushare_restart_after_days": 5, **running("", 6)}, TODAY),
    "never": ({"gpushare_restart_after_days": 0, **running("", 400)}, ""),
}


def test_when_pods_start_anew(made):
    begun = today()
    told = made("gpushare", {name: host for name, (host, _day) in AGES.items()}, "__gpushare_restarted")
    days = {begun, today()}  # midnight may have passed
    assert {name: TODAY if day in days else day or "" for name, day in told.items()} == {
        name: day for name, (_host, day) in AGES.items()
    }


@pytest.mark.parametrize("role", ["gpushare", "nano_gpu"])
@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Pago_Pago"])
def test_the_age_of_pods_is_the_same_in_each_time_zone(made, role, zone):
    hosts = {
        name: {f"__{role}_running": running("", days)[RUNNING]} for name, days in (("young", 179.9), ("old", 180.1))
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


def test_what_is_deployed(made):
    """By topology: the rights of the accounts, where pods may land, how they are watched and what they may do on the host."""
    hosts = {
        "beside": {"gpushare_extender_image_tag": "1.12", "gpushare_memory_unit": "MiB"},
        "service": {"gpushare_extender_topology": "service", "gpushare_extender_port": 9},
    }
    told = made("gpushare", hosts, "__gpushare_extender_objects + __gpushare_plugin_objects")
    objects = {name: {(item["kind"], item["metadata"]["name"]): item for item in items} for name, items in told.items()}
    extenders = {
        "beside": objects["beside"]["DaemonSet", "gpushare-schd-extender"]["spec"],
        "service": objects["service"]["Deployment", "gpushare-schd-extender"]["spec"],
    }
    roles = {"control-plane", "master"}
    for name, spec in extenders.items():
        pod = spec["template"]["spec"]
        assert {each["key"].rpartition("/")[2] for each in pod["tolerations"]} >= roles
        assert pod["priorityClassName"] == "system-cluster-critical"
        [container] = pod["containers"]
        port = 9 if name == "service" else 12345
        assert [each["containerPort"] for each in container["ports"]] == [port]
        assert {"name": "PORT", "value": str(port)} in container["env"]
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            assert container[probe]["httpGet"] == {"path": "/version", "port": "http"}
        assert set(container["resources"]) == {"requests", "limits"}
        assert container["securityContext"] == {
            **LOCKED,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "runAsUser": 65534,
        }
    beside, service = (extenders[name]["template"]["spec"] for name in ("beside", "service"))
    terms = beside["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert {term["matchExpressions"][0]["key"].rpartition("/")[2] for term in terms} == roles
    assert (beside.get("hostNetwork"), service.get("hostNetwork")) == (True, None)
    assert (extenders["service"]["replicas"], extenders["service"]["strategy"]) == (1, {"type": "Recreate"})
    plugin = objects["beside"]["DaemonSet", "gpushare-device-plugin-ds"]["spec"]["template"]["spec"]
    assert plugin["nodeSelector"] == {"gpushare": "true"}
    assert plugin["runtimeClassName"] == "nvidia"
    assert {"key": "nvidia.com/gpu", "operator": "Exists"} in plugin["tolerations"]
    [container] = plugin["containers"]
    assert "--memory-unit=MiB" in container["command"]
    assert container["securityContext"] == LOCKED
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


#: GPUs of hosts that count MiB, and how much their node is to offer, of how many GPUs with how much each, or why not.
MEBIBYTES = {
    "one-small": (gpus(1, 4), "[4096, 1, 4096]"),
    "two-small": (gpus(2, 6), "[12288, 2, 6144]"),
    "large": (
        gpus(1, 80),
        "Host large has 81920 MiB of GPU memory, and the kubelet refuses messages of more than 4 MiB",
    ),
}


def test_small_gpus_can_be_counted_in_mebibytes(refusals):
    told = refusals(
        "gpushare",
        ["facts"],
        *[{name: {"gpus": found}} for name, (found, _words) in MEBIBYTES.items()],
        facts={"nvml": {"source": "nvml", "error": None, "gpus": "{{ gpus }}"}},
        fact="[__gpushare_host.expected, __gpushare_host.gpus, __gpushare_host.each] | string",
        variables={
            "gpu_preflight_gpus": {"ansible_facts": {}},
            "gpushare_memory_unit": "MiB",
            "gpushare_extender_image_tag": "c0b6141",
        },
    )
    for name, (_found, words) in MEBIBYTES.items():
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


def test_what_pods_hold_counts_the_same_afterwards(made):
    task = task_of("gpushare", "check_present", "Require that what pods hold")
    told = made("gpushare", {name: host for name, (host, _nodes) in HELD.items()}, "''", task)
    for name, (_host, nodes) in HELD.items():
        assert bool(told[name]) == bool(nodes), (name, told[name])
        assert told[name] is None or told[name].startswith(f"Node {', '.join(nodes)}: pods hold" if nodes else "")


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
    task = task_of("gpushare", "present", "Take the number of GPUs")
    hosts = {
        name: {"__gpushare_host": {"node": name, "expected": memory}} for name, memory in (("has", 32), ("lost", 0))
    }
    nodes = task["gpu.kubernetes.node_extended_resources"]["nodes"].strip("{} ")
    told = made("gpushare", hosts, f"[{task['when']}, {nodes}]")
    assert told == {key: [True, ["lost"]] for key in hosts}


SETTING = "accept-nvidia-visible-devices-envvar-when-unprivileged"
#: The toolkit's settings, how GPUs reach containers, and whether that is refused.
TOOLKITS = {
    "heeds": (f"{SETTING} = true\n", True, False),
    "says-nothing": ("", True, False),
    "does-not": (f"{SETTING} = false\n", True, True),
    "is-not-asked": (f"{SETTING} = false\n", False, False),
}


def test_a_toolkit_that_does_not_heed_the_plugin_is_refused(made):
    task = task_of("gpu_sharing", "gpus", "Require that the container toolkit heeds the plugin")
    hosts = {
        name: {
            "__gpu_sharing_way": "gpushare",
            "__gpu_sharing_by_environment": asked,
            "__gpu_sharing_toolkit_read": {"content": "{{ text | b64encode }}"},
            "text": text,
        }
        for name, (text, asked, _refused) in TOOLKITS.items()
    }
    told = made("gpu_sharing", hosts, "''", task)
    assert {name for name, why in told.items() if why} == {"does-not"}
    assert f"Host does-not: {SETTING} is false" in told["does-not"]
    assert "gpushare gives GPUs to containers by that variable" in told["does-not"]


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
    task = task_of("gpushare", "facts_runtime", "Require that they get NVIDIA's")
    told = made("gpushare", {name: host for name, (host, _refused) in RUNTIMES.items()}, "''", task)
    assert {name for name, why in told.items() if why} == {
        name for name, (_host, refused) in RUNTIMES.items() if refused
    }
    assert "Host runc: pods get the runtime runc and see no GPU, for the extender acs/" in told["runc"]
    assert "set containerd_nvidia_set_default to true" in told["runc"]
    assert "the runtime of a daemon that does not answer" in told["nobody-answers"]


def test_whose_pods_cannot_ask_for_one(made):
    gpus = {"ansible_facts": {"nvml": {"gpus": [{"lost": False, "memory_total_bytes": 16 * 2**30}]}}}
    hosts = {"published": gpus, "own": {**gpus, "gpushare_extender_image_tag": "c0b6141"}}
    when = task_of("gpushare", "facts", "Look which runtime pods get")["when"]
    told = made("gpushare", hosts, " and ".join(f"({condition})" for condition in when[:2]))
    assert told == {"published": True, "own": False}


UNSEEN = {"spec": {}, "status": {"phase": "Pending"}}
WAITING = {"spec": {"nodeName": "n"}, "status": {"containerStatuses": [{"state": {"waiting": {"reason": "ErrImage"}}}]}}
REFUSED = {"spec": {}, "status": {"conditions": [{"type": "PodScheduled", "message": "0/3 nodes"}]}}
#: The pods of a workload that is not ready, and what is told of them.
TROUBLES = {
    "no-pod": ([], "it has no pod"),
    "no-scheduler": ([UNSEEN], "no scheduler has looked at its pods; see whether kube-scheduler is up"),
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
