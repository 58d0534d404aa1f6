# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""ansible-test without containers: ``python -m gates.ansible_test sanity|units [ARGUMENTS OF ansible-test ...]``.

ansible-test wants the collection at ``ansible_collections/gpu/kubernetes``, a package index, and a script that puts pip into the empty
environments it makes. It would fetch that script from its project's own server; it also takes one from its cache folder, so that is
where a one-line script over the standard library's ensurepip goes. A private HOME keeps all of this out of the user's.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from . import _pythons
from ._common import CACHE, REPORTS, ROOT, api_modules, collection_tree, not_run

PIP_SCRIPT = "import ensurepip\n\nensurepip.bootstrap()\n"
# Tools of the repository that never leave it; ruff and mypy look after them.
OUTSIDE = (
    "molecule",
    "tests/lab",
    "tests/fakes",
    "tests/gates",
    "tests/gpu",
    "tests/toml_suite",
    "noxfile.py",
    "docs/conf.py",
)


def inside(path: Path, kind: str) -> bool:
    """Whether ansible-test gets a source file: the artifact, the unit tests, and what they use when they run."""
    return kind == "units" or not any(path.is_relative_to(place) for place in OUTSIDE)


def private_home(home: Path) -> None:
    """A HOME for ansible-test: its pip script, and links to the user's package index settings and caches."""
    from ansible_test._internal.host_configs import NativePythonConfig
    from ansible_test._internal.python_requirements import get_venv_packages

    cache = home / ".ansible" / "test" / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    for version in _pythons.SANITY_PYTHONS:
        pip = get_venv_packages(NativePythonConfig(version=version, path=""))["pip"]
        (cache / f"get_pip_{pip.replace('.', '_')}.py").write_text(PIP_SCRIPT, encoding="utf-8")
    for name in (".config", ".pip", ".cache"):
        theirs = Path.home() / name
        if theirs.exists() and not (home / name).is_symlink():
            (home / name).symlink_to(theirs)


def python_folder(folder: Path) -> Path:
    """A folder with nothing but ``pythonX.Y`` links to interpreters that really run (pyenv's shims may not)."""
    folder.mkdir(parents=True, exist_ok=True)
    for version in _pythons.SANITY_PYTHONS:
        link = folder / f"python{version}"
        link.unlink(missing_ok=True)
        if found := _pythons.find(version):
            link.symlink_to(found)
    return folder


def environment(work: Path) -> dict[str, str]:
    """Environment for ansible-test: our interpreters first, no pyenv shims, the private HOME."""
    path = [str(python_folder(work / "python")), str(Path(sys.executable).parent)]
    path += [entry for entry in os.environ.get("PATH", os.defpath).split(os.pathsep) if not entry.endswith("/shims")]
    private_home(work / "home")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "PYTHONPATH"))}
    return kept | {"PATH": os.pathsep.join(path), "HOME": str(work / "home")}


def commands(kind: str, arguments: list[str]) -> list[list[str]]:
    """The ansible-test command lines of one gate.

    The unit tests run here on the nodes' Pythons, where ansible-test offers the modules and module_utils alone and no ansible-core
    beyond ``ansible.module_utils``; modules that talk to the API server stay on the controller, whose Pythons the matrix covers.
    """
    if kind == "sanity":
        return [["ansible-test", "sanity", "--local", "--color", "no", *arguments]]
    skipped = [f"tests/unit/plugins/modules/test_{name}.py" for name in api_modules()]
    exclude = [word for path in skipped if (ROOT / path).exists() for word in ("--exclude", path)]
    return [
        [
            "ansible-test",
            "units",
            "--venv",
            "--python",
            version,
            "--requirements",
            "--color",
            "no",
            *exclude,
            *arguments,
        ]
        for version in _pythons.NODE_PYTHONS
        if _pythons.find(version)
    ]


def main(kind: str, arguments: list[str]) -> int:
    """Run one kind of ansible-test on a fresh copy of the collection; returns an exit status."""
    work = CACHE / f"ansible-test-{kind}"  # the gates may run side by side
    collection = collection_tree(work, lambda path: inside(path, kind))
    # Below a checkout, ansible-test asks git for the files, and the checkout's git ignores this folder.
    subprocess.run(["git", "init", "--quiet", str(collection)], check=True)
    surroundings, status = environment(work), 0
    for old in collection.glob("tests/output/junit/*.xml"):
        old.unlink()
    for command in commands(kind, arguments):
        print(f"$ {' '.join(command)}  # in a copy of the collection", flush=True)
        status |= subprocess.run(command, cwd=collection, env=surroundings, check=False).returncode
    REPORTS.mkdir(parents=True, exist_ok=True)
    for report in collection.glob("tests/output/junit/*.xml"):
        shutil.copy(report, REPORTS / f"nodes-{report.name}")
    wanted = _pythons.NEEDED if kind == "sanity" else _pythons.NODE_PYTHONS
    if missing := [version for version in wanted if _pythons.find(version) is None]:
        status |= not_run(f"{kind} on Python {', '.join(missing)}: no such interpreter on this machine")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
