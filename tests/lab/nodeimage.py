# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes' operating system: Debian with systemd, as a podman image."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .progress import step
from .settings import FILES, VERSIONS, Settings
from .shell import DOWNLOAD_TRIES, run

_PACKAGES = (
    *("systemd", "systemd-sysv", "dbus", "python3", "sudo", "openssh-server", "ca-certificates", "gpgv"),
    *("iproute2", "iptables", "conntrack", "ethtool", "socat", "procps", "mount", "kmod", "libseccomp2"),
    "containernetworking-plugins",
    # NVIDIA's own programs of MPS, from non-free; they run without a GPU.
    "nvidia-cuda-mps",
)
_COMPONENTS = "main,non-free"
# a node of the lab installs from the lab's repository only: Debian's sources are removed
_CUSTOMIZE = (
    'rm -rf "$1"/etc/apt/sources.list "$1"/etc/apt/sources.list.d/*',
    'mkdir -p "$1"/opt/cni "$1"/root/.ssh && ln -sfn /usr/lib/cni "$1"/opt/cni/bin',
    'rm -f "$1"/etc/ssh/ssh_host_* "$1"/etc/machine-id && touch "$1"/etc/machine-id',
    'chroot "$1" systemctl mask getty.target console-getty.service systemd-udevd.service systemd-udev-trigger.service',
    'chroot "$1" systemctl enable ssh.service containerd.service nvml-fake.service',
)


def _copy_hooks() -> list[str]:
    """mmdebstrap hooks that copy files/rootfs into the new root."""
    return [f'cp -a "{FILES / "rootfs"}"/. "$1"/ && chown -R root:root "$1"/etc/systemd/system']


def name(settings: Settings) -> str:
    """Tag of the image; it changes with the content of the image."""
    recipe = repr((_PACKAGES, _COMPONENTS, _CUSTOMIZE, VERSIONS["debian"])).encode()
    recipe += b"".join(path.read_bytes() for path in sorted((FILES / "rootfs").rglob("*")) if path.is_file())
    return f"localhost/gpu-kubernetes-lab-node:{hashlib.sha256(recipe).hexdigest()[:12]}"


def ensure(settings: Settings) -> str:
    """Name of the node image, which is built from Debian packages if it is missing."""
    image = name(settings)
    bootstrap(settings, image, _PACKAGES, [*_copy_hooks(), *_CUSTOMIZE])
    return image


def bootstrap(settings: Settings, image: str, packages: Sequence[str], hooks: Sequence[str] = ()) -> None:
    """Make IMAGE of Debian's PACKAGES if it is missing; HOOKS are commands of mmdebstrap on its root."""
    if image in run(["podman", "images", "--format", "{{.Repository}}:{{.Tag}}"]).split():
        return
    archive = settings.cache / f"{image.rsplit('-', 1)[1].replace(':', '-')}.tar"
    if not archive.is_file():
        archive.parent.mkdir(parents=True, exist_ok=True)
        with step(f"build {image} from Debian packages"), tempfile.TemporaryDirectory(dir=archive.parent) as scratch:
            partial = Path(scratch) / "root.tar"
            run(
                [
                    "mmdebstrap",
                    "--variant=minbase",
                    f"--components={_COMPONENTS}",
                    f"--include={','.join(packages)}",
                    *(f"--customize-hook={hook}" for hook in hooks),
                    VERSIONS["debian"],
                    partial,
                ],
                retries=DOWNLOAD_TRIES,
            )
            partial.rename(archive)
    with step(f"import {image}"):
        run(["podman", "import", "--quiet", archive, image])
