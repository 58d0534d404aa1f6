# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kubelet's configuration: which settings may be requested, how they are merged and undone, and what overrides them.

Sources: cmd/kubelet/app/server.go (parseResourceList, mergeKubeletConfigurations, kubeletConfigFlagPrecedence), options.go
(AddKubeletConfigFlags) and pkg/kubelet/eviction/helpers.go (parseThresholdStatement) of Kubernetes.
"""

from __future__ import annotations

import math
import re
import typing as t
from fractions import Fraction

from .._config.errors import ConfigError
from .._config.tree import MISSING, Path, Tree, drop, format_path, get, leaves, put
from .._config.yaml_nodes import Ambiguous, meaning, text_of
from .._document import is_same
from .._kubernetes import quantities
from .command import Flag

RESERVED = ("kubeReserved", "systemReserved")
RESOURCES = ("cpu", "memory", "ephemeral-storage", "pid")
THRESHOLDS = ("evictionHard", "evictionSoft", "evictionMinimumReclaim")
SIGNALS = (
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "containerfs.available",
    "containerfs.inodesFree",
    "allocatableMemory.available",
    "pid.available",
)
IDENTITY = ("apiVersion", "kind")
# Mappings of text to text, in which the kubelet accepts no number.
_TEXTS = (
    *RESERVED,
    *THRESHOLDS,
    "evictionSoftGracePeriod",
    "qosReserved",
    "cpuManagerPolicyOptions",
    "topologyManagerPolicyOptions",
)

# Text for every reader of YAML, other than 1e3 or 10:20.
_WITH_UNIT = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:[KMGTPE]i|[numkMGTP]|%|[hs]|[mun]s))+")

API_VERSION, KIND = "kubelet.config.k8s.io/v1beta1", "KubeletConfiguration"

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


# -- requested settings: what the kubelet would refuse is refused before anything is written


def check_values(values: t.Mapping[str, t.Any]) -> Tree:
    """Return the requested *values*, with text where the kubelet reads text and without empty mappings. Raises ConfigError, naming the setting."""
    tree: Tree = {}
    for path, value in leaves(dict(values)).items():
        _check_name(path[0])
        if value is None:
            raise ConfigError(f"values: {format_path(path)} has no value: give it one, or leave it out.")
        if value == {}:
            continue
        setting = _to_text(path, value) if path[0] in _TEXTS else value
        _check(path, setting)
        put(tree, path, setting)
    return tree


def percentage(text: str) -> float | None:
    """Return the number of a percentage, 0 to 100; None for other text. Raises ValueError for one that the kubelet does not accept."""
    if not text.endswith("%"):
        return None
    number = float(text.rstrip("%"))
    if not 0 <= number <= 100 or "_" in text or text != text.strip():
        raise ValueError(f"{text} is not between 0% and 100%")
    return number


def to_flag(name: str) -> str:
    """Return the name of the kubelet's flag for the setting *name* at the top of its configuration."""
    other = next((flag for flag, path in _OTHER_NAMES.items() if path == (name,)), None)
    return other or re.sub(r"(?<=[a-z0-9])([A-Z])", r"-\1", name).lower()


def _check_name(name: str) -> None:
    if name in IDENTITY:
        raise ConfigError(f"values: {name} states what the file is, and stays as it is: leave it out.")
    folded = name.replace("-", "").replace("_", "").lower()
    known_name = next((known for known in _TEXTS if known.lower() == folded), name)
    if known_name != name:
        raise ConfigError(f"values: the kubelet has no setting {name}: write {known_name}.")


def _to_text(path: Path, value: t.Any) -> str:
    """Return a number as text; whole ones without a decimal point."""
    if len(path) != 2 or isinstance(value, (bool, list, dict)):
        raise ConfigError(
            f"values: {path[0]} has to be a mapping of names to texts, and {format_path(path)} is {value!r}."
        )
    if isinstance(value, float) and math.isfinite(value) and value == int(value):
        value = int(value)
    return str(value)


def _check(path: Path, value: t.Any) -> None:
    if path[0] in RESERVED:
        _check_reserved(path, str(value))
    elif path[0] in THRESHOLDS:
        _check_threshold(path, str(value))


def _check_reserved(path: Path, value: str) -> None:
    if path[1] not in RESOURCES:
        raise ConfigError(
            f"values: {format_path(path)}: the kubelet reserves {', '.join(RESOURCES)}, and not {path[1]}: remove it."
        )
    amount = _amount(path, value, "a quantity such as 500m, 2 or 1Gi")
    if amount < 0:
        raise ConfigError(f"values: {format_path(path)} is {value}: give an amount that is not below 0.")
    if amount.denominator != 1 and path[1] != "cpu":
        raise ConfigError(
            f"values: {format_path(path)} is {value}, which is not a whole number (m is a thousandth, Mi is MiB): correct it."
        )


def _check_threshold(path: Path, value: str) -> None:
    if path[1] not in SIGNALS:
        raise ConfigError(
            f"values: {format_path(path)}: the kubelet has the signals {', '.join(SIGNALS)}: write one of them."
        )
    example = "a quantity such as 500Mi or a percentage such as 10%"
    try:
        if percentage(value) is not None:
            return
    except ValueError:
        raise ConfigError(f"values: {format_path(path)} is {value}: give {example}.") from None
    amount = _amount(path, value, example)
    if amount < 0 or (amount == 0 and path[0] != "evictionMinimumReclaim"):
        raise ConfigError(f"values: {format_path(path)} is {value}: give an amount above 0, or 0% for none.")


def _amount(path: Path, value: str, example: str) -> Fraction:
    try:
        return quantities.parse_quantity(value)
    except ValueError:
        raise ConfigError(f"values: {format_path(path)} is {value or 'empty'}: give {example}.") from None


# -- the configuration as a tree: merged, compared, and undone


def check_kind(tree: t.Any, what: str) -> None:
    """Raise ConfigError if *tree* is not a configuration of the kubelet of a known version."""
    found = [text_of(tree.get(key)) for key in ("apiVersion", "kind")] if isinstance(tree, dict) else []
    if found != [API_VERSION, KIND]:
        kind = " ".join(part for part in found if part) or "neither apiVersion nor kind"
        raise ConfigError(
            f"{what} is not a {KIND} of {API_VERSION}, but has {kind}: give the path of the kubelet's configuration, or bring it to that version."
        )


def merge(tree: Tree, values: t.Mapping[str, t.Any], what: str) -> None:
    """Make *tree* hold *values* in place, mapping by mapping. What already means the same stays as it is written. Raises ConfigError."""
    for path, value in leaves(dict(values)).items():
        for depth in range(1, len(path)):
            above = get(tree, path[:depth])
            if above is MISSING or meaning(above) is None:
                put(tree, path[:depth], {})
            elif not isinstance(above, dict):
                raise ConfigError(f"{what}: {format_path(path[:depth])} has to be a mapping; correct it and run again.")
        if not is_equal(path, get(tree, path), value):
            put(tree, path, value)


def undo_values(tree: Tree, values: t.Mapping[str, t.Any], original: Tree) -> list[Path]:
    """Restore in place what *original* has where *values* are; return which others have changed since, and which stay."""
    changed = []
    for path, value in leaves(dict(values)).items():
        now, former = get(tree, path), get(original, path)
        if now is MISSING or is_equal(path, now, former):
            continue
        if not is_equal(path, now, value):
            changed.append(path)
        elif former is not MISSING:
            put(tree, path, None)  # otherwise ruamel.yaml would write the text in the quotes of the managed value
            put(tree, path, former)
        else:
            drop(
                tree, path, keep=[path[:depth] for depth in range(1, len(path)) if _is_mapping(original, path[:depth])]
            )
            _restore_empty(tree, original, path)
    return changed


def normalize(tree: t.Any, path: Path = ()) -> t.Any:
    """Return *tree* as plain data in which values that are equal to the kubelet are equal, such as 1Gi and 1024Mi."""
    if isinstance(tree, dict):
        return {str(key): normalize(value, (*path, str(key))) for key, value in tree.items()}
    if isinstance(tree, list):
        return [normalize(value, (*path, "")) for value in tree]
    value = meaning(tree)
    if isinstance(value, Ambiguous) and _WITH_UNIT.fullmatch(value.text):
        value = value.text
    if isinstance(value, str) and len(path) == 2 and path[0] in (*RESERVED, *THRESHOLDS):
        try:
            return ("amount", str(quantities.parse_quantity(value)))
        except ValueError:
            return value
    return value


def is_equal(path: Path, left: t.Any, right: t.Any) -> bool:
    """Whether two values of one setting mean the same; one that is missing equals no other."""
    if left is MISSING or right is MISSING:
        return left is right
    return is_same(normalize(left, path), normalize(right, path))


def _is_mapping(tree: Tree, path: Path) -> bool:
    return isinstance(get(tree, path), dict)


def _restore_empty(tree: Tree, original: Tree, path: Path) -> None:
    """Restore what stood for an empty mapping, such as null, where the managed mapping is gone."""
    for depth in range(1, len(path)):
        if get(tree, path[:depth]) is MISSING and get(original, path[:depth]) is not MISSING:
            put(tree, path[:depth], get(original, path[:depth]))
            return


# -- what overrides the file: drop-ins of --config-dir, and flags, which override those too


def refuse_overrides(values: t.Mapping[str, t.Any], flags: t.Sequence[Flag], drop_ins: Files, what: str) -> None:
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


def read_effective(tree: Tree, flags: t.Sequence[Flag], drop_ins: Files) -> dict[str, dict[str, str]]:
    """Return what the kubelet reserves: {kubeReserved, systemReserved, evictionHard} as the file, drop-ins and flags set them."""
    found = {name: _read_texts(tree.get(name)) for name in (*RESERVED, "evictionHard")}
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


def _read_texts(node: t.Any) -> dict[str, str]:
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
