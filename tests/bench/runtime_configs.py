# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A merge into containerd's configuration, compared with ``nvidia-ctk runtime configure`` on the same files.

    make bench

Both get a fresh copy of each sample of the unit tests, and are run twice. It prints the comments and settings of the file that are kept
(a drop-in of nvidia-ctk counts, too), whether the second run wrote a file again, and milliseconds: of the module in this process, with
and without writing (mostly fsync), and of nvidia-ctk as a process, with an idle process for comparison.
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
    """One program on one file: comments and settings (kept, all), files written by a second run, milliseconds."""

    comments: tuple[int, int]
    settings: tuple[int, int]
    rewritten: int
    trouble: str = ""
    milliseconds: dict[str, float] = field(default_factory=dict)


def run_module(config: Path, release: str, *, check_mode: bool = False) -> str:
    """Merge as the module does, without a containerd; returns the error, which is empty."""
    host = Host(state_dir=str(config.parent / "state"), lock_dirs=(str(config.parent / "lock"),), check_mode=check_mode)
    ensure_present(Containerd(Request(path=str(config), release=parse_release(release))), host)
    return ""


def run_toolkit(program: Path, config: Path) -> str:
    """Let nvidia-ctk configure containerd; returns the error."""
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


def read_comments(texts: Iterable[str]) -> list[str]:
    """The comment lines of files."""
    return [line.strip() for text in texts for line in text.splitlines() if line.strip().startswith("#")]


def count_kept(before: Iterable[Any], after: Iterable[Any]) -> tuple[int, int]:
    """The number of items of *before* that are in *after*, each as often as it was, and the number of items; 1 is not true."""
    first, left = Counter(map(repr, before)), Counter(map(repr, after))
    return (first & left).total(), first.total()


def read_settings(config: Path) -> dict[tuple[str, ...], Any]:
    """The settings of the file and its drop-ins, leaf by leaf, without those that have to change: imports and disabled plugins."""
    whole: dict[str, Any] = {}
    for path in (config, *sorted(config.parent.glob("conf.d/*.toml"))):
        merge(whole, tomllib.loads(path.read_text(encoding="utf-8")))
    for name in ("imports", "disabled_plugins"):
        whole.pop(name, None)
    return leaves(whole)


def read_state(folder: Path) -> dict[Path, tuple[int, int]]:
    """The configuration files below a folder, with inode and modification time."""
    return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in folder.rglob("*.toml")}


def measure_score(folder: Path, text: str, act: Callable[[Path], str]) -> Score:
    """Run a program twice on a fresh copy of a file."""
    config = folder / "config.toml"
    config.write_text(text, encoding="utf-8")
    before = read_settings(config)
    trouble = act(config)
    after = read_settings(config)
    files = [path.read_text(encoding="utf-8") for path in folder.rglob("*.toml")]
    first = read_state(folder)
    act(config)
    rewritten = sum(found != first.get(path) for path, found in read_state(folder).items())
    return Score(
        count_kept(read_comments([text]), read_comments(files)),
        count_kept(before.items(), after.items()),
        rewritten,
        trouble,
    )


def measure_milliseconds(act: Callable[[Path], object], text: str) -> float:
    """The median time of a function, each time on a fresh copy of a file."""
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
        "gpu.kubernetes": lambda config: run_module(config, release),
        "nvidia-ctk": lambda config: run_toolkit(program, config),
    }
    scores = {}
    for who, act in acts.items():
        with tempfile.TemporaryDirectory() as scratch:
            scores[who] = measure_score(Path(scratch), text, act)
    scores["gpu.kubernetes"].milliseconds = {
        "merge": measure_milliseconds(lambda config: run_module(config, release, check_mode=True), text),
        "with writing": measure_milliseconds(acts["gpu.kubernetes"], text),
    }
    scores["nvidia-ctk"].milliseconds = {
        "process": measure_milliseconds(acts["nvidia-ctk"], text),
        "idle process": measure_milliseconds(
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
