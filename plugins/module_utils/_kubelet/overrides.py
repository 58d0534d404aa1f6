# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What overrides the kubelet's configuration file: drop-ins of --config-dir, and flags, which override those too.

Sources: cmd/kubelet/app/server.go (mergeKubeletConfigurations, kubeletConfigFlagPrecedence) and options.go (AddKubeletConfigFlags).
"""

from __future__ import annotations

import typing as t

from .._config.errors import ConfigError
from .._config.tree import MISSING, Path, Tree, format_path, get, leaves
from .._config.yaml_nodes import meaning, text_of
from .command import Flag
from .configuration import is_equal
from .settings import RESERVED

# Flags that are not named like their setting. All others are its name with hyphens.
_OTHER_NAMES: t.Mapping[str, Path] = {
    "anonymous-auth": ("authentication", "anonymous", "enabled"),
    "authentication-token-webhook": ("authentication", "webhook", "enabled"),
    "authentication-token-webhook-cache-ttl": ("authentication", "webhook", "cacheTTL"),
    "authorization-mode": ("authorization", "mode"),
    "authorization-webhook-cache-authorized-ttl": ("authorization", "webhook", "cacheAuthorizedTTL"),
    "authorization-webhook-cache-unauthorized-ttl": ("authorization", "webhook", "cacheUnauthorizedTTL"),
    "client-ca-file": ("authentication", "x509", "clientCAFile"),
    "contention-profiling": ("enableContentionProfiling",),
    "event-burst": ("eventBurst",),
    "event-qps": ("eventRecordQPS",),
    "image-gc-high-threshold": ("imageGCHighThresholdPercent",),
    "image-gc-low-threshold": ("imageGCLowThresholdPercent",),
    "kube-api-content-type": ("contentType",),
    "manifest-url": ("staticPodURL",),
    "manifest-url-header": ("staticPodURLHeader",),
    "minimum-image-ttl-duration": ("imageMinimumGCAge",),
    "pod-manifest-path": ("staticPodPath",),
    "pod-max-pids": ("podPidsLimit",),
    "registry-qps": ("registryPullQPS",),
    "reserved-cpus": ("reservedSystemCPUs",),
    "resolv-conf": ("resolvConf",),
    "rotate-server-certificates": ("serverTLSBootstrap",),
}
# What the kubelet has where its file has no such setting (pkg/kubelet/eviction/defaults_linux.go).
DEFAULT_EVICTION_HARD = {
    "memory.available": "100Mi",
    "nodefs.available": "10%",
    "nodefs.inodesFree": "5%",
    "imagefs.available": "15%",
    "imagefs.inodesFree": "5%",
}

Files = t.Mapping[str, t.Any]


def refuse(values: t.Mapping[str, t.Any], flags: t.Sequence[Flag], drop_ins: Files, what: str) -> None:
    """Raise ConfigError for what would override *values* in the file *what*. *drop_ins* are trees by path, in the kubelet's order."""
    paths = list(leaves(dict(values)))
    for flag in flags:
        overridden = next((path for path in paths if _is_about(flag, path)), None)
        if overridden:
            raise ConfigError(
                f"The kubelet is started with --{flag.name}={flag.value} ({flag.source}), which overrides {format_path(overridden)} of {what}: remove"
                " the flag there, and run again."
            )
    for file, tree in reversed(list(drop_ins.items())):
        for path, value in leaves(dict(values)).items():
            other = _overriding(tree, path)
            if other is not MISSING and not is_equal(path, other, value):
                raise ConfigError(
                    f"{file} overrides {what} and sets {format_path(path)}: remove it there, and run again."
                )


def effective(tree: Tree, flags: t.Sequence[Flag], drop_ins: Files) -> dict[str, dict[str, str]]:
    """Return what the kubelet reserves: {kubeReserved, systemReserved, evictionHard} as the file, drop-ins and flags set them."""
    found = {name: _texts(tree.get(name)) for name in (*RESERVED, "evictionHard")}
    merges = meaning(tree.get("mergeDefaultEvictionSettings")) is True
    if "evictionHard" not in tree or meaning(tree["evictionHard"]) is None or merges:
        found["evictionHard"] = {**DEFAULT_EVICTION_HARD, **found["evictionHard"]}
    for other in drop_ins.values():
        for name, known in found.items():
            _patch(known, other.get(name, {}) if isinstance(other, dict) else {})
    for name, known in found.items():
        given = [flag for flag in flags if _is_about(flag, (name,))]
        if given:
            known.clear()
            known.update(_pairs(",".join(flag.value for flag in given), "<" if name == "evictionHard" else "="))
    return _with_listed_cpus(found, _reserved_cpus(tree, flags, drop_ins))


def _is_about(flag: Flag, path: Path) -> bool:
    """Whether a flag sets what is at *path*, above or below it. Of feature gates it sets those that it names."""
    if flag.name == "feature-gates":
        return path[0] == "featureGates" and path[-1] in _pairs(flag.value, "=")
    named = _OTHER_NAMES.get(flag.name)
    if named is None:
        return flag.name.replace("-", "").lower() == path[0].lower()
    return all(key == other for key, other in zip(named, path))


def _overriding(tree: t.Any, path: Path) -> t.Any:
    """Return what a drop-in sets at *path*, MISSING for nothing; null and other values above it remove it."""
    for depth in range(1, len(path)):
        above = get(tree, path[:depth])
        if above is MISSING:
            return MISSING
        if not isinstance(above, dict):
            return None
    return get(tree, path)


def _texts(node: t.Any) -> dict[str, str]:
    return {str(key): text_of(value) for key, value in node.items()} if isinstance(node, dict) else {}


def _patch(known: dict[str, str], other: t.Any) -> None:
    """Apply a drop-in to what is known as a JSON merge patch (RFC 7396): null removes."""
    if not isinstance(other, dict):
        known.clear()
        return
    for key, value in other.items():
        if meaning(value) is None:
            known.pop(str(key), None)
        else:
            known[str(key)] = text_of(value)


def _pairs(text: str, sign: str) -> dict[str, str]:
    parts = [part.partition(sign) for part in text.split(",") if sign in part]
    return {name.strip(): value.strip() for name, _sign, value in parts}


def _reserved_cpus(tree: Tree, flags: t.Sequence[Flag], drop_ins: Files) -> str:
    lists = [text_of(each.get("reservedSystemCPUs")) for each in (tree, *drop_ins.values()) if isinstance(each, dict)]
    lists += [flag.value for flag in flags if flag.name == "reserved-cpus"]
    return next((text for text in reversed(lists) if text), "")


def _with_listed_cpus(found: dict[str, dict[str, str]], cpus: str) -> dict[str, dict[str, str]]:
    """Return *found* with CPUs that are listed one by one instead of any amount."""
    if cpus:
        found["kubeReserved"].pop("cpu", None)
        found["systemReserved"]["cpu"] = str(sum(_width(part) for part in cpus.split(",")))
    return found


def _width(part: str) -> int:
    first, _dash, end = part.strip().partition("-")
    try:
        return int(end or first) - int(first) + 1
    except ValueError:
        return 0


def refuse_listed_cpus(
    values: t.Mapping[str, t.Any], tree: Tree, flags: t.Sequence[Flag], drop_ins: Files, what: str
) -> None:
    """Raise ConfigError if an amount of CPUs is requested that has no effect, since CPUs are listed one by one."""
    cpus = _reserved_cpus(tree, flags, drop_ins)
    named = next((name for name in RESERVED if "cpu" in values.get(name, {})), None)
    if cpus and named:
        raise ConfigError(
            f"reservedSystemCPUs is {cpus}, beside which the kubelet ignores {named}.cpu of {what}: change that list instead, or remove it."
        )
