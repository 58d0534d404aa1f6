# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory variables of a cluster's installer that keep what this collection configures, and which of them an inventory lacks.

The installer writes containerd's, the kubelet's and kube-scheduler's files as a whole with each of its runs, so that its inventory has to say the
same. Source: the templates of the roles container-engine/containerd, kubernetes/node and kubernetes/control-plane of the installer.
"""

from __future__ import annotations

import os.path
import typing as t

from .._sharing.catalogue import STRATEGIES

Variables = t.Mapping[str, t.Any]

#: What an entry of a list is recognised by.
_KEYS = {"containerd_additional_runtimes": "name", "kube_scheduler_extenders": "urlPrefix"}
#: Settings of a runtime that only some releases of the installer read.
_OPTIONAL = ("engine", "root")
_PLUGINS = ("io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri")
_RESERVED = {
    "cpu": "cpu_reserved",
    "memory": "memory_reserved",
    "ephemeral-storage": "ephemeral_storage_reserved",
    "pid": "pid_reserved",
}


class InventoryError(ValueError):
    """A variable of this collection for which the installer has none; the message is a sentence without a full stop."""


def build_variables(managed: Variables) -> dict[str, t.Any]:
    """Return the installer's variables that say the same as *managed*, the variables of this collection for a host. Raises InventoryError."""
    found: dict[str, t.Any] = {}
    if managed.get("container_runtime", "auto") in ("auto", "containerd"):
        found.update(_build_containerd(managed))
    labels = dict(managed.get("gpu_node_labels_extra") or {})
    if managed.get("gpu_node_labels_accelerator"):
        labels["accelerator"] = managed["gpu_node_labels_accelerator"]
    if labels:
        found["node_labels"] = labels
    if managed.get("kube_scheduler_extender_extenders"):
        found["kube_scheduler_extenders"] = [dict(each) for each in managed["kube_scheduler_extender_extenders"]]
    elif managed.get("gpu_sharing_strategy") in {
        name for name, row in STRATEGIES.items() if row.scheduler == "extender"
    }:
        raise InventoryError(
            f"the sharing strategy {managed['gpu_sharing_strategy']} adds a scheduler extender, whose address only a run knows; set "
            "kube_scheduler_extender_extenders to the extender that the warning of share_gpus prints."
        )
    for name in ("kube", "system"):
        found.update(_build_reserved(name, managed.get(f"kubelet_reserved_{name}_reserved") or {}))
    if managed.get("kubelet_reserved_eviction_hard"):
        found["eviction_hard"] = dict(managed["kubelet_reserved_eviction_hard"])
    return found


def _build_containerd(managed: Variables) -> dict[str, t.Any]:
    if managed.get("containerd_nvidia_drop_in"):
        # Its template has no imports, and these lines come before its first table.
        folder = os.path.dirname(managed["containerd_nvidia_drop_in"])
        return {"containerd_extra_args": f'imports = ["{folder}/*.toml"]\n'}
    name = str(managed.get("containerd_nvidia_runtime_name") or "nvidia")
    found: dict[str, t.Any] = {
        "containerd_additional_runtimes": [
            {
                "name": name,
                "type": "io.containerd.runc.v2",
                "engine": "",
                "root": "",
                "base_runtime_spec": "cri-base.json",
                "options": {
                    "BinaryName": managed.get("nvidia_container_toolkit_runtime_path")
                    or "/usr/bin/nvidia-container-runtime",
                    # A text, since its template writes a boolean of YAML as Python does.
                    "SystemdCgroup": "true"
                    if is_true(managed.get("containerd_nvidia_systemd_cgroup", True))
                    else "false",
                },
            }
        ]
    }
    if is_true(managed.get("containerd_nvidia_set_default", False)):
        found["containerd_default_runtime"] = name
    if managed.get("containerd_nvidia_enable_cdi") is not None:
        found["enable_cdi"] = is_true(managed["containerd_nvidia_enable_cdi"])
    extra = _build_extra(managed.get("containerd_nvidia_settings") or {})
    if extra:
        found["containerd_extra_runtime_args"] = extra
    return found


def _build_extra(settings: Variables) -> dict[str, t.Any]:
    """Return settings of the CRI plugin itself; raises InventoryError for others."""
    found: dict[str, t.Any] = {}
    for section, plugins in settings.items():
        for plugin, values in plugins.items() if section == "plugins" else [("", {"": None})]:
            for key, value in values.items():
                if plugin not in _PLUGINS or isinstance(value, (dict, list)):
                    place = ".".join(filter(None, [section, plugin, key]))
                    raise InventoryError(
                        f"containerd_nvidia_settings: the installer has no variable for {place}, so put the runtime into a file of its own"
                        " with containerd_nvidia_drop_in"
                    )
                found[key] = value
    return found


def _build_reserved(name: str, reserved: Variables) -> dict[str, t.Any]:
    if not reserved:
        return {}
    unknown = sorted(set(reserved) - set(_RESERVED))
    if unknown:
        raise InventoryError(
            f"kubelet_reserved_{name}_reserved: the installer has no variable for {' and '.join(unknown)}"
        )
    return {f"{name}_reserved": True, **{f"{name}_{_RESERVED[key]}": value for key, value in reserved.items()}}


def is_true(value: t.Any) -> bool:
    """Return whether *value* means true, as a boolean or as the text of one."""
    return str(value).lower() in ("true", "yes", "on", "1")


def find_missing(needed: Variables, inventory: Variables) -> list[str]:
    """Return a sentence for each variable of *needed* that *inventory*, the installer's variables, lacks or has otherwise."""
    return [sentence for name, value in needed.items() for sentence in _compare(name, value, inventory.get(name))]


def _compare(name: str, value: t.Any, there: t.Any) -> t.Iterator[str]:
    if isinstance(value, list):
        yield from _compare_entries(name, value, there or [])
    elif isinstance(value, dict):
        known = there if isinstance(there, dict) else {}
        different = [key for key, each in value.items() if str(known.get(key)) != str(each)]
        yield from (f"{name} has {known.get(key, 'no value')} for {key} and not {value[key]}." for key in different)
    elif name == "containerd_extra_args":
        if value.strip() not in str(there or ""):
            yield f"{name} has no line {value.strip()}."
    elif there is None:
        yield f"{name} is not set, and has to be {value}."
    elif str(there) != str(value):
        yield f"{name} is {there} and not {value}."


def _compare_entries(name: str, entries: t.Sequence[Variables], there: t.Sequence[Variables]) -> t.Iterator[str]:
    key = _KEYS[name]
    known = {each.get(key): each for each in there}
    for entry in entries:
        found = known.get(entry[key])
        if found is None:
            yield f"{name} has no entry with {key} {entry[key]}."
        elif _strip(found) != _strip(entry):
            yield f"{name} has another entry with {key} {entry[key]}."


def _strip(entry: Variables) -> dict[str, t.Any]:
    return {key: value for key, value in entry.items() if key not in _OPTIONAL or value}
