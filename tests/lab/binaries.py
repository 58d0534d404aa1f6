# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build what a node runs from Go modules, each version once.

Every module's checksum is verified by the Go toolchain against its checksum database.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from .progress import step
from .settings import VERSIONS, Settings
from .shell import run

KUBERNETES = (
    "kubelet",
    "kubeadm",
    "kubectl",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kube-proxy",
)
TOOLKIT = ("nvidia-ctk", "nvidia-container-runtime", "nvidia-cdi-hook")


def _environment(*, cgo: bool, gobin: Path | None = None) -> dict[str, str]:
    env = {**os.environ, "CGO_ENABLED": "1" if cgo else "0", "GOFLAGS": "-trimpath", "GOTOOLCHAIN": "auto"}
    return {**env, "GOBIN": str(gobin)} if gobin else env


def _install(target: Path, packages: Iterable[str], *, cgo: bool = False, tags: str = "") -> Path:
    """``go install`` PACKAGES (path@version) into TARGET, all of them or none."""
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        command = ["go", "install", "-ldflags=-s -w", *([f"-tags={tags}"] if tags else []), *packages]
        run(command, env=_environment(cgo=cgo, gobin=Path(scratch) / "bin"), cwd=Path(scratch))
        (Path(scratch) / "bin").rename(target)
    return target


def _kubernetes_module(version: str) -> str:
    """A go.mod which builds Kubernetes outside its repository: the staging modules come by their own versions."""
    origin = json.loads(run(["go", "mod", "download", "-json", f"k8s.io/kubernetes@v{version}"]))["GoMod"]
    lines = Path(origin).read_text().splitlines()
    language = next(line for line in lines if line.startswith("go "))
    staged = sorted(
        {
            words[words.index("=>") - 1]
            for words in map(str.split, lines)
            if "=>" in words and words[-1].startswith("./staging/")
        }
    )
    staging_version = f"v0.{version.split('.', 1)[1]}"
    replaced = [f"replace {module} => {module} {staging_version}" for module in staged]
    return "\n".join(["module lab", language, f"require k8s.io/kubernetes v{version}", *replaced]) + "\n"


def kubernetes(settings: Settings, commands: Iterable[str] = KUBERNETES) -> Path:
    """Folder with the commands of this Kubernetes version, static."""
    version = settings.kubernetes
    target = settings.cache / "bin" / f"kubernetes-{version}"
    missing = [command for command in commands if not (target / command).is_file()]
    if not missing:
        return target
    target.mkdir(parents=True, exist_ok=True)
    major, minor = version.split(".")[:2]
    stamp = "k8s.io/component-base/version"
    flags = f"-s -w -X {stamp}.gitVersion=v{version} -X {stamp}.gitMajor={major} -X {stamp}.gitMinor={minor}"
    with tempfile.TemporaryDirectory() as scratch:
        env = _environment(cgo=False)
        (Path(scratch) / "go.mod").write_text(_kubernetes_module(version))
        # the first `go get` resolves what the commands need; nothing is left to chance afterwards
        with step(f"resolve the modules of Kubernetes {version}"):
            run(
                ["go", "get", *(f"k8s.io/kubernetes/cmd/{command}@v{version}" for command in missing)],
                cwd=Path(scratch),
                env=env,
            )
        for number, command in enumerate(missing, 1):
            with step(f"build {command} {version} ({number} of {len(missing)})"):
                run(
                    [
                        "go",
                        "build",
                        f"-ldflags={flags}",
                        "-o",
                        f"{scratch}/{command}",
                        f"k8s.io/kubernetes/cmd/{command}",
                    ],
                    cwd=Path(scratch),
                    env=env,
                )
                shutil.move(f"{scratch}/{command}", target / command)
    return target


def containerd(settings: Settings, version: str = "") -> Path:
    """Folder with containerd, its runc shim and ctr."""
    version = version or settings.containerd
    target = settings.cache / "bin" / f"containerd-{version}"
    module = "github.com/containerd/containerd" + ("/v2" if version.startswith("2.") else "")
    if not target.is_dir():
        with step(f"build containerd {version}"):
            _install(
                target,
                [f"{module}/cmd/{command}@v{version}" for command in ("containerd", "containerd-shim-runc-v2", "ctr")],
            )
    return target


def runc(settings: Settings) -> Path:
    """Folder with runc (with seccomp, so dynamic)."""
    target = settings.cache / "bin" / f"runc-{VERSIONS['runc']}"
    if not target.is_dir():
        with step(f"build runc {VERSIONS['runc']}"):
            _install(target, [f"github.com/opencontainers/runc@v{VERSIONS['runc']}"], cgo=True, tags="seccomp")
    return target


def etcd(settings: Settings) -> Path:
    """Folder with etcd; built in a scratch module, since its own replaces forbid ``go install``."""
    target = settings.cache / "bin" / f"etcd-{VERSIONS['etcd']}"
    if target.is_dir():
        return target
    with step(f"build etcd {VERSIONS['etcd']}"), tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "go.mod").write_text("module lab\n")
        env = _environment(cgo=False)
        run(["go", "get", "-tool", f"go.etcd.io/etcd/server/v3@v{VERSIONS['etcd']}"], cwd=Path(scratch), env=env)
        run(
            ["go", "build", "-ldflags=-s -w", "-o", f"{scratch}/bin/etcd", "go.etcd.io/etcd/server/v3"],
            cwd=Path(scratch),
            env=env,
        )
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(f"{scratch}/bin", target)
    return target


def toolkit(settings: Settings) -> Path:
    """Folder with NVIDIA's container toolkit commands (the libnvidia-container C tools are not to be had: CDI only)."""
    version = VERSIONS["nvidia_container_toolkit"]
    target = settings.cache / "bin" / f"nvidia-container-toolkit-{version}"
    if not target.is_dir():
        with step(f"build the NVIDIA container toolkit {version}"):
            _install(
                target,
                [f"github.com/NVIDIA/nvidia-container-toolkit/cmd/{command}@v{version}" for command in TOOLKIT],
                cgo=True,
            )
    return target
