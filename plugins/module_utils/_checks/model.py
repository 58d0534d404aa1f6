# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a check is, and how checks read an observation.

An observation is a dictionary of parts, which are what gather.py and cluster.py return. A part that is missing or None was not observed.
Nodes write observations, so that a check relies on no type in them: judge.py takes any error of a check as an observation that cannot be read.
"""

from __future__ import annotations

from typing import Any, Callable, Iterator, Mapping, NamedTuple, Tuple

Observation = Mapping[str, Any]
# (verdict, what was found)
Finding = Tuple[str, str]
Observe = Callable[[Observation], Iterator[Finding]]

LAYERS: tuple[str, ...] = (
    "hardware",
    "kernel",
    "driver",
    "library",
    "toolkit",
    "runtime",
    "kubelet",
    "plugin",
    "scheduler",
    "pod",
    "monitoring",
)
PASS, INFO, WARN, FAIL, UNKNOWN = "pass", "info", "warn", "fail", "unknown"
#: From harmless to bad.
VERDICTS: tuple[str, ...] = (PASS, INFO, UNKNOWN, WARN, FAIL)
#: Why parts are missing that no host reports.
MISSING: Mapping[str, str] = {
    "cluster": "the API server was not read",
    "kubernetes": "the API server was not read",
    "smoke_test": "no smoke test ran in this run",
}
#: A check concerns each host, or the cluster as a whole.
HOST, CLUSTER = "host", "cluster"


class UnobservedError(Exception):
    """What a check reads was not observed; the message is a clause with the reason."""


class Check(NamedTuple):
    """One row. ``observe`` yields what it finds, worse than pass; nothing is a pass. It raises UnobservedError.

    ``needs`` are the checks without which the verdict would be a consequence of another fault. ``words`` are messages of programs, in which
    ``…`` stands for any text. ``remedy`` is a clause in the imperative.
    """

    id: str
    layer: str
    title: str
    observe: Observe
    words: tuple[str, ...]
    cause: str
    remedy: str
    needs: tuple[str, ...] = ()
    scope: str = HOST

    @property
    def anchor(self) -> str:
        """The anchor of the check in the guide."""
        return "doctor-" + self.id.replace(".", "-").replace("_", "-")


def read_part(observation: Observation, name: str) -> Any:
    """The part of an observation. Raises UnobservedError with the reason why it is missing."""
    found = observation.get(name)
    if found is None:
        reason = (observation.get("errors") or {}).get(name)
        raise UnobservedError(str(reason or MISSING.get(name, "not observed")))
    return found


def read_gpus(observation: Observation, topic: str) -> list[tuple[str, Any]]:
    """The (name of the GPU, topic) of the GPUs for which the driver reports the topic. Raises UnobservedError if it does so for none."""
    gpus = read_part(observation, "nvml").get("gpus") or []
    found = [(name_gpu(gpu), gpu[topic]) for gpu in gpus if gpu.get(topic) is not None]
    if not found:
        raise UnobservedError("the driver does not report it")
    return found


def name_gpu(gpu: Mapping[str, Any]) -> str:
    """How findings name a GPU: by its index, and its address on the bus."""
    index, address = gpu.get("index"), gpu.get("pci_address") or gpu.get("uuid")
    names = [*([f"GPU {index}"] if index is not None else []), *([str(address)] if address else [])]
    return " at ".join(names) or "a GPU"


RUNTIME_NAME = "nvidia"


def offers_otherwise(observation: Observation) -> bool:
    """Whether the node offers GPUs without NVIDIA's runtime, as nodes of some clouds do with CDI or mounts of their own."""
    handlers = (observation.get("runtime") or {}).get("handlers") or {}
    capacity = (observation.get("kubernetes") or {}).get("capacity") or {}
    return bool(handlers) and RUNTIME_NAME not in handlers and any(capacity.values())


def is_served(observation: Observation) -> bool:
    """Whether the driver serves all GPUs, so that older lines of the kernel log describe a fault that is over."""
    nvml = observation.get("nvml") or {}
    return nvml.get("source") == "nvml" and not nvml.get("error")
