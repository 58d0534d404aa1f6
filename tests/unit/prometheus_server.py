# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real Prometheus on the loopback, with samples that promtool has written. PROMETHEUS has the folders of its programs, one for each version."""

from __future__ import annotations

import os
import socket
import subprocess
import typing as t
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest
from lab import wait

FOLDERS = list(filter(None, os.environ.get("PROMETHEUS", "").split(os.pathsep)))
#: Of a series its name with labels, and of each sample the second and the value.
Samples = t.Mapping[str, t.Sequence[t.Tuple[int, float]]]

needs_prometheus = pytest.mark.skipif(
    not FOLDERS, reason="PROMETHEUS is not set to the folders of prometheus and promtool"
)


def format_samples(samples: Samples) -> str:
    """Return the samples in the format OpenMetrics."""
    lines = []
    names: dict[str, list[str]] = {}
    for series in samples:
        names.setdefault(series.partition("{")[0], []).append(series)
    for name, all_series in names.items():
        lines.append(f"# TYPE {name} gauge")
        lines += [f"{series} {value} {second}" for series in all_series for second, value in samples[series]]
    return "\n".join([*lines, "# EOF"]) + "\n"


@contextmanager
def serve(folder: Path, samples: Samples, programs: str = "") -> t.Iterator[str]:
    """Serve the samples by the first version, or by *programs*; the value is the address.

    A sample is valid for a minute, as that of a series that goes on being scraped.
    """
    programs = programs or FOLDERS[0]
    (folder / "samples.txt").write_text(format_samples(samples))
    (folder / "prometheus.yml").write_text("global: {scrape_interval: 1m}\n")
    blocks = ["tsdb", "create-blocks-from", "openmetrics", str(folder / "samples.txt"), str(folder / "data")]
    subprocess.run([f"{programs}/promtool", *blocks], check=True, stdout=subprocess.DEVNULL)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    options = [
        f"--config.file={folder}/prometheus.yml",
        f"--storage.tsdb.path={folder}/data",
        "--storage.tsdb.retention.time=100y",
        "--query.lookback-delta=59s",
        f"--web.listen-address={address}",
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([f"{programs}/prometheus", *options], stdout=log, stderr=log)
    try:
        wait.until(lambda: process.poll() is not None or _is_ready(f"http://{address}"), pause=0.1)
        assert process.poll() is None, (folder / "log").read_text()
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait()


def _is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/-/ready", timeout=10) as answer:  # noqa: S310 - of the loopback
            return bool(answer.status == 200)
    except OSError:
        return False
