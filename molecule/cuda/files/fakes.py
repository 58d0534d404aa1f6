# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fakes for NVIDIA's CUDA: ``fakes.py FOLDER``; PYTHONPATH is the tests folder.

FOLDER/runfiles gets installers that take NVIDIA's options, FOLDER/apt a signed flat repository of packages with NVIDIA's names. What
they install says that it is a fake or a stub, and compiles nothing.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from lab import packages

VERSIONS = ("12.8", "12.9", "13.0")
HERE = Path(__file__).parent
NVCC = """\
#!/bin/sh
# A stub of the gpu.kubernetes tests in the place of NVIDIA's compiler.
echo "nvcc: stub of the gpu.kubernetes tests, compiles nothing"
echo "Cuda compilation tools, release {version}, V{version}.1"
"""


def write_runfiles(folder: Path) -> None:
    """One installer for each version."""
    template = (HERE / "fake-cuda-installer.sh").read_text(encoding="utf-8")
    for version in VERSIONS:
        (folder / f"fake-cuda_{version}.run").write_text(template.replace("@VERSION@", version), encoding="utf-8")


def build_stub(folder: Path, name: str, version: str, depends: str = "", **more: dict[str, object]) -> None:
    """One package."""
    fields = packages.control(name, f"{version}.1", depends, f"Stub of the gpu.kubernetes tests in the place of {name}")
    packages.package(folder / f"{name}_{version}.1-1_amd64.deb", fields, more.get("files", {}), more.get("scripts"))  # type: ignore[arg-type]


def build_repository(folder: Path) -> None:
    """The toolkit of each version as a metapackage on its compiler, and what registers it, as NVIDIA's do."""
    build_stub(folder, "cuda-toolkit-config-common", VERSIONS[-1])
    for version in VERSIONS:
        named, root = version.replace(".", "-"), f"/usr/local/cuda-{version}"
        config = f"cuda-toolkit-{named}-config-common"
        priority = version.replace(".", "")
        scripts = {
            "postinst": f"#!/bin/sh\nset -e\nupdate-alternatives --install /usr/local/cuda cuda {root} {priority}\n",
            "prerm": f"#!/bin/sh\nset -e\nupdate-alternatives --remove cuda {root}\n",
        }
        build_stub(folder, config, version, "cuda-toolkit-config-common", scripts=scripts)
        with tempfile.TemporaryDirectory() as scratch:
            nvcc = Path(scratch) / "nvcc"
            nvcc.write_text(NVCC.format(version=version), encoding="utf-8")
            nvcc.chmod(0o755)
            build_stub(folder, f"cuda-nvcc-{named}", version, files={f"{root[1:]}/bin/nvcc": nvcc})
        build_stub(folder, f"cuda-cudart-dev-{named}", version, config)
        build_stub(folder, f"cuda-minimal-build-{named}", version, f"cuda-nvcc-{named}, cuda-cudart-dev-{named}")
        build_stub(folder, f"cuda-toolkit-{named}", version, f"cuda-minimal-build-{named}")
    packages.publish(folder, "stub-keyring.asc")


def main() -> None:
    """Make both folders again."""
    target = Path(sys.argv[1])
    shutil.rmtree(target, ignore_errors=True)
    for name, make in (("runfiles", write_runfiles), ("apt", build_repository)):
        (target / name).mkdir(parents=True)
        make(target / name)


if __name__ == "__main__":
    main()
