# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects of nano-gpu with each API, and which hosts are refused."""

from __future__ import annotations

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._scheduler import extenders
from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import check_pods, find_task

#: The settings that the role exports for kube-scheduler.
SETTINGS = find_task("_extender_sharing", "settings", "Export the scheduler")["ansible.builtin.set_fact"][
    "gpu_sharing_extender"
]["settings"].strip()[2:-2]
SERVICE = {"found": [[{"spec": {"clusterIP": "10.96.0.9"}}]]}


@pytest.fixture
def render(evaluate_role):
    """The objects of each host's variables by kind and name, and the settings for kube-scheduler."""

    def render_hosts(**hosts):
        found = evaluate_role(
            "nano_gpu",
            {name: {"__extender_sharing_service": SERVICE, **variables} for name, variables in hosts.items()},
            "[__nano_gpu_agent_objects + __nano_gpu_extender_objects, " + SETTINGS + "]",
        )
        return [
            ({(item["kind"], item["metadata"]["name"]): item for item in objects}, extender)
            for objects, extender in (found[name] for name in hosts)
        ]

    return render_hosts


def agent_of(objects):
    return objects["DaemonSet", "nano-gpu-agent"]["spec"]["template"]["spec"]


def extender_of(objects):
    [container] = objects["Deployment", "nano-gpu-scheduler"]["spec"]["template"]["spec"]["containers"]
    return container


def test_objects_and_settings_follow_the_variables(render):
    service = {"found": [[{"spec": {"clusterIP": "fd00::9"}}]]}
    image = {"registry": "registry.example.com:5000", "repository": "own", "tag": f"sha256:{'0a' * 32}"}
    own_image = {f"nano_gpu_extender_image_{name}": value for name, value in image.items()}
    [plain, (allowing, _settings), elastic, own, (_objects, without_service)] = render(
        plain={},
        allowing={"nano_gpu_replace_host_binaries": True},
        elastic={
            "nano_gpu_api": "elasticgpu",
            "nano_gpu_policy": "spread",
            "nano_gpu_weight": 5,
            "__extender_sharing_service": service,
        },
        own={**own_image, "nano_gpu_extender_url": "https://lb.example.com/scheduler"},
        early={"__extender_sharing_service": {"found": [[]]}},
    )
    check_defaults(*plain, allowing)
    check_other_api(*elastic)
    check_own_image_and_address(*own)
    assert without_service["urlPrefix"] == ""


def check_defaults(objects, settings, allowing):
    """Accounts and containers have only the required rights."""
    assert "runtimeClassName" not in agent_of(objects)
    assert settings["urlPrefix"] == "http://10.96.0.9:39999/scheduler"
    assert [each["name"] for each in settings["managedResources"]] == ["nano-gpu/gpu-percent"]
    assert extenders.check([settings]) == []
    check_reach(agent_of(objects), agent_of(allowing))
    check_rights(objects)
    for each in (objects, allowing):
        check_pods(each, extender="nano-gpu-scheduler", plugin="nano-gpu-agent")


def check_reach(agent, allowed):
    """The agent reaches programs of the host only if that is allowed."""
    assert "initContainers" not in agent
    paths = {volume["name"]: volume["hostPath"]["path"] for volume in agent["volumes"]}
    assert paths == {
        "device-plugin": "/var/lib/kubelet/device-plugins",
        "pod-resources": "/var/lib/kubelet/pod-resources",
        "data": "/var/lib/nanogpu",
        "dev": "/dev",
    }
    [installer] = allowed["initContainers"]
    assert (installer["command"], installer["image"]) == (["/usr/bin/install.sh"], allowed["containers"][0]["image"])
    [mount] = installer["volumeMounts"]
    [volume] = [each for each in allowed["volumes"] if each["name"] == mount["name"]]
    # Upstream mounts the whole host.
    assert (volume["hostPath"]["path"], mount["mountPath"]) == ("/usr/bin", "/host/usr/bin")
    for container in (installer, *allowed["containers"]):
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert "privileged" not in container["securityContext"]


def check_rights(objects):
    """The accounts have only the rights that the programs need."""
    permissions = {
        name: {(resource, verb) for rule in item["rules"] for resource in rule["resources"] for verb in rule["verbs"]}
        for (kind, name), item in objects.items()
        if kind == "ClusterRole"
    }
    reads = {("pods", verb) for verb in ("get", "list", "watch")}
    assert permissions["nano-gpu-agent"] == reads
    nodes = {("nodes", verb) for verb in ("get", "list", "watch")}
    assert permissions["nano-gpu-scheduler"] == reads | nodes | {("pods", "update"), ("pods/binding", "create")}


def check_other_api(objects, settings):
    extender = extender_of(objects)
    assert extender["image"] == "ccr.ccs.tencentyun.com/elasticai/elastic-gpu-scheduler:latest"
    assert extender["command"][1:] == ["-v", "2", "-priority", "spread", "-mode", "gpushare"]
    agent = agent_of(objects)
    # Its agent exits without this flag.
    assert "-gpuPluginName=gpushare" in agent["containers"][0]["command"]
    # It calls NVML.
    assert agent["runtimeClassName"] == "nvidia"
    assert (settings["urlPrefix"], settings["weight"]) == ("http://[fd00::9]:39999/scheduler", 5)
    assert [each["name"] for each in settings["managedResources"]] == [
        "elasticgpu.io/gpu-core",
        "elasticgpu.io/gpu-memory",
    ]
    assert extenders.check([settings]) == []


def check_own_image_and_address(objects, settings):
    assert extender_of(objects)["image"] == f"registry.example.com:5000/own@sha256:{'0a' * 32}"
    assert (settings["urlPrefix"], settings["enableHTTPS"]) == ("https://lb.example.com/scheduler", True)


def gpu(memory=40, **more):
    return {"name": "GPU", "lost": False, "memory_total_bytes": memory * 2**30, **more}


READY = {"nano_gpu_agent_needs_host_binaries": False}
#: The GPUs of a host and its variables, and a part of the message, or the expected amount of its node.
HOSTS = {
    "not-allowed": (
        [gpu()],
        {},
        "without them pods are counted and scheduled, and see no GPU. Allow it with nano_gpu_replace_host_binaries",
    ),
    "no-gpu": ([], {}, "0"),
    "own-agent": ([gpu(), gpu(), gpu(lost=True)], READY, "200"),
    "mig": ([gpu(mig_mode="enabled")], READY, "has GPUs in MIG mode, which nano_gpu does not support"),
    "mig-that-the-run-leaves": (
        [gpu(mig_mode="enabled")],
        {**READY, "gpu_sharing_node_plan": {"node_absent": ["mig"]}},
        "100",
    ),
    "percents-count-no-memory": ([gpu(180)] * 8, READY, "800"),
    "memory": ([gpu(80)] * 2, {**READY, "nano_gpu_api": "elasticgpu"}, "200"),
    "too-much-memory": (
        [gpu(80)] * 4,
        {**READY, "nano_gpu_api": "elasticgpu"},
        "has 327680 MiB of GPU memory, elasticgpu.io/gpu-memory counts each MiB",
    ),
}


def test_expected_percents_of_a_node_and_hosts_that_are_refused(evaluate_role):
    files = {"_extender_sharing": ["Refuse GPUs in MIG mode"], "nano_gpu": ["Refuse more memory", "Refuse an agent"]}
    tasks = [find_task(role, "preflight", words) for role, names in files.items() for words in names]
    record = {"_extender_sharing_host": {"expected": "{{ _extender_sharing_expected | int }}"}}
    found = evaluate_role(
        "nano_gpu",
        {name: {"gpus": gpus, **variables} for name, (gpus, variables, _words) in HOSTS.items()},
        "_extender_sharing_expected | string",
        {"block": [{"ansible.builtin.set_fact": record}, *tasks]},
        facts={"nvml": {"source": "nvml", "error": None, "gpus": "{{ gpus }}"}},
    )
    for name, (_gpus, _variables, words) in HOSTS.items():
        assert words in str(found[name]), found[name]
        assert (str(found[name]) == words) is words.isdecimal()


def toolkit(version="1.17.8", mode=""):
    return {
        "toolkit": {"toolkit": {"version": version}},
        "mode": f'[nvidia-container-runtime]\nmode = "{mode}"' if mode else "",
    }


HOOK, TOOLKIT = "/usr/bin/nvidia-container-runtime-hook", "/usr/bin/nvidia-container-toolkit"
PRESENT = {"known": False, "existing": [HOOK, TOOLKIT]}
#: What is on a host whose programs may be replaced, and a part of the message.
PROGRAMS = {
    "valid": ({"plan": PRESENT, **toolkit()}, ""),
    "hook-of-an-old-toolkit": ({"plan": PRESENT, **toolkit(mode="auto")}, ""),
    "hook-requested": ({"plan": PRESENT, **toolkit("1.18.0", "legacy")}, ""),
    "without-a-hook": (
        {"plan": PRESENT, **toolkit("1.18.0")},
        "{}: NVIDIA's container toolkit 1.18.0 in the mode auto uses CDI",
    ),
    "cdi": ({"plan": PRESENT, **toolkit(mode="cdi")}, "in the mode cdi uses CDI and calls no hook"),
    "no-toolkit": ({"plan": {"known": False, "existing": [HOOK]}, **toolkit()}, f"Host {{}}: {TOOLKIT} does not exist"),
    "no-toolkit-yet": ({"plan": {"known": False, "existing": []}, "prepared": False, **toolkit("1.18.0")}, ""),
    "replaced-by-others": (
        {"plan": {"known": False, "existing": [HOOK, TOOLKIT, TOOLKIT + "-bak"]}, **toolkit()},
        f"Host {{}}: {TOOLKIT}-bak was left by an agent that has replaced",
    ),
    "replaced-by-the-role": ({"plan": {"known": True, "existing": [HOOK, TOOLKIT, TOOLKIT + "-bak"]}, **toolkit()}, ""),
}


def test_programs_that_cannot_be_replaced_are_refused(evaluate_role):
    tasks = [
        find_task("nano_gpu", "programs", words)
        for words in ("Require that they exist", "Refuse programs", "Require a container toolkit")
    ]
    observed = {
        "__nano_gpu_programs_plan": "{{ plan }}",
        "__nano_gpu_toolkit": "{{ toolkit }}",
        "_extender_sharing_toolkit_file": {"content": "{{ mode | b64encode }}"},
        "_extender_sharing_host": {"prepared": "{{ prepared | default(true) }}"},
    }
    found = evaluate_role(
        "nano_gpu", {name: host for name, (host, _words) in PROGRAMS.items()}, "''", {"block": tasks, "vars": observed}
    )
    for name, (_host, words) in PROGRAMS.items():
        assert bool(found[name]) == bool(words), found[name]
        assert words.format(name) in (found[name] or "")
