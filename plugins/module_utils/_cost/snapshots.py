# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Snapshots of the API in a file of the controller, a line each, and the hours between them.

The file has mode 0600, since it names namespaces and nodes. It is bounded: the oldest snapshots are removed. A state lasts from the middle of the time since
the snapshot before to the middle of the time until the next one. Longer than the maximal gap apart, nothing is known of the time between two snapshots.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import stat
import tempfile
from typing import Any, Iterable, Iterator, NamedTuple, Sequence

from .errors import CostError
from .integrate import Held, Segment, State
from .times import format_time, parse_time

SCHEMA = "gpu.kubernetes/cost-snapshot/v1"
MODE = 0o600
MAX_BYTES = 64 * 1024 * 1024
# Each snapshot begins so, so that a file of others is recognized by its first bytes.
_HEAD = json.dumps({"schema": SCHEMA})[:-1].encode()


class Snapshot(NamedTuple):
    """A state of the cluster of a server, at a second."""

    time: int
    server: str
    state: State


def encode_snapshot(snapshot: Snapshot) -> bytes:
    """Return the snapshot as a line."""
    content = {
        "schema": SCHEMA,
        "time": format_time(snapshot.time),
        "server": snapshot.server,
        "gpus": snapshot.state.gpus,
        "held": snapshot.state.held,
    }
    return json.dumps(content, separators=(", ", ": ")).encode() + b"\n"


def decode_snapshot(line: bytes) -> Snapshot | None:
    """Return the snapshot of a line; None for anything else, such as a line that a killed run has left."""
    try:
        content = json.loads(line)
        if content["schema"] != SCHEMA:
            return None
        held = [_read_held(*row) for row in content["held"]]
        gpus = {
            str(node): {str(product): _read_number(count) for product, count in found.items()}
            for node, found in content["gpus"].items()
        }
        return Snapshot(parse_time(content["time"], "time"), str(content["server"]), State(gpus, held))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError, CostError):
        return None


def _read_held(namespace: Any, node: Any, resource: Any, unit: Any, units: Any, gpus: Any) -> Held:
    return Held(str(namespace), str(node), str(resource), str(unit), _read_number(units), _read_number(gpus))


def _read_number(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number) or number < 0:
        raise ValueError(value)
    return number


def list_segments(snapshots: Iterable[Snapshot], max_gap: float) -> Iterator[Segment]:
    """Yield the segments between the snapshots, which need not be sorted. A gap of more than *max_gap* seconds is left out."""
    before: Snapshot | None = None
    for after in sorted(snapshots, key=lambda each: each.time):
        if before is not None and after.time - before.time <= max_gap:
            middle = (before.time + after.time) / 2
            yield Segment(before.time, middle, before.state)
            yield Segment(middle, after.time, after.state)
        before = after


def read_snapshots(lines: Sequence[bytes], start: float, end: float) -> tuple[list[Snapshot], int]:
    """Return the snapshots that the hours from *start* to *end* need, and the number of lines that are none."""
    decoded = [decode_snapshot(line) for line in lines]
    found = sorted((each for each in decoded if each is not None), key=lambda each: each.time)
    # One before and one after the window belong to it.
    first = max((number for number, each in enumerate(found) if each.time <= start), default=0)
    last = min((number for number, each in enumerate(found) if each.time >= end), default=len(found))
    return found[first : last + 1], decoded.count(None)


# -- the file


def store_snapshot(path: str, snapshot: Snapshot, limit: int, check_mode: bool = False) -> list[bytes]:
    """Append the snapshot to the file, and return its lines, of which at most *limit* are kept. In check mode nothing is written. Raises CostError."""
    line = encode_snapshot(snapshot)
    try:
        if check_mode:
            lines, _content = _add_line(path, _read_existing(path), snapshot, line, limit)
            return lines
        with _lock(path) as file:
            existing = _read_all(file)
            lines, content = _add_line(path, existing, snapshot, line, limit)
            if content.startswith(existing):
                os.fchmod(file, MODE)
                _write(file, content[len(existing) :])
            else:
                _replace(path, content)
            return lines
    except OSError as error:
        raise _explain(path, error) from error


def remove_snapshots(path: str, check_mode: bool = False) -> bool:
    """Remove the file, and return whether it existed. Raises CostError for a file of others."""
    try:
        existing = _read_existing(path)
        if existing is None:
            return False
        _check_owner(path, existing)
        if not check_mode:
            os.unlink(path)
        return True
    except OSError as error:
        raise _explain(path, error) from error


def _explain(path: str, error: OSError) -> CostError:
    return CostError(
        f"The snapshots in {path} on the controller cannot be used ({error.strerror or error}); correct that, or set gpu_cost_snapshot_path."
    )


def _add_line(
    path: str, existing: bytes | None, snapshot: Snapshot, line: bytes, limit: int
) -> tuple[list[bytes], bytes]:
    """Return the lines with the new one, and the content of the file."""
    content = existing or b""
    _check_owner(path, content)
    lines = content.splitlines(keepends=True)
    last = next(filter(None, map(decode_snapshot, reversed(lines))), None)
    if last is not None and last.server != snapshot.server:
        raise CostError(
            f"{path} has snapshots of the cluster at {last.server}, and this run is of {snapshot.server}; set gpu_cost_snapshot_path to a file of its own."
        )
    if lines and not lines[-1].endswith(b"\n"):
        lines[-1] += b"\n"
    lines.append(line)
    size = sum(map(len, lines))
    first = max(0, len(lines) - limit)
    size -= sum(map(len, lines[:first]))
    while size > MAX_BYTES and first < len(lines) - 1:
        size -= len(lines[first])
        first += 1
    return lines[first:], b"".join(lines[first:])


def _check_owner(path: str, content: bytes) -> None:
    if content and not content.startswith(_HEAD):
        raise CostError(f"{path} is not a file of snapshots; set gpu_cost_snapshot_path to another file.")


def _read_existing(path: str) -> bytes | None:
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        return _read_all(file)
    finally:
        os.close(file)


def _read_all(file: int) -> bytes:
    if not stat.S_ISREG(os.fstat(file).st_mode):
        raise OSError(0, "not a regular file")
    with os.fdopen(os.dup(file), "rb") as opened:
        return opened.read()


@contextlib.contextmanager
def _lock(path: str) -> Iterator[int]:
    """Open the file, or create it, and lock it. Another run may have replaced it while this one waited."""
    while True:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        file = os.open(path, flags, MODE)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            if _is_at(path, file):
                yield file
                return
        finally:
            os.close(file)


def _is_at(path: str, file: int) -> bool:
    try:
        return os.path.samestat(os.lstat(path), os.fstat(file))
    except FileNotFoundError:
        return False


def _write(file: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(file, view) :]
    os.fsync(file)


def _replace(path: str, content: bytes) -> None:
    """Replace the file whole, or not at all."""
    file, scratch = tempfile.mkstemp(dir=os.path.dirname(path) or ".", prefix=".gpu-cost-")
    try:
        try:
            _write(file, content)
        finally:
            os.close(file)
        os.rename(scratch, path)
    except OSError:
        os.unlink(scratch)
        raise
