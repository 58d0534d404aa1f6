# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The version of Kubernetes, and of the configuration that its kube-scheduler reads, to which older ones are brought.

Kubernetes reads v1 since 1.25. What decides where pods run is never guessed: a removed plugin without a replacement stops the
migration. Source: https://kubernetes.io/docs/reference/scheduling/config/ (with its section on migrations), and what kube-scheduler
refuses when it starts.
"""

from __future__ import annotations

import re
import typing as t

from .._config.errors import ConfigError
from .._config.yaml_nodes import is_equal, mapping, mappings, rename, text_of

GROUP = "kubescheduler.config.k8s.io"
KIND = "KubeSchedulerConfiguration"

#: The API version that is written.
VERSION = "v1"
#: Versions that are brought to VERSION.
MIGRATED = ("v1beta2", "v1beta3")
#: The oldest minor version of Kubernetes 1.x that reads VERSION.
OLDEST = 25

# With the suffixes of vendors, such as v1.31.2-gke.100, v1.31.4-r1-build20241212 and v1.30.6.1_1.
_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.\d+)*(?:[-+_~].*)?")

_BIND_ADDRESSES = ("healthzBindAddress", "metricsBindAddress")

# Plugins that v1 does not have, and what does the same by default.
_REPLACED = {"NodePreferAvoidPods": "TaintToleration", "SelectorSpread": "PodTopologySpread"}
# Plugins that v1 does not have, and what to use instead by hand.
_WITHOUT_REPLACEMENT = {"NodeLabel": "NodeAffinity", "ServiceAffinity": "InterPodAffinity"}
# The same for plugins that went without a new API version: the minor version of Kubernetes, and what does the same.
_REMOVED_WITH_RELEASE: dict[str, tuple[int, str]] = dict.fromkeys(
    ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"), (32, "NodeVolumeLimits")
)


def parse(text: t.Any, what: str) -> int:
    """Return the minor version of a Kubernetes version such as v1.34.4, v1.34.4-eks-1 or 1.34; raises ConfigError."""
    found = _VERSION.fullmatch(str(text).strip())
    if isinstance(text, float) or found is None:
        raise ConfigError(f"{what} {text} is not a version of Kubernetes: give one such as v1.34.4, as a text.")
    major, minor = int(found.group(1)), int(found.group(2))
    if major != 1 or minor < OLDEST:
        raise ConfigError(f"{what} is {text}, and Kubernetes before 1.{OLDEST} is not supported: upgrade the cluster.")
    return minor


def tag_of(image: str) -> str | None:
    """Return the tag of an image's reference, None if it has none."""
    name, _at, _digest = image.partition("@")
    last = name.rpartition("/")[2]
    return last.partition(":")[2] or None


def of_image(image: str) -> int:
    """Return the minor version of Kubernetes that the tag of *image* names; raises ConfigError."""
    tag = tag_of(image)
    if tag is None or not _VERSION.fullmatch(tag):
        raise ConfigError(
            f"The image {image} does not name the version of Kubernetes by its tag: give kubernetes_version (kube_scheduler_extender_kubernetes_version)."
        )
    return parse(tag, f"The tag of the image {image}")


# -- the migration of a configuration


def version_of(tree: t.Any, what: str) -> str:
    """Return the API version of a configuration, without its group; raises ConfigError for anything else."""
    if not isinstance(tree, dict):
        raise ConfigError(f"{what} is not a {KIND}: correct it, or move it away, then run again.")
    group, _slash, version = text_of(tree.get("apiVersion")).partition("/")
    kind = text_of(tree.get("kind"))
    if group != GROUP or kind != KIND:
        found = f"{tree.get('apiVersion')} {kind}".strip()
        raise ConfigError(
            f"{what} is not a {KIND} of {GROUP}, but {found}: correct it, or move it away, then run again."
        )
    return version


def migrate(tree: dict[str, t.Any], minor: int, what: str) -> list[str]:
    """Change *tree* in place so that Kubernetes 1.*minor* reads it; return what was done, as warnings.

    Raises ConfigError for what cannot be migrated, naming it. A configuration that needs nothing is left as it is.
    """
    version = version_of(tree, what)
    warnings = []
    if version in MIGRATED:
        tree["apiVersion"] = f"{GROUP}/{VERSION}"
        warnings.append(f"{what}: {version} became {VERSION}.")
    elif version != VERSION:
        raise ConfigError(
            f"{what} is of {GROUP}/{version}, which is not supported ({', '.join((*MIGRATED, VERSION))} are):"
            f" write it as {VERSION}, then run again."
        )
    warnings += _drop_bind_addresses(tree, what)
    warnings += _repair_lock(tree, what)
    for index, profile in enumerate(mappings(tree, "profiles", what)):
        place = f"{what}: profiles[{index}]"
        warnings += _drop_plugins(profile, minor, place)
        _migrate_arguments(profile, place)
    return warnings + _repair_extenders(tree, what)


def _drop_bind_addresses(tree: dict[str, t.Any], what: str) -> list[str]:
    """Remove settings of the insecure port, which v1 does not have."""
    warnings = []
    for key in _BIND_ADDRESSES:
        if key not in tree:
            continue
        value = text_of(tree[key])
        del tree[key]
        if value and value != "0" and not value.endswith(":0"):
            warnings.append(
                f"{what}: {key} {value} is removed; kube-scheduler serves health and metrics on its secure port alone."
            )
    return warnings


def _repair_lock(tree: dict[str, t.Any], what: str) -> list[str]:
    election = mapping(tree, "leaderElection", what)
    lock = text_of(election.get("resourceLock"))
    if lock in ("", "leases"):
        return []
    election["resourceLock"] = "leases"
    return [f"{what}: leaderElection.resourceLock {lock} became leases, the only lock that exists."]


def _drop_plugins(profile: dict[str, t.Any], minor: int, where: str) -> list[str]:
    """Remove plugins that no longer exist from what is enabled, and their arguments. Those in `disabled` do no harm."""
    warnings: dict[str, None] = {}
    for point, plugins in mapping(profile, "plugins", where).items():
        if not isinstance(plugins, dict):
            continue
        enabled = mappings(plugins, "enabled", f"{where}.plugins.{point}")
        for index in range(len(enabled) - 1, -1, -1):
            name = text_of(enabled[index].get("name"))
            replacement = _find_replacement(name, minor, f"{where}.plugins.{point}")
            if replacement:
                _refuse_if_off(name, replacement, point, mapping(profile, "plugins", where), f"{where}.plugins.{point}")
                del enabled[index]
                warnings[
                    f"{where}: the plugin {name} no longer exists and is removed; {replacement}, which is on by default, replaces it."
                ] = None
        if not enabled and "enabled" in plugins and warnings:
            del plugins["enabled"]
    arguments = mappings(profile, "pluginConfig", where)
    for index in range(len(arguments) - 1, -1, -1):
        name = text_of(arguments[index].get("name"))
        if _is_removed(name, minor):
            del arguments[index]
            warnings[f"{where}: the arguments of the plugin {name} are removed, because it no longer exists."] = None
    if not arguments and "pluginConfig" in profile and warnings:
        del profile["pluginConfig"]
    return list(warnings)


def _is_removed(name: str, minor: int) -> bool:
    if name in _REMOVED_WITH_RELEASE:
        return minor >= _REMOVED_WITH_RELEASE[name][0]
    return name in _REPLACED or name in _WITHOUT_REPLACEMENT


def _find_replacement(name: str, minor: int, where: str) -> str | None:
    """Return what replaces a plugin that no longer exists, None for one that does; raises ConfigError if nothing replaces it."""
    if not _is_removed(name, minor):
        return None
    if name in _WITHOUT_REPLACEMENT:
        raise ConfigError(
            f"{where} enables the plugin {name}, which {GROUP}/{VERSION} does not have any more: use the plugin"
            f" {_WITHOUT_REPLACEMENT[name]} instead, then run again."
        )
    return _REMOVED_WITH_RELEASE[name][1] if name in _REMOVED_WITH_RELEASE else _REPLACED[name]


def _refuse_if_off(name: str, replacement: str, point: str, plugins: t.Mapping[str, t.Any], where: str) -> None:
    """Raise ConfigError if the replacement of a plugin is disabled where that plugin was enabled."""
    for place in dict.fromkeys((point, "multiPoint")):
        lists = mapping(plugins, place, where)
        enabled, disabled = (
            {text_of(each.get("name")) for each in mappings(lists, key, f"{where} of {place}")}
            for key in ("enabled", "disabled")
        )
        if replacement in enabled:
            return
        if disabled & {"*", replacement}:
            raise ConfigError(
                f"{where} enables the plugin {name}, which no longer exists, and {replacement}, which replaces it, is disabled by {place}: enable"
                f" {replacement} instead with the weight that you need, or remove {name}, then run again."
            )


def _migrate_arguments(profile: dict[str, t.Any], where: str) -> None:
    for entry in mappings(profile, "pluginConfig", where):
        arguments = entry.get("args")
        if not isinstance(arguments, dict):
            continue
        group, _slash, version = text_of(arguments.get("apiVersion")).partition("/")
        if group == GROUP and version != VERSION:
            arguments["apiVersion"] = f"{GROUP}/{VERSION}"


def _repair_extenders(tree: dict[str, t.Any], what: str) -> list[str]:
    """Rename enableHttps, the spelling of the old Policy file, with which a scheduler that decodes strictly crashes."""
    warnings = []
    for index, extender in enumerate(mappings(tree, "extenders", what)):
        if "enableHttps" not in extender:
            continue
        place = f"{what}: extenders[{index}]"
        if "enableHTTPS" not in extender:
            rename(extender, "enableHttps", "enableHTTPS")
        elif is_equal(extender["enableHTTPS"], extender["enableHttps"]):
            del extender["enableHttps"]
        else:
            raise ConfigError(f"{place} has enableHttps and enableHTTPS with different values: remove enableHttps.")
        warnings.append(f"{place}: enableHttps became enableHTTPS, without which kube-scheduler does not start.")
    return warnings
