# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lock file of a host, which names the run that changes it: the same as a Lease, also where there is no API server.

It is below /run, so that a reboot, which ends what a run does on the host, removes it. The clock is the host's.
"""

from __future__ import annotations

import json
import os.path
from datetime import datetime

from .._config import files
from .decide import REFUSE, Held, Request, Verdict, decide, decode_time, encode_time, may_release


def hold_lock(path: str, request: Request, now: datetime, check_mode: bool = False) -> Verdict:
    """Acquire, renew or take over the lock file; check mode only reads. Raises FilesError."""
    if check_mode:
        return decide(read_lock(path), request, now)
    with files.lock(path, (os.path.dirname(path),)):
        verdict = decide(read_lock(path), request, now)
        if verdict.action != REFUSE and verdict.after is not None:
            files.write_atomic(path, _encode(verdict.after), mode=0o600)
        return verdict


def release_lock(path: str, holder: str) -> bool:
    """Remove the lock file if the run holds it; return whether it did. Raises FilesError."""
    if not os.path.exists(path):
        return False
    with files.lock(path, (os.path.dirname(path),)):
        own = may_release(read_lock(path), holder)
        if own:
            files.remove_file(path)
        return own


def read_lock(path: str) -> Held | None:
    """Return the content of the lock file; None if there is none, or if it is damaged. Raises FilesError."""
    data = files.read_bytes(path)
    try:
        content = json.loads((data or b"{}").decode("utf-8"))
        return Held(
            str(content["holder"]),
            decode_time(content["since"]),
            decode_time(content["renewed"]),
            int(content["seconds"]),
        )
    except (ValueError, LookupError, TypeError, RecursionError):
        return None


def _encode(held: Held) -> bytes:
    content = {
        "holder": held.holder,
        "since": encode_time(held.since),
        "renewed": encode_time(held.renewed),
        "seconds": held.seconds,
    }
    return json.dumps(content, sort_keys=True).encode("utf-8") + b"\n"
