# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Does the built collection have the right content? ``python -m gates.artifact``.

Builds it, checks the list of files, installs it in an empty folder, and runs there ansible-doc for every plugin and role and
ansible-playbook for the syntax of every playbook. ansible-doc finds no other collection, as in the
import of Galaxy and Automation Hub.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import yaml

from ._common import FQCN, ROOT, finish, link_dependencies, plugin_names, roles, write_empty_config

WORK = ROOT / "build" / "artifact"
INSTALLED = WORK / "collections"
FORBIDDEN = (
    "tests",
    "molecule",
    "build",
    "dist",
    "changelogs/fragments",
    "docs/publishing.md",
    "Makefile",
    "ansible.cfg",
    "pyproject.toml",
    "requirements-dev.txt",
)
FORBIDDEN_ANYWHERE = ("__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache")
REQUIRED = (
    "MANIFEST.json",
    "FILES.json",
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "meta/runtime.yml",
    "meta/execution-environment.yml",
)
# The import of Galaxy fails for another name of a file of plugins/.
CONTENT_NAME = re.compile(r"(?!.*__)[a-z_][0-9a-z_]*")
TYPES = {"modules": "module", "filter": "filter", "lookup": "lookup", "test": "test", "inventory": "inventory"}


def ansible(tool: str, *arguments: str) -> str:
    """Standard output of an ansible tool that finds only the installed artifact and its dependencies. Raises RuntimeError with its output."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "PYTHONPATH"))}
    environment = inherited | {
        "ANSIBLE_COLLECTIONS_PATH": str(INSTALLED),
        "ANSIBLE_COLLECTIONS_SCAN_SYS_PATH": "false",
        "ANSIBLE_CONFIG": write_empty_config(WORK),
        "ANSIBLE_NOCOLOR": "1",
    }
    result = subprocess.run([tool, *arguments], cwd=WORK, env=environment, capture_output=True, text=True, check=False)
    if result.returncode:
        raise RuntimeError(f"{tool} {' '.join(arguments)}: {(result.stderr or result.stdout).strip()}")
    return result.stdout


def build() -> Path:
    """A fresh artifact below build/artifact."""
    shutil.rmtree(WORK, ignore_errors=True)
    INSTALLED.mkdir(parents=True)
    ansible("ansible-galaxy", "collection", "build", str(ROOT), "--output-path", str(WORK))
    return next(WORK.glob("*.tar.gz"))


def problems_of_content(names: list[str], expected_roles: list[str]) -> list[str]:
    """Files in the artifact that are forbidden, and required files that are missing."""
    found = []
    for name in names:
        # Hidden entries at the top (.ci, .config, .git, .lab …) belong to the checkout.
        top = name.startswith(".") or any(name == place or name.startswith(f"{place}/") for place in FORBIDDEN)
        # Galaxy lists a plugin twice that has a file of documentation beside its own.
        beside = name.startswith("plugins/") and name.endswith((".yml", ".yaml"))
        if top or beside or any(part in FORBIDDEN_ANYWHERE for part in name.split("/")):
            found.append(f"{name}: does not belong into the artifact")
        path = Path(name)
        is_content = path.parts[0] == "plugins" and path.suffix == ".py" and path.stem != "__init__"
        if is_content and not CONTENT_NAME.fullmatch(path.stem):
            found.append(f"{name}: Galaxy refuses this name")
    required = [*REQUIRED, *(f"roles/{role}/meta/argument_specs.yml" for role in expected_roles)]
    return found + [f"{name}: missing from the artifact" for name in required if name not in names]


def install(archive: Path) -> None:
    """Install the archive as a user would, without its dependencies."""
    ansible(
        "ansible-galaxy",
        "collection",
        "install",
        str(archive),
        "--offline",
        "--no-deps",
        "--collections-path",
        str(INSTALLED),
    )


def find_undocumented() -> tuple[int, list[str]]:
    """Number of plugins and roles, and those without documentation in ansible-doc."""
    expected = [(kind, f"{FQCN}.{name}") for folder, kind in TYPES.items() for name in plugin_names(folder)]
    expected += [("role", f"{FQCN}.{role.name}") for role in roles()]
    found = []
    for kind in sorted({kind for kind, _name in expected}):
        names = [name for each, name in expected if each == kind]
        answer = json.loads(ansible("ansible-doc", "--json", "--type", kind, *names))
        found += [
            f"{kind} {name}: ansible-doc shows nothing" for name in names if not is_described(answer.get(name), kind)
        ]
    return len(expected), found


def is_described(entry: object, kind: str) -> bool:
    """Whether ansible-doc's answer for a plugin or role has a description and, for a module, examples."""
    if not isinstance(entry, dict):
        return False
    if kind == "role":
        return bool(entry.get("entry_points"))
    return bool(entry.get("doc")) and (kind != "module" or bool(entry.get("examples")))


def playbooks() -> list[str]:
    """Fully qualified names of the playbooks."""
    return sorted(f"{FQCN}.{path.stem}" for path in (ROOT / "playbooks").glob("*.yml") if not path.stem.startswith("_"))


def main() -> int:
    """Build, check, install and document the artifact."""
    try:
        archive = build()
        with tarfile.open(archive) as content:
            names = [member.name for member in content.getmembers() if member.isfile()]
            version = json.load(content.extractfile("MANIFEST.json"))["collection_info"]["version"]  # type: ignore[arg-type]
        found = problems_of_content(names, [role.name for role in roles()])
        if version != yaml.safe_load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))["version"]:
            found.append(f"version {version} is not that of galaxy.yml")
        install(archive)
        documented, missing = find_undocumented()
        link_dependencies(INSTALLED / "ansible_collections")
        for playbook in playbooks():
            ansible("ansible-playbook", "--inventory", "localhost,", "--syntax-check", playbook)
    except RuntimeError as error:
        return finish("artifact", [str(error)], "stopped")
    size = archive.stat().st_size // 1024
    counts = f"{archive.name}, {len(names)} files, {size} KiB; {documented} plugins and roles in ansible-doc; {len(playbooks())} playbooks"
    return finish("artifact", found + missing, counts)


if __name__ == "__main__":
    sys.exit(main())
