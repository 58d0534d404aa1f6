# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the scenarios' tests share: the cluster's API, asked directly and not through a role."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import testinfra
import yaml
from kubernetes import client, config

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests"))  # whoever runs Molecule by hand has no path to it

from lab.forge import Forge  # noqa: E402

# No image of the lab has a shell, so that pods borrow the machine's programs.
LIBRARIES = "/host/usr/lib/x86_64-linux-gnu"
SLEEP = [f"{LIBRARIES}/ld-linux-x86-64.so.2", "--library-path", LIBRARIES, "/host/usr/bin/sleep", "1000"]
LAB = ROOT / ".lab" / os.environ.get("LAB_NAME", "molecule")


@pytest.fixture(scope="session")
def api() -> client.CoreV1Api:
    """The core API as the cluster's administrator."""
    return client.CoreV1Api(config.new_client_from_config(str(LAB / "kubeconfig")))


@pytest.fixture(scope="session")
def apps(api: client.CoreV1Api) -> client.AppsV1Api:
    """The apps API of the same cluster."""
    return client.AppsV1Api(api.api_client)


@pytest.fixture(scope="session")
def inventory() -> dict[str, Any]:
    """The scenario's inventory as data."""
    return yaml.safe_load((LAB / "inventory.yml").read_text())


@pytest.fixture(scope="session")
def machine_named() -> Callable[[str], Any]:
    """A machine of the scenario by its name, for tests whose host is another one."""
    return lambda name: testinfra.get_host(f"ansible://{name}?ansible_inventory={LAB / 'inventory.yml'}")


@pytest.fixture
def simulated_gpus(host: Any) -> Callable[[], int]:
    """How many GPU device nodes the machine has; counted on the machine itself."""

    def count() -> int:
        return sum(bool(re.fullmatch(r"nvidia\d+", name)) for name in host.file("/dev").listdir())

    return count


@pytest.fixture
def gpu_pods(api: client.CoreV1Api, inventory: dict[str, Any]) -> Iterator[Callable[[int, str, str], client.V1Pod]]:
    """Start a pod that asks for an amount of a resource on a node, and wait until it runs or cannot. All are gone afterwards."""
    made: list[str] = []
    # Where it is the default one, gpushare's extender may be one that binds no pod which asks for it.
    default = inventory["all"]["vars"].get("containerd_nvidia_set_default", False)
    runtime = {} if default else {"runtimeClassName": "nvidia"}

    def start(amount: int, resource: str, node: str) -> client.V1Pod:
        container = {
            "name": "gpu",
            "image": "lab.local/stand-in/cuda-sample:vectoradd",
            "command": SLEEP,
            "resources": {"limits": {resource: str(amount)}},
            "volumeMounts": [{"name": "host", "mountPath": "/host", "readOnly": True}],
        }
        spec = {
            **runtime,
            "terminationGracePeriodSeconds": 0,
            "nodeSelector": {"kubernetes.io/hostname": node},
            "containers": [container],
            "volumes": [{"name": "host", "hostPath": {"path": "/"}}],
        }
        name = api.create_namespaced_pod("default", {"metadata": {"generateName": "job-"}, "spec": spec}).metadata.name
        made.append(name)
        for _ in range(80):
            pod = api.read_namespaced_pod(name, "default")
            refused = [each.message for each in pod.status.conditions or [] if each.status == "False" and each.message]
            if pod.status.phase == "Running" or (refused and not pod.spec.node_name):
                break
            time.sleep(0.5)
        return pod

    yield start
    there = {pod.metadata.name for pod in api.list_namespaced_pod("default").items}
    for name in there.intersection(made):
        api.delete_namespaced_pod(name, "default", grace_period_seconds=0)
    for _ in range(60):
        if not [pod for pod in api.list_namespaced_pod("default").items if pod.metadata.name in made]:
            break
        time.sleep(0.5)


@pytest.fixture
def offered(api: client.CoreV1Api) -> Callable[[str], dict[str, str]]:
    """What a node offers to pods, of the resources that stand for GPUs or parts of them: resource -> amount."""
    groups = ("nvidia.com/", "aliyun.com/", "nano-gpu/", "elasticgpu.io/")

    def offers(name: str) -> dict[str, str]:
        allocatable = api.read_node(name).status.allocatable
        return {key: amount for key, amount in allocatable.items() if key.startswith(groups) and amount != "0"}

    return offers


def _recap(output: str) -> dict[str, dict[str, int]]:
    """Host -> counts, from the recap that ansible-playbook prints last."""
    lines = output.partition("PLAY RECAP")[2].splitlines()
    found = (re.match(r"^(\S+)\s+: (ok=.*)$", line) for line in lines)
    return {
        match[1]: {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", match[2])} for match in found if match
    }


@pytest.fixture(scope="session")
def forge() -> Iterator[Forge]:
    """A process that runs playbooks for all tests."""
    process = Forge()
    yield process
    process.close()


@pytest.fixture(scope="session")
def playbook(forge: Forge) -> Callable[..., tuple[int, dict[str, dict[str, int]], str]]:
    """Run one of the collection's playbooks (or any by its path) as a user would: exit code, recap, all it printed."""

    def run(name: str, *words: str) -> tuple[int, dict[str, dict[str, int]], str]:
        path = name if name.endswith(".yml") else f"playbooks/{name}.yml"
        code, said = forge.run("-i", str(LAB / "inventory.yml"), path, *words)
        return code, _recap(said), said

    return run


@pytest.fixture
def at_task() -> Callable[..., tuple[int, str]]:
    """Run a playbook as another process, and do something when it begins a task of that name: exit code, all it printed."""

    def run(playbook: str, task: str, act: Callable[[subprocess.Popen[str]], object], *words: str) -> tuple[int, str]:
        environment = {**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_FORCE_COLOR": "0", "PYTHONUNBUFFERED": "1"}
        seen, begun = [], False
        with subprocess.Popen(
            ["ansible-playbook", "-i", str(LAB / "inventory.yml"), *words, playbook],
            cwd=ROOT,
            env={**environment, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            for line in process.stdout or ():
                seen.append(line)
                if not begun and line.startswith("TASK [") and task in line:
                    begun = True
                    act(process)
        assert begun, f"{task} was never begun:\n{''.join(seen[-40:])}"
        return process.returncode, "".join(seen)

    return run


@pytest.fixture
def killed_at(at_task: Callable[..., tuple[int, str]]) -> Callable[..., None]:
    """Run a playbook as another process, and kill it with all its own when it begins a task of that name."""

    def run(playbook: str, task: str, *words: str) -> None:
        at_task(playbook, task, lambda process: os.killpg(process.pid, signal.SIGKILL), *words)

    return run


@pytest.fixture
def fingerprint(
    inventory: dict[str, Any], api: client.CoreV1Api, machine_named: Callable[[str], Any]
) -> Callable[[], dict[str, str]]:
    """All that the collection could change: files, packages and containerd of every GPU node, objects of the cluster."""
    look = (
        "find /etc /var/lib/gpu-kubernetes -type f -not -name '*.cache' 2>/dev/null | sort | xargs sha256sum;"
        " dpkg -l; systemctl show containerd -p ExecMainPID; sysctl net.ipv4.ip_forward; cut -d' ' -f1 /proc/modules | sort"
    )
    names = list(inventory["all"]["children"]["gpu_nodes"]["hosts"])
    apps, classes = client.AppsV1Api(api.api_client), client.NodeV1Api(api.api_client)

    def mine(node: client.V1Node) -> list[tuple[str, str]]:
        """Labels, and of the annotations ours: kubelets and controllers rewrite their own."""
        notes = {key: value for key, value in (node.metadata.annotations or {}).items() if "gpu-kubernetes" in key}
        return sorted({**node.metadata.labels, **notes}.items())

    def named(items: list[Any], *, version: bool = False) -> str:
        return str(
            sorted(
                (i.metadata.namespace, i.metadata.name, i.metadata.resource_version if version else "") for i in items
            )
        )

    def take() -> dict[str, str]:
        return {
            **{name: machine_named(name).check_output(look) for name in names},
            "nodes": str({node.metadata.name: mine(node) for node in api.list_node().items}),
            "pods": named(api.list_pod_for_all_namespaces().items),
            "config maps": named(api.list_config_map_for_all_namespaces().items, version=True),
            "daemon sets": named(apps.list_daemon_set_for_all_namespaces().items),
            "runtime classes": named(classes.list_runtime_class().items, version=True),
        }

    return take
