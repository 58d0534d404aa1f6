# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration of NVIDIA's device plugin for one node, and the name by which the plugin finds it.

All nodes have one configuration, except those with the label LABEL: its value is a key of the plugin's ConfigMap. A name follows from the content,
because the plugin does not read a key again whose content has changed.

Source: api/config/v1 and cmd/config-manager of NVIDIA/k8s-device-plugin v0.20.
"""

from __future__ import annotations

import glob
import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Any, Iterable, Mapping

from .catalogue import SLICES, STRATEGIES, Strategy

LABEL = "nvidia.com/device-plugin.config"
#: The labels of the ConfigMap of the role that deploys the plugin.
CONFIG_MAP_LABELS = {"app.kubernetes.io/name": "nvidia-device-plugin", "app.kubernetes.io/managed-by": "gpu.kubernetes"}
#: The key of the configuration of nodes without the label.
DEFAULT = "default"
MIG_STRATEGIES = ("single", "mixed")
#: A GPU is at least shared by two.
FEWEST_REPLICAS = 2

_SECTIONS = tuple(row.sharing_section for row in STRATEGIES.values() if row.sharing_section)
_NAME = re.compile(r"([a-z_]+)(?:-[a-z0-9]+)*-[0-9a-f]{8}")


@dataclass(frozen=True)
class Request:
    """What a host declares: the number of replicas of a GPU (0: as configured), whether the resource is renamed, and how MIG devices are named."""

    replicas: int = 0
    rename: bool = False
    mig_strategy: str = ""


@dataclass(frozen=True)
class NodeConfig:
    """The configuration of a node by its name; without a name, that of all nodes. ``problem`` is a clause if none can be built."""

    name: str = ""
    document: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""


def read_configured(config: Any) -> Strategy:
    """Return the strategy of a configuration of NVIDIA's device plugin."""
    sharing, flags = _section(config, "sharing"), _section(config, "flags")
    rows = [row for row in STRATEGIES.values() if row.sharing_section]
    # The plugin prefers MPS to time slicing.
    for row in reversed(rows):
        if sharing.get(row.sharing_section):
            return row
    mig = (flags.get("migStrategy") or "none") != "none"
    return next(row for row in STRATEGIES.values() if row.by_nvidia and not row.sharing_section and row.mig is mig)


def strategy_of_name(name: str) -> Strategy | None:
    """Return the strategy of a name that ``build_config`` has made; None for other values of the label."""
    match = _NAME.fullmatch(name)
    return STRATEGIES.get(match.group(1)) if match else None


def read_own_config(name: str, text: Any) -> dict[str, Any]:
    """Return the configuration that ``build_config`` has made with this name; empty for any other name or text."""
    try:
        document = json.loads(text) if strategy_of_name(name) else None
    except (TypeError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) and name.endswith(f"-{_digest(document)}") else {}


def build_config(
    base: Any, strategy: Strategy, request: Request, resource: str = "nvidia.com/gpu", named: bool = False
) -> NodeConfig:
    """Return the configuration of a node with *strategy*, made from *base*, the one of all nodes.

    It has no name where *base* is already as requested, unless *named*.
    """
    problem = _find_problem(base, strategy, request)
    if problem or not strategy.by_nvidia:
        return NodeConfig(problem=problem)
    document = dict(base) if isinstance(base, Mapping) else {}
    sharing = {key: value for key, value in _section(base, "sharing").items() if key not in _SECTIONS}
    if strategy.sharing_section:
        sharing[strategy.sharing_section] = _share(_section(base, "sharing"), strategy, request, resource)
    flags = {key: value for key, value in _section(base, "flags").items() if key != "migStrategy"}
    if strategy.mig:
        flags["migStrategy"] = _choose_mig_strategy(base, request)
    for key, value in (("sharing", sharing), ("flags", flags)):
        document.pop(key, None)
        if value:
            document[key] = value
    if not named and _normal(document) == _normal(base):
        return NodeConfig()
    document = {"version": "v1", **document}
    return NodeConfig(_name(strategy, document), document)


def name_resource(config: Any, resource: str = "nvidia.com/gpu") -> str:
    """Return the resource by which pods get a GPU, or a part of it, with this configuration; that of MIG devices depends on their profiles."""
    sharing = _section(config, "sharing")
    renamed = any(_section(sharing, name).get("renameByDefault") for name in _SECTIONS)
    return f"{resource}.shared" if renamed and not resource.endswith(".shared") else resource


def list_offered(config: Any, resource: str = "nvidia.com/gpu", whole: bool = True) -> list[str]:
    """Return shell patterns of the resources that a node with this configuration offers; *whole* is whether it has GPUs without MIG."""
    found = [glob.escape(name_resource(config, resource))]
    if _section(config, "flags").get("migStrategy") != MIG_STRATEGIES[1]:
        return found
    return [SLICES, *(found if whole else [])]


def is_limited_to_one(config: Any) -> bool:
    """Return whether the plugin refuses a container that requests more than one share of GPUs."""
    sharing = _section(config, "sharing")
    # For MPS, the plugin sets failRequestsGreaterThanOne itself.
    return bool(sharing.get("mps")) or any(
        _section(sharing, name).get("failRequestsGreaterThanOne") for name in _SECTIONS
    )


def list_uses(configs: Iterable[Any]) -> list[str]:
    """Return what the plugin's pod needs beside the GPUs: ``mig`` for MIG devices, ``mps`` for the folder of its control daemons."""
    found = set()
    for config in configs:
        if (_section(config, "flags").get("migStrategy") or "none") != "none":
            found.add("mig")
        if _section(config, "sharing").get("mps"):
            found.add("mps")
    return sorted(found)


def _find_problem(base: Any, strategy: Strategy, request: Request) -> str:
    is_configured = read_configured(base) is strategy
    if strategy.sharing_section and not request.replicas and not is_configured:
        return (
            f"gpu_sharing_strategy is {strategy.name}, which needs the number of pods that share a GPU; set gpu_sharing_replicas to "
            f"{FEWEST_REPLICAS} or more"
        )
    if strategy.sharing_section and request.replicas and request.replicas < FEWEST_REPLICAS:
        return f"gpu_sharing_replicas is {request.replicas}; set it to {FEWEST_REPLICAS} or more, or share the GPUs as exclusive"
    return ""


def _share(sharing: Mapping[str, Any], strategy: Strategy, request: Request, resource: str) -> Any:
    """Return the section that shares GPUs. More than one replica is no larger share of a GPU, so such a request is refused."""
    section = sharing.get(strategy.sharing_section)
    if not request.replicas:
        return section
    kept = {key: value for key, value in (section or {}).items() if key not in ("resources", "renameByDefault")}
    renamed = {"renameByDefault": True} if request.rename else {}
    name = resource[: -len(".shared")] if resource.endswith(".shared") else resource
    return {
        "failRequestsGreaterThanOne": True,
        **kept,
        **renamed,
        "resources": [{"name": name, "replicas": request.replicas}],
    }


def _choose_mig_strategy(base: Any, request: Request) -> str:
    configured = _section(base, "flags").get("migStrategy")
    return request.mig_strategy or (configured if configured in MIG_STRATEGIES else MIG_STRATEGIES[0])


def _name(strategy: Strategy, document: Mapping[str, Any]) -> str:
    section = _section(document.get("sharing"), strategy.sharing_section)
    words = [str(each.get("replicas")) for each in section.get("resources") or []][:1]
    words += ["shared"] if section.get("renameByDefault") else []
    words += [_section(document, "flags")["migStrategy"]] if strategy.mig else []
    return "-".join([strategy.name, *words, _digest(document)])


def _digest(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:8]


def _normal(config: Any) -> dict[str, Any]:
    """Return the configuration without what means the same as nothing."""
    given = config if isinstance(config, Mapping) else {}
    found = {key: value for key, value in given.items() if value not in (None, {}, [])}
    flags = {key: value for key, value in _section(config, "flags").items() if (key, value) != ("migStrategy", "none")}
    found.pop("flags", None)
    return {**found, "version": "v1", **({"flags": flags} if flags else {})}


def _section(config: Any, name: str) -> Mapping[str, Any]:
    """A section of the configuration; a section of another form counts as left out, as the role that deploys the plugin rejects it."""
    section = config.get(name) if isinstance(config, Mapping) else None
    return section if isinstance(section, Mapping) else {}
