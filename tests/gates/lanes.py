# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""All gates, three at a time: ``python -m gates.lanes``.

A gate with machines waits for kubelets and pods much of the time, which leaves the processors to others. The longest begins (the noxfile tags
it `first`) and has the processors whenever it can use them: the end waits for it, and it for what is in time. The others follow in the
order of the noxfile as soon as a lane is free. What a gate prints and what nox reports of it goes to build/reports/GATE.log and
GATE.nox.json; it is shown when the gate ends. gates.txt names all of them.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ._common import REPORTS, ROOT

WIDTH = 3
FIRST = "first"
GATES = "gates.txt"
NOX = (sys.executable, "-m", "nox", "--no-error-on-missing-interpreters")
BEHIND = ("nice", "-n", "5")  # each process gets a third of what one of the first gate does


def ordered(sessions: list[dict[str, Any]]) -> dict[str, bool]:
    """Names of the sessions, as ``nox --list --json`` tells them, in the order in which they begin; and whether they are tagged `first`."""
    found = {each["name"]: FIRST in (each["tags"] or []) for each in sessions}
    return dict(sorted(found.items(), key=lambda each: not each[1]))


class Lanes:
    """The gates that run now."""

    def __init__(self, reports: Path) -> None:
        self.reports = reports
        self.printing, self.starting = threading.Lock(), threading.Lock()
        self.running: list[subprocess.Popen[bytes]] = []
        self.ended = False

    def run(self, gate: str, first: bool) -> int:
        """Run one gate and show what it said; its exit status."""
        nox = [*NOX, "--session", gate, "--report", str(self.reports / f"{gate}.nox.json")]
        command = nox if first else [*BEHIND, *nox]
        with self.starting:
            if self.ended:
                return 1
            with open(self.reports / f"{gate}.log", "wb") as log:
                process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=ROOT)
            self.running.append(process)
        self.tell(f"{gate} has begun; what it says is in {self.reports / gate}.log")
        status = process.wait()
        self.tell((self.reports / f"{gate}.log").read_text(encoding="utf-8", errors="replace"))
        return status

    def tell(self, text: str) -> None:
        """Print it in one piece."""
        with self.printing:
            print(text, flush=True)

    def end(self) -> None:
        """Begin no further gate, and end those that run."""
        with self.starting:
            self.ended = True
            for process in self.running:
                process.terminate()  # one that has ended does not mind


def main(reports: Path = REPORTS) -> int:
    """Run all gates to their ends; 0 only if all succeeded."""
    listing = subprocess.run([*NOX, "--list", "--json"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    gates = ordered(json.loads(listing))
    (reports / GATES).write_text("".join(f"{gate}\n" for gate in gates), encoding="utf-8")
    begin = time.monotonic()
    lanes = Lanes(reports)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with ThreadPoolExecutor(WIDTH) as pool:
        try:
            status = [future.result() for future in [pool.submit(lanes.run, *gate) for gate in gates.items()]]
        finally:
            lanes.end()
    print(f"\nAll gates took {time.monotonic() - begin:.0f} s")
    return int(any(status))


if __name__ == "__main__":
    sys.exit(main())
