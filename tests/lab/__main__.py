# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``python -m lab up|site|down|machines|status|clean``; PYTHONPATH is the tests folder."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable

from rich.markup import escape

from . import binaries, cluster, host, images, inventory, nodeimage, nodes
from .progress import console, note, step
from .settings import ROOT, Node, Settings, from_environment
from .shell import LabError, run


def up(settings: Settings) -> None:
    """A Ready cluster: the running one if nothing has changed, else a new one."""
    host.prepare()
    binaries.kubernetes(settings)  # the longest build; labs that do not need it do not wait for it
    with binaries.exclusive(settings):
        archives = images.kubernetes(settings)
        fakes = images.build_fakes(settings)
        nodes.build(settings, settings.nodes)
    begin = time.monotonic()
    if nodes.is_unchanged(settings, settings.nodes) and cluster.is_ready(settings):
        note(f"the cluster {settings.name} runs already")
    else:
        _discard(settings)
        with step(f"boot {len(settings.nodes)} nodes"):
            nodes.start(settings, settings.nodes, images.kubeadm_names(settings)["pause"])
        cluster.start(settings, archives, fakes)
    inventory.write(settings, settings.nodes, with_cluster=True)
    console.print(
        f"cluster up in {time.monotonic() - begin:.0f} s · inventory {inventory.path(settings)} · kubeconfig {cluster.kubeconfig(settings)}"
    )


def site(settings: Settings, *words: str) -> None:
    """Bring the cluster up and run playbooks/site.yml on it."""
    up(settings)
    playbook(settings, "playbooks/site.yml", *words)


def playbook(settings: Settings, name: str, *words: str) -> None:
    """Run one playbook with the lab's inventory. Raises LabError with its exit code."""
    program = shutil.which("ansible-playbook", path=f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}")
    if not program:
        raise LabError("ansible-playbook is not there: run `make venv` first.")
    result = subprocess.run([program, "-i", str(inventory.path(settings)), name, *words], cwd=ROOT, check=False)
    if result.returncode:
        raise LabError(f"{name} ended with {result.returncode}.")


def machines(settings: Settings) -> None:
    """Nodes with containerd but without Kubernetes, for testing node roles; LAB_GPUS=profile[@containerd],…"""
    host.prepare()
    bare = [node for node in settings.nodes if not node.control_plane]
    bare = [Node(node.name, node.number, gpus=node.gpus, containerd=node.containerd, cluster=False) for node in bare]
    with binaries.exclusive(settings):
        fakes = images.build_fakes(settings)
        nodes.build(settings, bare)
    if not nodes.is_unchanged(settings, bare):
        _discard(settings)
        with step(f"boot {len(bare)} machines"):
            nodes.start(settings, bare, "lab.local/pause:none")
            nodes.run_on_all(lambda node: images.load(settings, node, list(fakes.values())), bare)
    inventory.write(settings, bare, with_cluster=False)
    console.print(f"inventory {inventory.path(settings)}")


def _discard(settings: Settings) -> None:
    nodes.remove(settings)
    for name in ("kubeconfig", "inventory.yml", "known_hosts", "gpu-report.json"):
        (settings.state / name).unlink(missing_ok=True)


def down(settings: Settings) -> None:
    """Remove nodes, volumes, network, node image and state; the cache of builds stays."""
    nodes.remove(settings)
    image = nodeimage.name(settings)
    if not run(["podman", "ps", "--all", "--quiet", "--filter", f"ancestor={image}"]).strip():
        run(["podman", "rmi", "--ignore", image])
    shutil.rmtree(settings.state, ignore_errors=True)
    note(f"{settings.name} is gone; what was built stays in {settings.cache}")


def clean(settings: Settings) -> None:
    """Remove the cache of builds, too."""
    down(settings)
    shutil.rmtree(settings.cache, ignore_errors=True)


def status(settings: Settings) -> None:
    """Print the running nodes, and the nodes and pods of Kubernetes."""
    console.print("\n".join(nodes.list_running(settings)) or f"no node of {settings.name} runs")
    if cluster.is_ready(settings):
        console.print(cluster.kubectl(settings, "get", "nodes,pods", "-A", "-o", "wide"))


COMMANDS: dict[str, Callable[..., None]] = {
    "up": up,
    "site": site,
    "playbook": playbook,
    "machines": machines,
    "status": status,
    "down": down,
    "clean": clean,
}


def main() -> int:
    """Parse the command line, run one command; after a failure print one message and return 1."""
    parser = argparse.ArgumentParser(prog="lab", description=__doc__)
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("words", nargs=argparse.REMAINDER, help="for site and playbook: passed to ansible-playbook")
    arguments = parser.parse_args()
    try:
        host.become_root()
        if arguments.words and arguments.command not in ("site", "playbook"):
            raise LabError(f"{arguments.command} takes no further words, but was given {' '.join(arguments.words)}.")
        COMMANDS[arguments.command](from_environment(), *arguments.words)
    except LabError as error:
        console.print(f"[red]✗[/] {escape(str(error))}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
