# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fingerprints of OpenPGP public keys, which are compared before a package manager trusts a key.

A host may lack gpg: apt needs gpgv or sqv only. The packets are those of RFC 4880 §4 and §12.2, and RFC 9580 §4 and §5.5.4. What is not clearly
a file of public keys is rejected, so that no key remains unnoticed that another program would find in it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from typing import Iterator, Sequence

BEGIN, END = "-----BEGIN PGP PUBLIC KEY BLOCK-----", "-----END PGP PUBLIC KEY BLOCK-----"
HEADER = re.compile(r"[A-Za-z]+: .*")
FINGERPRINT = re.compile(r"[0-9A-F]{40}|[0-9A-F]{64}")
PRIMARY = 6
#: Signatures, markers, trust, user IDs, subkeys, user attributes and padding.
OTHERS = frozenset({2, 10, 12, 13, 14, 17, 21})
#: Version of a key -> hash, first byte and size of the length of what is hashed.
VERSIONS = {4: ("sha1", b"\x99", 2), 6: ("sha256", b"\x9b", 4)}


def find_key_problem(content: bytes, expected: Sequence[str]) -> str:
    """Return why a file is not one of the expected keys alone, as a clause; empty if it is. Spaces and case of fingerprints do not count."""
    wanted = [normalize(each) for each in expected]
    short = [each for each in wanted if not FINGERPRINT.fullmatch(each)]
    if short:
        return f"cannot be compared with {short[0]}, which is not a whole fingerprint of 40 or 64 hexadecimal digits"
    try:
        found = read_fingerprints(content)
    except ValueError as error:
        return f"is not a file of OpenPGP public keys ({error})"
    others = " and ".join(each for each in found if each not in wanted)
    if not others:
        return ""
    known = [each for each in found if each in wanted]
    if known:
        return f"has the fingerprint {others} beside {' and '.join(known)}, and package managers would trust all keys of the file"
    return f"has the fingerprint {others}, not {' or '.join(wanted)}"


def normalize(fingerprint: str) -> str:
    """Return a fingerprint in upper case without spaces and 0x."""
    return re.sub(r"^0X|\s", "", str(fingerprint).upper().strip())


def read_fingerprints(content: bytes) -> list[str]:
    """Return the fingerprints of the primary keys in a file, in upper case. Raises ValueError for anything else than public keys."""
    data = content if content[:1] and content[0] & 0x80 else _read_armor(content)
    packets = list(_read_packets(data))
    if not packets or packets[0][0] != PRIMARY:
        raise ValueError("it does not begin with a key")
    return [_hash_key(body) for tag, body in packets if tag == PRIMARY]


def _read_armor(content: bytes) -> bytes:
    """Return the packets of all blocks. Outside of blocks only blank lines are accepted."""
    lines = iter(content.decode("ascii", errors="replace").splitlines())
    blocks = b""
    for line in lines:
        if line.strip() == BEGIN:
            blocks += _read_block(lines)
        elif line.strip():
            raise ValueError("it has text outside of its blocks")
    return blocks


def _read_block(lines: Iterator[str]) -> bytes:
    text, in_headers = "", True
    for line in (each.strip() for each in lines):
        if line == END:
            try:
                # A line that begins with = is a checksum.
                return base64.b64decode(text, validate=True)
            except binascii.Error as error:
                raise ValueError("its block is not base64") from error
        if in_headers and (not line or HEADER.fullmatch(line)):
            in_headers = bool(line)
        elif not line.startswith("="):
            text, in_headers = text + line, False
    raise ValueError("its block has no end")


def _read_packets(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield tag and body of each packet."""
    position = 0
    while position < len(data):
        tag, size, start = _read_header(data, position)
        position = start + size
        if position > len(data):
            raise ValueError("it is truncated")
        if tag != PRIMARY and tag not in OTHERS:
            raise ValueError(f"it has a packet of type {tag}")
        yield tag, data[start:position]


def _read_header(data: bytes, position: int) -> tuple[int, int, int]:
    """Return tag, size of the body and where it begins."""
    first, rest = data[position], data[position + 1 : position + 6]
    if not first & 0x80 or not rest:
        raise ValueError("it is damaged")
    if not first & 0x40:
        width = {0: 1, 1: 2, 2: 4}.get(first & 3, 0)
        tag, skipped = (first >> 2) & 15, 0
    else:
        tag = first & 63
        if rest[0] < 192:
            return tag, rest[0], position + 2
        if rest[0] < 224 and len(rest) > 1:
            return tag, ((rest[0] - 192) << 8) + rest[1] + 192, position + 3
        width, skipped = (4 if rest[0] == 255 else 0), 1
    if not width or len(rest) < skipped + width:
        raise ValueError("it has a packet of unknown length")
    return tag, int.from_bytes(rest[skipped : skipped + width], "big"), position + 1 + skipped + width


def _hash_key(body: bytes) -> str:
    version = body[0] if body else 0
    if version not in VERSIONS:
        raise ValueError(f"it has a key of version {version}")
    name, prefix, width = VERSIONS[version]
    digest = hashlib.new(name, prefix + len(body).to_bytes(width, "big") + body)
    return digest.hexdigest().upper()
