# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run the public toml-test suite against our reader and writer, and print how many of its cases pass.

    python tests/toml_suite/run.py [--cache FOLDER]

The suite is a Go module; its command is built once into the cache folder. Nothing of it is kept in this repository. It exits with
1 where a case fails and with 2 where the suite itself cannot be had or says nothing.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.append(str(HERE.parent))

from lab.shell import DOWNLOAD_TRIES, LabError  # noqa: E402
from lab.shell import run as shell  # noqa: E402
from lab.wait import until  # noqa: E402

MODULE = "github.com/toml-lang/toml-test/v2/cmd/toml-test"
RELEASE = "v2.2.0"
VERSIONS = ("1.0", "1.1")
KINDS = ("valid", "encoder", "invalid")
_COUNT = re.compile(r"^\s*(valid|encoder|invalid) tests:\s*([0-9]+) passed,\s*([0-9]+) failed", re.MULTILINE)


class SuiteError(Exception):
    """Why there is nothing to report."""


def suite_command(cache: Path) -> Path:
    """The suite's command, built if it is not there yet. Raises SuiteError."""
    command = cache / RELEASE / "toml-test"
    if command.exists():
        return command
    go = shutil.which("go")
    if go is None:
        raise SuiteError("the toml-test suite is a Go program and there is no go command; install Go")
    try:
        shell(
            [go, "install", f"{MODULE}@{RELEASE}"],
            env={**os.environ, "GOBIN": str(command.parent)},
            retries=DOWNLOAD_TRIES,
        )
    except LabError as error:
        raise SuiteError(f"the toml-test suite does not build: {error}") from error
    return command


@contextmanager
def codec() -> Iterator[str]:
    """Our reader and writer, ready for questions; the command line that asks them."""
    with tempfile.TemporaryDirectory() as scratch:
        socket = Path(scratch, "socket")
        env = {**os.environ, "PYTHONPATH": str(ROOT / ".ansible" / "collections")}
        with subprocess.Popen([sys.executable, HERE / "codec.py", socket], env=env) as server:
            try:
                until(lambda: socket.exists() or server.poll() is not None, pause=0.02)
                if server.poll() is not None:
                    raise SuiteError("our reader and writer did not start")
                yield f"{sys.executable} -I -S {HERE / 'client.py'} {socket}"
            finally:
                server.terminate()


def run_suite(command: Path, version: str, asking: str) -> tuple[dict[str, tuple[int, int]], str]:
    """Passed and failed cases of each kind, and what the suite printed. Raises SuiteError."""
    done = subprocess.run(
        [
            str(command),
            "test",
            f"-toml={version}",
            "-color=never",
            "-timeout=300s",  # of one case; its own, a second, is short on a busy machine
            f"-decoder={asking} decode {version}",
            f"-encoder={asking} encode",
        ],
        check=False,
        capture_output=True,
        text=True,
        errors="backslashreplace",  # what it prints of a failed case need not be UTF-8
    )
    printed = done.stdout + done.stderr
    counts = {kind: (int(passed), int(failed)) for kind, passed, failed in _COUNT.findall(printed)}
    if set(counts) != set(KINDS) or not all(sum(count) for count in counts.values()):
        raise SuiteError(f"the toml-test suite ran no cases: {printed.strip()[-2000:]}")
    return counts, printed


def report(command: Path) -> int:
    """Run everything, print one line for each version; how many cases failed. Raises SuiteError."""
    failures = 0
    with codec() as asking:
        for version in VERSIONS:
            counts, printed = run_suite(command, version, asking)
            numbers = ", ".join(f"{kind} {counts[kind][0]} of {sum(counts[kind])}" for kind in KINDS)
            print(f"TOML {version}: {numbers} passed (toml-test {RELEASE})")
            failed = sum(count[1] for count in counts.values())
            failures += failed
            if failed:
                print(printed)
    return failures


def main() -> int:
    """Run everything and print one line for each version."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpu-kubernetes" / "toml-test"
    parser.add_argument("--cache", type=Path, default=default, help="where the suite's command is kept")
    cache = parser.parse_args().cache.resolve()
    try:
        failures = report(suite_command(cache))
    except SuiteError as problem:
        print(f"{problem}.", file=sys.stderr)
        return 2
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
