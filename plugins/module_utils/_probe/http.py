# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One HTTP request over the Unix socket of Docker or CRI-O."""

from __future__ import annotations

import http.client
import socket

from .errors import QueryError

#: The most bytes that are read of an answer; Docker's has some 4 KiB.
LIMIT = 4 * 1024 * 1024


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def get(path: str, target: str, timeout: float) -> bytes:
    """Return the body of the answer to GET *target* on the socket *path*; *timeout* in seconds. Raises QueryError."""
    connection = _Connection(path, timeout)
    try:
        connection.request("GET", target)
        response = connection.getresponse()
        body = response.read(LIMIT)
    except (OSError, http.client.HTTPException) as error:
        message = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise QueryError(f"{path}: {message}") from error
    finally:
        connection.close()
    if response.status != 200:
        raise QueryError(f"{path}: {target} answered {response.status} {response.reason}")
    return body
