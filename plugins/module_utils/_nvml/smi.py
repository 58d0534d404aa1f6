# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads a node's GPUs from nvidia-smi, for nodes whose NVML library cannot be loaded by Python."""

from __future__ import annotations

import re
import shutil
import subprocess

from .model import Facts, Gpu, find_address

FOLDERS = "/usr/bin:/usr/local/bin:/usr/local/nvidia/bin:/run/nvidia/driver/usr/bin:/home/kubernetes/bin/nvidia/bin:/usr/lib/wsl/lib"
FIELDS: tuple[str, ...] = (
    "index",
    "uuid",
    "name",
    "pci.bus_id",
    "driver_version",
    "memory.total",
    "memory.used",
    "memory.free",
    "mig.mode.current",
    "compute_cap",
    "temperature.gpu",
    "power.draw",
    "utilization.gpu",
    "utilization.memory",
)
MIB = 1024 * 1024
UNKNOWN_FIELD = re.compile(r'Field "([^"]+)" is not a valid field')
NO_HANDLE = re.compile(
    r"Unable to determine the device handle for (?:GPU\d*:?\s*)?([0-9A-Fa-f:.]+?):? .*lost", re.IGNORECASE
)


class SmiError(Exception):
    """nvidia-smi failed; the message is its own first line."""


def find_program(path: str | None) -> str | None:
    """The program at ``path`` if it can be run, else the first on PATH and in the usual folders."""
    if path:
        return shutil.which(path)
    return shutil.which("nvidia-smi") or shutil.which("nvidia-smi", path=FOLDERS)


def read_gpus(program: str) -> Facts:
    """All facts that nvidia-smi has. Raises SmiError. It has no time limit of its own: see isolation."""
    fields = list(FIELDS)
    while True:
        status, output = _run(program, fields)
        unknown = UNKNOWN_FIELD.search(output)
        if unknown is None or unknown.group(1) not in fields:
            return parse_output(fields, status, output)
        fields.remove(unknown.group(1))  # an older driver


def _run(program: str, fields: list[str]) -> tuple[int, str]:
    command = [program, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
    try:
        # module_utils imports no Ansible, so that there is no AnsibleModule.run_command.
        done = subprocess.run(  # pylint: disable=ansible-bad-function
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
    except OSError as error:
        raise SmiError(str(error)) from error
    return done.returncode, done.stdout.decode("utf-8", "replace")


def parse_output(fields: list[str], status: int, output: str) -> Facts:
    """Facts from the program's exit status and output. Raises SmiError when the output holds no GPU and is an error."""
    gpus: list[Gpu] = []
    drivers: list[str] = []
    strange: list[str] = []
    for line in filter(None, map(str.strip, output.splitlines())):
        lost = NO_HANDLE.search(line)
        values = [value.strip() for value in line.split(",")]
        if lost:
            gpus.append(Gpu(pci_address=find_address(lost.group(1)), lost=True))
        elif len(values) == len(fields):
            row = dict(zip(fields, values))
            gpus.append(_build_gpu(row))
            drivers.extend(filter(None, [_get_text(row, "driver_version")]))
        else:
            strange.append(line)
    if not gpus and (status != 0 or strange) and not output.startswith("No devices were found"):
        raise SmiError(strange[0] if strange else f"exit status {status}")
    return Facts(source="nvidia_smi", driver_version=drivers[0] if drivers else None, gpus=tuple(gpus))


def _build_gpu(row: dict[str, str]) -> Gpu:
    mig = (_get_text(row, "mig.mode.current") or "").lower()
    lost = any("gpu is lost" in value.lower() for value in row.values())
    return Gpu(
        index=_get_integer(row, "index"),
        uuid=_get_text(row, "uuid"),
        name=_get_text(row, "name"),
        pci_address=find_address(row.get("pci.bus_id", "")),
        memory_total_bytes=_get_integer(row, "memory.total", MIB),
        memory_used_bytes=_get_integer(row, "memory.used", MIB),
        memory_free_bytes=_get_integer(row, "memory.free", MIB),
        mig_mode=mig if mig in ("enabled", "disabled") else None,
        compute_capability=_get_text(row, "compute_cap"),
        temperature_celsius=_get_integer(row, "temperature.gpu"),
        power_draw_watts=_get_number(row, "power.draw"),
        utilization_gpu_percent=_get_integer(row, "utilization.gpu"),
        utilization_memory_percent=_get_integer(row, "utilization.memory"),
        lost=lost,
    )


def _get_text(row: dict[str, str], field: str) -> str | None:
    """The value; nvidia-smi writes unknown ones as N/A, ERR! or in brackets."""
    value = row.get(field, "")
    return None if value in ("", "N/A", "ERR!") or value.startswith("[") else value


def _get_number(row: dict[str, str], field: str) -> float | None:
    try:
        return float(_get_text(row, field) or "")
    except ValueError:
        return None


def _get_integer(row: dict[str, str], field: str, unit: int = 1) -> int | None:
    value = _get_number(row, field)
    return None if value is None else int(value * unit)
