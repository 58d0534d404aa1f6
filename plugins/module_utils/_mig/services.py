# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The services that are stopped while GPUs change. A file names them until they are started again, also by the next run after a killed one."""

from __future__ import annotations

import contextlib
import json
from typing import Callable, Iterator, Sequence, Tuple

from .._config import files

Run = Callable[[Sequence[str]], Tuple[int, str, str]]


class ServiceError(Exception):
    """A service cannot be stopped or started; the text is a clause."""


class Services:
    """The active ones of ``names``. Without systemctl there are none."""

    def __init__(self, names: Sequence[str], record: str, systemctl: str | None, run: Run) -> None:
        self._names = names
        self._record = record
        self._systemctl = systemctl
        self._run = run

    def read_stopped(self) -> list[str]:
        """The services that an interrupted run has stopped. Raises FilesError."""
        data = files.read_bytes(self._record)
        try:
            return [str(name) for name in json.loads(data)] if data else []
        except ValueError:
            return []

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop the active services, and start them at the end, also after an error. Raises ServiceError or FilesError."""
        former = self.read_stopped()
        names = [name for name in self._names if name not in former and self._is_active(name)]
        if names or former:
            content = json.dumps([*former, *names]).encode("utf-8")
            files.write_atomic(self._record, content, mode=0o600, dir_mode=0o700)
        try:
            for name in names:
                self._call("stop", name)
            yield
        except Exception:
            # The next run starts what does not start now.
            with contextlib.suppress(ServiceError):
                self.start()
            raise
        self.start()

    def start(self) -> None:
        """Start what was stopped. Raises ServiceError or FilesError."""
        for name in self.read_stopped():
            self._call("start", name)
        files.remove_file(self._record)

    def _is_active(self, name: str) -> bool:
        return bool(self._systemctl) and self._run([str(self._systemctl), "is-active", "--quiet", "--", name])[0] == 0

    def _call(self, verb: str, name: str) -> None:
        status, output, errors = self._run([str(self._systemctl), verb, "--", name])
        if status:
            words = " ".join((errors or output).split()[:30])
            raise ServiceError(
                f"systemctl cannot {verb} {name} ({words or f'exit status {status}'}); correct that and run again"
            )
