# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A release is reproducible, and its parts say what is in it; what the importer reports is judged."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from gates import _markdown, galaxy, records, release, selection

SECONDS = 1_790_000_000
DEFAULTS = """
a_image_registry: "{{ b | default('reg.example.org', true) }}"
a_image_repository: x/y
a_image_tag: v1
c_image_registry: "{{ d }}"
c_image_repository: ""
c_image_tag: ""
"""


def pack(names: list[str], seconds: int, owner: str) -> bytes:
    """An archive as ansible-galaxy makes it, with files in this order."""
    files = {name: name.encode() for name in names}
    listing = [
        {"name": name, "ftype": "file", "chksum_sha256": hashlib.sha256(files[name]).hexdigest()} for name in names
    ]
    files["FILES.json"] = json.dumps({"files": listing, "format": 1}).encode()
    digest = hashlib.sha256(files["FILES.json"]).hexdigest()
    manifest = {"collection_info": {"version": "1.0.0"}, "file_manifest_file": {"chksum_sha256": digest}}
    files["MANIFEST.json"] = json.dumps(manifest).encode()
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode="w:gz") as content:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.uname = len(data), seconds, owner
            content.addfile(member, io.BytesIO(data))
    return output.getvalue()


def test_archives_of_the_same_files_are_equal_and_their_sums_are_right() -> None:
    first = release.normalize(pack(["b", "a"], 1, "one"), SECONDS)
    assert first == release.normalize(pack(["a", "b"], 2, "two"), SECONDS)
    assert first != release.normalize(pack(["a", "c"], 1, "one"), SECONDS)
    with tarfile.open(fileobj=io.BytesIO(first)) as content:
        assert content.getnames() == ["FILES.json", "MANIFEST.json", "a", "b"]
        files = content.extractfile("FILES.json").read()  # type: ignore[union-attr]
        manifest = json.load(content.extractfile("MANIFEST.json"))  # type: ignore[arg-type]
        assert {(member.mtime, member.uid, member.uname) for member in content.getmembers()} == {(SECONDS, 0, "")}
    assert manifest["file_manifest_file"]["chksum_sha256"] == hashlib.sha256(files).hexdigest()
    assert [entry["name"] for entry in json.loads(files)["files"]] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "absolute"),
    [
        ("[a](docs/a.md)", "[a](https://r/blob/v1/docs/a.md)"),
        ("![p](./p.svg) [b](B.md#c)", "![p](https://r/blob/v1/p.svg?raw=true) [b](https://r/blob/v1/B.md#c)"),
        ("[w](https://x.org) [h](#here) [m](mailto:a@b)", "[w](https://x.org) [h](#here) [m](mailto:a@b)"),
    ],
)
def test_links_to_files_become_absolute(text: str, absolute: str) -> None:
    assert release.make_links_absolute(text, "https://r/blob/v1") == absolute


def write_collection(folder: Path, repository: str) -> Path:
    """A collection with two roles that deploy the same image."""
    (folder / "galaxy.yml").write_text(
        "namespace: gpu\nname: kubernetes\nreadme: README.md\nauthors: [a]\nbuild_ignore: [.git]\n"
        f"version: 1.2.3\nlicense: [GPL-3.0-or-later]\nrepository: {repository}\ndependencies: {{kubernetes.core: '>=5.0.0'}}\n"
    )
    (folder / "requirements.txt").write_text("# text\nkubernetes >= 24.2.0\nPyYAML\n")
    (folder / "README.md").write_text("[a](A.md)\n")
    for role in ("r", "s"):
        (folder / "roles" / role / "defaults").mkdir(parents=True)
        (folder / "roles" / role / "defaults" / "main.yml").write_text(DEFAULTS)
    return folder


def test_sbom_lists_packages_collections_and_images(tmp_path: Path) -> None:
    sbom = release.build_sbom(write_collection(tmp_path, "https://example.com/x"), "ab" * 32, SECONDS)
    assert [(each["name"], each.get("version"), each["scope"]) for each in sbom["components"]] == [
        ("kubernetes", None, "required"),
        ("PyYAML", None, "required"),
        ("kubernetes.core", None, "required"),
        ("reg.example.org/x/y", "v1", "optional"),
    ]
    assert sbom["metadata"]["component"]["version"] == "1.2.3"
    assert sbom["metadata"]["timestamp"] == "2026-09-21T14:13:20Z"
    assert sbom == release.build_sbom(tmp_path, "ab" * 32, SECONDS)


@pytest.mark.parametrize(
    ("repository", "text"),
    [
        ("https://example.com/x", "[a](A.md)\n"),
        ("https://git.example.org/x/", "[a](https://git.example.org/x/blob/v1.2.3/A.md)\n"),
    ],
)
def test_links_stay_relative_without_a_repository(tmp_path: Path, repository: str, text: str) -> None:
    folder = write_collection(tmp_path, repository)
    release.write_links(folder)
    assert (folder / "README.md").read_text() == text


def test_checksums_are_those_of_all_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    release.write_checksums(tmp_path)
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=tmp_path, check=True, capture_output=True)
    (tmp_path / "a").write_text("b")
    assert subprocess.run(
        ["sha256sum", "--check", "SHA256SUMS"], cwd=tmp_path, check=False, capture_output=True
    ).returncode


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of one commit, of which releases are made beside it."""
    folder = tmp_path / "checkout"
    guides = folder / _markdown.GUIDES
    guides.mkdir(parents=True)
    write_collection(folder, "https://git.example.org/x")
    for stem in _markdown.PAGES:
        (guides / f"{stem}.rst").write_text("Title\n=====\n\nText.\n")
    for module in (release, selection):
        monkeypatch.setattr(module, "ROOT", folder)
    monkeypatch.setattr(release, "DIST", tmp_path / "dist")
    monkeypatch.setattr(release, "WORK", tmp_path / "work")
    user = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    for words in (("init", "--quiet"), ("add", "."), (*user, "commit", "--quiet", "--message=First")):
        subprocess.run(["git", "-C", folder, *words], check=True)
    return folder


def test_release_of_a_commit_is_in_dist_with_right_checksums(checkout: Path, tmp_path: Path) -> None:
    assert release.main([]) == 0
    dist = tmp_path / "dist"
    names = {"MANIFEST.json", "SHA256SUMS", "gpu-kubernetes-1.2.3.cdx.json", "gpu-kubernetes-1.2.3.tar.gz"}
    assert {path.name for path in dist.iterdir()} == names
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=dist, check=True, capture_output=True)
    with tarfile.open(dist / "gpu-kubernetes-1.2.3.tar.gz") as content:
        assert {"README.md", "docs/quickstart.md", "docs/troubleshooting.md"} <= set(content.getnames())


def test_release_of_a_checkout_with_changes_is_refused(
    checkout: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (checkout / "README.md").write_text("changed")
    assert release.main([]) == 1
    assert "A release is made of a commit" in capsys.readouterr().err
    assert not (tmp_path / "dist").exists()


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A keyring. The path of its agent's socket has to be short."""
    if shutil.which("gpg") is None:
        pytest.skip("gpg is missing")
    with tempfile.TemporaryDirectory(prefix="gpg-", dir="/tmp") as folder:
        monkeypatch.setenv("GNUPGHOME", folder)
        yield
        subprocess.run(["gpgconf", "--kill", "all"], check=False)


@pytest.mark.usefixtures("keys")
def test_signature_is_that_of_the_key(tmp_path: Path) -> None:
    options = ["--batch", "--passphrase", "", "--quick-generate-key", "test@example.org", "ed25519", "sign", "1d"]
    subprocess.run(["gpg", *options], check=True, capture_output=True)
    path = tmp_path / "MANIFEST.json"
    path.write_text("{}")
    signature = release.sign(path, "test@example.org")
    subprocess.run(["gpg", "--verify", str(signature), str(path)], check=True, capture_output=True)
    path.write_text("[]")
    assert subprocess.run(["gpg", "--verify", str(signature), str(path)], check=False, capture_output=True).returncode


def test_importer_reports_errors_and_what_galaxy_does_not_show() -> None:
    contents = [
        {"content_type": "module", "content_name": "a", "doc_strings": {"doc": {"options": []}}},
        {"content_type": "module", "content_name": "b", "doc_strings": {}},
        {"content_type": "filter", "content_name": "a", "doc_strings": None},
    ]
    printed = ["Importing", "WARNING: no changelog", galaxy.ACCEPTED, "ERROR: bad"]
    pages = [{"name": name} for name in ("quickstart.md", "codes.md", "policy.md")]
    result = {"docs_blob": {"contents": contents, "documentation_files": pages}}
    assert galaxy.find_problems(printed, result, {"module": ["a", "b"], "filter": ["a"]}) == [
        "WARNING: no changelog",
        "ERROR: bad",
        "docs/troubleshooting.md: Galaxy does not show this page",
        "module b: Galaxy shows no documentation",
        "filter a: Galaxy shows no documentation",
    ]


# Both versions are this checkout; the gate has two archives.
COLLECTIONS = release.ROOT / ".ansible" / "collections"


def test_a_later_version_undoes_what_an_earlier_one_has_changed(tmp_path: Path) -> None:
    host = records.Host(tmp_path, records.ROWS)
    assert host.find_unchanged() == list(host.rows)
    assert host.find_differences() == []
    host.change("present", COLLECTIONS)
    assert host.find_unchanged() == []
    host.change("absent", COLLECTIONS)
    assert host.find_differences() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="the module's lock file is root's")
def test_a_later_version_restores_mig_devices(tmp_path: Path) -> None:
    host = records.Host(tmp_path / "host", [records.make_mig_row(tmp_path / "gpus")])
    host.change("present", COLLECTIONS)
    assert set(host.read("mig_layout")) == {"devices.json", "mig.json", "mig.pyz"}
    assert host.read("mig_layout")["devices.json"] == '[{"1g.10gb": 7}, {"1g.10gb": 7}]'
    host.change("absent", COLLECTIONS)
    assert host.find_differences() == []


def test_changes_whose_record_is_lost_and_records_that_stay_are_reported(tmp_path: Path) -> None:
    host = records.Host(tmp_path, [row for row in records.ROWS if row.module == "docker_daemon_config"])
    host.change("present", COLLECTIONS)
    [record] = (tmp_path / "docker_daemon_config" / "state").rglob("*.json")
    name = f"docker_daemon_config: {record.relative_to(tmp_path / 'docker_daemon_config')}"
    assert host.find_differences() == ["docker_daemon_config: daemon.json", name]
    record.unlink()
    host.change("absent", COLLECTIONS)
    assert host.find_differences() == ["docker_daemon_config: daemon.json"]


def test_each_module_with_a_folder_of_records_is_undone_by_a_later_version() -> None:
    modules = release.ROOT / "plugins" / "modules"
    with_records = {path.stem for path in modules.glob("*.py") if "state_dir" in path.read_text(encoding="utf-8")}
    # The first only reads, and the timer of the second ends within a run.
    others = {"container_runtime_info", "restore_timer"}
    assert with_records - others <= {*(row.module for row in records.ROWS), "mig_layout"}


@pytest.mark.parametrize(("version", "following"), [("0.1.0", "0.1.1"), ("1.2.9", "1.2.10"), ("1.0.0-rc1", "1.0.1")])
def test_next_version(version: str, following: str) -> None:
    assert galaxy.name_next(version) == following
