# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the scenarios' tests share: the cluster's API, asked directly and not through a role."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
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


@pytest.fixture
def simulated_gpus(host: Any) -> Callable[[], int]:
    """How many GPU device nodes the machine has; counted on the machine itself."""

    def count() -> int:
        return sum(bool(re.fullmatch(r"nvidia\d+", name)) for name in host.file("/dev").listdir())

    return count


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
        program = Path(sys.executable).with_name("ansible-playbook")
        environment = {**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_FORCE_COLOR": "0", "PYTHONUNBUFFERED": "1"}
        seen, begun = [], False
        with subprocess.Popen(
            [str(program), "-i", str(LAB / "inventory.yml"), *words, playbook],
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
def fingerprint(inventory: dict[str, Any], api: client.CoreV1Api) -> Callable[[], dict[str, str]]:
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
        machines = {
            name: testinfra.get_host(f"ansible://{name}?ansible_inventory={LAB / 'inventory.yml'}") for name in names
        }
        return {
            **{name: machine.check_output(look) for name, machine in machines.items()},
            "nodes": str({node.metadata.name: mine(node) for node in api.list_node().items}),
            "pods": named(api.list_pod_for_all_namespaces().items),
            "config maps": named(api.list_config_map_for_all_namespaces().items, version=True),
            "daemon sets": named(apps.list_daemon_set_for_all_namespaces().items),
            "runtime classes": named(classes.list_runtime_class().items, version=True),
        }

    return take
