# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Let a daemon's own program check a configuration before it replaces the file."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import typing as t
from dataclasses import dataclass

from .._document import DocumentError
from .errors import ConfigError
from .redact import list_secrets, mask_words

if t.TYPE_CHECKING:
    from .._document import Document, Format
    from .tree import Tree

#: Where distributions and manual installs put daemons, besides PATH.
SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

#: Seconds; a daemon that only reads its configuration takes some 0.05 s.
TIMEOUT = 60

#: How programs in Go log the error with which they end.
_LOGGED = re.compile(r'\blevel=(?:error|fatal) msg=("(?:[^"\\]|\\.)*")')

Run = t.Callable[[t.Sequence[str]], t.Tuple[int, str, str]]


def run(command: t.Sequence[str]) -> tuple[int, str, str]:
    """Run *command*; return its exit status, output and errors. Raises ConfigError if it cannot be run."""
    try:
        # This layer has no AnsibleModule to run a command with, and run_command has no time limit.
        done = subprocess.run(  # pylint: disable=ansible-bad-function
            list(command),
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT,
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise ConfigError(
            f"Cannot run {command[0]}: {exc}; give the path of the right program or correct the installation."
        ) from exc
    return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")


def find_program(given: str | None, name: str) -> str | None:
    """Return the path of the program *name*: the one given, else one in PATH or the usual places, else None."""
    if given:
        return given
    return shutil.which(name) or shutil.which(name, path=SEARCH_PATH)


@dataclass(frozen=True)
class Verdict:
    """What a daemon reports of a configuration: why it refuses it (None: it does not), and what it makes of it, if it prints that."""

    refusal: str | None
    effective: Tree

    @staticmethod
    def parse(refusal: str | None, output: str, syntax: Format) -> Verdict:
        """Return the refusal, or the configuration that the daemon prints as *output*."""
        if refusal is None:
            with contextlib.suppress(DocumentError):
                return Verdict(None, syntax.loads(output))
        return Verdict(refusal, {})


def try_candidate(
    command: t.Callable[[str], list[str]],
    path: str,
    document: Document,
    workdir: str | None,
    execute: Run,
    name: str = "",
    prefix: str = "",
    unsupported: str | None = None,
) -> tuple[str | None, str]:
    """Run *command* on a candidate for *path*; return why the daemon refuses it (None: it does not), and what it prints.

    The candidate lies in a private directory below *workdir*, by *name* or that of *path*, while the daemon reads it.
    *prefix* begins the daemon's errors. A daemon that prints *unsupported* cannot check a file, and refuses nothing.
    """
    folder = tempfile.mkdtemp(prefix="gpu-kubernetes-", dir=workdir)
    try:
        candidate = os.path.join(folder, name or os.path.basename(path))
        os.makedirs(os.path.dirname(candidate), exist_ok=True)
        write_private(candidate, document.to_bytes())
        status, output, errors = execute(command(candidate))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if status == 0 or (unsupported and unsupported in errors):
        return None, output
    words = _find_error(errors, prefix).replace(candidate, path).replace(folder, os.path.dirname(path))
    return mask_words(words, list_secrets(document.tree)) or f"exit status {status}", output


def write_private(path: str, data: bytes) -> None:
    """Make the file *path*, which only its owner may read."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        stream.write(data)


def _find_error(errors: str, prefix: str) -> str:
    """Return the last line that is not a warning, without *prefix*."""
    lines = [line.strip() for line in errors.splitlines() if line.strip() and "level=warning" not in line]
    last = lines[-1] if lines else ""
    last = last[len(prefix) :] if last.startswith(prefix) else last
    logged = _LOGGED.search(last)
    if logged:
        with contextlib.suppress(ValueError):
            last = str(json.loads(logged.group(1)))
    return last.rstrip(".")
