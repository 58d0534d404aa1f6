# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Failures of a client program and of the container runtime."""

from __future__ import annotations

import errno
import os

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._probe import clients
from ansible_collections.gpu.kubernetes.plugins.module_utils._probe.errors import (
    ClientError,
    CriMissingError,
    QueryError,
)
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._probe import samples


@pytest.mark.parametrize(
    ("errors", "kind", "message"),
    [
        (samples.CRI_MISSING, CriMissingError, "unknown service runtime.v1.RuntimeService"),
        (samples.TIMED_OUT, QueryError, "crictl: context deadline exceeded"),
        # as a terminal gets it
        (
            "FATA[0000] getting the runtime version: rpc error: code = Unavailable desc = gone",
            QueryError,
            "crictl: gone",
        ),
        (samples.CTR_NO_SOCKET, QueryError, "cannot access socket"),
        (samples.CTR_TIMED_OUT, QueryError, "failed to dial"),
        ("ctr: x: rpc error: code = Unimplemented desc = unknown service y", CriMissingError, "unknown service y"),
        (samples.BAD_FLAG, ClientError, "crictl failed: flag provided but not defined: -output"),
        ("", ClientError, "crictl failed: exit status 1"),
        ('level=fatal msg="a \\x00 connect"', QueryError, "connect"),
        ("x" * 5000, ClientError, "crictl failed: " + "x" * 500),
    ],
)
def test_read_failure_distinguishes_runtime_and_program(errors: str, kind: type[Exception], message: str) -> None:
    failure = clients.read_failure("crictl", 1, errors)
    assert failure.__class__ is kind
    assert message in str(failure)
    assert len(str(failure)) < 600
    assert "\n" not in str(failure)


@pytest.mark.parametrize(
    ("raised", "kind", "message"),
    [
        (TimeoutError(errno.ETIMEDOUT, "x"), QueryError, "crictl did not end within"),
        (FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)), ClientError, "cannot be run: No such file"),
        (OSError(errno.ENOEXEC, os.strerror(errno.ENOEXEC)), ClientError, "cannot be run: Exec format error"),
    ],
)
def test_read_output_of_broken_program_raises(raised: OSError, kind: type[Exception], message: str) -> None:
    def run(_command: object, _seconds: float) -> tuple[int, str, str]:
        raise raised

    with pytest.raises(kind, match=message):
        clients.read_output(run, ["/usr/bin/crictl", "version"])


def test_read_output_rejects_endless_output() -> None:
    with pytest.raises(ClientError, match="more than"):
        clients.read_output(lambda _command, _seconds: (0, "x" * (clients.MAX_OUTPUT + 1), ""), ["crictl"])


def test_read_output_returns_what_a_program_prints() -> None:
    assert clients.read_output(lambda _command, _seconds: (0, "yes", "a warning"), ["crictl"]) == "yes"
