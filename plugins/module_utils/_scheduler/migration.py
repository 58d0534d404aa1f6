# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring a KubeSchedulerConfiguration to v1, the version that every supported kube-scheduler reads.

Source: https://kubernetes.io/docs/reference/scheduling/config/#scheduler-configuration-migrations, and what kube-scheduler refuses when
it starts. What decides where pods run is never guessed: a plugin that is gone and has no substitute stops the migration.
"""

from __future__ import annotations

import typing as t

from .._yaml_files.errors import EditError
from .._yaml_files.scalars import equal, mapping, mappings, rename, text_of
from . import versions

_BIND_ADDRESSES = ("healthzBindAddress", "metricsBindAddress")

# Plugins that v1 does not have, and what does the same by default.
_GONE = {"NodePreferAvoidPods": "TaintToleration", "SelectorSpread": "PodTopologySpread"}
# Plugins that v1 does not have, and what to use instead by hand.
_GONE_WITHOUT_HEIR = {"NodeLabel": "NodeAffinity", "ServiceAffinity": "InterPodAffinity"}
# The same for plugins that went without a new API version: the minor version of Kubernetes, and what does the same.
_GONE_WITH_RELEASE: dict[str, tuple[int, str]] = dict.fromkeys(
    ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"), (32, "NodeVolumeLimits")
)


def version_of(tree: t.Any, what: str) -> str:
    """Return the API version of a configuration, without its group; raises EditError for anything else."""
    if not isinstance(tree, dict):
        raise EditError(f"{what} is not a {versions.KIND}: correct it, or move it away, then run again.")
    group, _slash, version = text_of(tree.get("apiVersion")).partition("/")
    kind = text_of(tree.get("kind"))
    if group != versions.GROUP or kind != versions.KIND:
        found = f"{tree.get('apiVersion')} {kind}".strip()
        raise EditError(
            f"{what} is not a {versions.KIND} of {versions.GROUP}, but {found}: correct it, or move it away, then run again."
        )
    return version


def migrate(tree: dict[str, t.Any], minor: int, what: str) -> list[str]:
    """Change *tree* in place so that Kubernetes 1.*minor* reads it; return what was done, in words.

    Raises EditError for what cannot be migrated, naming it. A configuration that needs nothing is left as it is.
    """
    version = version_of(tree, what)
    notes = []
    if version in versions.MIGRATED:
        tree["apiVersion"] = f"{versions.GROUP}/{versions.VERSION}"
        notes.append(f"{what}: {version} became {versions.VERSION}.")
    elif version != versions.VERSION:
        raise EditError(
            f"{what} is of {versions.GROUP}/{version}, which is not supported ({', '.join((*versions.MIGRATED, versions.VERSION))} are):"
            f" write it as {versions.VERSION}, then run again."
        )
    notes += _drop_bind_addresses(tree, what)
    notes += _repair_lock(tree, what)
    for index, profile in enumerate(mappings(tree, "profiles", what)):
        place = f"{what}: profiles[{index}]"
        notes += _drop_plugins(profile, minor, place)
        _migrate_arguments(profile, place)
    return notes + _repair_extenders(tree, what)


def _drop_bind_addresses(tree: dict[str, t.Any], what: str) -> list[str]:
    """The insecure port is gone, and v1 does not have these settings."""
    notes = []
    for key in _BIND_ADDRESSES:
        if key not in tree:
            continue
        value = text_of(tree[key])
        del tree[key]
        if value and value != "0" and not value.endswith(":0"):
            notes.append(
                f"{what}: {key} {value} is taken out; kube-scheduler serves health and metrics on its secure port alone."
            )
    return notes


def _repair_lock(tree: dict[str, t.Any], what: str) -> list[str]:
    election = mapping(tree, "leaderElection", what)
    lock = text_of(election.get("resourceLock"))
    if lock in ("", "leases"):
        return []
    election["resourceLock"] = "leases"
    return [f"{what}: leaderElection.resourceLock {lock} became leases, the only lock that there is."]


def _drop_plugins(profile: dict[str, t.Any], minor: int, where: str) -> list[str]:
    """Take plugins that are gone out of what is enabled, and their arguments. Those in `disabled` do no harm."""
    notes: dict[str, None] = {}
    for point, plugins in mapping(profile, "plugins", where).items():
        if not isinstance(plugins, dict):
            continue
        enabled = mappings(plugins, "enabled", f"{where}.plugins.{point}")
        for index in range(len(enabled) - 1, -1, -1):
            name = text_of(enabled[index].get("name"))
            heir = _heir(name, minor, f"{where}.plugins.{point}")
            if heir:
                _refuse_if_off(name, heir, point, mapping(profile, "plugins", where), f"{where}.plugins.{point}")
                del enabled[index]
                notes[
                    f"{where}: the plugin {name} is gone and taken out; {heir}, which is on by default, does its work."
                ] = None
        if not enabled and "enabled" in plugins and notes:
            del plugins["enabled"]
    arguments = mappings(profile, "pluginConfig", where)
    for index in range(len(arguments) - 1, -1, -1):
        name = text_of(arguments[index].get("name"))
        if _is_gone(name, minor):
            del arguments[index]
            notes[f"{where}: the arguments of the plugin {name} are taken out, because it is gone."] = None
    if not arguments and "pluginConfig" in profile and notes:
        del profile["pluginConfig"]
    return list(notes)


def _is_gone(name: str, minor: int) -> bool:
    if name in _GONE_WITH_RELEASE:
        return minor >= _GONE_WITH_RELEASE[name][0]
    return name in _GONE or name in _GONE_WITHOUT_HEIR


def _heir(name: str, minor: int, where: str) -> str | None:
    """Return what does the work of a plugin that is gone, None for one that is not; raises EditError if nothing does."""
    if not _is_gone(name, minor):
        return None
    if name in _GONE_WITHOUT_HEIR:
        raise EditError(
            f"{where} enables the plugin {name}, which {versions.GROUP}/{versions.VERSION} does not have any more: use the plugin"
            f" {_GONE_WITHOUT_HEIR[name]} instead, then run again."
        )
    return _GONE_WITH_RELEASE[name][1] if name in _GONE_WITH_RELEASE else _GONE[name]


def _refuse_if_off(name: str, heir: str, point: str, plugins: t.Mapping[str, t.Any], where: str) -> None:
    """Raise EditError if the default that does the work of a plugin that is gone is disabled where that one was enabled."""
    for place in dict.fromkeys((point, "multiPoint")):
        lists = mapping(plugins, place, where)
        enabled, disabled = (
            {text_of(each.get("name")) for each in mappings(lists, key, f"{where} of {place}")}
            for key in ("enabled", "disabled")
        )
        if heir in enabled:
            return
        if disabled & {"*", heir}:
            raise EditError(
                f"{where} enables the plugin {name}, which is gone, and {heir}, which does its work, is disabled by {place}: enable {heir} in"
                f" its place with the weight that is wanted, or take {name} out, then run again."
            )


def _migrate_arguments(profile: dict[str, t.Any], where: str) -> None:
    for entry in mappings(profile, "pluginConfig", where):
        arguments = entry.get("args")
        if not isinstance(arguments, dict):
            continue
        group, _slash, version = text_of(arguments.get("apiVersion")).partition("/")
        if group == versions.GROUP and version != versions.VERSION:
            arguments["apiVersion"] = f"{versions.GROUP}/{versions.VERSION}"


def _repair_extenders(tree: dict[str, t.Any], what: str) -> list[str]:
    """The spelling of the old Policy file crashes a scheduler that decodes strictly."""
    notes = []
    for index, extender in enumerate(mappings(tree, "extenders", what)):
        if "enableHttps" not in extender:
            continue
        place = f"{what}: extenders[{index}]"
        if "enableHTTPS" not in extender:
            rename(extender, "enableHttps", "enableHTTPS")
        elif equal(extender["enableHTTPS"], extender["enableHttps"]):
            del extender["enableHttps"]
        else:
            raise EditError(
                f"{place} says enableHttps and enableHTTPS and means different things: take out enableHttps."
            )
        notes.append(f"{place}: enableHttps became enableHTTPS, without which kube-scheduler does not start.")
    return notes
