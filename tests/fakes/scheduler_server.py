# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A server of a Kubernetes distribution that starts kube-scheduler itself, below one folder: fakes of systemctl, of the unit, and of its API server.

The fake unit reads the scheduler's arguments from the distribution's files at each start. It does not start with a configuration that is missing, that
names no kubeconfig that exists, or that has "broken" in it. The API server is a part of the unit. RKE2's fake has a pod, which has the former arguments
for one read after a start.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from fakes.distribution_machine import PLACES, collect
from fakes.loopback_api import send_json
from fakes.small_cluster import SmallCluster

from ansible_collections.gpu.kubernetes.plugins.module_utils._distributions import named

#: The files of a server before the first run, without a leading slash; one file of k3s is there for its folder, which shows the distribution.
FILES = {
    "k3s": {
        "etc/rancher/k3s/config.yaml": "token: x\nkube-scheduler-arg:\n  - v=2\n",
        "var/lib/rancher/k3s/agent/client.crt": "",
    },
    "rke2": {"etc/rancher/rke2/config.yaml": "kube-scheduler-arg: [v=2]\n"},
    "MicroK8s": {
        "var/snap/microk8s/current/args/kube-scheduler": "--kubeconfig=${SNAP_DATA}/credentials/scheduler.config\n--v=2\n"
    },
}
# systemd reports no failed start of this unit, since its type is simple.
_SIMPLE = "snap.microk8s.daemon-kubelite"
_PROGRAM = '''\
#!{python}
import json, pathlib, sys
import yaml

STATE, FILE, IS_SIMPLE = pathlib.Path({state!r}), pathlib.Path({file!r}), {is_simple!r}


def read_arguments():
    """Return the scheduler's arguments, as the distribution reads them from its files."""
    if FILE.suffix != ".yaml":
        return FILE.read_text().split()
    words = []
    for path in [pathlib.Path(str(FILE.parent)[:-2]), *sorted(FILE.parent.glob("*.yaml"))]:
        for key, value in yaml.safe_load(path.read_text()).items():
            if key.rstrip("+") == "kube-scheduler-arg":
                words = [*(words if key.endswith("+") else []), *("--" + word for word in value)]
    return words


def can_start(words):
    for word in words:
        if word.startswith("--config="):
            path = pathlib.Path(word[9:])
            tree = yaml.safe_load(path.read_text()) if path.exists() else {{}}
            kubeconfig = tree.get("clientConnection", {{}}).get("kubeconfig", "")
            if not pathlib.Path(kubeconfig).is_file() or "broken" in path.read_text():
                return False
    return True


words, state = sys.argv[1:], json.loads(STATE.read_text())
if words[0] == "show":
    print("LoadState=loaded\\nExecStart={{ path=/usr/local/bin/x ; argv[]=/usr/local/bin/x server ; }}")
    print("ActiveState=active\\nSubState=running" if state["up"] else "ActiveState=activating\\nSubState=auto-restart")
elif words[0] in ("start", "restart"):
    arguments = read_arguments()
    up = can_start(arguments)
    STATE.write_text(json.dumps({{"up": up, "arguments": arguments, "calls": [*state["calls"], " ".join(words)]}}))
    sys.exit(0 if up or IS_SIMPLE else 1)
'''


class Server:
    """One server, with the names of ControlPlanes."""

    def __init__(self, folder: Path, name: str) -> None:
        row = named(name).own_scheduler
        assert row is not None
        self.name, self.unit, self.root, self.state_file = name, row.unit, folder / "root", folder / "state.json"
        self.folders = {"cp1": folder / "own"}
        self.config, self.argument = self.root / row.config[1:], f"--config={self.root}{row.config}"
        for path, text in {**FILES[name], row.kubeconfig[1:]: "kind: Config\n"}.items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(text)
        program = folder / "bin" / "systemctl"
        program.parent.mkdir()
        values = {"state": str(self.state_file), "file": f"{self.root}{row.file}", "is_simple": row.unit == _SIMPLE}
        program.write_text(_PROGRAM.format(python=sys.executable, **values))
        program.chmod(0o755)
        self.state_file.write_text(json.dumps({"up": True, "arguments": ["--v=2"], "calls": []}))
        collect(folder / "collections", self.root, {"plugins/module_utils/_distributions": PLACES})
        self.environment = {
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            "ANSIBLE_COLLECTIONS_PATH": str(folder / "collections"),
        }
        self.cluster = SmallCluster({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "cp1"}})
        self.cluster.before_read = lambda _cluster: self._update_pod()
        self._started = self.state
        self._serve_while_up()

    @property
    def state(self) -> dict[str, Any]:
        """Whether the unit is up, the scheduler's arguments, and the calls of systemctl that start the unit."""
        found: dict[str, Any] = json.loads(self.state_file.read_text())
        return found

    def read_files(self) -> dict[str, bytes]:
        """The files of the server."""
        return {str(path.relative_to(self.root)): path.read_bytes() for path in self.root.rglob("*") if path.is_file()}

    def _update_pod(self) -> None:
        """Act as RKE2, whose kubelet replaces the pod some time after the start."""
        if self.name == "rke2":
            container = {"name": "kube-scheduler", "command": ["kube-scheduler"], "args": self._started["arguments"]}
            metadata = {"name": "kube-scheduler-cp1", "namespace": "kube-system"}
            self.cluster.put(
                {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}
            )
        self._started = self.state

    def _serve_while_up(self) -> None:
        server = self

        class Handler(self.cluster.RequestHandlerClass):  # type: ignore[name-defined,misc]
            def do_GET(self) -> None:  # noqa: N802 - a name of http.server
                if server.state["up"]:
                    super().do_GET()
                else:
                    send_json(self, 503, b"down")

        self.cluster.RequestHandlerClass = Handler
