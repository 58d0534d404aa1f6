# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine with a kubelet: fakes of systemctl, journalctl and the API server, and a configuration that the kubelet reads at its start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fakes.distribution_machine import PLACES, collect
from fakes.loopback_api import LoopbackApi, encode_list, send_json

NAME = "node"
_RESOURCES = [
    {"name": "nodes", "kind": "Node", "singularName": "node", "namespaced": False, "verbs": ["get", "list"]},
    {"name": "pods", "kind": "Pod", "singularName": "pod", "namespaced": True, "verbs": ["get", "list"]},
]
_NO_SUCH_NODE = {"kind": "Status", "status": "Failure", "code": 404}
# A fake of systemctl, systemd-run and journalctl; each state of the machine is a file beside it.
_PROGRAM = '''\
#!{python}
import json, os, pathlib, signal, sys
import yaml

HERE, PLACE = pathlib.Path({folder!r}), pathlib.Path({config!r})
UNIT = {unit!r}
GIB, MIB = 1 << 30, 1 << 20


def put(name, what):
    """Write a file atomically: several hosts of a test can be this machine at the same time."""
    part = HERE / ("%s.%d" % (name, os.getpid()))
    part.write_text(json.dumps(what))
    part.replace(HERE / name)


def bytes_of(text):
    return int(text[:-2]) * (GIB if text.endswith("Gi") else MIB)


def cores(text):
    return int(text[:-1]) if text.endswith("m") else int(text) * 1000


def start(state):
    """Read the configuration as a kubelet does, and report; or restart in a loop."""
    config = {{}}
    for path in sorted(PLACE.parent.glob("*.conf")) if PLACE.suffix == ".conf" else [PLACE]:
        for key, value in yaml.safe_load(path.read_text()).items():
            config[key] = {{**(config.get(key) or {{}}), **value}} if isinstance(value, dict) else value
    if (HERE / "meddles").exists():
        PLACE.write_text(PLACE.read_text() + "# theirs\\n")
    kept = [config.get(name) or {{}} for name in ("kubeReserved", "systemReserved")]
    state.update(starts=state["starts"] + 1, restarts=0, error="")
    if any("ephemeral-storage" in part for part in kept):
        state["error"] = 'err="invalid Node Allocatable configuration"'
        return
    threshold = (config.get("evictionHard") or {{"memory.available": "100Mi"}}).get("memory.available", "0Mi")
    memory = 16 * GIB - sum(bytes_of(part.get("memory", "0Mi")) for part in kept) - bytes_of(threshold)
    cpu = 8000 - sum(cores(part.get("cpu", "0")) for part in kept)
    if (HERE / "lies").exists():
        cpu -= 1
    node = json.loads((HERE / "node.json").read_text())
    node["status"]["allocatable"] = {{"cpu": str(cpu) + "m", "memory": str(memory)}}
    node["status"]["conditions"] = [{{"type": "Ready", "status": "True", "lastHeartbeatTime": str(state["starts"])}}]
    put("node.json", node)


def show(state):
    state["restarts"] += bool(state["error"])
    active, sub = ("activating", "auto-restart") if state["error"] else ("active", "running")
    return "LoadState=loaded\\nActiveState=%s\\nSubState=%s\\nNRestarts=%d\\n" % (active, sub, state["restarts"])


def end_run():
    """Kill the ansible-playbook that called this program, like a power failure of the controller."""
    pid, run = os.getpid(), []
    while pid > 1:
        if b"ansible-playbook" in pathlib.Path("/proc/%d/cmdline" % pid).read_bytes():
            run.append(pid)
        pid = int(pathlib.Path("/proc/%d/stat" % pid).read_text().rpartition(")")[2].split()[1])
    for pid in reversed(run):
        os.kill(pid, signal.SIGKILL)


words = sys.argv[1:]
state = json.loads((HERE / "state.json").read_text())
if pathlib.Path(sys.argv[0]).name == "systemd-run":
    with (HERE / "timers").open("a") as file:
        file.write(json.dumps(words) + "\\n")
elif pathlib.Path(sys.argv[0]).name == "journalctl":
    print("I0102 03:04:05.678901    1234 server.go:5] \\"Starting\\"")
    print("E0102 03:04:05.678901    1234 kubelet.go:1703] \\"Failed to start ContainerManager\\" " + state["error"])
elif words[0] == "cat":
    print(UNIT)
elif "show" in words:
    print(show(state), end="")
elif words[0] in ("start", "restart"):
    state["units"] = [*state.get("units", []), words[-1]]
    start(state)
put("state.json", state)
if "restart" in words and (HERE / "ends").exists():
    (HERE / "ends").unlink()
    end_run()
'''


class Machine:
    """One node of a cluster, below a folder."""

    def __init__(self, folder: Path, config: str, place: Path | None = None) -> None:
        self.folder = folder
        self.config = place or folder / "config.yaml"
        self.others: dict[str, dict[str, Any]] = {}
        self.config.write_text(config)
        unit = f"# /lib/kubelet.service\n[Service]\nExecStart=/usr/bin/kubelet --config={self.config}"
        programs = folder / "bin"
        programs.mkdir()
        for name in ("systemctl", "systemd-run", "journalctl"):
            program = _PROGRAM.format(python=sys.executable, folder=str(folder), unit=unit, config=str(self.config))
            (programs / name).write_text(program)
            (programs / name).chmod(0o755)
        self.environment = {"PATH": f"{programs}:{os.environ['PATH']}"}
        (folder / "state.json").write_text(json.dumps({"starts": 0, "restarts": 0, "error": ""}))
        ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": "0"}
        self.node: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": NAME},
            "status": {
                "capacity": {"cpu": "8", "memory": "16Gi"},
                "allocatable": {"cpu": "8", "memory": f"{16 * 1024 - 100}Mi"},
                "conditions": [ready],
            },
        }

    @property
    def node(self) -> dict[str, Any]:
        """The node as the API server has it."""
        return json.loads((self.folder / "node.json").read_text())

    @node.setter
    def node(self, node: dict[str, Any]) -> None:
        (self.folder / "node.json").write_text(json.dumps(node))

    @property
    def timers(self) -> list[list[str]]:
        """The calls of systemd-run."""
        file = self.folder / "timers"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    @property
    def starts(self) -> int:
        """How often the kubelet was started."""
        return self._state["starts"]

    @property
    def units(self) -> list[str]:
        """The units that were started or restarted."""
        return self._state.get("units", [])

    @property
    def _state(self) -> dict[str, Any]:
        return json.loads((self.folder / "state.json").read_text())

    def start(self) -> None:
        """Start the kubelet, as a boot does."""
        subprocess.run([str(self.folder / "bin" / "systemctl"), "start", "kubelet"], check=True)

    def api(self, pods: list[dict[str, Any]]) -> LoopbackApi:
        """An API server with this node and these pods; with a file `alone` it does not answer while the kubelet is down."""
        server, machine = LoopbackApi({"/api/v1/pods": encode_list(pods)}), self

        class Handler(server.RequestHandlerClass):
            def do_GET(self) -> None:  # noqa: N802 - a name of http.server
                path = urlsplit(self.path).path
                if machine._state["error"] and (machine.folder / "alone").exists():
                    send_json(self, 503, b"gone")
                    return
                known = {NAME: machine.node, **machine.others}
                if path.startswith("/api/v1/nodes/"):
                    node = known.get(path.rpartition("/")[2])
                    send_json(self, 200 if node else 404, json.dumps(node or _NO_SUCH_NODE).encode())
                elif path == "/api/v1":
                    resources = {"kind": "APIResourceList", "groupVersion": "v1", "resources": _RESOURCES}
                    send_json(self, 200, json.dumps(resources).encode())
                else:
                    super().do_GET()

        server.RequestHandlerClass = Handler
        return server


class DropInMachine(Machine):
    """A machine whose Kubernetes distribution starts the kubelet with a folder of drop-ins, by the unit of an agent, with its files below the folder."""

    def __init__(self, folder: Path, defaults: str) -> None:
        drop_ins = folder / "root" / "var/lib/rancher/k3s/agent/etc/kubelet.conf.d"
        drop_ins.mkdir(parents=True)
        super().__init__(folder, defaults, drop_ins / "00-k3s-defaults.conf")
        self.config = drop_ins / "50-gpu-kubernetes.conf"
        collect(folder / "collections", folder / "root", {"plugins/module_utils/_distributions": PLACES})
        self.environment["ANSIBLE_COLLECTIONS_PATH"] = str(folder / "collections")
