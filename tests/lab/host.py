# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the machine that carries the lab needs."""

from __future__ import annotations

import os
import platform
import shutil
import sys

from .progress import step
from .shell import LabError, run

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
    "/usr/include/seccomp.h": "libseccomp-dev",
    "/usr/share/keyrings/debian-archive-keyring.gpg": "debian-archive-keyring",
}
_OUTSIDE_PATH = {"netavark": "/usr/lib/podman/netavark"}


def become_root() -> None:
    """Start again through sudo where we are not root; nodes are privileged containers."""
    if os.geteuid() == 0:
        return
    if not shutil.which("sudo"):
        raise LabError("The lab's nodes are privileged containers: run it as root or install sudo.")
    kept = ",".join(["PATH", "HOME", "PYTHONPATH", *(name for name in os.environ if name.startswith("LAB_"))])
    os.execvp("sudo", ["sudo", f"--preserve-env={kept}", sys.executable, "-m", "lab", *sys.argv[1:]])  # noqa: S606 - there is no shell to be had, and none is wanted


def _missing() -> list[str]:
    commands = [
        package
        for command, package in NEEDED.items()
        if not (shutil.which(command) or os.path.exists(_OUTSIDE_PATH.get(command, "")))
    ]
    return sorted({*commands, *(package for header, package in HEADERS.items() if not os.path.exists(header))})


def prepare() -> None:
    """Install the Debian packages that are missing; Go is asked of the user, since Debian's is too old."""
    if platform.machine() != "x86_64":
        raise LabError(f"The lab was only tried on x86_64, this machine is {platform.machine()}.")
    if not shutil.which("go"):
        raise LabError("Go is not in PATH: install Go 1.24 or newer, the lab builds Kubernetes and containerd with it.")
    missing = _missing()
    if not missing:
        return
    if not shutil.which("apt-get"):
        raise LabError(
            f"Missing on this machine: {', '.join(missing)}; install them, the lab can do it by itself on Debian only."
        )
    with step(f"install {', '.join(missing)}"):
        run(["apt-get", "update"])
        run(
            ["apt-get", "install", "-y", "--no-install-recommends", *missing],
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        )
