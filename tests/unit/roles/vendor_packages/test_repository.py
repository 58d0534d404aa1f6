# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports of vendor_packages about unreadable sources of a package manager, and keys that are not trusted."""

from __future__ import annotations

import hashlib
import os

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import DEBIAN


def test_check_mode_with_unreadable_sources_names_the_managed_source(refusals, tmp_path):
    (tmp_path / "apt-get").write_text("#!/bin/sh\necho 'E: Conflicting values set' >&2\nexit 100\n")
    (tmp_path / "apt-get").chmod(0o755)
    source = tmp_path / "managed.sources"
    source.touch()
    messages = refusals(
        "vendor_packages",
        ["repository_host"],
        {"check": {}},
        variables={"vendor_packages_manager": "apt", "vendor_packages_repository": {"suite": "bookworm"}},
        facts=DEBIAN,
        extra={"__vendor_packages_sources_file": str(source)},
        environment={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        check_mode=True,
    )
    assert messages["check"].startswith("check: apt cannot read its sources (E: Conflicting values set). ")
    assert f"{source} of an earlier run may be the cause;" in messages["check"]
    assert source.exists()


KNOWN = "https://vendor.example.com/vendor.pub"
FIRST, SECOND = (b"\x04\x00\x00\x00\x01\x16" + seed * 40 for seed in (b"a", b"b"))


def compute_fingerprint(body):
    digest = hashlib.new("sha1", b"\x99" + len(body).to_bytes(2, "big") + body)  # noqa: S324 - OpenPGP defines it
    return digest.hexdigest().upper()


#: The key of a host's repository, the keys in the file, and the error message.
KEYS = {
    "known": ({"key_url": KNOWN}, (FIRST,), ""),
    "changed": (
        {"key_url": KNOWN},
        (SECOND,),
        f"the signing key of the repository for drivers ({KNOWN}) has the fingerprint {compute_fingerprint(SECOND)}, not ",
    ),
    "allowed": ({"key_url": KNOWN, "key_fingerprints": [compute_fingerprint(SECOND)]}, (SECOND,), ""),
    "own": (
        {"key_url": "https://u:p@own.example.com/vendor.pub", "key_fingerprints": [compute_fingerprint(FIRST)]},
        (SECOND,),
        "drivers (https://own.example.com/vendor.pub) has the fingerprint ",
    ),
    "added": (
        {"key_url": KNOWN},
        (FIRST, SECOND),
        f"{compute_fingerprint(SECOND)} beside {compute_fingerprint(FIRST)}, and package managers would trust",
    ),
    "added-and-allowed": (
        {"key_url": KNOWN, "key_fingerprints": [compute_fingerprint(FIRST), compute_fingerprint(SECOND)]},
        (FIRST, SECOND),
        "",
    ),
    "no-file-yet": ({"key_url": KNOWN + "?"}, (), ""),
}


def test_key_with_another_fingerprint_is_removed_and_refused(refusals, tmp_path):
    files = {}
    for name, (source, bodies, _words) in KEYS.items():
        plain = source["key_url"].replace("u:p@", "")
        files[name] = tmp_path / name / f"{hashlib.sha256(plain.encode()).hexdigest()[:16]}.asc"
        files[name].parent.mkdir()
        if bodies:
            files[name].write_bytes(b"".join(bytes([0xC6, len(body)]) + body for body in bodies))
    messages = refusals(
        "vendor_packages",
        ["repository_fingerprint"],
        {
            name: {"source": {"url": "https://vendor.example.com", **source}, "folder": str(tmp_path / name)}
            for name, (source, _bodies, _words) in KEYS.items()
        },
        variables={
            "vendor_packages_manager": "apt",
            "vendor_packages_title": "drivers",
            "vendor_packages_repository": "{{ source }}",
            "vendor_packages_known_keys": [KNOWN],
            "vendor_packages_key_fingerprints": {
                "vendor.pub": {"fingerprint": compute_fingerprint(FIRST), "source": "x"}
            },
        },
        facts=DEBIAN,
        extra={"__vendor_packages_key_folder": "{{ folder }}"},
    )
    for name, (_source, bodies, words) in KEYS.items():
        assert words in messages[name] if words else not messages[name], messages
        assert files[name].exists() is (bool(bodies) and not words)


#: The key of a repository, and the fingerprints with which it is compared.
COMPARED = {
    "known": ({"key_url": KNOWN}, ["F1"]),
    "off": ({"key_url": KNOWN, "key_fingerprints": []}, []),
    "own url": ({"key_url": "https://own.example.com/vendor.pub"}, []),
    "own file": ({"key_url": KNOWN, "key_path": "/k"}, []),
    "own content": ({"key_url": KNOWN, "key_content": "k"}, []),
    "own fingerprint": ({"key_path": "/k", "key_fingerprints": ["F2"]}, ["F2"]),
    "unknown key": ({"key_url": "https://vendor.example.com/other.pub"}, []),
}


def test_known_fingerprints_count_only_for_the_vendors_url(evaluate_role):
    hosts = {name: {"vendor_packages_repository": source} for name, (source, _expected) in COMPARED.items()}
    common = {
        "vendor_packages_known_keys": [KNOWN, "https://vendor.example.com/other.pub"],
        "vendor_packages_key_fingerprints": {"vendor.pub": {"fingerprint": "F1"}},
    }
    found = evaluate_role("vendor_packages", hosts, "__vendor_packages_fingerprints", **common)
    assert found == {name: expected for name, (_source, expected) in COMPARED.items()}
