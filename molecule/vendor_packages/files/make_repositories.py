# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes stub packages and signs them into repositories for dnf, zypper and pacman; runs on the machine, as root.

Below TARGET: ``rpm``, with metadata and packages signed by the vendor's key; ``rpm-stranger``, both signed by another; ``rpm-unsigned``,
nothing signed; ``pacman/VERSION``, since a repository of pacman has one version of each package; ``pacman/stranger``;
``vendor.asc`` and ``stranger.asc``, the public keys. The private ones are thrown away.
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
# In the repository that nobody may install from, so that no cache of a package is taken for it.
STRANGE = "3.0.0"
STUB = "A stub of the gpu.kubernetes tests that does nothing"
# Runs while the package is installed: on request it kills the package manager and all that started it, up to the ssh server.
KILLER = """if [ -e /run/kill-installers ]; then
    rm /run/kill-installers
    pid=$PPID; doomed=
    while [ "$pid" -gt 1 ] && ! grep -q sshd "/proc/$pid/comm"; do
        doomed="$doomed $pid"; pid=$(sed 's/.*) . //; s/ .*//' "/proc/$pid/stat")
    done
    kill -9 $doomed
fi
"""


@dataclass(frozen=True)
class Stub:
    """A package: NAME, what it REQUIRES ("=" after a name: in the same version), and the VERSION, if it has one of its own.

    SCRIPT runs after the installation; PROVIDES is one more name, and OBSOLETES that of a package in whose place it says it is.
    """

    name: str
    requires: tuple[str, ...] = ()
    version: str = ""
    script: str = ""
    provides: str = ""
    obsoletes: str = ""

    def at(self, version: str) -> str:
        return self.version or version

    def needs(self, version: str, sign: str) -> list[str]:
        return [need.replace("=", f"{sign}{version}-1") for need in self.requires]


PACKAGES = (
    Stub("nvidia-stub-smi", ("libnvidia-stub-ml=",)),
    Stub("libnvidia-stub-ml", ("stub-helper",), script=KILLER),
    # The shell is Debian's, of which rpm does not know; and a database without any package is one that zypper cannot read.
    Stub("stub-base", version="1.0", provides="/bin/sh"),
    Stub("stub-helper", version="3.2"),
    Stub("stub-dashboard", ("nvidia-stub-smi",), version="7.0"),
    Stub("stub-neighbour", ("stub-helper",), version="7.0"),
    # As NVIDIA's fabric manager: the former name says, in whatever version, that it is in the place of the one that it has got since.
    Stub(
        "nvidia-stub-fabric-manager",
        version="1.10.0",
        provides="nvidia-stub-fabricmanager = 1.10.0",
        obsoletes="nvidia-stub-fabricmanager",
    ),
    Stub("nvidia-stub-fabricmanager", version="2.0.0"),
    # Its like on Enterprise Linux brings a plugin that Debian has by another package.
    Stub("python3-dnf-plugin-versionlock", version="4.0"),
)


def run(*command: object, folder: Path | None = None) -> None:
    """Run a command, silent unless it fails."""
    done = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{command}: {done.stdout}{done.stderr}")


class Signer:
    """A key of its own that lives in a folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name, self.home = f"{name} of the gpu.kubernetes tests", folder / name
        self.home.mkdir(mode=0o700)
        # rpm of this age takes no other kind
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

    def public(self, target: Path) -> None:
        self._gpg("--armor", "--output", target, "--export", self.name)

    def detached(self, file: Path, ending: str) -> None:
        armour = ["--armor"] if ending == ".asc" else []
        self._gpg(*armour, "--output", f"{file}{ending}", "--detach-sign", file)

    def packages(self, files: list[Path]) -> None:
        macros = {"_gpg_name": self.name, "_gpg_path": self.home, "__gpg": "/usr/bin/gpg"}
        run("rpmsign", *(f"--define={name} {value}" for name, value in macros.items()), "--addsign", *files)


def spec(stubs: list[Stub], version: str) -> str:
    """A spec file of all packages that needs no sources."""
    told = f"Release: 1\nSummary: {STUB}\n"
    lines = [f"Name: stubs\nVersion: {version}\nLicense: GPL-3.0-or-later\nBuildArch: noarch\nAutoReqProv: no\n{told}"]
    lines.append(f"%description\n{STUB}.\n")
    install = ["%install\n"]
    for stub in stubs:
        file = f"/usr/share/stubs/{stub.name}"
        requires = "".join(f"Requires: {need}\n" for need in stub.needs(version, " = "))
        requires += f"Provides: {stub.provides}\n" if stub.provides else ""
        requires += f"Obsoletes: {stub.obsoletes}\n" if stub.obsoletes else ""
        lines.append(f"%package -n {stub.name}\nVersion: {stub.at(version)}\n{told}{requires}")
        lines.append(f"%description -n {stub.name}\n{STUB}.\n%files -n {stub.name}\n{file}\n")
        lines.append(f"%post -n {stub.name}\n{stub.script}" if stub.script else "")
        install.append(f"install -D /dev/null %{{buildroot}}{file}\n")
    return "".join([*lines, *install])


def rpm_packages(folder: Path, stubs: tuple[Stub, ...], versions: tuple[str, ...]) -> None:
    """Packages that nobody signed."""
    folder.mkdir()
    for version in versions:
        # Those with a version of their own exist once.
        made = [stub for stub in stubs if not stub.version or version == versions[0]]
        file = folder / "stubs.spec"
        file.write_text(spec(made, version))
        run("rpmbuild", "-bb", "--quiet", f"--define=_topdir {folder}/build", f"--define=_rpmdir {folder}", file)
        file.unlink()
    shutil.rmtree(folder / "build")


def rpm_repository(folder: Path, signer: Signer) -> None:
    """Metadata with their signature."""
    run("createrepo_c", "--no-database", folder)
    signer.detached(folder / "repodata" / "repomd.xml", ".asc")


def _archive(target: Path, files: dict[str, str]) -> None:
    # without the time, so that a package of one version is the same one in each repository
    with gzip.GzipFile(target, "wb", mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(text), 0o644
            archive.addfile(entry, io.BytesIO(text.encode()))


def pacman_repository(folder: Path, name: str, version: str, signer: Signer) -> None:
    """Packages of one version with their database, all of it signed."""
    folder.mkdir(parents=True)
    database = {}
    for stub in PACKAGES:
        needs = stub.needs(version, "=")
        full = f"{stub.at(version)}-1"
        file = folder / f"{stub.name}-{full}-any.pkg.tar.gz"
        told = {"pkgname": stub.name, "pkgver": full, "pkgdesc": STUB, "arch": "any", "size": "5", "builddate": "0"}
        lines = [f"{key} = {value}\n" for key, value in [*told.items(), *(("depend", need) for need in needs)]]
        script = {".INSTALL": f"post_install() {{\n{stub.script}}}\n"} if stub.script else {}
        _archive(file, {".PKGINFO": "".join(lines), **script, f"usr/share/stubs/{stub.name}": "stub\n"})
        signer.detached(file, ".sig")
        told = {
            "FILENAME": file.name,
            "NAME": stub.name,
            "VERSION": full,
            "DESC": STUB,
            "CSIZE": str(file.stat().st_size),
            "ISIZE": "5",
            "SHA256SUM": hashlib.sha256(file.read_bytes()).hexdigest(),
            "ARCH": "any",
            "BUILDDATE": "0",
            "DEPENDS": "\n".join(needs),
        }
        database[f"{stub.name}-{full}/desc"] = "".join(f"%{key}%\n{value}\n\n" for key, value in told.items() if value)
    _archive(folder / f"{name}.db", database)
    signer.detached(folder / f"{name}.db", ".sig")


def main(target: Path) -> None:
    """Make all of it."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    os.umask(0o022)
    with tempfile.TemporaryDirectory() as keys:
        signers = {name: Signer(Path(keys), name) for name in ("vendor", "stranger")}
        for name, signer in signers.items():
            signer.public(target / f"{name}.asc")
        rpm_packages(target / "rpm", PACKAGES, VERSIONS)
        rpm_packages(target / "rpm-unsigned", PACKAGES, (STRANGE,))
        shutil.copytree(target / "rpm-unsigned", target / "rpm-stranger")
        for name, signer in (("rpm", signers["vendor"]), ("rpm-stranger", signers["stranger"])):
            signer.packages(sorted((target / name).rglob("*.rpm")))
            rpm_repository(target / name, signer)
        run("createrepo_c", "--no-database", target / "rpm-unsigned")
        for version in VERSIONS:
            pacman_repository(target / "pacman" / version, "stubs", version, signers["vendor"])
        pacman_repository(target / "pacman" / "stranger", "stubs", STRANGE, signers["stranger"])
        for signer in signers.values():
            run("gpgconf", "--homedir", signer.home, "--kill", "all")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
