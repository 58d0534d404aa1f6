# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The program that the toml-test suite starts for each case; see codec.py. It imports next to nothing, for there are 1800 of them."""

import socket
import sys

try:
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(sys.argv[1])
        server.sendall(" ".join(sys.argv[2:]).encode("ascii") + b"\n" + sys.stdin.buffer.read())
        server.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: server.recv(65536), b""))
except OSError:
    sys.exit(2)  # 1 would say that the document is not valid
# A server that died has given no answer.
status, output = int(answer[:1] or b"2"), answer[1:]
(sys.stderr if status else sys.stdout).buffer.write(output)
sys.exit(status)
