# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build the programs of a node from Go modules, each version once.

Every module's checksum is verified by the Go toolchain against its checksum database.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from .progress import step
from .settings import VERSIONS, Settings
from .shell import DOWNLOAD_TRIES, LabError, run

KUBERNETES = (
    "kubelet",
    "kubeadm",
    "kubectl",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kube-proxy",
)
# The programs are not debugged here and do little work. Builds without debug information, without inlining and with less garbage collection take
# a third less time.
GO_BUILD = ("go", "build", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false -l", "-ldflags=-s -w")
GO_COMPILER = {"GOFLAGS": "", "GOGC": "400"}
TOOLKIT = ("nvidia-ctk", "nvidia-container-runtime", "nvidia-cdi-hook")


@contextlib.contextmanager
def exclusive(settings: Settings) -> Iterator[None]:
    """Lock the cache: one lab builds at a time."""
    with _lock_file(settings.cache / ".lock"):
        yield


def _lock_target(target: Path) -> contextlib.AbstractContextManager[None]:
    """Lock TARGET: one lab or gate builds it, the others wait and use it."""
    return _lock_file(target.with_name(f".{target.name}.lock"))


@contextlib.contextmanager
def _lock_file(path: Path) -> Iterator[None]:
    """Wait for the lock of the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _environment(*, cgo: bool) -> dict[str, str]:
    return {**os.environ, **GO_COMPILER, "CGO_ENABLED": "1" if cgo else "0", "GOTOOLCHAIN": "auto"}


def _build(
    target: Path, module: str, version: str, packages: Iterable[str], *, cgo: bool = False, tags: str = ""
) -> Path:
    """Build PACKAGES (folders of MODULE) into TARGET, all of them or none.

    A scratch module requires them, because ``go install`` refuses modules with replace or exclude directives.
    """
    paths = [f"{module}/{package}".rstrip("/") for package in packages]
    with _lock_target(target):
        if target.is_dir():
            return target
        with step(f"build {target.name}"), tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            folder, env = Path(scratch), _environment(cgo=cgo)
            (folder / "go.mod").write_text("module lab\n")
            (folder / "bin").mkdir()
            run(["go", "get", *(f"{path}@v{version}" for path in paths)], cwd=folder, env=env, retries=DOWNLOAD_TRIES)
            run([*GO_BUILD, f"-tags={tags}", "-o", f"{folder}/bin/", *paths], cwd=folder, env=env)
            (folder / "bin").rename(target)
    return target


def _kubernetes_module(version: str) -> str:
    """A go.mod that builds Kubernetes outside its repository, with the published versions of the staging modules."""
    command = ["go", "mod", "download", "-json", f"k8s.io/kubernetes@v{version}"]
    origin = json.loads(run(command, retries=DOWNLOAD_TRIES))["GoMod"]
    lines = Path(origin).read_text().splitlines()
    language = next(line for line in lines if line.startswith("go "))
    staging_modules = sorted(
        {
            words[words.index("=>") - 1]
            for words in map(str.split, lines)
            if "=>" in words and words[-1].startswith("./staging/")
        }
    )
    staging_version = f"v0.{version.split('.', 1)[1]}"
    replacements = [f"replace {module} => {module} {staging_version}" for module in staging_modules]
    return "\n".join(["module lab", language, f"require k8s.io/kubernetes v{version}", *replacements]) + "\n"


def kubernetes(settings: Settings, commands: Iterable[str] = KUBERNETES) -> Path:
    """Folder with the commands of this Kubernetes version, static."""
    version = settings.kubernetes
    target = settings.cache / "bin" / f"kubernetes-{version}"
    with _lock_target(target):
        if missing := [command for command in commands if not (target / command).is_file()]:
            target.mkdir(exist_ok=True)
            _build_kubernetes(target, version, missing)
    return target


def _build_kubernetes(target: Path, version: str, missing: list[str]) -> None:
    major, minor = version.split(".")[:2]
    stamp = "k8s.io/component-base/version"
    flags = f"-s -w -X {stamp}.gitVersion=v{version} -X {stamp}.gitMajor={major} -X {stamp}.gitMinor={minor}"
    with tempfile.TemporaryDirectory(dir=target) as scratch:
        env = _environment(cgo=False)
        (Path(scratch) / "go.mod").write_text(_kubernetes_module(version))
        # the first `go get` resolves and pins the dependencies of the commands
        with step(f"resolve the modules of Kubernetes {version}"):
            run(
                ["go", "get", *(f"k8s.io/kubernetes/cmd/{command}@v{version}" for command in missing)],
                cwd=Path(scratch),
                env=env,
                retries=DOWNLOAD_TRIES,
            )
        with step(f"build {', '.join(missing)} {version}"):
            (Path(scratch) / "bin").mkdir()
            packages = [f"k8s.io/kubernetes/cmd/{command}" for command in missing]
            run([*GO_BUILD, f"-ldflags={flags}", "-o", f"{scratch}/bin/", *packages], cwd=Path(scratch), env=env)
        for command in missing:
            (Path(scratch) / "bin" / command).rename(target / command)


def containerd(settings: Settings, version: str = "") -> Path:
    """Folder with containerd, its runc shim and ctr; the version ``debian`` is the one of this host's Debian."""
    version = version or settings.containerd
    if version == "debian":
        return debian_containerd(settings)
    module = "github.com/containerd/containerd" + ("/v2" if version.startswith("2.") else "")
    commands = ("cmd/containerd", "cmd/containerd-shim-runc-v2", "cmd/ctr")
    return _build(settings.cache / "bin" / f"containerd-{version}", module, version, commands)


def debian_containerd(settings: Settings) -> Path:
    """Folder with the containerd of this host's Debian, unpacked from its package and not installed."""
    return _unpack_debian(settings, "containerd")


def prometheus(settings: Settings, suite: str = "") -> Path:
    """Folder with prometheus and promtool of this host's Debian, or of another suite, unpacked from their packages and not installed."""
    if suite:
        return _extract_debian(settings, suite, "prometheus", "promtool")
    target = _unpack_debian(settings, "prometheus")
    # A package of its own from Debian 13 on.
    if not (target / "promtool").is_file():
        (target / "promtool").symlink_to(_unpack_debian(settings, "promtool") / "promtool")
    return target


def alertmanager(settings: Settings) -> Path:
    """The folder ``usr`` of the package with Debian's Alertmanager, which reads a template below ``/usr/share``."""
    return _unpack_debian(settings, "prometheus-alertmanager", "usr")


def busybox(settings: Settings) -> Path:
    """Folder with Debian's static busybox, for images with a shell."""
    return _unpack_debian(settings, "busybox-static", "bin")


def _unpack_debian(settings: Settings, package: str, part: str = "usr/bin") -> Path:
    """Folder with the programs, or another part, of a package of this host's Debian."""
    target = settings.cache / "bin" / f"{package}-debian"
    with _lock_target(target):
        if target.is_dir():
            return target
        with step(f"fetch Debian's {package}"), tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            folder = Path(scratch)
            try:
                run(["apt-get", "download", package], cwd=folder)
            except LabError:  # the lists may be old or not there yet
                run(["apt-get", "update"], retries=DOWNLOAD_TRIES)
                run(["apt-get", "download", package], cwd=folder, retries=DOWNLOAD_TRIES)
            run(["dpkg-deb", "--extract", next(folder.glob(f"{package}_*.deb")), folder / "package"])
            (folder / "package" / part).rename(target)
    return target


def _extract_debian(settings: Settings, suite: str, *programs: str) -> Path:
    """Folder with PROGRAMS of a suite of Debian, each of a package of its name, which need no newer C library than that of this host."""
    target = settings.cache / "bin" / f"{programs[0]}-{suite}"
    with _lock_target(target):
        if target.is_dir():
            return target
        with (
            step(f"fetch {programs[0]} of Debian's {suite}"),
            tempfile.TemporaryDirectory(dir=target.parent) as scratch,
        ):
            (Path(scratch) / "bin").mkdir()
            paths = " ".join(f"/usr/bin/{program}" for program in programs)
            run(
                [
                    "mmdebstrap",
                    "--variant=extract",
                    f"--include={','.join(programs)}",
                    # A mirror of a suite in development may be late. Its signature is verified.
                    '--aptopt=Acquire::Check-Valid-Until "false"',
                    f"--extract-hook=copy-out {paths} {scratch}/bin",
                    suite,
                    "/dev/null",
                ],
                retries=DOWNLOAD_TRIES,
            )
            (Path(scratch) / "bin").rename(target)
    return target


def runc(settings: Settings) -> Path:
    """Folder with runc (with seccomp, so dynamic)."""
    version = VERSIONS["runc"]
    target = settings.cache / "bin" / f"runc-{version}"
    return _build(target, "github.com/opencontainers/runc", version, [""], cgo=True, tags="seccomp")


def cri_tools(settings: Settings) -> Path:
    """Folder with crictl, which the packages of kubeadm install on real nodes."""
    version = VERSIONS["cri_tools"]
    target = settings.cache / "bin" / f"cri-tools-{version}"
    return _build(target, "sigs.k8s.io/cri-tools", version, ["cmd/crictl"])


def etcd(settings: Settings) -> Path:
    """Folder with etcd, whose module calls its command ``server``."""
    version = VERSIONS["etcd"]
    target = _build(settings.cache / "bin" / f"etcd-{version}", "go.etcd.io/etcd/server/v3", version, [""])
    if not (target / "etcd").exists():
        next(target.iterdir()).rename(target / "etcd")
    return target


def toolkit(settings: Settings) -> Path:
    """Folder with the commands of NVIDIA's container toolkit (without the libnvidia-container C tools: CDI only)."""
    version = VERSIONS["nvidia_container_toolkit"]
    target = settings.cache / "bin" / f"nvidia-container-toolkit-{version}"
    commands = [f"cmd/{command}" for command in TOOLKIT]
    return _build(target, "github.com/NVIDIA/nvidia-container-toolkit", version, commands, cgo=True)
