# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What nano-gpu is given by either of its names, and which hosts and nodes it does not get."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytest.importorskip("ansible.playbook", reason="only ansible.module_utils is here")

import yaml

from ansible_collections.gpu.kubernetes.plugins.module_utils._scheduler import extenders

ROOT = Path(__file__).resolve().parents[3]
BY_HOST = "dict(groups.all | zip(groups.all | map('extract', hostvars) | map(attribute={})))"
SERVICE = {"found": [[{"spec": {"clusterIP": "10.96.0.9"}}]]}


@pytest.fixture
def rendered(hear, tmp_path):
    """What the role makes of the variables of each host: the objects by kind and name, and what kube-scheduler is told."""
    for folder in ("defaults", "vars"):
        shutil.copytree(ROOT / "roles" / "nano_gpu" / folder, tmp_path / "roles" / "nano_gpu" / folder)

    def render(**hosts):
        told = "{{ [__nano_gpu_agent_objects + __nano_gpu_extender_objects, __nano_gpu_scheduler_extender] }}"
        tasks = [{"ansible.builtin.set_fact": {"told": told}}]
        play = {"hosts": "all", "gather_facts": False, "roles": ["nano_gpu"], "tasks": tasks}
        given = {name: {"__nano_gpu_service": SERVICE, **variables} for name, variables in hosts.items()}
        found = hear(given, [play], BY_HOST.format("'told'"))
        return [
            ({(item["kind"], item["metadata"]["name"]): item for item in objects}, extender)
            for objects, extender in (found[name] for name in hosts)
        ]

    return render


def agent_of(objects):
    return objects["DaemonSet", "nano-gpu-agent"]["spec"]["template"]["spec"]


def extender_of(objects):
    [container] = objects["Deployment", "nano-gpu-scheduler"]["spec"]["template"]["spec"]["containers"]
    return container


def test_nano_gpu(rendered):
    [(objects, told), (allowing, _told)] = rendered(plain={}, allowing={"nano_gpu_replace_host_binaries": True})
    extender = extender_of(objects)
    assert extender["image"] == "docker.io/nanogpu/nano-gpu-scheduler:0.3.0"
    assert extender["command"] == ["/usr/bin/nano-gpu-scheduler", "--v", "2", "--priority", "binpack"]
    assert extender["env"] == [{"name": "PORT", "value": "39999"}]
    agent = agent_of(objects)
    [container] = agent["containers"]
    assert container["image"] == "docker.io/nanogpu/nano-gpu-agent:0.3.0"
    assert container["command"] == [
        "/usr/bin/nano-gpu-agent",
        "--nodename=$(NODE_NAME)",
        "--dbfile=/host/var/lib/nanogpu/meta.db",
    ]
    assert agent["nodeSelector"] == {"gpu-kubernetes/nano-gpu": "true"}
    assert "runtimeClassName" not in agent
    assert told == {
        "urlPrefix": "http://10.96.0.9:39999/scheduler",
        "filterVerb": "filter",
        "prioritizeVerb": "priorities",
        "bindVerb": "bind",
        "weight": 1,
        "enableHTTPS": False,
        "nodeCacheCapable": True,
        "ignorable": False,
        "managedResources": [{"name": "nano-gpu/gpu-percent", "ignoredByScheduler": False}],
    }
    assert extenders.check([told]) == []
    check_reach(agent, agent_of(allowing))
    check_rights(objects)


def check_reach(agent, allowed):
    """Programs of the host are out of reach unless that is allowed."""
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
    # Not all of the host, as upstream has it.
    assert (volume["hostPath"]["path"], mount["mountPath"]) == ("/usr/bin", "/host/usr/bin")
    for container in (installer, *allowed["containers"]):
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert "privileged" not in container["securityContext"]


def check_rights(objects):
    """The accounts may do what the programs call, and no more."""
    may = {
        name: {(resource, verb) for rule in item["rules"] for resource in rule["resources"] for verb in rule["verbs"]}
        for (kind, name), item in objects.items()
        if kind == "ClusterRole"
    }
    reads = {("pods", verb) for verb in ("get", "list", "watch")}
    assert may["nano-gpu-agent"] == reads
    nodes = {("nodes", verb) for verb in ("get", "list", "watch")}
    assert may["nano-gpu-scheduler"] == reads | nodes | {("pods", "update"), ("pods/binding", "create")}


def test_other_names_builds_and_addresses(rendered):
    service = {"found": [[{"spec": {"clusterIP": "fd00::9"}}]]}
    image = {"registry": "registry.example.com:5000", "repository": "mine", "tag": "sha256:abc"}
    own = {f"nano_gpu_extender_image_{name}": value for name, value in image.items()}
    [(objects, told), (mine, elsewhere), (_objects, nowhere)] = rendered(
        elastic={
            "nano_gpu_api": "elasticgpu",
            "nano_gpu_policy": "spread",
            "nano_gpu_weight": 5,
            "__nano_gpu_service": service,
        },
        own={**own, "nano_gpu_extender_url": "https://lb.example.com/scheduler"},
        early={"__nano_gpu_service": {"found": [[]]}},
    )
    extender = extender_of(objects)
    assert extender["image"] == "ccr.ccs.tencentyun.com/elasticai/elastic-gpu-scheduler:latest"
    assert extender["command"][1:] == ["-v", "2", "-priority", "spread", "-mode", "gpushare"]
    agent = agent_of(objects)
    # Without this one its agent ends.
    assert "-gpuPluginName=gpushare" in agent["containers"][0]["command"]
    # It asks NVML.
    assert agent["runtimeClassName"] == "nvidia"
    assert (told["urlPrefix"], told["weight"]) == ("http://[fd00::9]:39999/scheduler", 5)
    assert [each["name"] for each in told["managedResources"]] == ["elasticgpu.io/gpu-core", "elasticgpu.io/gpu-memory"]
    assert extenders.check([told]) == []
    assert extender_of(mine)["image"] == "registry.example.com:5000/mine@sha256:abc"
    assert (elsewhere["urlPrefix"], elsewhere["enableHTTPS"]) == ("https://lb.example.com/scheduler", True)
    assert nowhere["urlPrefix"] == ""


def gpu(memory=40, **more):
    return {"name": "GPU", "lost": False, "memory_total_bytes": memory * 2**30, **more}


READY = {"nano_gpu_agent_needs_host_binaries": False}
#: The GPUs of a host and its variables, and what is said of it, or how much it offers.
HOSTS = {
    "nobody-allowed-it": (
        [gpu()],
        {},
        "without them pods are counted and placed, and see no GPU. Allow it with nano_gpu_replace_host_binaries",
    ),
    "no-gpu": ([], {}, "0"),
    "own-agent": (
        [gpu(), gpu(), gpu(lost=True)],
        {**READY, "nano_gpu_extender_url": "https://lb.example.com/scheduler"},
        "200",
    ),
    "no-address": (
        [gpu()],
        {**READY, "nano_gpu_extender_url": "10.96.0.9:39999/scheduler"},
        "nano_gpu_extender_url is 10.96.0.9:39999/scheduler, which is no address; give one such as",
    ),
    "mig": ([gpu(mig_mode="enabled")], READY, "has GPUs in MIG mode, of which nano_gpu knows nothing"),
    "percents-know-no-memory": ([gpu(180)] * 8, READY, "800"),
    "memory": ([gpu(80)] * 2, {**READY, "nano_gpu_api": "elasticgpu"}, "200"),
    "too-much-memory": (
        [gpu(80)] * 4,
        {**READY, "nano_gpu_api": "elasticgpu"},
        "has 327680 MiB of GPU memory, of which elasticgpu.io/gpu-memory counts each one",
    ),
}


def test_which_hosts_can_share(refusals):
    groups = [{name: {"gpus": gpus, **variables}} for name, (gpus, variables, _words) in HOSTS.items()]
    facts = {"nvml": {"source": "nvml", "error": None, "gpus": "{{ gpus }}"}}
    told = refusals(
        "nano_gpu",
        ["facts"],
        *groups,
        facts=facts,
        fact="__nano_gpu_host.expected",
        variables={"gpu_preflight_gpus": {"ansible_facts": {}}},
    )
    for name, (_gpus, _variables, words) in HOSTS.items():
        assert words in str(told[name]), told[name]
        assert (str(told[name]) == words) is words.isdecimal()


def toolkit(version="1.17.8", mode=""):
    return {
        "toolkit": {"toolkit": {"version": version}},
        "mode": f'[nvidia-container-runtime]\nmode = "{mode}"' if mode else "",
    }


HOOK, TOOLKIT = "/usr/bin/nvidia-container-runtime-hook", "/usr/bin/nvidia-container-toolkit"
THERE = {"known": False, "there": [HOOK, TOOLKIT]}
#: What is on a host whose programs may be replaced, and what is said of it.
PROGRAMS = {
    "nothing-wrong": ({"kept": THERE, **toolkit()}, ""),
    "hook-of-old": ({"kept": THERE, **toolkit(mode="auto")}, ""),
    "hook-asked-for": ({"kept": THERE, **toolkit("1.18.0", "legacy")}, ""),
    "without-a-hook": (
        {"kept": THERE, **toolkit("1.18.0")},
        "{}: NVIDIA's container toolkit 1.18.0 in the mode auto uses CDI",
    ),
    "cdi": ({"kept": THERE, **toolkit(mode="cdi")}, "in the mode cdi uses CDI and calls no hook"),
    "no-toolkit": ({"kept": {"known": False, "there": [HOOK]}, **toolkit()}, "Host {}: there is no " + TOOLKIT),
    "no-toolkit-yet": ({"kept": {"known": False, "there": []}, "__nano_gpu_prepared": False, **toolkit("1.18.0")}, ""),
    "replaced-by-others": (
        {"kept": {"known": False, "there": [HOOK, TOOLKIT, TOOLKIT + "-bak"]}, **toolkit()},
        f"Host {{}}: {TOOLKIT}-bak was left by an agent that has replaced",
    ),
    "replaced-by-us": ({"kept": {"known": True, "there": [HOOK, TOOLKIT, TOOLKIT + "-bak"]}, **toolkit()}, ""),
}


def without(tasks, *modules):
    return [task for task in tasks if not any(f"gpu.kubernetes.{module}" in task for module in modules)]


def loaded(*parts):
    return yaml.safe_load(ROOT.joinpath("roles", *parts).read_text())


def role_variables(role):
    files = [
        *sorted((ROOT / "roles" / role / "vars" / "main").glob("*.yml")),
        ROOT / "roles" / role / "defaults" / "main.yml",
    ]
    return {name: value for file in files for name, value in yaml.safe_load(file.read_text()).items()}


@pytest.fixture
def asked(hear):
    """Run tasks with a role's variables on hosts, each in a play of its own: {host: why it failed, or empty}."""

    def run(role, tasks, hosts, variables):
        rescue = [{"ansible.builtin.set_fact": {"why": "{{ ansible_failed_result.msg }}"}}]
        plays = [
            {
                "hosts": name,
                "gather_facts": False,
                "vars": {**role_variables(role), **variables(name)},
                "tasks": [{"block": tasks, "rescue": rescue}],
            }
            for name in hosts
        ]
        return hear(hosts, plays, BY_HOST.format("'why', default=''"))

    return run


def test_which_programs_may_be_replaced(asked):
    tasks = without(loaded("nano_gpu", "tasks", "facts_programs.yml"), "kept_files", "container_runtime_info")
    seen = {
        "__nano_gpu_kept": "{{ kept }}",
        "__nano_gpu_toolkit": "{{ toolkit }}",
        "__gpu_sharing_toolkit_read": {"content": "{{ mode | b64encode }}"},
    }
    hosts = {name: host for name, (host, _words) in PROGRAMS.items()}
    told = asked("nano_gpu", tasks, hosts, lambda _name: seen)
    for name, (_host, words) in PROGRAMS.items():
        assert bool(told[name]) == bool(words), told[name]
        assert words.format(name) in told[name]


def joined(
    way="nano_gpu",
    elsewhere=(),
    slices=(),
    foreign=(),
    known=True,
    operator=False,
    held=0,
    expected=100,
    resource="nvidia.com/gpu",
    **more,
):
    """A host that joins a way of sharing: nodes of the other way, slices of a DRA driver, other plugins on its own node, and so on."""
    node = {
        "name": "{{ inventory_hostname }}",
        "known": known,
        "gpu_operator": operator,
        "foreign_plugins": list(foreign),
        "gpu_capacity": {resource: 2, "nvidia.com/hostdev": 1},
        "gpu_allocated": {resource: held, "nvidia.com/hostdev": 1},
    }
    found = [{"metadata": {"name": name}} for name in elsewhere]
    host = {
        "__gpu_sharing_way": way,
        "node": node,
        "found": found,
        "expected": expected,
        "slices": [{"spec": {"driver": "gpu.nvidia.com", **found}} for found in slices],
    }
    return {**host, "__gpu_sharing_emptied": [], "__gpu_sharing_host": "{{ inventory_hostname }}", **more}


JOINS = {
    "fine": (joined(), ""),
    "unknown": (joined(known=False), "Host unknown: the cluster has no node unknown"),
    "operated": (joined(operator=True), "Node operated: NVIDIA's GPU Operator deploys the device plugin here"),
    "one-extender": (
        joined(elsewhere=["w9"]),
        "gpushare's or nano_gpu's; take gpushare off first (the playbook remove_gpushare, or site, which changes hosts over)",
    ),
    "the-other-way-round": (
        joined("gpushare", elsewhere=["w9"]),
        "Node w9: shares its GPUs by nano_gpu, and a kube-scheduler takes only one",
    ),
    "two-schedulers": (joined(elsewhere=["w9"], gpu_sharing_second_scheduler="nano_gpu"), ""),
    "two-owners": (
        joined(elsewhere=["two-owners"], gpu_sharing_second_scheduler="nano_gpu"),
        "Node two-owners: shares its GPUs by",
    ),
    "changes-over": (
        joined(
            elsewhere=["changes-over"],
            foreign=["kube-system/gpushare-device-plugin-ds"],
            gpu_sharing_leaves_gpushare=True,
        ),
        "",
    ),
    "claimable": (
        joined(slices=[{"nodeName": "w9"}, {"nodeName": "claimable"}]),
        "Node claimable: NVIDIA's DRA driver hands out the same GPUs (kubectl get resourceslices), of which nano_gpu knows",
    ),
    "claimable-elsewhere": (joined(slices=[{"nodeName": "w9"}, {"allNodes": True}]), ""),
    "no-gpus": (joined(elsewhere=["w9"], expected=0), ""),
    "stays": (
        joined(foreign=["kube-system/other"]),
        "kube-system/other offers the same GPUs and would not leave a node with the label gpu-kubernetes/nano-gpu=true",
    ),
    "stays-and-is-nvidias": (
        joined(foreign=["kube-system/nvidia-device-plugin-daemonset"]),
        "the second with -e k8s_device_plugin_adopt=true -e gpu_sharing_strategy=exclusive, for it leaves out hosts that declare nano_gpu;",
    ),
    "upstreams-own": (joined("gpushare", foreign=["kube-system/nano-gpu-agent"]), "kube-system/nano-gpu-agent offers"),
    "held": (joined(held=1), "Node held: pods hold whole GPUs"),
    "held-shares": (
        joined(held=1, resource="nvidia.com/gpu.shared"),
        "Node held-shares: pods hold whole GPUs or shares",
    ),
    "held-slices": (
        joined(held=1, resource="nvidia.com/mig-1g.5gb"),
        "Node held-slices: pods hold whole GPUs or shares",
    ),
    "will-be-emptied": (joined(held=1, __gpu_sharing_emptied=["will-be-emptied"]), ""),
    "another-will-be-emptied": (
        joined(held=1, __gpu_sharing_emptied=["w9"]),
        "Node another-will-be-emptied: pods hold",
    ),
}


def test_which_nodes_can_join(asked):
    tasks = without(loaded("gpu_sharing", "tasks", "join.yml"), "objects_info", "gpu_nodes_info")

    def variables(name):
        host = JOINS[name][0]
        seen = {
            "__gpu_sharing_joining": [{"host": name, "node": name, "expected": host["expected"]}],
            "__gpu_sharing_seen": [host["node"]],
            "__gpu_sharing_labelled": {"found": [host["found"], host["slices"]]},
        }
        # What a play says comes before what a host says, other than in the role.
        return {**seen, **{key: value for key, value in host.items() if key.startswith(("gpu_sharing_", "__"))}}

    told = asked("gpu_sharing", tasks, {name: host for name, (host, _words) in JOINS.items()}, variables)
    for name, (_host, words) in JOINS.items():
        assert bool(told[name]) == bool(words), told[name]
        assert words in told[name]


def test_the_report_knows_what_its_hosts_offer(hear, tmp_path):
    for folder in ("defaults", "vars"):
        shutil.copytree(ROOT / "roles" / "gpu_verify" / folder, tmp_path / "roles" / "gpu_verify" / folder)
    names = ("resource_name", "plugin_namespace", "plugin_labels")
    told = "{{ [" + ", ".join(f"gpu_verify_{name}" for name in names) + "] }}"
    tasks = [{"ansible.builtin.set_fact": {"told": told}}]
    play = {"hosts": "all", "gather_facts": False, "roles": ["gpu_verify"], "tasks": tasks}
    hosts = {
        "nano": {"gpu_sharing_strategy": "nano_gpu", "nano_gpu_namespace": "shared"},
        "elastic": {"gpu_sharing_decided": "nano_gpu", "nano_gpu_api": "elasticgpu"},
        "memory": {"gpu_sharing_strategy": "gpushare"},
    }
    assert hear(hosts, [play], BY_HOST.format("'told'")) == {
        "nano": ["nano-gpu/gpu-percent", "shared", {"app": "nano-gpu-agent"}],
        "elastic": ["elasticgpu.io/gpu-core", "kube-system", {"app": "nano-gpu-agent"}],
        "memory": ["aliyun.com/gpu-mem", "kube-system", {"name": "gpushare-device-plugin-ds"}],
    }
