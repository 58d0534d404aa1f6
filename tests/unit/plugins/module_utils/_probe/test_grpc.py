# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The call against a server on a real Unix socket that says what the test wants."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from lab import wait

from ansible_collections.gpu.kubernetes.plugins.module_utils._probe import grpc, hpack

METHOD = "/runtime.v1.RuntimeService/Version"
HEADERS = grpc.frame(grpc.HEADERS, grpc.END_HEADERS, 1, hpack.encode([(":status", "200")]))


def message(payload: bytes) -> bytes:
    return b"\x00" + struct.pack(">I", len(payload)) + payload


def trailers(status: int, words: str = "") -> bytes:
    block = hpack.encode([("grpc-status", str(status)), ("grpc-message", words)])
    return grpc.frame(grpc.HEADERS, grpc.END_HEADERS | grpc.END_STREAM, 1, block)


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[[bytes], str]]:
    """Give a function that starts a server with one answer and returns its socket."""
    path = str(tmp_path / "s")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    heard: list[threading.Thread] = []

    def answer(content: bytes) -> None:
        connection, _address = listener.accept()
        with connection, contextlib.suppress(ConnectionError):  # the client may hang up before the end
            connection.recv(65536)
            connection.sendall(content)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass

    def start(content: bytes) -> str:
        heard.append(threading.Thread(target=answer, args=(content,), daemon=True))
        heard[-1].start()
        return path

    yield start
    listener.close()
    for thread in heard:
        thread.join(5)


def test_an_answer_in_pieces(serve: Callable[[bytes], str]) -> None:
    payload = bytes(range(256)) * 200
    whole = message(payload)
    content = grpc.frame(grpc.SETTINGS, 0, 0) + grpc.frame(grpc.PING, 0, 0, b"12345678") + HEADERS
    content += grpc.frame(200, 0, 0, b"a frame of a type to come")
    content += b"".join(grpc.frame(grpc.DATA, 0, 1, whole[at : at + 16384]) for at in range(0, len(whole), 16384))
    assert grpc.call(serve(content + trailers(0)), METHOD, b"", wait.LIMIT) == payload


def test_padding_priority_and_continuation(serve: Callable[[bytes], str]) -> None:
    block = hpack.encode([("grpc-status", "0")])
    padded = grpc.frame(grpc.DATA, grpc.PADDED, 1, b"\x03" + message(b"yes") + b"\x00" * 3)
    first = grpc.frame(grpc.HEADERS, grpc.END_STREAM | grpc.PRIORITY, 1, b"\x00\x00\x00\x00\x10" + block[:4])
    second = grpc.frame(grpc.CONTINUATION, grpc.END_HEADERS, 1, block[4:])
    assert grpc.call(serve(HEADERS + padded + first + second), METHOD, b"", wait.LIMIT) == b"yes"


@pytest.mark.parametrize(
    ("content", "words", "code"),
    [
        (trailers(12, "unknown service"), "unknown service", "UNIMPLEMENTED"),
        (trailers(14, "not%20yet%3A starting"), "not yet: starting", "UNAVAILABLE"),
        (trailers(99, "odd"), "odd", ""),
        (HEADERS + trailers(0), "empty or compressed", "INTERNAL"),
        (b"", "closed before the answer", "UNAVAILABLE"),
        (grpc.frame(grpc.RST_STREAM, 0, 1, struct.pack(">I", 7)), "HTTP/2 error 7", "UNAVAILABLE"),
        (grpc.frame(grpc.GOAWAY, 0, 0, struct.pack(">II", 0, 11)), "HTTP/2 error 11", "UNAVAILABLE"),
        (grpc.frame(grpc.GOAWAY, 0, 0, struct.pack(">II", 0, 0)), "was closed", "UNAVAILABLE"),
        (HEADERS + grpc.frame(grpc.DATA, grpc.END_STREAM, 1, message(b"")), "no gRPC status but .* 200", ""),
        (trailers(14), "^gRPC status UNAVAILABLE$", "UNAVAILABLE"),
        (trailers(13, "two%0Alines%0D%0A  of words"), "^two lines of words$", "INTERNAL"),
        (HEADERS + grpc.frame(grpc.DATA, 0, 1, message(b"12345")[:-1]) + trailers(0), "is cut off", "INTERNAL"),
    ],
)
def test_refusals(serve: Callable[[bytes], str], content: bytes, words: str, code: str) -> None:
    with pytest.raises(grpc.CallError, match=words) as caught:
        grpc.call(serve(content), METHOD, b"", wait.LIMIT)
    assert caught.value.code == code


def headers_frame(flags: int, payload: bytes) -> bytes:
    return grpc.frame(grpc.HEADERS, grpc.END_HEADERS | flags, 1, payload)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"HTTP/1.1 400 Bad Request\r\n\r\n", id="another-protocol"),
        pytest.param(headers_frame(0, b"\xff"), id="header-cut-off"),
        pytest.param(headers_frame(grpc.PADDED, b""), id="padding-of-nothing"),
        pytest.param(headers_frame(grpc.PADDED, b"\x03\x88\x00"), id="more-padding-than-headers"),
        pytest.param(headers_frame(grpc.PRIORITY, b"\x00\x00"), id="no-priority"),
        pytest.param(HEADERS + grpc.frame(grpc.DATA, grpc.PADDED, 1, b""), id="padding-of-no-data"),
        pytest.param(HEADERS + grpc.frame(grpc.DATA, grpc.PADDED, 1, b"\xff" + b"x" * 200), id="too-much-padding"),
        pytest.param(grpc.frame(grpc.CONTINUATION, grpc.END_HEADERS, 1, b"\x88"), id="continuation-of-nothing"),
        pytest.param(HEADERS + grpc.frame(grpc.CONTINUATION, grpc.END_HEADERS, 1, b"\x88"), id="continued-after-end"),
        pytest.param(
            grpc.frame(grpc.HEADERS, 0, 1) + grpc.frame(grpc.CONTINUATION, 0, 1, b"\x00" * 16384) * 20,
            id="headers-without-end",
        ),
        pytest.param(grpc.frame(grpc.RST_STREAM, 0, 1, b"\x00"), id="short-reset"),
        pytest.param(grpc.frame(grpc.GOAWAY, 0, 0, b"\x00" * 7), id="short-goaway"),
        pytest.param(b"\xff\xff\xff\x00\x00\x00\x00\x00\x01", id="huge-frame"),
        pytest.param(headers_frame(0, b"\x00\x7f" + b"\x80" * 10_000), id="huge-number"),
    ],
)
def test_what_is_no_grpc_is_told_in_one_sentence(serve: Callable[[bytes], str], content: bytes) -> None:
    path = serve(content)
    with pytest.raises(grpc.CallError) as caught:
        grpc.call(path, METHOD, b"", wait.LIMIT)
    assert str(caught.value).startswith(f"{path} answered something that is no gRPC: ")
    assert "\n" not in str(caught.value)
    assert caught.value.code == ""


def test_frames_of_other_streams_are_not_ours(serve: Callable[[bytes], str]) -> None:
    refusal = hpack.encode([("grpc-status", "13")])
    content = HEADERS + grpc.frame(grpc.DATA, 0, 3, b"not for us") + grpc.frame(grpc.RST_STREAM, 0, 3, b"\x00" * 4)
    content += grpc.frame(grpc.HEADERS, grpc.END_HEADERS | grpc.END_STREAM, 3, refusal)
    content += grpc.frame(grpc.DATA, 0, 0, b"nor this") + grpc.frame(grpc.DATA, 0, 1, message(b"yes"))
    assert grpc.call(serve(content + trailers(0)), METHOD, b"", wait.LIMIT) == b"yes"


def test_a_server_that_will_go_away_still_answers(serve: Callable[[bytes], str]) -> None:
    going = grpc.frame(grpc.GOAWAY, 0, 0, struct.pack(">II", 2**31 - 1, 0) + b"words")
    content = going + HEADERS + grpc.frame(grpc.DATA, 0, 1, message(b"yes"))
    assert grpc.call(serve(content + trailers(0)), METHOD, b"", wait.LIMIT) == b"yes"


@pytest.mark.parametrize("kind", [grpc.PING, grpc.SETTINGS, grpc.DATA])
def test_a_server_that_never_comes_to_the_point(serve: Callable[[bytes], str], kind: int) -> None:
    """Neither its frames nor our replies that it does not read make the call last longer than it may."""
    flood = grpc.frame(kind, 0, 1 if kind == grpc.DATA else 0, b"" if kind != grpc.PING else b"12345678") * 500_000
    with pytest.raises(grpc.CallError, match=r"within 0\.3 s"):
        grpc.call(serve(flood), METHOD, b"", 0.3)


def test_an_answer_that_is_too_large(serve: Callable[[bytes], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grpc, "_LARGEST_ANSWER", 1000)
    content = HEADERS + grpc.frame(grpc.DATA, 0, 1, message(b"x" * 1000)) + trailers(0)
    with pytest.raises(grpc.CallError, match="too large") as caught:
        grpc.call(serve(content), METHOD, b"", wait.LIMIT)
    assert caught.value.code == "RESOURCE_EXHAUSTED"


def test_nobody_listens(tmp_path: Path) -> None:
    with pytest.raises(grpc.CallError, match="No such file or directory"):
        grpc.call(str(tmp_path / "none"), METHOD, b"", wait.LIMIT)


def test_a_server_that_keeps_silent(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        with pytest.raises(grpc.CallError, match=r"within 0\.2 s"):
            grpc.call(path, METHOD, b"", 0.2)
