# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads from rocm-smi what the system does not tell of AMD's GPUs."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from typing import Any, NamedTuple, Sequence

from .model import pci_address

FOLDERS = "/opt/rocm/bin"
# Without the place on the bus nobody knows which GPU is which.
QUESTION: tuple[str, ...] = ("--showproductname", "--showmeminfo", "vram", "--showbus", "--json")
_UNTOLD = ("", "n/a", "none", "unknown")


class RocmSmiError(Exception):
    """rocm-smi failed; the message is a clause with its own last line."""


class Card(NamedTuple):
    """What it tells of a GPU; ``None`` where it tells nothing."""

    name: str | None
    memory_total_bytes: int | None


def find() -> str | None:
    """The program on PATH, else in ROCm's own folder."""
    return shutil.which("rocm-smi") or shutil.which("rocm-smi", path=FOLDERS)


def lacks(gpus: Sequence[dict[str, Any]]) -> bool:
    """Whether there is a GPU of AMD, as ``pci.others`` tells them, of which something is not known."""
    return any(gpu["vendor"] == "amd" and None in gpu.values() for gpu in gpus)


def completed(gpus: Sequence[dict[str, Any]], cards: dict[str, Card]) -> list[dict[str, Any]]:
    """The GPUs with what the cards at their addresses add; what was known stays."""

    def known(gpu: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in gpu.items() if value is not None}

    return [{**gpu, **cards.get(gpu["pci_address"], Card(None, None))._asdict(), **known(gpu)} for gpu in gpus]


def read(program: str) -> dict[str, Card]:
    """The cards by address on the PCI bus. Raises RocmSmiError. It has no time limit of its own: see isolation."""
    try:
        # This floor has no AnsibleModule to run a command with.
        done = subprocess.run(  # pylint: disable=ansible-bad-function
            [program, *QUESTION],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "LC_ALL": "C"},
            check=False,
        )
    except OSError as error:
        raise RocmSmiError(str(error)) from error
    return parse(done.returncode, done.stdout.decode("utf-8", "replace"))


def parse(status: int, output: str) -> dict[str, Card]:
    """The cards from the program's exit status and output, one object of JSON after any warnings. Raises RocmSmiError."""
    lines = output.splitlines()
    begins = [number for number, line in enumerate(lines) if line.startswith("{")]
    try:
        told = json.loads("\n".join(lines[begins[0] :]))
    except (IndexError, ValueError):
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        raise RocmSmiError(f"{last or 'it said nothing'} (exit status {status})") from None
    cards = {}
    for values in told.values():
        if isinstance(values, dict):
            # Releases differ in capitals.
            row = {key.lower(): str(value).strip() for key, value in values.items()}
            memory = row.get("vram total memory (b)", "")
            with contextlib.suppress(ValueError):  # one without an address is nobody's
                cards[pci_address(row.get("pci bus", ""))] = Card(
                    _name(row.get("card series", "")), int(memory) if memory.isdigit() else None
                )
    return cards


def _name(value: str) -> str | None:
    """A name, which the number of a model that nobody has named is not."""
    return None if value.lower() in _UNTOLD or value.startswith("0x") else value
