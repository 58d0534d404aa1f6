# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cost of nvml_facts on a host with eight GPUs, compared with ansible.builtin.ping.

    make bench-facts

Both are tasks of one playbook on this machine, many of each in turn. A callback measures them; the medians are printed with their ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from fakes.nvml.simulated import NvmlBuilder
from rich.console import Console

ROOT = Path(__file__).resolve().parents[2]
PROFILE, GPUS = "a100-40g", 8
CALLBACK = """
import json, time
from ansible.plugins.callback import CallbackBase

DOCUMENTATION = "name: stopwatch\\ntype: aggregate\\nshort_description: x\\ndescription: x\\noptions: {}"

class CallbackModule(CallbackBase):
    CALLBACK_VERSION, CALLBACK_TYPE, CALLBACK_NAME = 2.0, "aggregate", "stopwatch"
    started = 0.0
    def v2_playbook_on_task_start(self, task, is_conditional):
        self.started = time.monotonic()
    def v2_runner_on_ok(self, result):
        with open(PLACE, "a") as file:
            file.write(json.dumps([result.task_name, time.monotonic() - self.started]) + "\\n")
"""


def measure(rounds: int, folder: Path) -> dict[str, list[float]]:
    """Seconds of each task, by its name."""
    nvml_builder = NvmlBuilder(folder)
    facts = {"library": nvml_builder.library(PROFILE), "pci_path": nvml_builder.pci(PROFILE)}
    found = f"ansible_facts['nvml']['gpus'] | length == {GPUS}"
    pair = [
        {"name": "ping", "ansible.builtin.ping": {}},
        {"name": "nvml_facts", "gpu.kubernetes.nvml_facts": facts},
    ]
    tasks = [*pair * (rounds + 1), {"name": "check", "ansible.builtin.assert": {"that": found, "quiet": True}}]
    play = {"hosts": "localhost", "gather_facts": False, "tasks": tasks}
    (folder / "play.json").write_text(json.dumps([play]))
    (folder / "stopwatch.py").write_text(CALLBACK.replace("PLACE", repr(str(folder / "times"))))
    environment = {
        **os.environ,
        "ANSIBLE_CALLBACK_PLUGINS": str(folder),
        "ANSIBLE_CALLBACKS_ENABLED": "stopwatch",
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_LOCALHOST_WARNING": "false",
    }
    program = Path(sys.executable).with_name("ansible-playbook")
    command = [
        str(program),
        "-c",
        "local",
        "-e",
        f"ansible_python_interpreter={sys.executable}",
        str(folder / "play.json"),
    ]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
    times: dict[str, list[float]] = {"ping": [], "nvml_facts": []}
    for name, seconds in map(json.loads, (folder / "times").read_text().splitlines()):
        times.setdefault(name, []).append(seconds)
    # the first run of each fills caches
    return {name: seconds[1:] for name, seconds in times.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench.nvml_facts", description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    with tempfile.TemporaryDirectory() as folder:
        times = measure(parser.parse_args().rounds, Path(folder))
    ping, facts = (statistics.median(times[name]) for name in ("ping", "nvml_facts"))
    Console().print(
        f"ping {ping * 1000:.0f} ms, nvml_facts with {GPUS} GPUs {facts * 1000:.0f} ms: {facts / ping:.2f} times as long"
    )


if __name__ == "__main__":
    main()
