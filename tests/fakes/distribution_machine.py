# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine with a Kubernetes distribution that brings its own containerd, below one folder: fakes of systemctl, crictl, containerd and of the unit.

The fake unit renders containerd's file at each start as the distribution does: from a base and the distribution's settings, or from a template. k0s has no
restart: its fake runs beside the test and reads changed drop-ins by itself. The roles and modules are those of the checkout, in a copy of the collection
whose paths of distributions, and of files for the next boot, are below the folder.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes import distribution_files as rendered

CHECKOUT = Path(__file__).resolve().parents[2]
#: Where distributions have their files, and where the role writes files for the next boot.
PLACES = (
    "/var/lib/rancher",
    "/etc/rancher",
    "/run/k3s",
    "/var/lib/k0s",
    "/etc/k0s",
    "/run/k0s",
    "/var/snap",
    "/snap/",
    "/etc/systemd",
    "/usr/local/nvidia",
)
BOOT_PLACES = ("/etc/modules-load.d", "/etc/sysctl.d")
CRI = "io.containerd.cri.v1.runtime"
# Each state of the machine is a file beside it.
_PROGRAM = '''\
#!{python}
import json, os, pathlib, re, subprocess, sys, time, tomllib

ROOT, HERE = pathlib.Path({root!r}), pathlib.Path({folder!r})
ROW = json.loads({row!r})
RUNTIME = str(HERE / "bin" / "nvidia-container-runtime")
CRI = {cri!r}
NVIDIA = """
[plugins.'%s'.containerd.runtimes.nvidia]
runtime_type = "io.containerd.runc.v2"
[plugins.'%s'.containerd.runtimes.nvidia.options]
BinaryName = "%s"
SystemdCgroup = true
""" % (CRI, CRI, RUNTIME)


def log(words):
    with (HERE / "units.log").open("a") as file:
        file.write(words + "\\n")


def read_drop_ins():
    return "".join(path.read_text() for path in sorted((ROOT / ROW["drop_ins"]).glob("*.[ty]*ml"))) if ROW["drop_ins"] else ""


def render():
    """Return what containerd reads, as the distribution makes it."""
    base = (HERE / "base").read_text()
    if ROW["way"] == "automatic":
        default = re.search(r"default-runtime\\W+([a-z-]+)", read_drop_ins())
        setting = "[plugins.'%s'.containerd]\\ndefault_runtime_name = '%s'\\n" % (CRI, default.group(1)) if default else ""
        return base + NVIDIA + setting
    if ROW["way"] == "template":
        template = (ROOT / ROW["edited"]).read_text()
        return template.replace("${{RUNTIME}}", "runc").replace("${{RUNTIME_TYPE}}", "io.containerd.runc.v2")
    return base


def merge(into, other):
    for key, value in other.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            merge(into[key], value)
        else:
            into[key] = value


def write(path, text):
    """Write a file atomically, as distributions do: a module may read it at the same time."""
    part = path.with_name("." + path.name)
    part.write_text(text)
    part.replace(path)


def put(state):
    write(HERE / "state.json", json.dumps(state))


def start():
    """Render, and start containerd; with the file `rejects`, a containerd with the word of the row does not start."""
    text = render()
    write(ROOT / ROW["config"], text)
    tree = tomllib.loads(text)
    if ROW["way"] == "drop_in":
        for path in sorted((ROOT / ROW["drop_ins"]).glob("*.toml")):
            merge(tree, tomllib.loads(path.read_text()))
    plugins = tree["plugins"]
    containerd = plugins.get(CRI, plugins.get("io.containerd.grpc.v1.cri", {{}})).get("containerd", {{}})
    is_up = not ((HERE / "rejects").exists() and ROW["word"] in text + read_drop_ins())
    put({{"active": is_up or ROW["way"] == "drop_in", "up": is_up, "config": {{"containerd": containerd}}}})
    if is_up:
        os.utime(ROOT / ROW["socket"])
    return is_up


def watch():
    """Act as k0s, which restarts containerd when its drop-ins change."""
    former = read_drop_ins()
    while True:
        time.sleep(0.05)
        present = read_drop_ins()
        if present != former:
            former = present
            start()
            log("reload " + ROW["unit"])


def show(unit, state):
    if unit != ROW["unit"]:
        return "LoadState=not-found\\nActiveState=inactive\\n"
    active, sub = ("active", "running") if state["active"] else ("failed", "failed")
    path = "/usr/local/bin:/usr/bin:" + str(HERE / "bin")
    return "LoadState=loaded\\nActiveState=%s\\nSubState=%s\\nNRestarts=0\\nMainPID=0\\nEnvironment=PATH=%s\\n" % (active, sub, path)


name, words = pathlib.Path(sys.argv[0]).name, sys.argv[1:]
state = json.loads((HERE / "state.json").read_text()) if (HERE / "state.json").exists() else {{}}
if name == "distribution":
    if words == ["watch"]:
        watch()
    # The former containerd answers meanwhile.
    time.sleep(1 if words == ["later"] else 0)
    start()
elif name == "containerd":
    print("containerd github.com/containerd/containerd v2.2.3 fake") if "--version" in words else None
elif name == "nvidia-container-runtime":
    print("NVIDIA Container Runtime version 1.17.8 (fake)")
elif name == "journalctl":
    print('time="x" level=fatal msg="failed to load the configuration"')
elif name == "crictl":
    if not state["up"] or "unix://%s" % (ROOT / ROW["socket"]) not in words:
        sys.exit("rpc error: code = Unavailable desc = connection refused")
    if "version" in words:
        print("RuntimeName:  containerd\\nRuntimeVersion:  2.2.3\\nRuntimeApiVersion:  v1")
    else:
        conditions = [{{"type": "RuntimeReady", "status": True}}]
        print(json.dumps({{"config": state["config"], "status": {{"conditions": conditions}}}}))
elif words[0] == "show":
    units = [word.strip("'") for word in words[1:] if not word.startswith("-")]
    print(show(units[0], state), end="")
elif words[0] in ("start", "restart"):
    log(words[0] + " " + words[-1])
    if not ROW["is_late"]:
        sys.exit(0 if start() else 1)
    put({{**state, "active": True}})
    subprocess.Popen([str(HERE / "bin" / "distribution"), "later"], stdin=None, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
'''


@dataclass(frozen=True)
class Row:
    """A distribution on this machine: its paths are without a leading slash, and below the folder of the machine."""

    unit: str
    way: str
    config: str
    socket: str
    program: str
    content: str
    #: What the role writes, and the word in it that a containerd rejects that does not start.
    edited: str
    word: str
    runtime: str = "nvidia"
    drop_ins: str = ""
    #: Whether the unit is ready before its containerd has started again.
    is_late: bool = False
    #: Files and folders (with a slash at the end) by which the distribution and its unit are recognised.
    markers: tuple[str, ...] = ()


def _make_rancher(name: str, unit: str, program: str, *markers: str, is_late: bool = False) -> Row:
    folder = f"var/lib/rancher/{name}"
    return Row(
        unit,
        "automatic",
        config=f"{folder}/agent/etc/containerd/config.toml",
        socket="run/k3s/containerd/containerd.sock",
        program=f"{folder}/{program}",
        content=rendered.RANCHER_V3,
        edited=f"etc/rancher/{name}/config.yaml.d/50-gpu-kubernetes.yaml",
        word="default_runtime_name",
        drop_ins=f"etc/rancher/{name}/config.yaml.d",
        is_late=is_late,
        markers=tuple(f"{folder}/{each}" for each in markers),
    )


ROWS = {
    "k3s agent": _make_rancher("k3s", "k3s-agent", "data/current/bin/containerd", is_late=True),
    "k3s server": _make_rancher("k3s", "k3s", "data/current/bin/containerd", "server/tls/"),
    "RKE2 agent": _make_rancher("rke2", "rke2-agent", "bin/containerd"),
    "k0s worker": Row(
        "k0sworker",
        "drop_in",
        config="etc/k0s/containerd.toml",
        socket="run/k0s/containerd.sock",
        program="var/lib/k0s/bin/containerd",
        content=rendered.K0S_V3,
        edited="etc/k0s/containerd.d/50-gpu-kubernetes.toml",
        word="nvidia-container-runtime",
        drop_ins="etc/k0s/containerd.d",
        markers=("etc/systemd/system/k0sworker.service",),
    ),
    "MicroK8s": Row(
        "snap.microk8s.daemon-containerd",
        "template",
        config="var/snap/microk8s/current/args/containerd.toml",
        socket="var/snap/microk8s/common/run/containerd.sock",
        program="snap/microk8s/current/bin/containerd",
        content=rendered.MICROK8S,
        edited="var/snap/microk8s/current/args/containerd-template.toml",
        word="/bin/nvidia-container-runtime",
        runtime="nvidia-container-runtime",
    ),
}


class Machine:
    """A machine below a folder, whose path has to be short, since it has sockets."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.root, self.row = folder, folder / "r", ROWS[name]
        row = self.row
        self.runtime = folder / "bin" / "nvidia-container-runtime"
        text = _PROGRAM.format(
            python=sys.executable, root=str(self.root), folder=str(folder), row=json.dumps(row.__dict__), cri=CRI
        )
        programs = [
            folder / "bin" / each
            for each in ("systemctl", "journalctl", "crictl", "distribution", "nvidia-container-runtime")
        ]
        for path in [*programs, self.root / row.program]:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            path.chmod(0o755)
        for each in (row.config, row.socket, row.edited, *row.markers, *(f"{place[1:]}/" for place in BOOT_PLACES)):
            (self.root / each).parent.mkdir(parents=True, exist_ok=True)
        for marker in row.markers:
            path = self.root / marker
            path.mkdir() if marker.endswith("/") else path.touch()
        for place in BOOT_PLACES:
            (self.root / place[1:]).mkdir(exist_ok=True)
        (folder / "base").write_text(row.content.replace("{folder}", str((self.root / row.edited).parent)))
        if row.way == "template":
            (self.root / row.edited).write_text(row.content)
        self.environment = {
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
            "ANSIBLE_COLLECTIONS_PATH": str(folder / "collections"),
        }
        moved = {"plugins/module_utils/_distributions": PLACES, "roles/_container_runtime": BOOT_PLACES}
        collect(folder / "collections", self.root, moved)

    @contextmanager
    def run(self) -> Iterator[None]:
        """Start the distribution, and end it."""
        listener = socket.socket(socket.AF_UNIX)
        path = self.root / self.row.socket
        folder = os.open(path.parent, os.O_PATH)
        # A socket's path has at most 107 characters.
        listener.bind(f"/proc/self/fd/{folder}/{path.name}")
        os.close(folder)
        listener.listen(1024)
        program = str(self.folder / "bin" / "distribution")
        subprocess.run([program], check=True)
        daemon = subprocess.Popen([program, "watch"]) if self.row.way == "drop_in" else None
        try:
            yield
        finally:
            listener.close()
            if daemon:
                daemon.kill()
                daemon.wait()

    def read_files(self, root: Path | None = None) -> dict[str, str]:
        """The files of the machine, or of a copy of it, without what the distribution renders."""
        top = root or self.root
        paths = [path for path in top.rglob("*") if path.is_file()]
        return {str(path.relative_to(top)): path.read_text() for path in paths if path != top / self.row.config}


def collect(collections: Path, root: Path, moved: Mapping[str, Sequence[str]]) -> None:
    """Link the checkout's collection below *collections*, but for the files in *moved*: there, these paths of the machine are below *root*."""
    collection = collections / "ansible_collections" / "gpu" / "kubernetes"
    _link(CHECKOUT, collection, [Path(each) for each in moved])
    for place, paths in moved.items():
        for file in (collection / place).rglob("*"):
            if file.suffix in (".py", ".yml"):
                pattern = rf"(?<![\w.])({'|'.join(paths)})"
                file.write_text(re.sub(pattern, rf"{root}\1", file.read_text()))


def _link(source: Path, target: Path, copied: list[Path]) -> None:
    """Link what is in a folder; what is *copied* is copied."""
    target.mkdir(parents=True)
    for path in source.iterdir():
        inner = [each for each in copied if each.parts[0] == path.name]
        if path.name.startswith(".") or path.name == "__pycache__":
            continue
        if not inner:
            (target / path.name).symlink_to(path)
        elif Path(path.name) in inner:
            shutil.copytree(path, target / path.name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            _link(path, target / path.name, [Path(*each.parts[1:]) for each in inner])
