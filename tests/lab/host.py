# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages and settings that the lab needs on its machine."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from pathlib import Path

from .progress import note, step
from .shell import DOWNLOAD_TRIES, LabError, run

# command -> Debian package
NEEDED = {
    "podman": "podman",
    "runc": "runc",
    "netavark": "netavark",
    "mmdebstrap": "mmdebstrap",
    "gcc": "gcc",
    "make": "make",
    "pkg-config": "pkg-config",
    "apt-ftparchive": "apt-utils",
    "gpg": "gnupg",
    "ssh": "openssh-client",
    "iptables": "iptables",
    "ip": "iproute2",
}
HEADERS = {
    "/usr/include/stdio.h": "libc6-dev",
    "/usr/include/seccomp.h": "libseccomp-dev",
    "/usr/share/keyrings/debian-archive-keyring.gpg": "debian-archive-keyring",
}
# the kernel's default, 128, is for all nodes of all labs; a node takes 16 to 30
_INOTIFY, _INOTIFY_NEEDED = Path("/proc/sys/fs/inotify/max_user_instances"), 1024
_OUTSIDE_PATH = {"netavark": "/usr/lib/podman/netavark"}


def become_root() -> None:
    """Start this program again with sudo unless it runs as root; nodes are privileged containers."""
    if os.geteuid() == 0:
        return
    if not shutil.which("sudo"):
        raise LabError("The lab's nodes are privileged containers: run it as root or install sudo.")
    # sudo has its own PATH, usually without Go
    own = (name for name in os.environ if name.startswith(("LAB_", "GO")) or name.lower().endswith("_proxy"))
    environment = [f"{name}={os.environ[name]}" for name in ("PATH", "HOME", "PYTHONPATH", *own) if name in os.environ]
    # no shell is needed
    os.execvp("sudo", ["sudo", "env", *environment, sys.executable, "-m", "lab", *sys.argv[1:]])  # noqa: S606


def _missing() -> list[str]:
    commands = [
        package
        for command, package in NEEDED.items()
        if not (shutil.which(command) or os.path.exists(_OUTSIDE_PATH.get(command, "")))
    ]
    return sorted({*commands, *(package for header, package in HEADERS.items() if not os.path.exists(header))})


def _load_modules() -> None:
    """Load the kernel modules of the nodes, which have the kernel of this machine. Built-in modules need no loading."""
    for module in ("overlay", "br_netfilter"):
        if not os.path.isdir(f"/sys/module/{module}") and shutil.which("modprobe"):
            run(["modprobe", module], check=False)


def _raise_inotify() -> None:
    """Raise the limit of watched files for the nodes' kubelets and systemds; below it a node boots degraded."""
    try:
        before = int(_INOTIFY.read_text())
        if before < _INOTIFY_NEEDED:
            _INOTIFY.write_text(str(_INOTIFY_NEEDED))
            note(
                f"fs.inotify.max_user_instances of this machine raised from {before} to {_INOTIFY_NEEDED} until it boots again"
            )
    except OSError as error:
        note(
            f"fs.inotify.max_user_instances of this machine cannot be raised ({error.strerror}); it is enough for four nodes"
        )


def prepare() -> None:
    """Install missing Debian packages, without Go: Debian's is too old."""
    if platform.machine() != "x86_64":
        raise LabError(f"The lab was only tried on x86_64, this machine is {platform.machine()}.")
    if not shutil.which("go"):
        raise LabError("Go is not in PATH: install Go 1.24 or newer, the lab builds Kubernetes and containerd with it.")
    _load_modules()
    _raise_inotify()
    missing = _missing()
    if not missing:
        return
    if not shutil.which("apt-get"):
        raise LabError(
            f"Missing on this machine: {', '.join(missing)}; install them, the lab can do it by itself on Debian only."
        )
    with step(f"install {', '.join(missing)}"):
        run(["apt-get", "update"], retries=DOWNLOAD_TRIES)
        run(
            ["apt-get", "install", "-y", "--no-install-recommends", *missing],
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            retries=DOWNLOAD_TRIES,
        )
