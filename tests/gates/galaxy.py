# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Do Galaxy and Automation Hub accept a release, and does each file state its licence? ``python -m gates.galaxy``.

It makes a release of the checkout twice and compares them, installs it and upgrades it to the next version, which undoes what the first one did on a node,
imports it with galaxy-importer, which finds no other collection, and runs ``reuse lint``. The importer's ansible-lint is off: the gate ``lint`` runs it with
the same profile.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from lab.shell import LabError
from lab.shell import run as shell

from . import _markdown, records, release, versions
from ._common import CACHE, NAME, NAMESPACE, ROOT, copy_source, finish, plugin_names
from .artifact import TYPES

WORK = ROOT / "build" / "galaxy"
# They need older packages than .venv has, and so have an environment of their own.
TOOLS = ("galaxy-importer==0.4.44", "reuse[charset-normalizer]==6.2.0", "cyclonedx-python-lib[validation]==11.12.0")
PINNED = ("ansible-core", "ansible-lint")
IMPORTER = {"GALAXY_IMPORTER_RUN_ANSIBLE_LINT": "false", "GALAXY_IMPORTER_CHECK_REQUIRED_TAGS": "true"}
REPORTED = ("ERROR", "WARNING", "CRITICAL")
# The description of a role is in its argument specs; a second one in meta/main.yml would be for the importer alone.
ACCEPTED = "WARNING: Could not get role description, no role metadata found"
VALIDATE = """
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(sys.argv[1], encoding="utf-8").read())
sys.exit(str(error) if error else 0)
"""
# The documentation tab of Galaxy.
PAGES = (*_markdown.PAGES.values(), "codes.md", "policy.md")
NOTE = "bugfixes:\n  - A note of the next version.\n"
# What the importer and a release read, besides code.
READ = (
    *(
        "galaxy.yml",
        "meta",
        "README.md",
        "CHANGELOG.md",
        "LICENSE",
        "changelogs",
        "docs",
        "requirements.txt",
        "requirements-dev.txt",
    ),
    *(f"plugins/{folder}" for folder in (*TYPES, "doc_fragments")),
    *(f"tests/gates/{name}.py" for name in ("_markdown", "galaxy", "records", "release")),
)


def install_publishing_tools() -> Path:
    """The bin folder of the tools. Raises LabError."""
    pins = versions.read_pins()
    return versions.install_tools(
        CACHE / "publish", Path(sys.executable), *TOOLS, *(f"{name}=={pins[name]}" for name in PINNED)
    )


def lint_licences(bin_folder: Path) -> int:
    """reuse lint on the files of the checkout; its exit status."""
    env = {**os.environ, "REUSE_ENCODING_MODULE": "charset_normalizer"}
    # A copy, because other gates write files in the checkout meanwhile.
    with TemporaryDirectory() as folder:
        copy_source(Path(folder))
        result = subprocess.run(
            [bin_folder / "reuse", "lint", "--lines"], cwd=folder, env=env, capture_output=True, text=True, check=False
        )
    return finish("REUSE", result.stdout.splitlines() if result.returncode else [], "reuse lint")


def find_problems(
    printed: Iterable[str], result: Mapping[str, Any], expected: Mapping[str, Iterable[str]]
) -> list[str]:
    """Errors and warnings of the importer, and the plugins and pages that it does not show. *expected* has names by content type."""
    found = [line for line in printed if line.startswith(REPORTED) and line != ACCEPTED]
    documented = {
        (content["content_type"], content["content_name"])
        for content in result["docs_blob"]["contents"]
        if (content.get("doc_strings") or {}).get("doc")
    }
    wanted = [(kind, name) for kind, names in expected.items() for name in names]
    shown = {page["name"] for page in result["docs_blob"]["documentation_files"]}
    found += [f"docs/{name}: Galaxy does not show this page" for name in PAGES if name not in shown]
    return found + [
        f"{kind} {name}: Galaxy shows no documentation" for kind, name in wanted if (kind, name) not in documented
    ]


def run_importer(bin_folder: Path, archive: Path) -> int:
    """Import the archive as Galaxy does; exit status."""
    folder = WORK / "importer"
    folder.mkdir()
    path = os.pathsep.join([str(bin_folder), os.environ["PATH"]])
    places = {"PATH": path, "HOME": str(folder), "ANSIBLE_COLLECTIONS_PATH": str(folder)}
    env = release.environment(folder) | places | IMPORTER
    command: list[str | Path] = [bin_folder / "python", "-m", "galaxy_importer.main", archive]
    process = subprocess.run(
        command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    lines = process.stdout.splitlines()
    written = folder / "importer_result.json"
    if process.returncode or not written.exists():
        return finish("galaxy-importer", lines[-20:], f"ended with {process.returncode}")
    result = json.loads(written.read_text(encoding="utf-8"))
    expected = {kind: plugin_names(plugins) for plugins, kind in TYPES.items()}
    pages = len(result["docs_blob"]["documentation_files"])
    counts = f"{sum(map(len, expected.values()))} plugins, {pages} pages of documentation"
    return finish("galaxy-importer", find_problems(lines, result, expected), counts)


def install(archive: Path, *options: str) -> str:
    """Install an archive as a user would; the version that is installed then."""
    target = WORK / "installed"
    command: list[str | Path] = [
        release.tool("ansible-galaxy"),
        "collection",
        "install",
        archive,
        "--offline",
        "--no-deps",
        *options,
    ]
    shell([*command, "--collections-path", target], env=release.environment(WORK))
    manifest = target / "ansible_collections" / NAMESPACE / NAME / "MANIFEST.json"
    return str(json.loads(manifest.read_text(encoding="utf-8"))["collection_info"]["version"])


def name_next(version: str) -> str:
    """The next patch version."""
    numbers = version.partition("-")[0].split(".")
    return ".".join([*numbers[:2], str(int(numbers[2]) + 1)])


def check_upgrade(folder: Path, version: str, seconds: int) -> list[str]:
    """Problems of an upgrade of the installed version to the next one, made of *folder*."""
    new = name_next(version)
    release.write_version(folder, new)
    (folder / "changelogs" / "fragments").mkdir(exist_ok=True)
    (folder / "changelogs" / "fragments" / "next.yml").write_text(NOTE, encoding="utf-8")
    release.prepare(folder, seconds)
    archive = release.make(folder, WORK / "next", seconds)
    found = [] if install(archive, "--upgrade") == new else [f"{archive.name} did not replace the installed version"]
    notes = WORK / "installed" / "ansible_collections" / NAMESPACE / NAME / "changelogs" / "changelog.yaml"
    releases = yaml.safe_load(notes.read_text(encoding="utf-8"))["releases"]
    return found + [f"changelog.yaml has nothing on {each}" for each in (version, new) if each not in releases]


def check_release(bin_folder: Path) -> tuple[int, Path]:
    """Make a release twice, install and upgrade it; exit status and archive. Raises LabError."""
    shutil.rmtree(WORK, ignore_errors=True)
    folder = WORK / "tree" / "ansible_collections" / NAMESPACE / NAME
    count, seconds = copy_source(folder), release.read_time("HEAD")
    version = release.read_galaxy(folder)["version"]
    release.prepare(folder, seconds)
    archive = release.make(folder, WORK / "first", seconds)
    again = release.build_archive(shutil.copytree(folder, WORK / "again" / NAME), WORK / "second", seconds)
    found = [] if archive.read_bytes() == again.read_bytes() else ["two archives of the same files differ"]
    shell(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=archive.parent)
    shell([bin_folder / "python", "-c", VALIDATE, archive.with_name(archive.name.replace(".tar.gz", ".cdx.json"))])
    if install(archive) != version:
        found.append(f"{archive.name} does not install version {version}")
    rows = [*records.ROWS, *([records.make_mig_row(WORK / "gpus")] if os.geteuid() == 0 else [])]
    host = records.Host(WORK / "host", rows)
    host.change("present", WORK / "installed")
    found += [f"{module}: version {version} has changed nothing" for module in host.find_unchanged()]
    found += check_upgrade(folder, version, seconds)
    host.change("absent", WORK / "installed")
    found += [f"{difference}: the upgrade has not undone it" for difference in host.find_differences()]
    counts = f"{archive.name} of {count} files, twice; {name_next(version)} replaced it and undid {len(rows)} modules' changes"
    return finish("release", found, counts), archive


def main(with_release: bool = True) -> int:
    """REUSE, and with *with_release* the release and the importer."""
    try:
        bin_folder = install_publishing_tools()
        status = lint_licences(bin_folder)
        if not with_release:
            return status
        failed, archive = check_release(bin_folder)
        return status | failed | run_importer(bin_folder, archive)
    except LabError as error:
        return finish("galaxy", [str(error)], "stopped")


if __name__ == "__main__":
    sys.exit(main())
