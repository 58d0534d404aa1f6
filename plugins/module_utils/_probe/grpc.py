# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One gRPC call over HTTP/2 on a Unix socket (RFC 9113 with prior knowledge), with the standard library alone.

Nothing may be installed on a node for the sake of a question, and neither ``crictl`` nor ``ctr`` is sure to be there.
"""

from __future__ import annotations

import socket
import struct
import time
from typing import Callable, Tuple
from urllib.parse import unquote

from . import hpack

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM = ACK = 0x1
END_HEADERS, PADDED, PRIORITY = 0x4, 0x8, 0x20

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_LARGEST_WINDOW = 2**31 - 1
_DEFAULT_WINDOW = 65535
# A verbose CRI status has some 10 to 50 KiB; what is larger than this is not an answer to our question.
_LARGEST_ANSWER = 16 * 1024 * 1024
# SETTINGS_MAX_FRAME_SIZE as long as nobody announces another one, and we do not.
_LARGEST_FRAME = 16384
_LARGEST_HEADERS = 256 * 1024
# The one call's stream.
_STREAM = 1

GRPC_CODES = (
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
)

_CODE_NAMES = {str(number): name for number, name in enumerate(GRPC_CODES)}
# Of a message from the other side; it becomes a part of a sentence.
_LONGEST_WORDS = 500

Frame = Tuple[int, int, int, bytes]  # type, flags, stream, payload


class CallError(Exception):
    """The call brought no answer. ``code`` is the gRPC code's name, or an empty string if nobody spoke gRPC."""

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class _Malformed(ValueError):
    """A frame is not as RFC 9113 wants it."""


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Write one HTTP/2 frame."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def call(path: str, method: str, message: bytes, timeout: float) -> bytes:
    """Call a unary gRPC method over the Unix socket and return the answer's bytes.

    ``method`` is ``/package.Service/Method``; ``timeout`` is in seconds, for the whole call. Raises CallError.
    """
    deadline = time.monotonic() + timeout
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(timeout)
            connection.connect(path)
            connection.sendall(_request(method, message))
            return _Answer(connection, deadline).read()
    except socket.timeout as error:
        raise CallError(f"nobody answered on {path} within {timeout:g} s") from error
    except OSError as error:
        raise CallError(f"{path}: {error.strerror or error}") from error
    except (_Malformed, hpack.HpackError) as error:
        raise CallError(f"{path} answered something that is no gRPC: {error}") from error


def _request(method: str, message: bytes) -> bytes:
    settings = struct.pack(">HIHIHI", 1, 0, 2, 0, 4, _LARGEST_WINDOW)  # header table, push, window
    headers = hpack.encode(
        [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", method),
            (":authority", "localhost"),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
            ("user-agent", "gpu.kubernetes"),
        ]
    )
    return b"".join(
        [
            _PREFACE,
            frame(SETTINGS, 0, 0, settings),
            frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", _LARGEST_WINDOW - _DEFAULT_WINDOW)),
            frame(HEADERS, END_HEADERS, _STREAM, headers),
            frame(DATA, END_STREAM, _STREAM, b"\x00" + struct.pack(">I", len(message)) + message),
        ]
    )


class _Answer:
    """Collects the frames of our stream and serves those of the connection; those of other streams are not for us."""

    def __init__(self, connection: socket.socket, deadline: float) -> None:
        self._connection = connection
        self._deadline = deadline
        self._headers: dict[str, str] = {}
        self._block: bytes | None = None  # of headers that are not complete yet
        self._ended = False
        self._body = bytearray()
        self._handlers: dict[tuple[int, int], Callable[[int, bytes], bool]] = {
            (_STREAM, DATA): self._on_data,
            (_STREAM, HEADERS): self._on_headers,
            (_STREAM, CONTINUATION): self._on_continuation,
            (_STREAM, RST_STREAM): self._on_reset,
            (0, GOAWAY): self._on_goaway,
            (0, SETTINGS): self._on_settings,
            (0, PING): self._on_ping,
        }

    def read(self) -> bytes:
        ended = False
        while not ended:
            kind, flags, stream, payload = self._next_frame()
            handler = self._handlers.get((stream, kind))
            ended = handler(flags, payload) if handler else False
        status = self._headers.get("grpc-status", "")
        if status != "0":
            raise self._refusal(status)
        if len(self._body) < 5 or self._body[0] != 0:
            raise CallError("the answer is empty or compressed", "INTERNAL")
        (length,) = struct.unpack(">I", self._body[1:5])
        if len(self._body) < 5 + length:
            raise CallError("the answer is cut off", "INTERNAL")
        return bytes(self._body[5 : 5 + length])

    def _refusal(self, status: str) -> CallError:
        code = _CODE_NAMES.get(status, "")
        words = " ".join(unquote(self._headers.get("grpc-message", "")).split())[:_LONGEST_WORDS]
        if not status:
            words = f"no gRPC status but the HTTP status {self._headers.get(':status', 'unknown')}"
        return CallError(words or f"gRPC status {code or status}", code)

    def _on_data(self, flags: int, payload: bytes) -> bool:
        self._body += _unpadded(flags, payload)
        if len(self._body) > _LARGEST_ANSWER:
            raise CallError("the answer is too large", "RESOURCE_EXHAUSTED")
        return bool(flags & END_STREAM)

    def _on_headers(self, flags: int, payload: bytes) -> bool:
        payload = _unpadded(flags, payload)
        if flags & PRIORITY:
            _numbers(">IB", payload)
        self._block = payload[5:] if flags & PRIORITY else payload
        self._ended = bool(flags & END_STREAM)
        return self._headers_end(flags)

    def _on_continuation(self, flags: int, payload: bytes) -> bool:
        if self._block is None:
            raise _Malformed("headers are continued that were not begun")
        self._block += payload
        if len(self._block) > _LARGEST_HEADERS:
            raise _Malformed("the headers are too large")
        return self._headers_end(flags)

    def _headers_end(self, flags: int) -> bool:
        if not flags & END_HEADERS:
            return False
        self._headers.update(hpack.decode(self._block or b""))
        self._block = None
        return self._ended

    def _on_reset(self, _flags: int, payload: bytes) -> bool:
        (error,) = _numbers(">I", payload)
        raise CallError(f"the stream was reset (HTTP/2 error {error})", "UNAVAILABLE")

    def _on_goaway(self, _flags: int, payload: bytes) -> bool:
        last, error = _numbers(">II", payload)
        if last & 0x7FFFFFFF >= _STREAM and error == 0:
            return False  # our stream is still served
        raise CallError(f"the connection was closed (HTTP/2 error {error})", "UNAVAILABLE")

    def _on_settings(self, flags: int, _payload: bytes) -> bool:
        if not flags & ACK:
            self._connection.sendall(frame(SETTINGS, ACK, 0))
        return False

    def _on_ping(self, flags: int, payload: bytes) -> bool:
        if not flags & ACK:
            self._connection.sendall(frame(PING, ACK, 0, payload))
        return False

    def _next_frame(self) -> Frame:
        head = self._exactly(9)
        (length,) = struct.unpack(">I", b"\x00" + head[:3])
        if length > _LARGEST_FRAME:
            raise _Malformed("a frame is too large")
        kind, flags, stream = struct.unpack(">BBI", head[3:])
        return kind, flags, stream & 0x7FFFFFFF, self._exactly(length)

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            remaining = self._deadline - time.monotonic()
            if remaining <= 0:
                raise socket.timeout("deadline")
            self._connection.settimeout(remaining)
            piece = self._connection.recv(min(count - len(data), 65536))
            if not piece:
                raise CallError("the connection was closed before the answer", "UNAVAILABLE")
            data += piece
        return data


def _numbers(layout: str, payload: bytes) -> tuple[int, ...]:
    """Read the numbers at the beginning of a payload."""
    size = struct.calcsize(layout)
    if len(payload) < size:
        raise _Malformed("a frame ends too early")
    return struct.unpack(layout, payload[:size])


def _unpadded(flags: int, payload: bytes) -> bytes:
    if not flags & PADDED:
        return payload
    if not payload or payload[0] >= len(payload):
        raise _Malformed("a frame has more padding than content")
    return payload[1 : len(payload) - payload[0]]
