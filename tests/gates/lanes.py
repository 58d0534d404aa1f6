# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""All gates in two lanes side by side: ``python -m gates.lanes``.

The lane `cluster` waits for kubelets and pods most of the time, which leaves the machine to the lane `code`. The noxfile says by tags
which gate runs in which. What a lane prints and what nox reports of it goes to build/reports/LANE.log and LANE.nox.json; the lanes are
shown one after the other, the first of them as it comes.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

from ._common import REPORTS, ROOT

LANES = ("code", "cluster")
NOX = (sys.executable, "-m", "nox", "--no-error-on-missing-interpreters")


def homeless(sessions: list[dict[str, object]]) -> list[str]:
    """Names of the sessions, as ``nox --list --json`` tells them, that are not in exactly one lane."""
    return [str(each["name"]) for each in sessions if sum(lane in list(each["tags"] or []) for lane in LANES) != 1]  # type: ignore[call-overload]


def start(lane: str, reports: Path) -> subprocess.Popen[bytes]:
    """Begin one lane."""
    command = [*NOX, "--tags", lane, "--report", str(reports / f"{lane}.nox.json")]
    with open(reports / f"{lane}.log", "wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=ROOT)


def show(lane: str, process: subprocess.Popen[bytes], reports: Path) -> int:
    """Print what a lane has said so far and goes on to say; its exit status."""
    with open(reports / f"{lane}.log", encoding="utf-8", errors="replace") as log:
        ended = False
        while not ended:
            ended = process.poll() is not None  # asked first: what comes after it is read below
            print(log.read(), end="", flush=True)
            time.sleep(0 if ended else 0.2)
    return process.returncode


def main(reports: Path = REPORTS) -> int:
    """Run both lanes to their ends; 0 only if both succeeded."""
    listing = subprocess.run([*NOX, "--list", "--json"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    if lost := homeless(json.loads(listing)):
        print(f"noxfile: not in exactly one of the lanes {', '.join(LANES)}: {', '.join(lost)}", file=sys.stderr)
        return 1
    begin = time.monotonic()
    running = {lane: start(lane, reports) for lane in LANES}
    print(f"Two lanes side by side: {' and '.join(LANES)}; what they say is in {reports}/LANE.log", flush=True)
    status = 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        for lane, process in running.items():
            print(f"\nLane {lane}", flush=True)
            status |= show(lane, process, reports)
    finally:
        for process in running.values():
            process.terminate()  # one that has ended does not mind
            process.wait()
    print(f"\nBoth lanes took {time.monotonic() - begin:.0f} s")
    return int(status != 0)


if __name__ == "__main__":
    sys.exit(main())
