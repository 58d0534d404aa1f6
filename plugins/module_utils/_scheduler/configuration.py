# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file that kube-scheduler's flag --config names: created, merged, and undone."""

from __future__ import annotations

import typing as t

from .._config.errors import ConfigError
from .._config.yaml_nodes import Syntax, ensure, is_equal, mapping, mappings, meaning, text_of
from .._document import is_same
from . import extenders, flags, versions
from .versions import migrate, version_of

KUBECONFIG = "/etc/kubernetes/scheduler.conf"

# Flags without effect once there is a --config: where the file has the same, its type, and the default.
_IGNORED: dict[str, tuple[str, str, type, t.Any]] = {
    "kubeconfig": ("clientConnection", "kubeconfig", str, None),
    "kube-api-content-type": ("clientConnection", "contentType", str, "application/vnd.kubernetes.protobuf"),
    "kube-api-qps": ("clientConnection", "qps", float, 50),
    "kube-api-burst": ("clientConnection", "burst", int, 100),
    "profiling": ("", "enableProfiling", bool, True),
    "contention-profiling": ("", "enableContentionProfiling", bool, True),
    "lock-object-namespace": ("leaderElection", "resourceNamespace", str, "kube-system"),
    "lock-object-name": ("leaderElection", "resourceName", str, "kube-scheduler"),
}
# One for which the file has no setting.
_LOST = "master"

Identities = t.Sequence[t.Mapping[str, t.Any]]


def is_blank(syntax: Syntax, data: bytes | None, what: str) -> bool:
    """Whether there is no configuration: no file, or one without content, as a hostPath of type FileOrCreate creates."""
    return data is None or meaning(syntax.read(data, what)) is None


def set_extenders(
    tree: dict[str, t.Any],
    minor: int,
    requested: t.Sequence[extenders.Extender],
    managed: Identities,
    ignored: t.Sequence[flags.Flag],
    kubeconfig: str | None,
    what: str,
) -> list[str]:
    """Make *tree* a configuration with the *requested* extenders; return warnings.

    *managed* are the extenders of earlier runs, which go unless they are requested again. *ignored* are flags without effect from now on.
    *kubeconfig* is used where *tree* has none.
    Raises ConfigError for what is impossible, naming it.
    """
    warnings = migrate(tree, minor, what)
    warnings += _take_over(tree, ignored, what)
    connection = ensure(tree, "clientConnection", dict)
    if not meaning(connection.get("kubeconfig")):
        connection["kubeconfig"] = kubeconfig or KUBECONFIG
    warnings += _merge(tree, requested, managed, what)
    extenders.check_together(mappings(tree, "extenders", what))
    extenders.check_timeouts(mappings(tree, "extenders", what), what)
    return warnings


def new_tree() -> dict[str, t.Any]:
    """Return a new configuration."""
    return {"apiVersion": f"{versions.GROUP}/{versions.VERSION}", "kind": versions.KIND}


def remove_extenders(tree: dict[str, t.Any], minor: int, managed: Identities, what: str) -> list[str]:
    """Remove the extenders *managed* from *tree*, and make sure that kube-scheduler reads the rest; return warnings."""
    version_of(tree, what)
    _drop(tree, managed, (), what)
    extenders.check_timeouts(mappings(tree, "extenders", what), what)
    return migrate(tree, minor, what)


def warn_removed(
    syntax: Syntax, original: bytes | None, now: bytes | None, managed: Identities, what: str
) -> list[str]:
    """Return warnings of extenders that are removed from *now* as *managed*, and which *original* has too."""
    before, after = _extenders_of(syntax, original, what), _extenders_of(syntax, now, what)
    known = [extenders.identity(entry) for entry in before if extenders.is_one_of(entry, managed)]
    return [
        f"{what}: {extenders.describe(entry)} was there before the first run, and is removed, since it was requested: restore it by hand if it"
        " is still in use."
        for entry in after
        if extenders.is_one_of(entry, known)
    ]


def _extenders_of(syntax: Syntax, data: bytes | None, what: str) -> list[dict[str, t.Any]]:
    try:
        return (
            [] if data is None or is_blank(syntax, data, what) else mappings(syntax.read(data, what), "extenders", what)
        )
    except ConfigError:
        return []  # it was repaired, or is restored as it is


def is_restorable(syntax: Syntax, data: bytes, minor: int, managed: Identities, what: str) -> bool:
    """Whether *data* is a configuration that Kubernetes 1.*minor* reads as it is, with no extender of *managed* in it."""
    try:
        tree = syntax.read(data, what)
        before = meaning(tree)
        remove_extenders(tree, minor, managed, what)
        return is_equal(before, tree) and bool(meaning(mapping(tree, "clientConnection", what).get("kubeconfig")))
    except ConfigError:
        return False


def warn_ignored_flags(tree: t.Mapping[str, t.Any], given: t.Sequence[flags.Flag], what: str) -> list[str]:
    """Return warnings of flags that differ from the file, which alone has an effect."""
    warnings = []
    for name in dict.fromkeys(flag.name for flag in given):
        value = flags.last(given, name)
        if name in _IGNORED and value is not None:
            section, key, kind, default = _IGNORED[name]
            there = (mapping(tree, section, what) if section else tree).get(key, default)
            if not is_equal(there, _value(name, value, kind)):
                setting = f"{section}.{key}".lstrip(".")
                warnings.append(
                    f"kube-scheduler ignores its flag --{name}={value}, since {what} is there: set {setting} in that file."
                )
    return warnings


def _take_over(tree: dict[str, t.Any], ignored: t.Sequence[flags.Flag], what: str) -> list[str]:
    for name, (section, key, kind, _default) in _IGNORED.items():
        text = flags.last(ignored, name)
        if text is None:
            continue
        place = ensure(tree, section, dict) if section else tree
        value = _value(name, text, kind)
        if not is_equal(place.get(key), value):
            place[key] = value
    if not flags.last(ignored, _LOST):
        return []
    return [
        f"kube-scheduler ignores its flag --{_LOST} from now on, and {what} has no setting like it: check whether it is needed."
    ]


def _value(name: str, value: str, kind: type) -> t.Any:
    if kind is str:
        return value
    if kind is bool:
        return flags.switch(value, name)
    try:
        number = float(value) if kind is float else int(value)
        return int(number) if number == int(number) else number
    except (ValueError, OverflowError):
        raise ConfigError(f"The flag --{name} has the value {value}: give it a number.") from None


def _merge(
    tree: dict[str, t.Any], requested: t.Sequence[extenders.Extender], managed: Identities, what: str
) -> list[str]:
    """Bring the extenders to the *requested* ones; return warnings of those that bound pods and are removed."""
    known = ensure(tree, "extenders", list)
    mappings(tree, "extenders", what)
    kept = [extenders.identity(extender) for extender in requested]
    warnings = [
        f"{what}: {extenders.describe(entry)} is removed, since it is not requested any more. It bound pods, and nothing assigns these a"
        " GPU from now on: give it among extenders, too, if it is still in use."
        for entry in known
        if entry.get("bindVerb") and extenders.is_one_of(entry, managed) and not extenders.is_one_of(entry, kept)
    ]
    for extender in requested:
        identity = extenders.identity(extender)
        found = [entry for entry in known if extenders.is_one_of(entry, [identity])]
        if found:
            _update(found[0], extender)
        else:
            known.append(dict(extender))
    _drop(tree, [*managed, *kept], requested, what)
    return warnings


def _drop(tree: dict[str, t.Any], managed: Identities, kept: t.Sequence[extenders.Extender], what: str) -> None:
    """Remove the extenders *managed*, except one of each of those that are *kept*, and the list if it becomes empty."""
    known = mappings(tree, "extenders", what)
    left = list(kept)
    removed = []
    for index, entry in enumerate(known):
        if _is_one_like(entry, left):
            left = [extender for extender in left if not extenders.is_same_extender(entry, extender)]
        elif extenders.is_one_of(entry, managed):
            removed.append(index)
    for index in reversed(removed):
        del known[index]
    if removed and not known:
        del tree["extenders"]


def _is_one_like(entry: t.Any, others: t.Sequence[extenders.Extender]) -> bool:
    """Whether *entry* means the same as one of *others*."""
    return any(extenders.is_same_extender(entry, other) for other in others)


def _update(entry: dict[str, t.Any], extender: extenders.Extender) -> None:
    """Make *entry* mean *extender*, touching only settings that mean something else to kube-scheduler."""
    present, requested = extenders.normalize(entry), extenders.normalize(extender)
    for key in {**present, **requested}:
        if key in present and key in requested and is_same(present[key], requested[key]):
            continue
        if key in extender:
            entry[key] = extender[key]
        else:
            entry.pop(key, None)


def api_version(syntax: Syntax, data: bytes, what: str) -> str:
    """Return the API version of a configuration, with its group."""
    return text_of(syntax.read(data, what).get("apiVersion"))
