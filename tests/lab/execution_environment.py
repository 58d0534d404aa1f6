# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The execution environment of docs/examples, as a podman image on Debian, where the image of its own base cannot be pulled."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path

import yaml

from .nodeimage import bootstrap
from .progress import step
from .settings import ROOT, Settings
from .shell import DOWNLOAD_TRIES, run

DEFINITION = ROOT / "docs" / "examples" / "execution-environment" / "execution-environment.yml"
_CORE = Path(sysconfig.get_path("purelib")) / "ansible_collections" / "kubernetes" / "core"
_PACKAGES = ("python3", "python3-pip", "python3-venv", "git", "openssh-client", "ca-certificates")
#: What differs on Debian. Its Python refuses packages from pip, ensurepip and a newer pip; the system packages are in the base.
_OPTIONS = {"package_manager_path": "/usr/bin/apt-get", "skip_pip_install": True, "skip_ansible_check": True}
_CERTIFICATES = "/etc/ssl/certs"


def _pack(source: Path, target: Path) -> Path:
    """The archive of the collection in SOURCE, in the folder TARGET."""
    run([Path(sys.executable).parent / "ansible-galaxy", "collection", "build", "--output-path", target, source])
    return max(target.glob("*.tar.gz"), key=os.path.getmtime)


def _pack_core(scratch: Path, target: Path) -> Path:
    """The archive of kubernetes.core. Its copy in the package ansible has fewer files than its list, so that the list is made again."""
    copy = scratch / "core"
    shutil.copytree(_CORE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    described = json.loads((copy / "MANIFEST.json").read_text())["collection_info"]
    kept = ("namespace", "name", "version", "readme", "authors", "description", "dependencies")
    (copy / "galaxy.yml").write_text(yaml.safe_dump({key: described[key] for key in kept}))
    return _pack(copy, target)


def _define(base: str, archives: list[Path]) -> dict:
    """The definition of docs/examples on the image BASE, with the collections from ARCHIVES in its context."""
    definition = yaml.safe_load(DEFINITION.read_text())
    definition["images"]["base_image"]["name"] = base
    definition["options"] = _OPTIONS
    dependencies = definition["dependencies"]
    dependencies["galaxy"] = {"collections": [{"name": f"/build/{path.name}", "type": "file"} for path in archives]}
    dependencies["exclude"] = {"all_from_collections": [], "system": [".*"]}
    definition["additional_build_files"] = [{"src": str(path), "dest": "collections"} for path in archives]
    copies = [f"COPY _build/collections/{path.name} /build/" for path in archives]
    definition["additional_build_steps"] = {
        "prepend_base": ["ENV PIP_BREAK_SYSTEM_PACKAGES=1"],
        "prepend_galaxy": copies,
    }
    return definition


def build(settings: Settings) -> str:
    """Name of the image, which ansible-builder builds from this checkout. The caller removes it."""
    image = f"localhost/gpu-kubernetes-ee:{settings.name}"
    with tempfile.TemporaryDirectory(dir=settings.cache) as folder:
        scratch = Path(folder)
        packed = scratch / "packed"
        packed.mkdir()
        archives = [_pack(ROOT, packed), _pack_core(scratch, packed)]
        base = f"localhost/gpu-kubernetes-ee-base:{hashlib.sha256(repr(_PACKAGES).encode()).hexdigest()[:12]}"
        bootstrap(settings, base, _PACKAGES)
        definition = scratch / "execution-environment.yml"
        definition.write_text(yaml.safe_dump(_define(base, archives)))
        context = scratch / "context"
        with step("build the execution environment"):
            builder = Path(sys.executable).parent / "ansible-builder"
            run([builder, "create", "--file", definition, "--context", context])
            run(
                [
                    *("podman", "build", "--isolation=chroot", "--network=host", "--layers=false", "--tag", image),
                    *(
                        f"--volume={_CERTIFICATES}:{_CERTIFICATES}:ro",
                        f"--env=PIP_CERT={_CERTIFICATES}/ca-certificates.crt",
                    ),
                    context,
                ],
                retries=DOWNLOAD_TRIES,
            )
        run(["podman", "rmi", base])
        return image
