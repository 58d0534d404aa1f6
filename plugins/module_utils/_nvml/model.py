# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's GPUs as data, from NVML, nvidia-smi or the PCI bus.

Named tuples, because a node compiles the module on every run, which takes longer for data classes than the query of NVML.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Mapping, NamedTuple, Sequence


class MigDevice(NamedTuple):
    """One partition of a GPU; memory in bytes."""

    index: int  # type: ignore[assignment]  # hides tuple.index, which is not used
    uuid: str | None = None
    name: str | None = None
    gpu_instance_id: int | None = None
    compute_instance_id: int | None = None
    memory_total_bytes: int | None = None


class Gpu(NamedTuple):
    """One GPU. ``None`` means that the source does not report it; of a lost GPU little but its address is known."""

    index: int | None = None  # type: ignore[assignment]  # as above
    uuid: str | None = None
    name: str | None = None
    pci_address: str | None = None
    pci_device_id: str | None = None  # four hexadecimal digits in lower case
    pci_class: str | None = None  # 0x030000 with a display output, 0x030200 without
    minor_number: int | None = None
    memory_total_bytes: int | None = None
    memory_used_bytes: int | None = None
    memory_free_bytes: int | None = None
    mig_mode: str | None = None
    mig_mode_pending: str | None = None
    mig_devices: tuple[MigDevice, ...] = ()
    compute_capability: str | None = None
    temperature_celsius: int | None = None
    power_draw_watts: float | None = None
    utilization_gpu_percent: int | None = None
    utilization_memory_percent: int | None = None
    lost: bool = False
    details: Mapping[str, Any] = MappingProxyType({})  # values of requested topics, by name

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        plain = self._asdict()
        plain["mig_devices"] = [device._asdict() for device in self.mig_devices]
        del plain["details"]
        return {**plain, **self.details}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Gpu:
        """The inverse of :meth:`as_dict`."""
        return cls(
            **{
                **{name: value for name, value in plain.items() if name in cls._fields},
                "mig_devices": tuple(MigDevice(**device) for device in plain["mig_devices"]),
                "details": {name: value for name, value in plain.items() if name not in cls._fields},
            }
        )


class Facts(NamedTuple):
    """One node. ``source`` is nvml, nvidia_smi, pci or none; ``error`` is one sentence or ``None``."""

    source: str = "none"
    driver_version: str | None = None
    cuda_driver_version: str | None = None
    nvml_version: str | None = None
    gpus: tuple[Gpu, ...] = ()
    nvswitches: int = 0
    error: str | None = None
    driver: Mapping[str, Any] | None = None  # result of driver.read_driver, if requested
    xid_errors: Sequence[Mapping[str, Any]] | None = None  # result of driver.read_xids, if requested
    machine: str | None = None  # the product name of the machine

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        plain = self._asdict()
        plain["gpus"] = [gpu.as_dict() for gpu in self.gpus]
        return plain

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Facts:
        """The inverse of :meth:`as_dict`."""
        return cls(**{**plain, "gpus": tuple(Gpu.from_dict(gpu) for gpu in plain["gpus"])})


def parse_address(text: str) -> str:
    """A PCI address as Linux writes it: ``00000000:41:00.0`` and ``41:00.0`` become ``0000:41:00.0``.

    Raises ValueError if ``text`` is not an address.
    """
    domain, _colon, rest = text.strip().lower().rpartition(":")
    domain, _colon, bus = domain.rpartition(":")
    slot, _dot, function = rest.partition(".")
    return f"{int(domain or '0', 16):04x}:{int(bus, 16):02x}:{int(slot, 16):02x}.{int(function or '0', 16):x}"


def find_address(text: str) -> str | None:
    """The PCI address in a driver's text; ``None`` if it is not an address."""
    try:
        return parse_address(text)
    except ValueError:
        return None


def get_sort_key(address: str) -> tuple[int, ...]:
    """Sorts addresses as the bus does; VMD domains have five digits and would sort wrongly as text."""
    return tuple(int(part, 16) for part in address.replace(".", ":").split(":"))
