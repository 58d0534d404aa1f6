# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build stub packages, and sign repositories of them for dnf, zypper and pacman. It runs on the machine, as root.

Below TARGET: ``rpm``, with metadata and packages signed by the vendor's key; ``rpm-other-key``, both signed by another key; ``rpm-unsigned``,
without signatures; ``pacman/VERSION``, because a repository of pacman has one version of each package; ``pacman/other-key``;
``vendor.asc`` and ``other-key.asc``, the public keys. The private keys are deleted.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

VERSIONS = ("1.2.0", "1.10.0", "2.0.0")
# The version in repositories that have to be rejected, so that no package comes from a cache.
REJECTED_VERSION = "3.0.0"
STUB = "A stub of the gpu.kubernetes tests that does nothing"
# Runs during the installation: if a file exists, it kills the package manager and its parents, up to the ssh server.
KILL_SCRIPT = """if [ -e /run/kill-installers ]; then
    rm /run/kill-installers
    pid=$PPID; pids=
    while [ "$pid" -gt 1 ] && ! grep -q sshd "/proc/$pid/comm"; do
        pids="$pids $pid"; pid=$(sed 's/.*) . //; s/ .*//' "/proc/$pid/stat")
    done
    kill -9 $pids
fi
"""


@dataclass(frozen=True)
class Stub:
    """A package with its name, its requirements ("=" after a name: in the same version), and a version if it has its own.

    ``script`` runs after the installation. ``provides`` is another name of the package, ``obsoletes`` the name of a replaced package.
    """

    name: str
    requires: tuple[str, ...] = ()
    version: str = ""
    script: str = ""
    provides: str = ""
    obsoletes: str = ""

    def get_version(self, version: str) -> str:
        return self.version or version

    def list_requirements(self, version: str, sign: str) -> list[str]:
        return [name.replace("=", f"{sign}{version}-1") for name in self.requires]


PACKAGES = (
    Stub("nvidia-stub-smi", ("libnvidia-stub-ml=",)),
    Stub("libnvidia-stub-ml", ("stub-helper",), script=KILL_SCRIPT),
    # Debian's shell is unknown to rpm. zypper cannot read a database without packages.
    Stub("stub-base", version="1.0", provides="/bin/sh"),
    Stub("stub-helper", version="3.2"),
    Stub("stub-dashboard", ("nvidia-stub-smi",), version="7.0"),
    Stub("stub-neighbour", ("stub-helper",), version="7.0"),
    # As NVIDIA's fabric manager: in each version, the package with the former name obsoletes the one with the new name.
    Stub(
        "nvidia-stub-fabric-manager",
        version="1.10.0",
        provides="nvidia-stub-fabricmanager = 1.10.0",
        obsoletes="nvidia-stub-fabricmanager",
    ),
    Stub("nvidia-stub-fabricmanager", version="2.0.0"),
    # On Enterprise Linux it contains a plugin that is in another package of Debian.
    Stub("python3-dnf-plugin-versionlock", version="4.0"),
)


def run(*command: object, folder: Path | None = None) -> None:
    """Run a command, silent unless it fails."""
    done = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{command}: {done.stdout}{done.stderr}")


class Signer:
    """A signing key in a folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name, self.home = f"{name} of the gpu.kubernetes tests", folder / name
        self.home.mkdir(mode=0o700)
        # This version of rpm supports no other type.
        self._gpg("--quick-generate-key", self.name, "rsa3072", "sign", "never")

    def _gpg(self, *words: object) -> None:
        run(
            "gpg",
            "--homedir",
            self.home,
            "--batch",
            "--quiet",
            "--pinentry-mode",
            "loopback",
            "--passphrase",
            "",
            *words,
        )

    def export_key(self, target: Path) -> None:
        self._gpg("--armor", "--output", target, "--export", self.name)

    def sign_file(self, file: Path, ending: str) -> None:
        armour = ["--armor"] if ending == ".asc" else []
        self._gpg(*armour, "--output", f"{file}{ending}", "--detach-sign", file)

    def sign_packages(self, files: list[Path]) -> None:
        macros = {"_gpg_name": self.name, "_gpg_path": self.home, "__gpg": "/usr/bin/gpg"}
        run("rpmsign", *(f"--define={name} {value}" for name, value in macros.items()), "--addsign", *files)


def render_spec(stubs: list[Stub], version: str) -> str:
    """Return a spec file of all packages that needs no sources."""
    fields = f"Release: 1\nSummary: {STUB}\n"
    lines = [
        f"Name: stubs\nVersion: {version}\nLicense: GPL-3.0-or-later\nBuildArch: noarch\nAutoReqProv: no\n{fields}"
    ]
    lines.append(f"%description\n{STUB}.\n")
    install = ["%install\n"]
    for stub in stubs:
        file = f"/usr/share/stubs/{stub.name}"
        requires = "".join(f"Requires: {name}\n" for name in stub.list_requirements(version, " = "))
        requires += f"Provides: {stub.provides}\n" if stub.provides else ""
        requires += f"Obsoletes: {stub.obsoletes}\n" if stub.obsoletes else ""
        lines.append(f"%package -n {stub.name}\nVersion: {stub.get_version(version)}\n{fields}{requires}")
        lines.append(f"%description -n {stub.name}\n{STUB}.\n%files -n {stub.name}\n{file}\n")
        lines.append(f"%post -n {stub.name}\n{stub.script}" if stub.script else "")
        install.append(f"install -D /dev/null %{{buildroot}}{file}\n")
    return "".join([*lines, *install])


def build_rpm_packages(folder: Path, stubs: tuple[Stub, ...], versions: tuple[str, ...]) -> None:
    """Build packages without signatures."""
    folder.mkdir()
    for version in versions:
        # A package with its own version exists once.
        selected = [stub for stub in stubs if not stub.version or version == versions[0]]
        file = folder / "stubs.spec"
        file.write_text(render_spec(selected, version))
        run("rpmbuild", "-bb", "--quiet", f"--define=_topdir {folder}/build", f"--define=_rpmdir {folder}", file)
        file.unlink()
    shutil.rmtree(folder / "build")


def build_rpm_repository(folder: Path, signer: Signer) -> None:
    """Create the metadata and their signature."""
    run("createrepo_c", "--no-database", folder)
    signer.sign_file(folder / "repodata" / "repomd.xml", ".asc")


def _write_archive(target: Path, files: dict[str, str]) -> None:
    # Without the time, so that a package of one version is identical in all repositories.
    with gzip.GzipFile(target, "wb", mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(text), 0o644
            archive.addfile(entry, io.BytesIO(text.encode()))


def build_pacman_repository(folder: Path, name: str, version: str, signer: Signer) -> None:
    """Build packages of one version and their database, and sign all of them."""
    folder.mkdir(parents=True)
    database = {}
    for stub in PACKAGES:
        requirements = stub.list_requirements(version, "=")
        full = f"{stub.get_version(version)}-1"
        file = folder / f"{stub.name}-{full}-any.pkg.tar.gz"
        package_info = {
            "pkgname": stub.name,
            "pkgver": full,
            "pkgdesc": STUB,
            "arch": "any",
            "size": "5",
            "builddate": "0",
        }
        lines = [
            f"{key} = {value}\n" for key, value in [*package_info.items(), *(("depend", name) for name in requirements)]
        ]
        script = {".INSTALL": f"post_install() {{\n{stub.script}}}\n"} if stub.script else {}
        _write_archive(file, {".PKGINFO": "".join(lines), **script, f"usr/share/stubs/{stub.name}": "stub\n"})
        signer.sign_file(file, ".sig")
        description = {
            "FILENAME": file.name,
            "NAME": stub.name,
            "VERSION": full,
            "DESC": STUB,
            "CSIZE": str(file.stat().st_size),
            "ISIZE": "5",
            "SHA256SUM": hashlib.sha256(file.read_bytes()).hexdigest(),
            "ARCH": "any",
            "BUILDDATE": "0",
            "DEPENDS": "\n".join(requirements),
        }
        database[f"{stub.name}-{full}/desc"] = "".join(
            f"%{key}%\n{value}\n\n" for key, value in description.items() if value
        )
    _write_archive(folder / f"{name}.db", database)
    signer.sign_file(folder / f"{name}.db", ".sig")


def main(target: Path) -> None:
    """Build all repositories below the folder."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    os.umask(0o022)
    with tempfile.TemporaryDirectory() as keys:
        signers = {name: Signer(Path(keys), name) for name in ("vendor", "other-key")}
        for name, signer in signers.items():
            signer.export_key(target / f"{name}.asc")
        build_rpm_packages(target / "rpm", PACKAGES, VERSIONS)
        build_rpm_packages(target / "rpm-unsigned", PACKAGES, (REJECTED_VERSION,))
        shutil.copytree(target / "rpm-unsigned", target / "rpm-other-key")
        for name, signer in (("rpm", signers["vendor"]), ("rpm-other-key", signers["other-key"])):
            signer.sign_packages(sorted((target / name).rglob("*.rpm")))
            build_rpm_repository(target / name, signer)
        run("createrepo_c", "--no-database", target / "rpm-unsigned")
        for version in VERSIONS:
            build_pacman_repository(target / "pacman" / version, "stubs", version, signers["vendor"])
        build_pacman_repository(target / "pacman" / "other-key", "stubs", REJECTED_VERSION, signers["other-key"])
        for signer in signers.values():
            run("gpgconf", "--homedir", signer.home, "--kill", "all")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
