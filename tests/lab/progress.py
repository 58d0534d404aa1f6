# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps with their time: a live line on a terminal, one line each elsewhere."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

from rich.console import Console

console = Console(highlight=False, soft_wrap=True)
_HEARTBEAT_SECONDS = 60


@contextlib.contextmanager
def step(title: str) -> Iterator[None]:
    """Print TITLE while the step runs, and its time in seconds."""
    start = time.monotonic()
    if console.is_terminal:
        with console.status(f"{title} …"):
            yield
    else:
        # a log without a line for minutes looks like a hang
        done = threading.Event()

        def heartbeat() -> None:
            while not done.wait(_HEARTBEAT_SECONDS):
                console.print(f"  … {title} ({time.monotonic() - start:.0f} s so far)")

        threading.Thread(target=heartbeat, daemon=True).start()
        try:
            yield
        finally:
            done.set()
    console.print(f"[green]✓[/] {title} [dim]{time.monotonic() - start:.1f} s[/]")


def note(text: str) -> None:
    """Print one line of information."""
    console.print(f"[dim]·[/] {text}")
