# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file that kube-scheduler's flag --config names: made, merged, and cleared of what is ours. Private to this collection."""

from __future__ import annotations

import typing as t

from .._yaml_files.errors import EditError
from .._yaml_files.scalars import Syntax, equal, made, mapping, mappings, meaning, text_of
from . import extenders, flags, versions
from .migration import migrate, version_of

KUBECONFIG = "/etc/kubernetes/scheduler.conf"

# Flags that count no more once there is a --config: where the file has the same, its type, and what it is if the file has none.
_SILENCED: dict[str, tuple[str, str, type, t.Any]] = {
    "kubeconfig": ("clientConnection", "kubeconfig", str, None),
    "kube-api-content-type": ("clientConnection", "contentType", str, "application/vnd.kubernetes.protobuf"),
    "kube-api-qps": ("clientConnection", "qps", float, 50),
    "kube-api-burst": ("clientConnection", "burst", int, 100),
    "profiling": ("", "enableProfiling", bool, True),
    "contention-profiling": ("", "enableContentionProfiling", bool, True),
    "lock-object-namespace": ("leaderElection", "resourceNamespace", str, "kube-system"),
    "lock-object-name": ("leaderElection", "resourceName", str, "kube-scheduler"),
}
# One for which the file has no place.
_LOST = "master"

Identities = t.Sequence[t.Mapping[str, t.Any]]


def is_blank(syntax: Syntax, data: bytes | None, what: str) -> bool:
    """Whether there is no configuration: no file, or one without content, as a hostPath of type FileOrCreate leaves behind."""
    return data is None or meaning(syntax.read(data, what)) is None


def change(
    tree: dict[str, t.Any],
    minor: int,
    asked: t.Sequence[extenders.Extender],
    ours: Identities,
    silenced: t.Sequence[flags.Flag],
    kubeconfig: str | None,
    what: str,
) -> list[str]:
    """Make *tree* a configuration with the extenders *asked*; return what has to be told.

    *ours* are the extenders of earlier runs, which go unless they are asked for again. *silenced* are flags that begin to be ignored.
    *kubeconfig* is taken where *tree* has none.
    Raises EditError for what cannot be, naming it.
    """
    notes = migrate(tree, minor, what)
    notes += _take_over(tree, silenced, what)
    connection = made(tree, "clientConnection", dict)
    if not meaning(connection.get("kubeconfig")):
        connection["kubeconfig"] = kubeconfig or KUBECONFIG
    notes += _merge(tree, asked, ours, what)
    extenders.check_together(mappings(tree, "extenders", what))
    extenders.check_timeouts(mappings(tree, "extenders", what), what)
    return notes


def new_tree() -> dict[str, t.Any]:
    """Return the beginning of a new configuration."""
    return {"apiVersion": f"{versions.GROUP}/{versions.VERSION}", "kind": versions.KIND}


def clear(tree: dict[str, t.Any], minor: int, ours: Identities, what: str) -> list[str]:
    """Take the extenders *ours* out of *tree*, and make sure that kube-scheduler reads the rest; return what has to be told."""
    version_of(tree, what)
    _drop(tree, ours, (), what)
    extenders.check_timeouts(mappings(tree, "extenders", what), what)
    return migrate(tree, minor, what)


def taken_out(syntax: Syntax, first: bytes | None, now: bytes | None, ours: Identities, what: str) -> list[str]:
    """Return warnings of extenders that are taken out of *now* as *ours*, and which *first*, from before us, has too."""
    before, after = _extenders_of(syntax, first, what), _extenders_of(syntax, now, what)
    known = [extenders.identity(entry) for entry in before if extenders.is_one_of(entry, ours)]
    return [
        f"{what}: {extenders.told(entry)} was there before the first run, and goes, since it has been asked for: put it back by hand if it"
        " is still in use."
        for entry in after
        if extenders.is_one_of(entry, known)
    ]


def _extenders_of(syntax: Syntax, data: bytes | None, what: str) -> list[dict[str, t.Any]]:
    try:
        return (
            [] if data is None or is_blank(syntax, data, what) else mappings(syntax.read(data, what), "extenders", what)
        )
    except EditError:
        return []  # it was repaired, or comes back as it is


def is_sound(syntax: Syntax, data: bytes, minor: int, ours: Identities, what: str) -> bool:
    """Whether *data* is a configuration that Kubernetes 1.*minor* reads as it is, with no extender of *ours* in it."""
    try:
        tree = syntax.read(data, what)
        before = meaning(tree)
        clear(tree, minor, ours, what)
        return equal(before, tree) and bool(meaning(mapping(tree, "clientConnection", what).get("kubeconfig")))
    except EditError:
        return False


def ignored_flags(tree: t.Mapping[str, t.Any], given: t.Sequence[flags.Flag], what: str) -> list[str]:
    """Return warnings of flags that say other than the file, which alone counts."""
    warnings = []
    for name in dict.fromkeys(flag.name for flag in given):
        value = flags.last(given, name)
        if name in _SILENCED and value is not None:
            section, key, kind, default = _SILENCED[name]
            there = (mapping(tree, section, what) if section else tree).get(key, default)
            if not equal(there, _value(name, value, kind)):
                told = f"{section}.{key}".lstrip(".")
                warnings.append(
                    f"kube-scheduler ignores its flag --{name}={value}, since {what} is there: set {told} in that file."
                )
    return warnings


def _take_over(tree: dict[str, t.Any], silenced: t.Sequence[flags.Flag], what: str) -> list[str]:
    for name, (section, key, kind, _default) in _SILENCED.items():
        text = flags.last(silenced, name)
        if text is None:
            continue
        place = made(tree, section, dict) if section else tree
        value = _value(name, text, kind)
        if not equal(place.get(key), value):
            place[key] = value
    if not flags.last(silenced, _LOST):
        return []
    return [
        f"kube-scheduler ignores its flag --{_LOST} from now on, and {what} has no setting like it: see whether it is needed."
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
        raise EditError(f"The flag --{name} has the value {value}: give it a number.") from None


def _merge(tree: dict[str, t.Any], asked: t.Sequence[extenders.Extender], ours: Identities, what: str) -> list[str]:
    """Bring the extenders to those that are *asked* for; return warnings of those that bound pods and go."""
    known = made(tree, "extenders", list)
    mappings(tree, "extenders", what)
    kept = [extenders.identity(extender) for extender in asked]
    notes = [
        f"{what}: {extenders.told(entry)} is taken out, since it is not asked for any more. It bound pods, and nobody assigns these a"
        " GPU from now on: give it among extenders, too, if it is still in use."
        for entry in known
        if entry.get("bindVerb") and extenders.is_one_of(entry, ours) and not extenders.is_one_of(entry, kept)
    ]
    for extender in asked:
        wanted = [extenders.identity(extender)]
        same = [entry for entry in known if extenders.is_one_of(entry, wanted)]
        if same:
            _update(same[0], extender)
        else:
            known.append(dict(extender))
    _drop(tree, [*ours, *kept], asked, what)
    return notes


def _drop(tree: dict[str, t.Any], ours: Identities, kept: t.Sequence[extenders.Extender], what: str) -> None:
    """Take out the extenders *ours*, but for one of each of those that are *kept*, and the list if it becomes empty."""
    known = mappings(tree, "extenders", what)
    left = list(kept)
    doomed = []
    for index, entry in enumerate(known):
        if _is_one_like(entry, left):
            left = [extender for extender in left if not equal(entry, extender)]
        elif extenders.is_one_of(entry, ours):
            doomed.append(index)
    for index in reversed(doomed):
        del known[index]
    if doomed and not known:
        del tree["extenders"]


def _is_one_like(entry: t.Any, others: t.Sequence[extenders.Extender]) -> bool:
    """Whether *entry* means the same as one of *others*."""
    return any(equal(entry, other) for other in others)


def _update(entry: dict[str, t.Any], extender: extenders.Extender) -> None:
    """Make *entry* mean *extender*, touching only what differs."""
    for key in [key for key in entry if key not in extender]:
        del entry[key]
    for key, value in extender.items():
        if not equal(entry.get(key), value):
            entry[key] = value


def api_version(syntax: Syntax, data: bytes, what: str) -> str:
    """Return the API version of a configuration, with its group."""
    return text_of(syntax.read(data, what).get("apiVersion"))
