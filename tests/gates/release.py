# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes the release of a commit in dist/: ``python -m gates.release [--key KEY]``; ``python -m gates.release notes`` writes its notes into the checkout.

It works on a copy of the commit, so that nothing else is in the artifact. Times are those of the commit, files are sorted: one commit gives
one SHA-256 on each machine with the same tools.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import sys
import tarfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import yaml
from lab.shell import LabError
from lab.shell import run as shell

from ._common import FQCN, NAME, NAMESPACE, ROOT, write_empty_config
from ._markdown import write_pages
from .selection import git

DIST = ROOT / "dist"
WORK = ROOT / "build" / "release"
VERSION = re.compile(r"^version: (\S+)$", re.MULTILINE)
# A link of Markdown to a file of the repository: not to a place in the page, not with a scheme.
RELATIVE_LINK = re.compile(r"(\]\()(?!#|[a-z][a-z0-9+.-]*:)([^)\s]+)(\))")
PLACEHOLDER = "example.com"
FALLBACK = re.compile(r"default\('([^']+)', true\)")
REQUIREMENT = re.compile(r"^([\w.-]+)\s*([<>=!~].*)?$")


def read_galaxy(folder: Path) -> dict[str, Any]:
    """The metadata in a collection's galaxy.yml."""
    return dict(yaml.safe_load((folder / "galaxy.yml").read_text(encoding="utf-8")))


def export(commit: str, parent: Path) -> Path:
    """A copy of a commit in a fresh ``ansible_collections`` tree below *parent*; the folder of the collection."""
    target = parent / "ansible_collections" / NAMESPACE / NAME
    shutil.rmtree(parent, ignore_errors=True)
    target.mkdir(parents=True)
    archive = parent / "commit.tar"
    shell(["git", "-C", ROOT, "archive", "--format=tar", f"--output={archive}", commit])
    shell(["tar", "--extract", f"--file={archive}", f"--directory={target}"])
    archive.unlink()
    return target


def write_version(folder: Path, version: str) -> None:
    """Replace the version in galaxy.yml, the only file that has it."""
    path = folder / "galaxy.yml"
    path.write_text(VERSION.sub(f"version: {version}", path.read_text(encoding="utf-8")), encoding="utf-8")


def write_notes(folder: Path, date: str) -> bool:
    """Make changelog.yaml and CHANGELOG.md of the fragments and remove these; False without fragments, as in the commit of a release."""
    fragments = folder / "changelogs" / "fragments"
    if not any(fragments.glob("*.y*ml")):
        return False
    shell(
        [tool("antsibull-changelog"), "release", "--version", read_galaxy(folder)["version"], "--date", date],
        cwd=folder,
    )
    return True


def write_links(folder: Path) -> bool:
    """Make the links of README.md and docs/*.md absolute, for Galaxy's pages; False while galaxy.yml has a placeholder for the repository."""
    galaxy = read_galaxy(folder)
    if PLACEHOLDER in galaxy["repository"]:
        return False
    base = f"{galaxy['repository'].rstrip('/')}/blob/v{galaxy['version']}"
    for path, start in [(folder / "README.md", base), *((page, f"{base}/docs") for page in folder.glob("docs/*.md"))]:
        path.write_text(make_links_absolute(path.read_text(encoding="utf-8"), start), encoding="utf-8")
    return True


def make_links_absolute(text: str, base: str) -> str:
    """Markdown with links to files of the repository as links below *base*."""
    # A server of files shows a page instead of a picture without this.
    return RELATIVE_LINK.sub(
        lambda match: (
            f"{match[1]}{base}/{match[2].removeprefix('./')}{'?raw=true' if match[2].endswith(('.svg', '.png')) else ''}{match[3]}"
        ),
        text,
    )


def build_archive(folder: Path, target: Path, seconds: int) -> Path:
    """Build the collection in *folder* as a reproducible archive in *target*, of the time *seconds* (since 1970)."""
    target.mkdir(parents=True, exist_ok=True)
    raw = target / "raw"
    shell(
        [tool("ansible-galaxy"), "collection", "build", "--force", "--output-path", raw, folder],
        env=environment(target),
    )
    built = next(raw.glob("*.tar.gz"))
    path = target / built.name
    path.write_bytes(normalize(built.read_bytes(), seconds))
    shutil.rmtree(raw)
    return path


def normalize(archive: bytes, seconds: int) -> bytes:
    """The archive of a collection with sorted members and lists of files, one time and no owner."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as content:
        members = {member.name: member for member in content.getmembers()}
        data = {name: content.extractfile(name).read() for name, member in members.items() if member.isfile()}  # type: ignore[union-attr]
    listing = json.loads(data["FILES.json"])
    listing["files"].sort(key=lambda entry: entry["name"])
    data["FILES.json"] = as_json(listing)
    manifest = json.loads(data["MANIFEST.json"])
    manifest["file_manifest_file"]["chksum_sha256"] = hashlib.sha256(data["FILES.json"]).hexdigest()
    data["MANIFEST.json"] = as_json(manifest)
    output = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=output, mode="wb", filename="", mtime=seconds) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as content,
    ):
        for name in sorted(members):
            member = members[name]
            member.mtime, member.uid, member.gid, member.uname, member.gname = seconds, 0, 0, "", ""
            member.size = len(data.get(name, b""))
            member.pax_headers = {}
            content.addfile(member, io.BytesIO(data[name]) if name in data else None)
    return output.getvalue()


def as_json(content: Any) -> bytes:
    """JSON as files of a release have it."""
    return json.dumps(content, indent=4).encode() + b"\n"


def read_images(folder: Path) -> Iterator[tuple[str, str, str, str]]:
    """The images in the defaults of roles: how the names of their variables begin, registry without a mirror, repository and tag; templates as they are."""
    for path in sorted((folder / "roles").glob("*/defaults/main.yml")):
        values = {name: str(value) for name, value in (yaml.safe_load(path.read_text(encoding="utf-8")) or {}).items()}
        for name, registry in values.items():
            if not name.endswith("_image_registry"):
                continue
            start, fallback = name.removesuffix("_registry"), FALLBACK.search(registry)
            place = fallback[1] if fallback else registry
            yield start, place, values.get(f"{start}_repository", ""), values.get(f"{start}_tag", "")


def list_images(folder: Path) -> list[dict[str, Any]]:
    """SBOM components of the container images that roles deploy by default, each once; those that a variable computes are left out."""
    found: dict[str, dict[str, Any]] = {}
    for _start, *parts in read_images(folder):
        if all(parts) and not any("{{" in part for part in parts):
            place, repository, tag = parts
            purl = f"pkg:oci/{repository.rpartition('/')[2]}?repository_url={place}/{repository}&tag={tag}"
            found[purl] = component("container", f"{place}/{repository}", tag, purl, optional=True)
    return list(found.values())


def list_packages(folder: Path) -> list[dict[str, Any]]:
    """SBOM components of what the controller needs: Python packages with their accepted versions, and collections."""
    lines = (folder / "requirements.txt").read_text(encoding="utf-8").splitlines()
    matches = [match for line in lines if (match := REQUIREMENT.match(line.partition("#")[0].strip()))]
    found = [
        component("library", match[1], "", f"pkg:pypi/{match[1].lower()}", accepts=match[2] or "*") for match in matches
    ]
    collections = read_galaxy(folder).get("dependencies") or {}
    return found + [
        component("library", name, "", f"pkg:generic/{name}", accepts=accepts)
        for name, accepts in sorted(collections.items())
    ]


def component(
    kind: str, name: str, version: str, purl: str, accepts: str = "", optional: bool = False
) -> dict[str, Any]:
    """One component of an SBOM; *accepts* is a range of versions."""
    return {
        "type": kind,
        "bom-ref": purl,
        "name": name,
        **({"version": version} if version else {}),
        "purl": purl,
        "scope": "optional" if optional else "required",
        **({"properties": [{"name": f"{FQCN}:accepts", "value": accepts}]} if accepts else {}),
    }


def build_sbom(folder: Path, digest: str, seconds: int) -> dict[str, Any]:
    """The SBOM of the archive with this SHA-256, as CycloneDX 1.6. The collection contains no third-party code."""
    galaxy = read_galaxy(folder)
    purl = f"pkg:generic/{FQCN}@{galaxy['version']}"
    components = [*list_packages(folder), *list_images(folder)]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, digest)}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "library",
                "bom-ref": purl,
                "name": FQCN,
                "version": galaxy["version"],
                "purl": purl,
                "licenses": [{"license": {"id": licence}} for licence in galaxy["license"]],
                "hashes": [{"alg": "SHA-256", "content": digest}],
            },
        },
        "components": components,
        "dependencies": [{"ref": purl, "dependsOn": [each["bom-ref"] for each in components]}],
    }


def write_checksums(folder: Path) -> None:
    """Write SHA256SUMS of all other files, as sha256sum reads it."""
    paths = sorted(path for path in folder.iterdir() if path.is_file() and path.name != "SHA256SUMS")
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in paths]
    (folder / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")


def sign(path: Path, key: str) -> Path:
    """Sign a file with a key of GnuPG; the armoured signature beside it."""
    signature = path.with_name(f"{path.name}.asc")
    shell(["gpg", "--batch", "--yes", "--armor", "--detach-sign", "--local-user", key, "--output", signature, path])
    return signature


def make(folder: Path, target: Path, seconds: int, key: str = "") -> Path:
    """Fill *target* with the release of the collection in *folder*: archive, MANIFEST.json, SBOM, signature, checksums. Returns the archive."""
    shutil.rmtree(target, ignore_errors=True)
    archive = build_archive(folder, target, seconds)
    (target / "empty.cfg").unlink(missing_ok=True)
    with tarfile.open(archive) as content:
        (target / "MANIFEST.json").write_bytes(content.extractfile("MANIFEST.json").read())  # type: ignore[union-attr]
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    name = archive.name.removesuffix(".tar.gz")
    (target / f"{name}.cdx.json").write_bytes(as_json(build_sbom(folder, digest, seconds)))
    if key:
        sign(target / "MANIFEST.json", key)
    write_checksums(target)
    return archive


def read_time(commit: str) -> int:
    """The time of a commit in seconds since 1970."""
    return int(git("show", "--no-patch", "--format=%ct", commit, check=True))


def prepare(folder: Path, seconds: int) -> None:
    """Write the notes, the pages for Galaxy and the links into a copy of the collection, as a release of the time *seconds* has them."""
    date = datetime.fromtimestamp(seconds, UTC).date().isoformat()
    if write_notes(folder, date):
        print(
            "The commit still has fragments. Before you tag it: `python -m gates.release notes`, and commit the result."
        )
    write_pages(folder)
    if not write_links(folder):
        print(
            f"galaxy.yml has a placeholder for the repository ({PLACEHOLDER}), so that the links of README.md and docs stay relative."
        )


def tool(name: str) -> Path:
    """A program of .venv."""
    return Path(sys.executable).with_name(name)


def environment(folder: Path) -> dict[str, str]:
    """The environment variables for Ansible's tools, without the configuration and the collections of this machine."""
    others = ("ANSIBLE_", "PYTHONPATH", "VIRTUAL_ENV")
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(others)}
    settings = {"ANSIBLE_NOCOLOR": "1", "ANSIBLE_COLLECTIONS_SCAN_SYS_PATH": "false"}
    return {**inherited, **settings, "ANSIBLE_CONFIG": write_empty_config(folder)}


def main(arguments: list[str]) -> int:
    """Make the release of HEAD in dist/, or write the notes; exit status."""
    parser = argparse.ArgumentParser(prog="make release", description=__doc__)
    parser.add_argument("what", nargs="?", choices=["dist", "notes"], default="dist")
    parser.add_argument("--key", default="", help="sign MANIFEST.json with this key of GnuPG")
    parsed = parser.parse_args(arguments)
    try:
        if parsed.what == "notes":
            changed = write_notes(ROOT, datetime.now(UTC).date().isoformat())
            print("CHANGELOG.md and changelogs/changelog.yaml are written" if changed else "there are no fragments")
            return 0
        if git("status", "--porcelain"):
            raise LabError("A release is made of a commit: commit or remove what git status shows.")
        folder, seconds = export("HEAD", WORK), read_time("HEAD")
        prepare(folder, seconds)
        make(folder, DIST, seconds, parsed.key)
    except LabError as error:
        print(error, file=sys.stderr)
        return 1
    print((DIST / "SHA256SUMS").read_text(encoding="utf-8"), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
