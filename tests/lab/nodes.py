# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's machines: podman containers with systemd, containerd and an ssh server."""

from __future__ import annotations

import hashlib
import io
import json
import resource
import socket
import tarfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from . import binaries, gpus, nodeimage, packages
from .fakes import build as fake_images
from .settings import FILES, VERSIONS, Node, Settings
from .shell import LabError, run

POD_NETWORK = "10.244"
_BOOT_SECONDS = 300  # for a node that hangs; a busy machine takes a minute
_LABEL = "gpu-kubernetes-lab"
_Result = TypeVar("_Result")
# On a host with cgroup v1, podman mounts the host's systemd hierarchy over that of the node's namespace. Nodes would share it: a kubelet
# would remove the pods of other nodes, and a node that is removed would remove the groups of all.
_OWN_CGROUPS = "/sys/fs/cgroup/systemd"
_INIT = (
    "/bin/sh",
    "-c",
    # As systemd does on a machine: a pod's mounts with bidirectional propagation reach the node.
    f"mount --make-rshared /; if mountpoint -q {_OWN_CGROUPS}/release_agent; then umount {_OWN_CGROUPS}/release_agent {_OWN_CGROUPS}; fi; exec /sbin/init",
)


def run_on_all(action: Callable[[Node], _Result], nodes: Iterable[Node]) -> list[_Result]:
    """Run ACTION on all NODES at the same time; the first failure is raised."""
    nodes = list(nodes)
    with ThreadPoolExecutor(max_workers=max(1, len(nodes))) as pool:
        return list(pool.map(action, nodes))


def execute(node: Node, *command: str, stdin: bytes | None = None, check: bool = True) -> str:
    """Standard output of COMMAND inside NODE."""
    return run(
        ["podman", "exec", *(["-i"] if stdin is not None else []), node.name, *command], stdin=stdin, check=check
    )


def put(node: Node, files: dict[str, bytes], modes: dict[str, int] | None = None) -> None:
    """Write FILES (absolute path -> content) into NODE, running or not; 0644 without an entry in MODES."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for path, content in files.items():
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.size, entry.mode, entry.mtime = len(content), (modes or {}).get(path, 0o644), int(time.time())
            archive.addfile(entry, io.BytesIO(content))
    run(["podman", "cp", "-", f"{node.name}:/"], stdin=stream.getvalue())


def limits() -> list[str]:
    """Limits that podman may set here; without CAP_SYS_RESOURCE its defaults fail."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return [f"--ulimit=nofile={hard}:{hard}", "--ulimit=nproc=32768:32768"]


def _mounts(settings: Settings, node: Node) -> list[str]:
    programs = list(binaries.containerd(settings, node.containerd).iterdir())
    if node.cluster:
        folder = binaries.kubernetes(settings)
        programs += [folder / command for command in ("kubelet", "kubeadm", "kubectl")]
        programs.append(binaries.cri_tools(settings) / "crictl")
    mounts = [f"{program}:/usr/local/bin/{program.name}:ro" for program in programs]
    mounts += [f"{packages.repository(settings)}:/srv/lab/apt:ro", f"{settings.cache / 'images'}:/srv/lab/images:ro"]
    if settings.image_archives:
        mounts.append(f"{settings.image_archives}:/srv/lab/given-images:ro")
    mounts += [
        f"{gpus.pci_tree(settings, node)}:/sys/bus/pci/devices:ro",
        "/var/lib/containerd",
        "/var/lib/kubelet",
        "/var/lib/etcd",
    ]
    return [f"--volume={mount}" for mount in mounts]


def build(settings: Settings, nodes: Iterable[Node]) -> None:
    """Build the parts of NODES, one after the other, so that booting only reads the cache."""
    nodeimage.ensure(settings)
    packages.repository(settings)
    binaries.runc(settings)
    for node in nodes:
        binaries.containerd(settings, node.containerd)
        if node.cluster:
            binaries.cri_tools(settings)
        gpus.library(settings)
        gpus.pci_tree(settings, node)


def _identity(settings: Settings, node: Node) -> str:
    """A digest of all parts of a node, by which a second run decides whether to keep it."""
    archives = [(str(path), path.stat().st_size, path.stat().st_mtime) for path in settings.given_archives]
    parts = [
        nodeimage.name(settings),
        VERSIONS,
        settings.kubernetes,
        fake_images.digest(),
        gpus.identity(settings, node),
    ]
    made_of = json.dumps([archives, parts, node.__dict__, _mounts(settings, node), _INIT])
    return hashlib.sha256(made_of.encode() + _containerd_configuration(settings, node, "")).hexdigest()[:16]


def list_running(settings: Settings) -> dict[str, str]:
    """Name -> identity of this lab's running nodes."""
    command = ["podman", "ps", "--filter", f"label={_LABEL}={settings.name}", "--format", "json"]
    return {
        entry["Names"][0]: entry["Labels"].get(f"{_LABEL}.identity", "") for entry in json.loads(run(command) or "[]")
    }


def is_unchanged(settings: Settings, nodes: list[Node]) -> bool:
    """Whether exactly NODES run, with the present identity."""
    return list_running(settings) == {node.name: _identity(settings, node) for node in nodes}


def _containerd_configuration(settings: Settings, node: Node, sandbox: str) -> bytes:
    version = node.containerd or settings.containerd
    source = FILES / "containerd" / ("config-v2.toml" if version.startswith(("1.", "debian")) else "config-v3.toml")
    return source.read_bytes().replace(b"@SANDBOX@", sandbox.encode())


def _runtime_spec(settings: Settings, node: Node) -> bytes:
    """The OCI specification on which containerd bases containers: its own, and the folders with the state of simulated GPUs."""
    spec = json.loads(run([binaries.containerd(settings, node.containerd) / "ctr", "oci", "spec"]))
    folders = gpus.FOLDERS if gpus.has_driver(node) else ()
    spec["mounts"] += [
        {"destination": folder, "type": "bind", "source": folder, "options": ["rbind", "rw"]} for folder in folders
    ]
    return json.dumps(spec).encode()


def _network_configuration(node: Node) -> bytes:
    subnet = f"{POD_NETWORK}.{node.number}.0/24"
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "ipMasq": True,
        "hairpinMode": True,
        "ipam": {"type": "host-local", "ranges": [[{"subnet": subnet}]], "routes": [{"dst": "0.0.0.0/0"}]},
    }
    return json.dumps(
        {
            "cniVersion": "1.0.0",
            "name": "lab",
            "plugins": [bridge, {"type": "portmap", "capabilities": {"portMappings": True}}],
        }
    ).encode()


def keys(settings: Settings) -> Path:
    """The ssh key of this lab (created once); the public key is beside it."""
    key = settings.state / "id_ed25519"
    if not key.is_file():
        settings.state.mkdir(parents=True, exist_ok=True)
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", settings.name, "-f", key])
    return key


def _host_key(settings: Settings, node: Node) -> Path:
    key = settings.state / "nodes" / node.name / "ssh_host_ed25519_key"
    if not key.is_file():
        key.parent.mkdir(parents=True, exist_ok=True)
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", node.name, "-f", key])
    return key


def known_hosts(settings: Settings, nodes: list[Node]) -> Path:
    """File with the nodes' ssh host keys, for clients with strict checking."""
    lines = [
        f"{settings.address(node)} {_host_key(settings, node).with_suffix('.pub').read_text().strip()}"
        for node in nodes
    ]
    path = settings.state / "known_hosts"
    path.write_text("\n".join(lines) + "\n")
    return path


def _files(settings: Settings, node: Node, sandbox: str) -> tuple[dict[str, bytes], dict[str, int]]:
    host_key = _host_key(settings, node)
    files = {
        "/etc/containerd/config.toml": _containerd_configuration(settings, node, sandbox),
        "/etc/containerd/lab-runtime-spec.json": _runtime_spec(settings, node),
        "/etc/cni/net.d/10-lab.conflist": _network_configuration(node),
        "/etc/ssh/ssh_host_ed25519_key": host_key.read_bytes(),
        "/etc/ssh/ssh_host_ed25519_key.pub": host_key.with_suffix(".pub").read_bytes(),
        "/root/.ssh/authorized_keys": keys(settings).with_suffix(".pub").read_bytes(),
        # runc protects its own file by an overlay of its folder, and an overlay does not see mounts
        "/usr/local/sbin/runc": (binaries.runc(settings) / "runc").read_bytes(),
        **gpus.files(settings, node),
    }
    return files, {
        "/usr/local/sbin/runc": 0o755,
        "/etc/ssh/ssh_host_ed25519_key": 0o600,
        "/root/.ssh/authorized_keys": 0o600,
        **dict.fromkeys(gpus.programs(node), 0o755),
    }


def start(settings: Settings, nodes: list[Node], sandbox: str) -> None:
    """Create and boot NODES; then systemd runs and ssh answers on each."""
    image = nodeimage.ensure(settings)
    keys(settings)
    if run(["podman", "network", "ls", "--filter", f"name=^{settings.name}$", "--quiet"]).strip() == "":
        run(
            [
                "podman",
                "network",
                "create",
                "--disable-dns",
                f"--label={_LABEL}={settings.name}",
                f"--subnet={settings.subnet}.0/24",
                settings.name,
            ]
        )
    run_on_all(lambda node: _start(settings, node, nodes, image, sandbox), nodes)


def _start(settings: Settings, node: Node, nodes: list[Node], image: str, sandbox: str) -> None:
    labels = [f"--label={_LABEL}={settings.name}", f"--label={_LABEL}.identity={_identity(settings, node)}"]
    place = [
        f"--network={settings.name}",
        f"--ip={settings.address(node)}",
        f"--hostname={node.name}",
        f"--name={node.name}",
    ]
    hosts = [f"--add-host={other.name}:{settings.address(other)}" for other in nodes if other is not node]
    # crun rejects hosts with a hybrid cgroup tree; without its own cgroup namespace a node cannot mount
    kind = ["--runtime=runc", "--privileged", "--systemd=always", "--cgroupns=private", "--tmpfs=/run", "--tmpfs=/tmp"]
    run(
        [
            "podman",
            "create",
            "--quiet",
            *labels,
            *place,
            *hosts,
            *kind,
            *limits(),
            *_mounts(settings, node),
            image,
            *_INIT,
        ]
    )
    put(node, *_files(settings, node, sandbox))
    run(["podman", "start", node.name])
    _wait_until_booted(node, settings.address(node))
    _connect(settings, node, nodes)


def _connect(settings: Settings, node: Node, nodes: Iterable[Node]) -> None:
    """Set what a node loses when it stops: routes to the pods of the other nodes."""
    execute(node, "sysctl", "-qw", "net.ipv4.ip_forward=1")
    for other in nodes:
        if other.name != node.name:
            execute(
                node, "ip", "route", "replace", f"{POD_NETWORK}.{other.number}.0/24", "via", settings.address(other)
            )
    if node.gpus:
        execute(node, "ldconfig")


def reboot(settings: Settings, node: Node) -> None:
    """Stop and start NODE; then systemd runs and ssh answers."""
    run(["podman", "restart", "--time=60", node.name])
    _wait_until_booted(node, settings.address(node))
    _connect(settings, node, settings.nodes)


def _wait_until_booted(node: Node, address: str) -> None:
    """Wait until systemd reports ``running`` and the ssh server answers. Raises LabError with the failed units, or the server's log."""
    deadline = time.monotonic() + _BOOT_SECONDS
    state = ""
    # before systemd listens on its socket, the answer is empty
    while state in {"", "initializing", "starting"} and time.monotonic() < deadline:
        time.sleep(0.2)
        state = execute(node, "systemctl", "is-system-running", check=False).strip()
    if state != "running":
        raise LabError(
            f"{node.name} is {state or 'silent'}: {execute(node, 'systemctl', '--failed', '--no-legend', check=False)}"
        )
    # a machine under load has refused connections although its systemd was done
    while not _answers_ssh(address):
        if time.monotonic() >= deadline:
            output = execute(node, "systemctl", "status", "--no-pager", "--full", "ssh.service", check=False)
            raise LabError(f"{node.name} is up, but no ssh server answers at {address}: {output}")
        time.sleep(0.2)


def _answers_ssh(address: str) -> bool:
    try:
        with socket.create_connection((address, 22), timeout=5) as connection:
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def remove(settings: Settings) -> None:
    """Remove this lab's nodes with their volumes, and its network."""
    containers = run(["podman", "ps", "--all", "--quiet", "--filter", f"label={_LABEL}={settings.name}"]).split()
    if containers:
        run(["podman", "rm", "--force", "--volumes", "--time=0", *containers])
    for network in run(["podman", "network", "ls", "--quiet", "--filter", f"label={_LABEL}={settings.name}"]).split():
        run(["podman", "network", "rm", network])
