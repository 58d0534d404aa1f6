# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The example for ansible-rulebook, run by ansible-rulebook on what Debian's Alertmanager 0.25 has sent.

RULEBOOK is the folder of ansible-rulebook, as the gate sets it. The API server is a fake, and no host of the inventory answers: the doctor judges the nodes
by the API server.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fakes.kubernetes_api import node
from fakes.loopback_api import serve_in_thread, write_kubeconfig
from fakes.small_cluster import SmallCluster
from gates._common import ROOT, collection_tree
from gates._report import strip_escapes
from lab import wait

BODIES = ROOT / "tests" / "unit" / "static" / "records" / "alertmanager-webhook.json"
NAME = "gpu.kubernetes.gpu_alerts"
#: Node -> its healthy GPUs, of two. The alerts of Alertmanager are about the first.
NODES = {"gpu1": 1, "gpu2": 2, "gpu3": 1}
#: The annotation with since when and why this collection has cordoned a node.
MAINTENANCE = "gpu-kubernetes/maintenance"
#: Nothing listens on this port.
AWAY = {"ansible_host": "127.0.0.1", "ansible_port": 9, "ansible_become": False}
#: What would replace the Ansible or the Python of ansible-rulebook.
OTHERS = ("ANSIBLE_", "PYTHON", "VIRTUAL_ENV", "K8S_AUTH_", "KUBECONFIG")
#: Of a playbook that did not run.
ERROR = " - ERROR - "


def make_body(status: str, of: str) -> dict[str, Any]:
    """A body of Alertmanager about a node; empty for the alerts without a node."""
    bodies = json.loads(BODIES.read_text(encoding="utf-8"))
    recorded = "gpu1" if of else None
    [found] = [each for each in bodies if (each["status"], each["groupLabels"].get("node")) == (status, recorded)]
    body: dict[str, Any] = json.loads(json.dumps(found).replace("gpu1", of))
    return body


def find_port() -> int:
    """A free port of the loopback."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def is_open(port: int) -> bool:
    """Whether something listens on a port of the loopback."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def write_inventory(folder: Path, url: str) -> Path:
    """The inventory of the nodes, with the kubeconfig of an API server."""
    path = folder / "inventory.yml"
    kubeconfig = str(write_kubeconfig(url, folder / "kubeconfig"))
    variables = {"gpu_kubeconfig": kubeconfig, "gpu_doctor_checks": ["kl.unhealthy"]}
    groups = {"all": {"vars": variables}, "gpu_nodes": {"hosts": dict.fromkeys(NODES, AWAY)}}
    path.write_text(json.dumps(groups), encoding="utf-8")
    return path


@contextmanager
def start_rulebook(folder: Path, inventory: Path, port: int) -> Iterator[Path]:
    """Run the command of the guide with a copy of this collection, whose example has another port; the value is the log."""
    rulebook = collection_tree(folder) / "extensions" / "eda" / "rulebooks" / "gpu_alerts.yml"
    text, replaced = re.subn(r"\bport: 5001$", f"port: {port}", rulebook.read_text(), flags=re.MULTILINE)
    assert replaced == 1
    rulebook.write_text(text)
    programs = [os.environ["RULEBOOK"], str(Path(sys.executable).parent), os.environ["PATH"]]
    environment = {key: value for key, value in os.environ.items() if not key.startswith(OTHERS)}
    environment |= {"PATH": os.pathsep.join(programs), "ANSIBLE_COLLECTIONS_PATH": str(folder)}
    log = folder / "log"
    command = [f"{programs[0]}/ansible-rulebook", "--rulebook", NAME, "--inventory", str(inventory)]
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=output)
    try:
        wait.until(lambda: process.poll() is not None or is_open(port))
        assert process.poll() is None, log.read_text()
        yield log
    finally:
        process.terminate()
        process.wait()


def send(port: int, body: dict[str, Any]) -> None:
    """Send a body as Alertmanager does."""
    url, headers = f"http://127.0.0.1:{port}/endpoint", {"Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
        assert answer.status == 200


def is_cordoned(cluster: SmallCluster, name: str) -> bool:
    """Whether the scheduler leaves a node out."""
    return cluster.objects["Node", "", name]["spec"].get("unschedulable") is True


def wait_for_run(log: Path, name: str) -> list[str]:
    """Wait until the playbook for a node has ended, and return the nodes of all playbooks that have."""

    def read_runs() -> tuple[list[str], str]:
        text = strip_escapes(log.read_text())
        return re.findall(r"^PLAY RECAP \*+\n(\w+) ", text, re.MULTILINE), text

    runs, text = wait.until(read_runs, lambda found: name in found[0] or ERROR in found[1])
    assert ERROR not in text, text
    return runs


def test_firing_alerts_cordon_sick_nodes_and_resolved_ones_do_nothing(tmp_path: Path) -> None:
    cluster = SmallCluster(*({**node(name, 2, allocatable=good), "kind": "Node"} for name, good in NODES.items()))
    port = find_port()
    with serve_in_thread(cluster), start_rulebook(tmp_path, write_inventory(tmp_path, cluster.url), port) as log:
        send(port, make_body("firing", of=""))
        send(port, make_body("firing", of="gpu1"))
        assert wait_for_run(log, "gpu1") == ["gpu1"]
        assert is_cordoned(cluster, "gpu1"), log.read_text()
        assert "by cordon_gpu_node" in cluster.objects["Node", "", "gpu1"]["metadata"]["annotations"][MAINTENANCE]
        # One playbook runs at a time, in the order of the events: after that of the last one, all have been handled.
        for status, name in (("resolved", "gpu1"), ("resolved", "gpu3"), ("firing", "gpu1"), ("firing", "gpu2")):
            send(port, make_body(status, of=name))
        assert wait_for_run(log, "gpu2") == ["gpu1", "gpu2"]
    assert {name: is_cordoned(cluster, name) for name in NODES} == {"gpu1": True, "gpu2": False, "gpu3": False}
