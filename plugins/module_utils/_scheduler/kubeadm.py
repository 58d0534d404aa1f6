# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kubeadm's ClusterConfiguration, of which it makes the manifest of kube-scheduler anew with each upgrade. Private to this collection."""

from __future__ import annotations

import typing as t

from .._yaml_files.errors import EditError
from .._yaml_files.scalars import Syntax, made, mapping, mappings, meaning, text_of
from .flags import PROGRAM
from .manifest import VOLUME, Pod, host_path

WHAT = "kubeadm's ClusterConfiguration"
_GROUP = "kubeadm.k8s.io/"
#: How each version writes extraArgs.
_KINDS: t.Mapping[str, type] = {"v1beta2": dict, "v1beta3": dict, "v1beta4": list}


def with_config(text: str, path: str, syntax: Syntax) -> str:
    """Return the ClusterConfiguration *text* with --config for the node's file *path*, and that file as a volume.

    One that has both comes back as it is, be they ours or not; another file goes if its volume is ours. Raises EditError, also where
    somebody else asks for another file.
    """
    return syntax.edited(text.encode("utf-8"), WHAT, lambda tree: _add(tree, path)).decode("utf-8")


def without_config(text: str, syntax: Syntax) -> str:
    """Return the ClusterConfiguration without what `with_config` adds, which its volume tells. Raises EditError."""
    return syntax.edited(text.encode("utf-8"), WHAT, _drop).decode("utf-8")


def _add(tree: t.Any, path: str) -> None:
    kind = _kind(tree)
    asked, source = _found(mapping(tree, "scheduler", WHAT), kind)
    if source not in (None, path):
        _drop(tree)
        asked, _source = _found(mapping(tree, "scheduler", WHAT), kind)
        if asked is not None:
            raise EditError(
                f"{WHAT} gives kube-scheduler the configuration {source}, and {path} is to be kept: make one of them the other, or set"
                " kube_scheduler_extender_keep to false."
            )
    if not meaning(tree.get("scheduler")):
        # kubeadm writes {}, into which nothing would be put in the usual way.
        tree["scheduler"] = {}
    scheduler = made(tree, "scheduler", dict)
    if asked is None:
        arguments = made(scheduler, "extraArgs", kind)
        if kind is list:
            arguments.append({"name": "config", "value": path})
        else:
            arguments["config"] = path
    if asked is None or host_path(_pod(scheduler), asked) is None:
        entry = {"hostPath": path, "mountPath": path, "name": VOLUME, "pathType": "File", "readOnly": True}
        made(scheduler, "extraVolumes", list).append(entry)


def _found(scheduler: t.Mapping[str, t.Any], kind: type) -> tuple[str | None, str | None]:
    """Return the configuration that is asked for, as the container sees it and as the node does; None without one."""
    asked = _asked(scheduler, kind)
    return asked, None if asked is None else host_path(_pod(scheduler), asked) or asked


def _pod(scheduler: t.Mapping[str, t.Any]) -> Pod:
    """Return what kubeadm makes of the volumes."""
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
    ours = [index for index, volume in enumerate(volumes) if text_of(volume.get("name")) == VOLUME]
    if _asked(scheduler, kind) not in [text_of(volumes[index].get("mountPath")) for index in ours]:
        return
    for index in reversed(ours):
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
    """Return what extraArgs is. Raises EditError for what is no ClusterConfiguration that is known here."""
    if not isinstance(tree, dict) or text_of(tree.get("kind")) != "ClusterConfiguration":
        raise EditError("The text is no ClusterConfiguration of kubeadm: look into the ConfigMap kubeadm-config.")
    version = text_of(tree.get("apiVersion"))
    kind = _KINDS.get(version[len(_GROUP) :]) if version.startswith(_GROUP) else None
    if kind is None:
        raise EditError(
            f"{WHAT} is of {version}, which is not known here: set kube_scheduler_extender_keep to false, and give kubeadm the argument yourself."
        )
    return kind


def _asked(scheduler: t.Mapping[str, t.Any], kind: type) -> str | None:
    """Return the value of the argument config; of several the last, as the scheduler does."""
    arguments = scheduler.get("extraArgs")
    if not meaning(arguments):
        return None
    if not isinstance(arguments, kind):
        raise EditError(f"{WHAT}: scheduler.extraArgs has to be a {'list' if kind is list else 'mapping'}: correct it.")
    if kind is list:
        values = [
            entry.get("value")
            for entry in mappings(scheduler, "extraArgs", WHAT)
            if text_of(entry.get("name")) == "config"
        ]
        return text_of(values[-1]) if values else None
    named = mapping(scheduler, "extraArgs", WHAT)
    return text_of(named["config"]) if "config" in named else None
