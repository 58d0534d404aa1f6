# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kubeadm's ClusterConfiguration, from which it renders the manifest of kube-scheduler at each upgrade."""

from __future__ import annotations

import typing as t

from .._config.errors import ConfigError
from .._config.yaml_nodes import Syntax, ensure, mapping, mappings, meaning, text_of
from .flags import PROGRAM
from .manifest import VOLUME, Pod, host_path

WHAT = "kubeadm's ClusterConfiguration"
_GROUP = "kubeadm.k8s.io/"
#: How each version writes extraArgs.
_KINDS: t.Mapping[str, type] = {"v1beta2": dict, "v1beta3": dict, "v1beta4": list}


def with_config(text: str, path: str, syntax: Syntax) -> str:
    """Return the ClusterConfiguration *text* with --config for the node's file *path*, and that file as a volume.

    One that has both is returned as it is, managed or not; another file is removed if its volume is managed. Raises ConfigError, also where
    others have set another file.
    """
    return syntax.edit(text.encode("utf-8"), WHAT, lambda tree: _add(tree, path)).decode("utf-8")


def without_config(text: str, syntax: Syntax) -> str:
    """Return the ClusterConfiguration without what `with_config` adds, recognised by its volume. Raises ConfigError."""
    return syntax.edit(text.encode("utf-8"), WHAT, _drop).decode("utf-8")


def _add(tree: t.Any, path: str) -> None:
    kind = _kind(tree)
    config, source = _find_config(mapping(tree, "scheduler", WHAT), kind)
    if source not in (None, path):
        _drop(tree)
        config, _source = _find_config(mapping(tree, "scheduler", WHAT), kind)
        if config is not None:
            raise ConfigError(
                f"{WHAT} gives kube-scheduler the configuration {source}, and {path} is to be kept: make one of them the other, or set"
                " kube_scheduler_extender_keep to false."
            )
    if not meaning(tree.get("scheduler")):
        # kubeadm writes {}, and keys would be added inside the braces.
        tree["scheduler"] = {}
    scheduler = ensure(tree, "scheduler", dict)
    if config is None:
        arguments = ensure(scheduler, "extraArgs", kind)
        if kind is list:
            arguments.append({"name": "config", "value": path})
        else:
            arguments["config"] = path
    if config is None or host_path(_pod(scheduler), config) is None:
        entry = {"hostPath": path, "mountPath": path, "name": VOLUME, "pathType": "File", "readOnly": True}
        ensure(scheduler, "extraVolumes", list).append(entry)


def _find_config(scheduler: t.Mapping[str, t.Any], kind: type) -> tuple[str | None, str | None]:
    """Return the configuration that is set, as the container sees it and as the node does; None without one."""
    config = _config_argument(scheduler, kind)
    return config, None if config is None else host_path(_pod(scheduler), config) or config


def _pod(scheduler: t.Mapping[str, t.Any]) -> Pod:
    """Return the pod that kubeadm renders of the volumes."""
    volumes = mappings(scheduler, "extraVolumes", WHAT)
    mounts = [{"name": str(index), "mountPath": volume.get("mountPath")} for index, volume in enumerate(volumes)]
    sources = [
        {"name": str(index), "hostPath": {"path": volume.get("hostPath")}} for index, volume in enumerate(volumes)
    ]
    return Pod({"spec": {"containers": [{"name": PROGRAM, "volumeMounts": mounts}], "volumes": sources}}, WHAT)


def _drop(tree: t.Any) -> None:
    kind = _kind(tree)
    scheduler = mapping(tree, "scheduler", WHAT)
    volumes = mappings(scheduler, "extraVolumes", WHAT)
    managed = [index for index, volume in enumerate(volumes) if text_of(volume.get("name")) == VOLUME]
    if _config_argument(scheduler, kind) not in [text_of(volumes[index].get("mountPath")) for index in managed]:
        return
    for index in reversed(managed):
        del volumes[index]
    arguments = scheduler["extraArgs"]
    if kind is list:
        named = [index for index, entry in enumerate(arguments) if text_of(entry.get("name")) == "config"]
        for index in reversed(named):
            del arguments[index]
    else:
        del arguments["config"]
    for key in ("extraArgs", "extraVolumes"):
        if not scheduler[key]:
            del scheduler[key]


def _kind(tree: t.Any) -> type:
    """Return the type of extraArgs. Raises ConfigError for text that is not a ClusterConfiguration of a known version."""
    if not isinstance(tree, dict) or text_of(tree.get("kind")) != "ClusterConfiguration":
        raise ConfigError("The text is not a ClusterConfiguration of kubeadm: check the ConfigMap kubeadm-config.")
    version = text_of(tree.get("apiVersion"))
    kind = _KINDS.get(version[len(_GROUP) :]) if version.startswith(_GROUP) else None
    if kind is None:
        raise ConfigError(
            f"{WHAT} is of {version}, which this collection does not know: set kube_scheduler_extender_keep to false, and give kubeadm the argument yourself."
        )
    return kind


def _config_argument(scheduler: t.Mapping[str, t.Any], kind: type) -> str | None:
    """Return the value of the argument config; of several the last, as the scheduler does."""
    arguments = scheduler.get("extraArgs")
    if not meaning(arguments):
        return None
    if not isinstance(arguments, kind):
        raise ConfigError(
            f"{WHAT}: scheduler.extraArgs has to be a {'list' if kind is list else 'mapping'}: correct it."
        )
    if kind is list:
        values = [
            entry.get("value")
            for entry in mappings(scheduler, "extraArgs", WHAT)
            if text_of(entry.get("name")) == "config"
        ]
        return text_of(values[-1]) if values else None
    named = mapping(scheduler, "extraArgs", WHAT)
    return text_of(named["config"]) if "config" in named else None
