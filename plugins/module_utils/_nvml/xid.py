# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver's error reports, Xids, in the kernel log.

Source: the kernel's ``Documentation/ABI/testing/dev-kmsg`` and NVIDIA's catalogue of Xid errors.
"""

from __future__ import annotations

import os
import re
from typing import Any, Iterator

KMSG = "/dev/kmsg"
RECORD = 8192  # bytes; the kernel hands out one whole record at a time
# 4,1042,8613475110,-;NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', GPU has fallen off the bus.
# The place of a MIG device has more parts: (PCI:0000:3b:00 GPU-I:05 GPU-CI:00).
LINE = re.compile(
    r"^\d+,\d+,(?P<microseconds>\d+)[^;]*;"
    r"NVRM: Xid \((?:PCI:)?(?P<place>[0-9a-fA-F:.]+)(?: [^)]*)?\): (?P<xid>\d+),?\s*(?P<message>.*)$"
)


def read_xids(path: str = KMSG) -> list[dict[str, Any]] | None:
    """Every Xid in the kernel's log, oldest first; ``None`` if the log cannot be read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        return list(parse_xids("".join(_read_records(handle))))
    except OSError:
        return None
    finally:
        os.close(handle)


def _read_records(handle: int) -> Iterator[str]:
    """The records in the log, without waiting for more."""
    while True:
        try:
            record = os.read(handle, RECORD)
        except BrokenPipeError:  # the next record was overwritten
            continue
        except BlockingIOError:
            return
        if not record:
            return
        yield record.decode("utf-8", "replace")


def parse_xids(text: str) -> Iterator[dict[str, Any]]:
    """The Xids among the records of a kernel log."""
    for line in text.splitlines():
        found = LINE.match(line)
        if found:
            yield {
                "pci_address": _format_address(found.group("place")),
                "xid": int(found.group("xid")),
                "message": found.group("message").strip(),
                "uptime_seconds": round(int(found.group("microseconds")) / 1e6, 3),
            }


def _format_address(place: str) -> str:
    """``0000:3b:00`` as Linux writes addresses; the driver omits the function."""
    return place.lower() if "." in place else f"{place.lower()}.0"
