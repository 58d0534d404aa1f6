# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a merge into containerd's configuration keeps and costs, beside ``nvidia-ctk runtime configure`` on the same files.

    make bench

Both get a fresh copy of each sample of the unit tests, and are run twice. Told are the comments and settings of the file that are still
there (nvidia-ctk writes a drop-in too, which counts), whether the second run wrote a file again, and milliseconds: of ours in this
process, with and without writing (fsync is most of that), of nvidia-ctk as a process, beside one that does nothing.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from lab import binaries
from lab.settings import from_environment
from rich.console import Console
from rich.table import Table

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.apply import Host, ensure_present
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.tree import leaves, merge
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.containerd.daemon import Containerd
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.containerd.plan import Request
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.containerd.schema import parse_release
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes import samples

ROUNDS = 15


@dataclass
class Score:
    """One program on one file: comments and settings kept out of how many, files written by a second run, milliseconds."""

    comments: tuple[int, int]
    settings: tuple[int, int]
    rewritten: int
    trouble: str = ""
    milliseconds: dict[str, float] = field(default_factory=dict)


def ours(config: Path, release: str, *, check_mode: bool = False) -> str:
    """Merge as the module does, without a containerd to ask; returns what went wrong."""
    host = Host(state_dir=str(config.parent / "state"), lock_dirs=(str(config.parent / "lock"),), check_mode=check_mode)
    ensure_present(Containerd(Request(path=str(config), release=parse_release(release))), host)
    return ""


def theirs(program: Path, config: Path) -> str:
    """Let nvidia-ctk configure containerd; returns what went wrong."""
    drop_in = config.parent / "conf.d" / "99-nvidia.toml"
    command = [
        program,
        "runtime",
        "configure",
        "--runtime=containerd",
        f"--config={config}",
        f"--drop-in-config={drop_in}",
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return "" if done.returncode == 0 else f"exit status {done.returncode}: {done.stderr.strip().splitlines()[-1]}"


def comments(texts: Iterable[str]) -> list[str]:
    """The comment lines of files."""
    return [line.strip() for text in texts for line in text.splitlines() if line.strip().startswith("#")]


def kept(before: Iterable[Any], after: Iterable[Any]) -> tuple[int, int]:
    """How many of the things before are there after, each as often as it was, and how many there were; 1 is not true."""
    first, left = Counter(map(repr, before)), Counter(map(repr, after))
    return (first & left).total(), first.total()


def settings(config: Path) -> dict[tuple[str, ...], Any]:
    """What the file means with the drop-ins beside it, leaf by leaf; left out is what has to change: imports, and CRI switched off."""
    whole: dict[str, Any] = {}
    for path in (config, *sorted(config.parent.glob("conf.d/*.toml"))):
        merge(whole, tomllib.loads(path.read_text(encoding="utf-8")))
    for name in ("imports", "disabled_plugins"):
        whole.pop(name, None)
    return leaves(whole)


def state(folder: Path) -> dict[Path, tuple[int, int]]:
    """The configuration files below a folder, with what changes when they are written."""
    return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in folder.rglob("*.toml")}


def score(folder: Path, text: str, act: Callable[[Path], str]) -> Score:
    """Let a program work twice on a fresh copy of a file."""
    config = folder / "config.toml"
    config.write_text(text, encoding="utf-8")
    before = settings(config)
    trouble = act(config)
    after = settings(config)
    files = [path.read_text(encoding="utf-8") for path in folder.rglob("*.toml")]
    first = state(folder)
    act(config)
    rewritten = sum(found != first.get(path) for path, found in state(folder).items())
    return Score(kept(comments([text]), comments(files)), kept(before.items(), after.items()), rewritten, trouble)


def milliseconds(act: Callable[[Path], object], text: str) -> float:
    """The median time of an act, each time on a fresh copy of a file."""
    times = []
    for _round in range(ROUNDS):
        with tempfile.TemporaryDirectory() as scratch:
            config = Path(scratch, "config.toml")
            config.write_text(text, encoding="utf-8")
            begin = time.perf_counter()
            act(config)
            times.append(1000 * (time.perf_counter() - begin))
    return median(times)


def compare(name: str, program: Path) -> dict[str, Score]:
    """Both programs on one sample."""
    text, release = samples.FILES[name]
    acts: dict[str, Callable[[Path], str]] = {
        "gpu.kubernetes": lambda config: ours(config, release),
        "nvidia-ctk": lambda config: theirs(program, config),
    }
    scores = {}
    for who, act in acts.items():
        with tempfile.TemporaryDirectory() as scratch:
            scores[who] = score(Path(scratch), text, act)
    scores["gpu.kubernetes"].milliseconds = {
        "merge": milliseconds(lambda config: ours(config, release, check_mode=True), text),
        "with writing": milliseconds(acts["gpu.kubernetes"], text),
    }
    scores["nvidia-ctk"].milliseconds = {
        "process": milliseconds(acts["nvidia-ctk"], text),
        "idle process": milliseconds(
            lambda _config: subprocess.run([program, "--version"], check=True, capture_output=True), text
        ),
    }
    return scores


def main() -> None:
    """Compare on every sample, and print."""
    program = binaries.toolkit(from_environment()) / "nvidia-ctk"
    view = Table("file", "lines", "program", "comments kept", "settings kept", "files written again", "ms", "trouble")
    for name, (text, _release) in samples.FILES.items():
        for who, found in compare(name, program).items():
            times = ", ".join(f"{value:.1f} {what}" for what, value in found.milliseconds.items())
            numbers = [f"{some} of {all_}" for some, all_ in (found.comments, found.settings)]
            view.add_row(name, str(len(text.splitlines())), who, *numbers, str(found.rewritten), times, found.trouble)
    Console(width=None if sys.stdout.isatty() else 170).print(view)


if __name__ == "__main__":
    main()
