# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the linter reads and what it finds, as data."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any, Iterator, Mapping

Object = Mapping[str, Any]
#: From the gravest.
SEVERITIES = ("error", "warning", "note")


@dataclass(frozen=True)
class Document:
    """One Kubernetes object. ``lines`` are line numbers, from 1, by JSON pointer; ``source`` is a path, - for standard input, or a server."""

    source: str
    object: Object
    lines: Mapping[str, int] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """Return the kind, such as Deployment."""
        return str(self.object.get("kind") or "")

    def find_line(self, pointer: str) -> int:
        """Return the line of the pointer, or of the nearest mapping or list around it; 1 if no line is known."""
        while pointer and pointer not in self.lines:
            pointer = pointer.rpartition("/")[0]
        return self.lines.get(pointer, 1)


@dataclass(frozen=True)
class Workload:
    """A pod, or the template of pods somewhere in an object; ``pointer`` is the JSON pointer of its spec."""

    document: Document
    metadata: Object
    spec: Object
    pointer: str

    @property
    def pod(self) -> dict[str, Any]:
        """Return the pod as an object, without a status: it counts as not finished."""
        containers = self.spec.get("containers") or [self.spec.get("container")]
        return {"metadata": self.metadata, "spec": {**self.spec, "containers": containers}}

    def list_containers(self) -> Iterator[tuple[str, Object]]:
        """Yield the JSON pointer of each container and the container, of all kinds of containers."""
        if isinstance(self.spec.get("container"), Mapping):
            yield f"{self.pointer}/container", self.spec["container"]
        for kind in ("initContainers", "containers", "ephemeralContainers"):
            for number, container in enumerate(list_of(self.spec, kind)):
                if isinstance(container, Mapping):
                    yield f"{self.pointer}/{kind}/{number}", container


@dataclass(frozen=True)
class Problem:
    """What a rule says of a place; the severity is that of the rule if it is empty."""

    pointer: str
    message: str
    fix: str
    severity: str = ""
    container: str = ""


@dataclass(frozen=True)
class Finding:
    """A problem with its rule and its place."""

    rule: str
    severity: str
    source: str
    line: int
    kind: str
    namespace: str
    name: str
    container: str
    pointer: str
    message: str
    fix: str

    @property
    def fingerprint(self) -> str:
        """Return a digest that stays the same when lines move."""
        parts = (self.rule, self.kind, self.namespace, self.name, self.container, self.pointer)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {**self.__dict__, "fingerprint": self.fingerprint}


@dataclass(frozen=True)
class Context:
    """What is known of a cluster; None where it is not known, so that rules that need it are skipped.

    ``claims`` are ResourceClaims and their templates, those of the input included. ``default_runtime`` is the runtime of pods without a RuntimeClass,
    ``device_ownership`` whether containerd gives devices to the user of a container (``device_ownership_from_security_context``).
    ``admission_plugins`` are plugins of the API server that are enabled besides its defaults; those of a known provider need not be named.
    """

    nodes: list[Object] | None = None
    pods: list[Object] | None = None
    runtime_classes: list[Object] | None = None
    device_classes: list[Object] | None = None
    claims: list[Object] | None = None
    default_runtime: str = ""
    device_ownership: bool | None = None
    admission_plugins: tuple[str, ...] = ()


def list_of(mapping: Any, key: str) -> list[Any]:
    """Return the list at a key; empty if there is something else."""
    value = mapping.get(key) if isinstance(mapping, Mapping) else None
    return value if isinstance(value, list) else []


def map_of(mapping: Any, *keys: str) -> Mapping[str, Any]:
    """Return the mapping at a path of keys; empty if there is something else."""
    for key in keys:
        mapping = mapping.get(key) if isinstance(mapping, Mapping) else None
    return mapping if isinstance(mapping, Mapping) else {}
