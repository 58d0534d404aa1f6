# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fingerprints of keys, and files that are not trusted."""

from __future__ import annotations

import base64
import hashlib

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.openpgp import (
    BEGIN,
    END,
    find_key_problem,
    read_fingerprints,
)

#: A key with a subkey that GnuPG 2.2 has exported, and the fingerprint that it shows.
GNUPG = """-----BEGIN PGP PUBLIC KEY BLOCK-----

mDMEawirLxYJKwYBBAHaRw8BAQdA/daMmhkKs/qbStXXWGi6tJ9BidLS0H59B6/+
s296q8y0F1Rlc3QgPHRlc3RAZXhhbXBsZS5jb20+iJYEExYIAD4WIQReWvs/w3Nj
ut4jdQhlD09Gbe28KwUCawirLwIbAwUJAAFRgAULCQgHAgYVCgkICwIEFgIDAQIe
AQIXgAAKCRBlD09Gbe28KxCfAP9EMT/XXUKAjOdzrKUPEf42tSTdIeqHODlNEbtf
XBt+4wEA3Qdi5xwXCDd6zmcfsu772Tvl3KzFgqBS6fUcrHgb7w24OARrCKswEgor
BgEEAZdVAQUBAQdAVyx2DDWToUD3Hp2XI+yelDTnzzLqv7h5XvPIRlDkUQwDAQgH
iH4EGBYIACYWIQReWvs/w3Njut4jdQhlD09Gbe28KwUCawirMAIbDAUJAAFRgAAK
CRBlD09Gbe28K4CdAP9BvmArS4yRu9MY3P+yLj34TOM2A33YZtNU426nWEYhMQEA
pLSQ9p88O2aPTxKCYdBBXKmjnMlIeJDovd19vUKZQgU=
=oLKM
-----END PGP PUBLIC KEY BLOCK-----
"""
GNUPG_FINGERPRINT = "5E5AFB3FC37363BADE237508650F4F466DEDBC2B"

PRIMARY, SECRET, USER, SUBKEY = 6, 5, 13, 14
FIRST, SECOND = (b"\x04\x00\x00\x00\x01\x16" + seed * 40 for seed in (b"a", b"b"))


def packet(tag: int, body: bytes) -> bytes:
    """A packet with a new header, whose length has one, two or five bytes."""
    size = len(body)
    if size < 192:
        length = bytes([size])
    elif size < 8384:
        length = bytes([(size - 192 >> 8) + 192, (size - 192) & 255])
    else:
        length = b"\xff" + size.to_bytes(4, "big")
    return bytes([0xC0 | tag]) + length + body


def old_packet(tag: int, body: bytes, width: int) -> bytes:
    """A packet with an old header, whose length has 1, 2 or 4 bytes."""
    return bytes([0x80 | tag << 2 | {1: 0, 2: 1, 4: 2}[width]]) + len(body).to_bytes(width, "big") + body


def armor(data: bytes, headers: str = "") -> bytes:
    return f"{BEGIN}\n{headers}\n{base64.encodebytes(data).decode()}=abcd\n{END}\n".encode()


def fingerprint(body: bytes) -> str:
    digest = hashlib.new("sha1", b"\x99" + len(body).to_bytes(2, "big") + body)  # noqa: S324 - OpenPGP defines it
    return digest.hexdigest().upper()


V6 = b"\x06" + FIRST[1:]
KEY = packet(PRIMARY, FIRST) + packet(USER, b"Someone") + packet(SUBKEY, SECOND)
#: The content of a file, and the fingerprints of its primary keys.
FILES = {
    "gnupg": (GNUPG.encode(), [GNUPG_FINGERPRINT]),
    "armour": (armor(KEY), [fingerprint(FIRST)]),
    "armour with headers": (armor(KEY, "Version: GnuPG v2.0.22 (GNU/Linux)\nComment: x\n"), [fingerprint(FIRST)]),
    "armour of windows": (armor(KEY).replace(b"\n", b"\r\n"), [fingerprint(FIRST)]),
    "binary": (KEY, [fingerprint(FIRST)]),
    "old headers": (old_packet(PRIMARY, FIRST, 1) + old_packet(USER, b"x" * 300, 2) + old_packet(2, b"x", 4), [fingerprint(FIRST)]),
    "long packets": (packet(PRIMARY, FIRST) + packet(USER, b"x" * 300) + packet(2, b"x" * 9000), [fingerprint(FIRST)]),
    "two keys": (KEY + packet(PRIMARY, SECOND), [fingerprint(FIRST), fingerprint(SECOND)]),
    "two blocks": (armor(KEY) + b"\n" + armor(packet(PRIMARY, SECOND)), [fingerprint(FIRST), fingerprint(SECOND)]),
    "version 6": (packet(PRIMARY, V6), [hashlib.sha256(b"\x9b" + len(V6).to_bytes(4, "big") + V6).hexdigest().upper()]),
}  # fmt: skip


@pytest.mark.parametrize(("content", "fingerprints"), FILES.values(), ids=FILES)
def test_fingerprints_are_those_of_the_primary_keys(content: bytes, fingerprints: list[str]) -> None:
    assert read_fingerprints(content) == fingerprints


#: Content other than public keys. Another program could find further keys in it.
REJECTED = {
    "empty": (b"", "does not begin with a key"),
    "page": (b"<!DOCTYPE html>\n<html>", "text outside"),
    "text before": (b"Our key:\n" + armor(KEY), "text outside"),
    "text after": (armor(KEY) + b"x", "text outside"),
    "other block": (armor(KEY).replace(b"PUBLIC", b"PRIVATE"), "text outside"),
    "no end": (armor(KEY).replace(END.encode(), b""), "no end"),
    "not base64": (armor(KEY).replace(b"=abcd", b"*"), "not base64"),
    "secret key": (packet(SECRET, FIRST), "packet of type 5"),
    "message": (KEY + packet(11, b"x"), "packet of type 11"),
    "user first": (packet(USER, b"x") + KEY, "does not begin with a key"),
    "truncated": (KEY[:-1], "truncated"),
    "truncated header": (KEY + b"\xc6", "damaged"),
    "damaged": (KEY + b"\x00\x00", "damaged"),
    "partial length": (bytes([0xC0 | PRIMARY, 0xE1]) + FIRST, "unknown length"),
    "indeterminate length": (bytes([0x80 | PRIMARY << 2 | 3]) + FIRST, "unknown length"),
    "version 3": (packet(PRIMARY, b"\x03" + FIRST[1:]), "version 3"),
    "no version": (packet(PRIMARY, b""), "version 0"),
}


@pytest.mark.parametrize(("content", "words"), REJECTED.values(), ids=REJECTED)
def test_content_other_than_public_keys_is_rejected(content: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_fingerprints(content)
    assert find_key_problem(content, ["0" * 40]).startswith("is not a file of OpenPGP public keys (")


ONE, TWO = fingerprint(FIRST), fingerprint(SECOND)
SPACED = " ".join(ONE[at : at + 4] for at in range(0, 40, 4))
#: A file, the expected fingerprints, and the problem.
COMPARED = {
    "same": (KEY, [ONE], ""),
    "another spelling": (KEY, [f"0x{SPACED.lower()}"], ""),
    "one of several": (KEY, [TWO, ONE], ""),
    "other": (KEY, [TWO], f"has the fingerprint {ONE}, not {TWO}"),
    "a second key": (
        FILES["two keys"][0],
        [ONE],
        f"has the fingerprint {TWO} beside {ONE}, and package managers would trust all",
    ),
    "a second key that is expected": (FILES["two keys"][0], [TWO, ONE], ""),
    "two other keys": (FILES["two keys"][0], ["0" * 40], f"has the fingerprint {ONE} and {TWO}, not 0000"),
    "short": (KEY, [ONE[-8:]], f"cannot be compared with {ONE[-8:]}, which is not a whole fingerprint"),
    "none": (KEY, [], f"has the fingerprint {ONE}, not "),
}


@pytest.mark.parametrize(("content", "expected", "words"), COMPARED.values(), ids=COMPARED)
def test_key_with_another_fingerprint_is_a_problem(content: bytes, expected: list[str], words: str) -> None:
    problem = find_key_problem(content, expected)
    assert problem.startswith(words)
    assert bool(problem) is bool(words)
