# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HPACK (RFC 7541) as far as an HTTP/2 client with an empty dynamic table needs it.

The client announces a header table of size 0, so that a peer may use the static table, literals and the Huffman
code, and nothing has to be remembered between header blocks.
"""

from __future__ import annotations

from typing import Iterable, Tuple

Header = Tuple[str, str]

# RFC 7541 appendix A, index 1 onwards. Values only where the table has them.
_PAIRS: tuple[Header, ...] = (
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
)
_NAMES = (
    "accept-language",
    "accept-ranges",
    "accept",
    "access-control-allow-origin",
    "age",
    "allow",
    "authorization",
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-range",
    "content-type",
    "cookie",
    "date",
    "etag",
    "expect",
    "expires",
    "from",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-modified",
    "link",
    "location",
    "max-forwards",
    "proxy-authenticate",
    "proxy-authorization",
    "range",
    "referer",
    "refresh",
    "retry-after",
    "server",
    "set-cookie",
    "strict-transport-security",
    "transfer-encoding",
    "user-agent",
    "vary",
    "via",
    "www-authenticate",
)
STATIC_TABLE: tuple[Header, ...] = (*_PAIRS, *((name, "") for name in _NAMES))

# RFC 7541 appendix B. The code is canonical: code words of one length are consecutive, in the order of their symbols,
# and each length starts where the one before it ends. Lengths above 19 bits stand for bytes outside printable ASCII,
# which gRPC writes percent-encoded.
HUFFMAN_SYMBOLS: dict[int, bytes] = {
    5: b"012aceiost",
    6: b" %-./3456789=A_bdfghlmnpru",
    7: b":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz",
    8: b"&*,;XZ",
    10: b'!"()?',
    11: b"'+|",
    12: b"#>",
    13: b"\x00$@[]~",
    14: b"^}",
    15: b"<`{",
    19: b"\\",
}


class HpackError(ValueError):
    """The header block is not one that this client can read."""


def _code_words() -> dict[tuple[int, int], int]:
    """Return {(length in bits, code word): symbol}."""
    words: dict[tuple[int, int], int] = {}
    word = previous = 0
    for length in sorted(HUFFMAN_SYMBOLS):
        word <<= length - previous
        previous = length
        for symbol in HUFFMAN_SYMBOLS[length]:
            words[length, word] = symbol
            word += 1
    return words


_CODE_WORDS = _code_words()
_LONGEST_WORD = max(HUFFMAN_SYMBOLS)


def huffman_decode(data: bytes) -> bytes:
    """Decode a Huffman-coded string; raises HpackError for a code word of a byte outside printable ASCII."""
    decoded = bytearray()
    word = length = 0
    for byte in data:
        for shift in range(7, -1, -1):
            word = word << 1 | byte >> shift & 1
            length += 1
            symbol = _CODE_WORDS.get((length, word))
            if symbol is not None:
                decoded.append(symbol)
                word = length = 0
            elif length > _LONGEST_WORD:
                raise HpackError("a code word stands for no printable character")
    return bytes(decoded)


def encode(headers: Iterable[Header]) -> bytes:
    """Write headers as literals without indexing and without the Huffman code."""
    block = bytearray()
    for name, value in headers:
        block.append(0)
        for text in (name.encode("ascii"), value.encode("ascii")):
            block += encode_integer(len(text), 7)
            block += text
    return bytes(block)


def encode_integer(value: int, prefix_bits: int) -> bytes:
    """Write an integer with the given number of prefix bits (RFC 7541 section 5.1), the bits above being 0."""
    limit = (1 << prefix_bits) - 1
    if value < limit:
        return bytes([value])
    octets = [limit]
    value -= limit
    while value >= 128:
        octets.append(value % 128 + 128)
        value //= 128
    octets.append(value)
    return bytes(octets)


def decode(block: bytes) -> list[Header]:
    """Read one whole header block; raises HpackError."""
    reader = _Reader(block)
    headers: list[Header] = []
    while not reader.finished:
        first = reader.peek()
        if first & 0x80:
            headers.append(_static(reader.integer(7)))
        elif first & 0xE0 == 0x20:
            reader.integer(5)  # a new size of the dynamic table, which stays empty
        else:
            index = reader.integer(6 if first & 0x40 else 4)
            name = _static(index)[0] if index else reader.string()
            headers.append((name, reader.string()))
    return headers


def _static(index: int) -> Header:
    if not 1 <= index <= len(STATIC_TABLE):
        raise HpackError(f"there is no header with index {index}")
    return STATIC_TABLE[index - 1]


class _Reader:
    """A position in a header block."""

    def __init__(self, block: bytes) -> None:
        self._block = block
        self._at = 0

    @property
    def finished(self) -> bool:
        return self._at >= len(self._block)

    def peek(self) -> int:
        if self.finished:
            raise HpackError("the header block ends too early")
        return self._block[self._at]

    def integer(self, prefix_bits: int) -> int:
        limit = (1 << prefix_bits) - 1
        value = self.peek() & limit
        self._at += 1
        if value < limit:
            return value
        shift = 0
        while True:
            octet = self.peek()
            self._at += 1
            value += (octet & 0x7F) << shift
            shift += 7
            if not octet & 0x80:
                return value
            if shift > 28:
                raise HpackError("a number is too large")

    def string(self) -> str:
        coded = bool(self.peek() & 0x80)
        length = self.integer(7)
        data = self._block[self._at : self._at + length]
        if len(data) < length:
            raise HpackError("the header block ends too early")
        self._at += length
        return (huffman_decode(data) if coded else data).decode("latin-1")
