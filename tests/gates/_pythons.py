# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds the Python interpreters of this machine: the distribution's, on PATH, in pyenv, or among those that uv manages."""

from __future__ import annotations

import os
import subprocess
from functools import lru_cache
from pathlib import Path

# Managed nodes: the oldest that design.md promises and the oldest that enterprise distributions ship.
NODE_PYTHONS = ("3.8", "3.9")
# ansible-core on the controller -> Python to run it on. 2.18 to 2.21 is the support claim of the collection.
CONTROLLERS = (("2.18", "3.11"), ("2.19", "3.11"), ("2.20", "3.12"), ("2.21", "3.13"))
# What no gate passes without; ansible-test sanity goes through all that the machine has.
NEEDED = (*NODE_PYTHONS, *sorted({python for _core, python in CONTROLLERS}))
SANITY_PYTHONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13")


def _version(python: Path) -> str | None:
    """``X.Y`` as *python* itself says, None where it does not run (a pyenv shim without the version, for one) or makes no environments."""
    question = "import ensurepip, sys; print('%d.%d' % sys.version_info[:2])"
    try:
        answer = subprocess.run([python, "-c", question], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None


def _candidates(version: str) -> list[Path]:
    # As in the Makefile: the distribution's first.
    folders = [Path(entry) for entry in ("/usr/bin", *os.environ.get("PATH", os.defpath).split(os.pathsep)) if entry]
    home = Path.home()
    folders += sorted(
        Path(os.environ.get("PYENV_ROOT", home / ".pyenv")).glob(f"versions/{version}.*/bin"), reverse=True
    )
    data = Path(os.environ.get("XDG_DATA_HOME", home / ".local" / "share"))
    folders += sorted((data / "uv" / "python").glob(f"cpython-{version}.*/bin"), reverse=True)
    return [folder / f"python{version}" for folder in folders]


@lru_cache
def find(version: str) -> Path | None:
    """The interpreter of Python *version* (``3.8``), outside any virtual environment; None where there is none."""
    for candidate in _candidates(version):
        if candidate.is_file() and os.access(candidate, os.X_OK) and _version(candidate) == version:
            real = candidate.resolve()
            if not (candidate.parent.parent / "pyvenv.cfg").exists():
                return real
    return None


def missing_is_failure() -> bool:
    """On a CI machine a gate that could not run is a failure; on a developer's machine it is said and passed over."""
    return os.environ.get("CI", "") not in {"", "0", "false"}
