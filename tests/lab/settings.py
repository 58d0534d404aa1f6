# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of a lab (LAB_* variables), and its folders."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from .shell import LabError

ROOT = Path(__file__).resolve().parents[2]
FILES = Path(__file__).parent / "files"
FAKES = ROOT / "tests" / "fakes"
VERSIONS: dict[str, str] = yaml.safe_load((Path(__file__).parent / "versions.yml").read_text())


@dataclass(frozen=True)
class Node:
    """One machine of the lab; ``gpus`` names a profile of tests/fakes/nvml, or is empty."""

    name: str
    number: int
    control_plane: bool = False
    gpus: str = ""
    cluster: bool = True
    containerd: str = ""


@dataclass(frozen=True)
class Settings:
    """One lab. Labs with different names can run at the same time."""

    name: str = "gpu-lab"
    kubernetes: str = VERSIONS["kubernetes"]
    containerd: str = VERSIONS["containerd"]
    subnet: str = "10.231.0"
    gpus: tuple[str, ...] = ("a100-40g", "mixed")
    control_planes: int = 1
    image_archives: Path | None = None
    nvml: Path | None = None
    cache: Path = field(default_factory=lambda: Path.home() / ".cache" / "gpu-kubernetes-lab")

    @property
    def state(self) -> Path:
        """Folder of this lab's keys, inventory and kubeconfig."""
        return ROOT / ".lab" / self.name

    @property
    def nodes(self) -> list[Node]:
        """The control planes, of which the first begins the cluster, and one worker for each GPU profile."""
        workers = []
        for number, entry in enumerate(self.gpus, 1):
            profile, _, containerd = entry.partition("@")
            workers.append(Node(f"{self.name}-worker-{number}", 10 + number, gpus=profile, containerd=containerd))
        # below the number of the first one: those of the workers are above it
        others = [
            Node(f"{self.name}-control-plane-{number}", 11 - number, control_plane=True)
            for number in range(2, self.control_planes + 1)
        ]
        return [Node(f"{self.name}-control-plane", 10, control_plane=True), *others, *workers]

    @property
    def given_archives(self) -> list[Path]:
        """The user's own docker-archives (LAB_IMAGE_ARCHIVES), real images among them."""
        return sorted(self.image_archives.rglob("*.tar")) if self.image_archives else []

    def address(self, node: Node) -> str:
        """IPv4 address of NODE on the lab's network."""
        return f"{self.subnet}.{node.number}"

    @property
    def minor(self) -> int:
        """Minor version of Kubernetes, 34 for 1.34.4."""
        return int(self.kubernetes.split(".")[1])


def _read_path(variable: str) -> Path | None:
    value = os.environ.get(variable)
    if not value:
        return None
    path = Path(value).expanduser().resolve()
    if not path.exists():
        raise LabError(f"{variable}={value}: there is no such file; give an existing path or unset {variable}.")
    return path


def _read_archives_folder() -> Path | None:
    """The folder of LAB_IMAGE_ARCHIVES, which has to contain an archive."""
    path = _read_path("LAB_IMAGE_ARCHIVES")
    if path and not any(path.rglob("*.tar")):
        raise LabError(
            f"LAB_IMAGE_ARCHIVES={path}: give a folder with docker-archives (*.tar); there is none below it."
        )
    return path


def from_environment() -> Settings:
    """Settings from LAB_NAME, LAB_SUBNET, LAB_KUBERNETES, LAB_CONTAINERD, LAB_GPUS, LAB_CONTROL_PLANES, LAB_NVML, LAB_IMAGE_ARCHIVES,
    LAB_CACHE."""
    values: dict[str, object] = {}
    for key in ("name", "subnet", "kubernetes", "containerd"):
        value = os.environ.get(f"LAB_{key.upper()}")
        if value:
            values[key] = value.removeprefix("v")
    if os.environ.get("LAB_GPUS"):
        values["gpus"] = tuple(os.environ["LAB_GPUS"].split(","))
    if os.environ.get("LAB_CONTROL_PLANES"):
        if os.environ["LAB_CONTROL_PLANES"] not in {"1", "3", "5"}:
            raise LabError("LAB_CONTROL_PLANES: etcd requires an odd number of control planes; choose 1, 3 or 5.")
        values["control_planes"] = int(os.environ["LAB_CONTROL_PLANES"])
    if os.environ.get("LAB_CACHE"):
        values["cache"] = Path(os.environ["LAB_CACHE"]).expanduser().resolve()
    settings = Settings(image_archives=_read_archives_folder(), nvml=_read_path("LAB_NVML"), **values)  # type: ignore[arg-type]
    for profile in (node.gpus for node in settings.nodes if node.gpus):
        if not (FAKES / "nvml" / "profiles" / f"{profile}.profile").is_file():
            known = sorted(path.stem for path in (FAKES / "nvml" / "profiles").glob("*.profile"))
            raise LabError(f"LAB_GPUS: there is no profile {profile!r}; choose from {', '.join(known)}.")
    return settings
