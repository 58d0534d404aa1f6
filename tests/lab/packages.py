# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Signed apt repositories; that of the lab has the NVIDIA container toolkit, packaged from the Go-built commands.

Package names are NVIDIA's, so that the roles install the same packages as elsewhere.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from . import binaries
from .progress import step
from .settings import VERSIONS, Settings
from .shell import run

KEY = "nvidia-container-toolkit-keyring.asc"
_OWNER = "gpu.kubernetes lab <lab@localhost>"


def control(name: str, version: str, depends: str, summary: str) -> str:
    """The control file of a package."""
    fields = {
        "Package": name,
        "Version": f"{version}-1",
        "Architecture": "amd64",
        "Maintainer": _OWNER,
        "Section": "utils",
        "Priority": "optional",
        "Depends": depends,
        "Description": summary,
    }
    return "".join(f"{key}: {value}\n" for key, value in fields.items() if value)


def package(target: Path, fields: str, files: Mapping[str, Path], scripts: Mapping[str, str] | None = None) -> None:
    """Make the package file TARGET of FILES (path in the package -> source) and maintainer SCRIPTS (name -> text)."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        root.chmod(0o755)
        (root / "DEBIAN").mkdir()
        (root / "DEBIAN" / "control").write_text(fields)
        for destination, source in files.items():
            path = root / destination
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, path)
        for name, text in (scripts or {}).items():
            (root / "DEBIAN" / name).write_text(text)
            (root / "DEBIAN" / name).chmod(0o755)
        run(["dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "--build", root, target])


def _sign(repository: Path, key: str) -> None:
    """Sign with a new key; the private key is deleted."""
    with tempfile.TemporaryDirectory() as home:
        gpg = ["gpg", "--homedir", home, "--batch", "--quiet", "--pinentry-mode", "loopback", "--passphrase", ""]
        run([*gpg, "--quick-generate-key", _OWNER, "ed25519", "sign", "never"])
        run([*gpg, "--armor", "--output", repository / key, "--export", _OWNER])
        run([*gpg, "--clearsign", "--output", repository / "InRelease", repository / "Release"])
        run(["gpgconf", "--homedir", home, "--kill", "all"])


def publish(folder: Path, key: str = KEY) -> None:
    """Make the folder of packages a flat repository, signed with a new key; the public key is in the folder."""
    (folder / "Packages").write_text(run(["apt-ftparchive", "packages", "."], cwd=folder))
    release = run(["apt-ftparchive", "-o", "APT::FTPArchive::Release::Suite=stable", "release", "."], cwd=folder)
    (folder / "Release").write_text(release)
    _sign(folder, key)


def repository(settings: Settings) -> Path:
    """Folder of a flat apt repository; mounted read-only into every node."""
    version = VERSIONS["nvidia_container_toolkit"]
    target = settings.cache / f"apt-{version}"
    if (target / "InRelease").is_file():
        return target
    commands = binaries.toolkit(settings)
    with step("package the toolkit into a signed apt repository"):
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        base = "nvidia-container-toolkit-base"
        package(
            target / f"{base}_{version}-1_amd64.deb",
            control(base, version, "", "NVIDIA container runtime and CDI tools (lab build from the Go module)"),
            {f"usr/bin/{command}": commands / command for command in binaries.TOOLKIT},
        )
        package(
            target / f"nvidia-container-toolkit_{version}-1_amd64.deb",
            control(
                "nvidia-container-toolkit",
                version,
                f"{base} (= {version}-1)",
                "NVIDIA container toolkit (lab build, CDI mode only)",
            ),
            {},
        )
        publish(target)
    return target
