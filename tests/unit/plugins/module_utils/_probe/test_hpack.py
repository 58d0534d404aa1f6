# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""HPACK against header blocks that a real containerd 2.4 sent, and against itself."""

from __future__ import annotations

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._probe import hpack

GO_HEADERS = "20880f108b1d75d0620d263d4c4d6564"
GO_OK_TRAILERS = "00889acac8b21234da8f013000899acac8b5254207317f00"
GO_REFUSAL = (
    "20880f108b1d75d0620d263d4c4d656400889acac8b21234da8f02313200899acac8b5254207317f9eb6aeb51fc54a20b677310aa596d49"
    "35255fb857db6d493525dc5b3b9885f"
)


@pytest.mark.parametrize(
    ("block", "headers"),
    [
        ("", []),
        ("88", [(":status", "200")]),
        (GO_HEADERS, [(":status", "200"), ("content-type", "application/grpc")]),
        (GO_OK_TRAILERS, [("grpc-status", "0"), ("grpc-message", "")]),
        (
            GO_REFUSAL,
            [
                (":status", "200"),
                ("content-type", "application/grpc"),
                ("grpc-status", "12"),
                ("grpc-message", "unknown service runtime.v1.RuntimeService"),
            ],
        ),
        # RFC 7541, C.2.1: a literal that asks to be indexed; with an empty table it is forgotten at once
        ("400a637573746f6d2d6b65790d637573746f6d2d686561646572", [("custom-key", "custom-header")]),
        # RFC 7541, C.4.1: a Huffman-coded value
        ("418cf1e3c2e5f23a6ba0ab90f4ff", [(":authority", "www.example.com")]),
    ],
)
def test_decode(block: str, headers: list[tuple[str, str]]) -> None:
    assert hpack.decode(bytes.fromhex(block)) == headers


@pytest.mark.parametrize("block", ["ff", "80", "be", "0005", "00850001", "4083ffffff00"])
def test_decode_refuses_what_is_broken(block: str) -> None:
    with pytest.raises(hpack.HpackError):
        hpack.decode(bytes.fromhex(block))


@pytest.mark.parametrize("start", ["ff", "3f", "7f", "007f", "00ff"])
def test_a_number_without_end_is_refused_at_once(start: str) -> None:
    with pytest.raises(hpack.HpackError, match="too large"):
        hpack.decode(bytes.fromhex(start + "80" * 100_000 + "01"))


def test_encode_is_the_inverse() -> None:
    headers = [(":path", "/runtime.v1.RuntimeService/Status"), ("te", "trailers"), ("long", "x" * 500)]
    assert hpack.decode(hpack.encode(headers)) == headers


# RFC 7541, C.1
@pytest.mark.parametrize(
    ("value", "bits", "octets"), [(10, 5, "0a"), (1337, 5, "1f9a0a"), (42, 8, "2a"), (127, 7, "7f00")]
)
def test_encode_integer(value: int, bits: int, octets: str) -> None:
    assert hpack.encode_integer(value, bits).hex() == octets


def test_tables_have_their_sizes() -> None:
    assert len(hpack.STATIC_TABLE) == 61
    assert hpack.STATIC_TABLE[60] == ("www-authenticate", "")
    printable = {byte for symbols in hpack.HUFFMAN_SYMBOLS.values() for byte in symbols}
    assert printable >= set(range(32, 127))
