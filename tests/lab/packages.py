# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A signed apt repository with the NVIDIA container toolkit, packaged from the Go-built commands.

Package names are NVIDIA's, so that the roles install here what they install elsewhere.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from . import binaries
from .progress import step
from .settings import VERSIONS, Settings
from .shell import run

KEY = "nvidia-container-toolkit-keyring.asc"
_OWNER = "gpu.kubernetes lab <lab@localhost>"


def _control(name: str, version: str, depends: str, summary: str) -> str:
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


def _package(target: Path, control: str, files: dict[str, Path]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        root.chmod(0o755)
        (root / "DEBIAN").mkdir()
        (root / "DEBIAN" / "control").write_text(control)
        for destination, source in files.items():
            path = root / destination
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, path)
        run(["dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "--build", root, target])


def _sign(repository: Path) -> None:
    """Sign with a key made for this repository alone; its private half is thrown away."""
    with tempfile.TemporaryDirectory() as home:
        gpg = ["gpg", "--homedir", home, "--batch", "--quiet", "--pinentry-mode", "loopback", "--passphrase", ""]
        run([*gpg, "--quick-generate-key", _OWNER, "ed25519", "sign", "never"])
        run([*gpg, "--armor", "--output", repository / KEY, "--export", _OWNER])
        run([*gpg, "--clearsign", "--output", repository / "InRelease", repository / "Release"])
        run(["gpgconf", "--homedir", home, "--kill", "all"])


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
        _package(
            target / f"{base}_{version}-1_amd64.deb",
            _control(base, version, "", "NVIDIA container runtime and CDI tools (lab build from the Go module)"),
            {f"usr/bin/{command}": commands / command for command in binaries.TOOLKIT},
        )
        _package(
            target / f"nvidia-container-toolkit_{version}-1_amd64.deb",
            _control(
                "nvidia-container-toolkit",
                version,
                f"{base} (= {version}-1)",
                "NVIDIA container toolkit (lab build, CDI mode only)",
            ),
            {},
        )
        (target / "Packages").write_text(run(["apt-ftparchive", "packages", "."], cwd=target))
        release = run(["apt-ftparchive", "-o", "APT::FTPArchive::Release::Suite=stable", "release", "."], cwd=target)
        (target / "Release").write_text(release)
        _sign(target)
    return target
