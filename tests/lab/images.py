# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Container images without a registry: archives of built commands, with the names that kubeadm uses."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from . import binaries, nodes
from .fakes import build as fake_images
from .fakes.archive import Content, docker_archive
from .progress import step
from .settings import Node, Settings
from .shell import run

_LIBRARIES = Path("/usr/lib/x86_64-linux-gnu")


def kubeadm_names(settings: Settings) -> dict[str, str]:
    """``kube-proxy`` -> full image name, for all images that kubeadm lists for this version."""
    kubeadm = binaries.kubernetes(settings) / "kubeadm"
    images = run([kubeadm, "config", "images", "list", "--kubernetes-version", f"v{settings.kubernetes}"]).split()
    return {name.rsplit("/", 1)[1].split(":")[0]: name for name in images}


def _libraries(program: Path) -> Iterable[Path]:
    """Shared libraries of PROGRAM, its loader included."""
    for line in run(["ldd", program]).splitlines():
        words = [word for word in line.split() if word.startswith("/")]
        if words:
            yield Path(words[0])


def _iptables() -> dict[str, Content]:
    """iptables with its extensions, from the machine's own Debian package; kube-proxy calls it."""
    program = Path("/usr/sbin/iptables").resolve()
    extensions = sorted((_LIBRARIES / "xtables").glob("*.so"))
    found = {
        program,
        *_libraries(program),
        *extensions,
        *(lib for extension in extensions for lib in _libraries(extension)),
    }
    files: dict[str, Content] = {str(path): path for path in found}
    for prefix in ("iptables", "ip6tables"):
        files.update({f"/usr/sbin/{prefix}{suffix}": program for suffix in ("", "-save", "-restore")})
    return files


def _command(target: Path, name: str, program: Path, extra: dict[str, Content] | None = None) -> Path:
    if target.is_file():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    return docker_archive(
        target, name=name, files={f"/usr/local/bin/{program.name}": program, **(extra or {})}, entrypoint=[program.name]
    )


def kubernetes(settings: Settings) -> dict[str, Path]:
    """Image name -> archive, for the control plane, etcd and kube-proxy."""
    names = kubeadm_names(settings)
    commands = binaries.kubernetes(settings)
    folder = settings.cache / "images" / f"kubernetes-{settings.kubernetes}"
    archives: dict[str, Path] = {}
    with step("build the images that kubeadm uses"):
        for short in ("kube-apiserver", "kube-controller-manager", "kube-scheduler"):
            archives[short] = _command(folder / f"{short}.tar", names[short], commands / short)
        archives["etcd"] = _command(folder / "etcd.tar", names["etcd"], binaries.etcd(settings) / "etcd")
        proxy = folder / "kube-proxy.tar"
        archives["kube-proxy"] = _command(
            proxy, names["kube-proxy"], commands / "kube-proxy", {} if proxy.is_file() else _iptables()
        )
        archives["pause"] = fake_images.pause(folder / "pause.tar", name=names["pause"], cache=settings.cache)
    return archives


def build_fakes(settings: Settings) -> dict[str, Path]:
    """Archives of the fakes of vendors' images; see fakes/."""
    with step("build the fake images"):
        return fake_images.build(
            settings.cache / "images" / "fakes", settings.cache, binaries.busybox(settings) / "busybox"
        )


def load(settings: Settings, node: Node, archives: Iterable[Path]) -> None:
    """Import ARCHIVES, which are mounted into the node, into NODE's containerd."""
    mounts = {settings.cache / "images": "/srv/lab/images", settings.image_archives: "/srv/lab/given-images"}
    for archive in archives:
        inside = next(
            f"{place}/{archive.relative_to(root)}" for root, place in mounts.items() if root and root in archive.parents
        )
        nodes.execute(node, "ctr", "-n", "k8s.io", "images", "import", inside)
