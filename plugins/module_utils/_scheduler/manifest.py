# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The manifest of kube-scheduler's static pod, edited item by item, and kubeadm's ClusterConfiguration, from which it is rendered."""

from __future__ import annotations

import posixpath
import typing as t
from dataclasses import dataclass

from .._config.errors import ConfigError
from .._config.yaml_nodes import Syntax, ensure, is_equal, mapping, mappings, meaning, text_of
from . import flags

#: Changes with the configuration, since kube-scheduler reads that only when it starts: the kubelet restarts a pod that changes.
CHECKSUM = "gpu-kubernetes/scheduler-config-checksum"
# The same after an undo, where only that makes the kubelet restart the pod.
READ = "gpu-kubernetes/scheduler-config-read"
#: Name of the volume, if the pod does not already have one through which it sees the configuration.
VOLUME = "gpu-kubernetes-scheduler-config"

# Flags of former releases, with which kube-scheduler does not start.
_REFUSED = (
    "policy-config-file",
    "policy-configmap",
    "policy-configmap-namespace",
    "use-legacy-policy-config",
    "address",
    "port",
)
_POLICY = ("policy-config-file", "policy-configmap")

KUBEADM = "kubeadm's ClusterConfiguration"
_KUBEADM_GROUP = "kubeadm.k8s.io/"
#: How each version writes extraArgs.
_KUBEADM_KINDS: t.Mapping[str, type] = {"v1beta2": dict, "v1beta3": dict, "v1beta4": list}


@dataclass(frozen=True)
class Pod:
    """The parts of a manifest that are edited."""

    tree: dict[str, t.Any]
    what: str

    @property
    def metadata(self) -> dict[str, t.Any]:
        """The pod's metadata."""
        return mapping(self.tree, "metadata", self.what)

    @property
    def spec(self) -> dict[str, t.Any]:
        """The pod's specification."""
        return mapping(self.tree, "spec", self.what)

    @property
    def container(self) -> dict[str, t.Any]:
        """The container of kube-scheduler; raises ConfigError if there is none, or more than one."""
        containers = mappings(self.spec, "containers", self.what)
        found = [each for each in containers if text_of(each.get("name")) == flags.PROGRAM]
        found = found or [each for each in containers if flags.is_started(each, self.what)]
        if len(found) != 1:
            names = ", ".join(text_of(each.get("name")) for each in containers) or "none"
            raise ConfigError(
                f"{self.what} has no container kube-scheduler ({names}): give the path of kube-scheduler's manifest."
            )
        return found[0]

    @property
    def flags(self) -> list[flags.Flag]:
        """The flags of kube-scheduler."""
        return flags.parse(self.container, self.what)

    @property
    def image(self) -> str:
        """The image of kube-scheduler."""
        return text_of(self.container.get("image"))

    @property
    def config(self) -> str | None:
        """The file that --config names, as the container sees it; None without one."""
        return flags.last(self.flags, "config") or None

    @property
    def environment(self) -> dict[str, str]:
        """The variables of kube-scheduler that the manifest gives a value."""
        variables = mappings(self.container, "env", self.what)
        return {text_of(each.get("name")): text_of(each.get("value")) for each in variables}

    @property
    def owner(self) -> tuple[int, int] | None:
        """User and group as whom kube-scheduler runs; None for root, as which it runs unless the manifest names another user."""
        user, group = (self._runs_as(key) for key in ("runAsUser", "runAsGroup"))
        return (user, group or 0) if user else None

    def _runs_as(self, key: str) -> int | None:
        for place in (self.container, self.spec):
            number = meaning(mapping(place, "securityContext", self.what).get(key))
            if isinstance(number, int):
                return number
        return None


def is_scheduler(tree: t.Any) -> bool:
    """Whether *tree* is a pod named kube-scheduler, as the kubelet tells pods apart."""
    metadata = tree.get("metadata") if isinstance(tree, dict) else None
    is_pod = isinstance(metadata, dict) and text_of(tree.get("kind")) == "Pod"
    return is_pod and text_of(metadata.get("name")) == flags.PROGRAM  # type: ignore[union-attr]


def pod(tree: t.Any, what: str) -> Pod:
    """Return the pod of a manifest. Raises ConfigError if there is no kube-scheduler in it that can be edited."""
    if not isinstance(tree, dict) or text_of(tree.get("kind")) != "Pod":
        raise ConfigError(f"{what} is not a manifest of a Pod: give the path of kube-scheduler's manifest.")
    found = Pod(tree, what)
    flags.parse(found.container, what)  # raises if they cannot be edited
    mapping(found.metadata, "annotations", what)
    return found


def host_path(found: Pod, path: str) -> str | None:
    """Return the file of the node that the container sees as *path*; None if that is not a file of the node."""
    mount = _mount_of(found, path)
    return None if mount is None else _on_host(found, mount, path)


def container_path(found: Pod, path: str) -> str:
    """Return the path by which the container can see the node's file *path*: through a mount that it has, else the same path.

    Raises ConfigError if another mount hides it.
    """
    for mount in mappings(found.container, "volumeMounts", found.what):
        inside, source = text_of(mount.get("mountPath")), _source(found, mount)
        below = None if source is None else _below(path, source)
        if (
            below is not None
            and _on_host(found, _mount_of(found, _join(inside, below)) or {}, _join(inside, below)) == path
        ):
            return _join(inside, below)
    other = _mount_of(found, path)
    if other is not None:
        raise ConfigError(
            f"{found.what} mounts something else at {text_of(other.get('mountPath'))}, which hides {path}: give another"
            " config_path (kube_scheduler_extender_config_path)."
        )
    return path


def apply(found: Pod, path: str, checksum: str) -> list[str]:
    """Make kube-scheduler read the node's file *path*; return warnings. Raises ConfigError.

    The file itself is mounted, and not its folder, so that kube-scheduler sees nothing else of the node. The mount keeps the file's
    old content when the file is replaced, until the new checksum restarts the pod. The type File keeps the kubelet
    from starting the pod, or creating an empty file, where there is none.
    """
    warnings = _drop_refused(found)
    inside = container_path(found, path)
    if [flag.value for flag in found.flags if flag.name == "config"] != [inside]:
        flags.put(found.container, "config", inside, found.what)
    if _mount_of(found, inside) is None:
        _mount(found, path, inside)
    set_annotation(found, CHECKSUM, checksum)
    return warnings


def set_annotation(found: Pod, key: str, checksum: str) -> None:
    """Make the kubelet restart the pod where it has not read the configuration of this checksum."""
    annotations = ensure(ensure(found.tree, "metadata", dict), "annotations", dict, first=True)
    if not is_equal(annotations.get(key), checksum):
        annotations[key] = checksum


def undo(found: Pod, ref: str | None, managed: str, kubeconfig: str, bare: bool) -> None:
    """Remove what `apply` added, so that kube-scheduler reads the file *ref* afterwards, or none.

    *managed* is the file that it reads because of this collection. *kubeconfig* is given by flag where no file names it any more.
    *bare*: there were no annotations originally, so that empty ones go.
    """
    annotations = mapping(found.metadata, "annotations", found.what)
    if CHECKSUM in annotations:
        del annotations[CHECKSUM]
        if not annotations and bare:
            del found.metadata["annotations"]
    if found.config == managed and ref != managed:
        if ref is not None:
            flags.put(found.container, "config", ref, found.what)
        else:
            flags.remove(found.container, [flag for flag in found.flags if flag.name == "config"])
            if not flags.last(found.flags, "kubeconfig"):
                flags.put(found.container, "kubeconfig", kubeconfig, found.what)
    if found.config != managed:
        _drop_named(found.container, "volumeMounts", found.what)
        _drop_named(found.spec, "volumes", found.what)


def refused_flags(found: Pod) -> list[flags.Flag]:
    """Return the flags with which kube-scheduler does not start."""
    return [flag for flag in found.flags if flag.name in _REFUSED]


def _drop_refused(found: Pod) -> list[str]:
    refused = refused_flags(found)
    for place in flags.PLACES:
        flags.remove(found.container, [flag for flag in refused if flag.place == place])
    warnings = [
        f"{found.what}: --{flag.name} is removed, with which kube-scheduler does not start." for flag in refused
    ]
    policy = next((flag for flag in refused if flag.name in _POLICY), None)
    if policy is not None:
        warnings.append(
            f"The rules of {policy.value} besides the extenders given are not migrated: write them as profiles where they are needed."
        )
    return warnings


def _mount(found: Pod, path: str, inside: str) -> None:
    """Add the volume and its mount. Kubernetes 1.34 refuses static pods that get it in another way, such as by a ConfigMap."""
    for parent, key, entry in (
        (found.container, "volumeMounts", {"mountPath": inside, "name": VOLUME, "readOnly": True}),
        (found.spec, "volumes", {"hostPath": {"path": path, "type": "File"}, "name": VOLUME}),
    ):
        _drop_named(parent, key, found.what, keep_empty=True)
        ensure(parent, key, list).append(entry)


def _drop_named(parent: dict[str, t.Any], key: str, what: str, keep_empty: bool = False) -> None:
    entries = mappings(parent, key, what)
    known = [index for index, entry in enumerate(entries) if text_of(entry.get("name")) == VOLUME]
    for index in reversed(known):
        del entries[index]
    if known and not entries and not keep_empty:
        del parent[key]


def _mount_of(found: Pod, path: str) -> dict[str, t.Any] | None:
    """Return the mount through which the container sees *path*: the deepest one above it."""
    mounts = mappings(found.container, "volumeMounts", found.what)
    above = [mount for mount in mounts if _below(path, text_of(mount.get("mountPath"))) is not None]
    return max(above, key=lambda mount: len(posixpath.normpath(text_of(mount.get("mountPath")))), default=None)


def _on_host(found: Pod, mount: t.Mapping[str, t.Any], path: str) -> str | None:
    source = _source(found, mount)
    below = _below(path, text_of(mount.get("mountPath")))
    return None if source is None or below is None else _join(source, below)


def _source(found: Pod, mount: t.Mapping[str, t.Any]) -> str | None:
    """Return the file or folder of the node behind a mount, None for a mount of something else."""
    name = text_of(mount.get("name"))
    for volume in mappings(found.spec, "volumes", found.what):
        if text_of(volume.get("name")) == name and "hostPath" in volume and not mount.get("subPathExpr"):
            path = text_of(mapping(volume, "hostPath", found.what).get("path"))
            return _join(path, text_of(mount.get("subPath"))) if path else None
    return None


def _below(path: str, folder: str) -> str | None:
    """Return *path* as seen from *folder*, empty for the folder itself; None if it is not below it."""
    path, folder = posixpath.normpath(path), posixpath.normpath(folder) if folder else ""
    if path == folder:
        return ""
    folder = folder.rstrip("/") + "/"
    return path[len(folder) :] if path.startswith(folder) else None


def _join(folder: str, below: str) -> str:
    return posixpath.normpath(posixpath.join(folder, below)) if below else posixpath.normpath(folder)


# -- kubeadm's ClusterConfiguration, from which kubeadm renders the manifest at each upgrade


def with_config(text: str, path: str, syntax: Syntax) -> str:
    """Return the ClusterConfiguration *text* with --config for the node's file *path*, and that file as a volume.

    One that has both is returned as it is, managed or not; another file is removed if its volume is managed. Raises ConfigError, also where
    others have set another file.
    """
    return syntax.edit(text.encode("utf-8"), KUBEADM, lambda tree: _add_config(tree, path)).decode("utf-8")


def without_config(text: str, syntax: Syntax) -> str:
    """Return the ClusterConfiguration without what `with_config` adds, recognised by its volume. Raises ConfigError."""
    return syntax.edit(text.encode("utf-8"), KUBEADM, _drop_config).decode("utf-8")


def _add_config(tree: t.Any, path: str) -> None:
    kind = _kind_of_arguments(tree)
    config, source = _find_config(mapping(tree, "scheduler", KUBEADM), kind)
    if source not in (None, path):
        _drop_config(tree)
        config, _path = _find_config(mapping(tree, "scheduler", KUBEADM), kind)
        if config is not None:
            raise ConfigError(
                f"{KUBEADM} gives kube-scheduler the configuration {source}, and {path} is to be kept: make one of them the other, or set"
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
    if config is None or host_path(_rendered_pod(scheduler), config) is None:
        entry = {"hostPath": path, "mountPath": path, "name": VOLUME, "pathType": "File", "readOnly": True}
        ensure(scheduler, "extraVolumes", list).append(entry)


def _find_config(scheduler: t.Mapping[str, t.Any], kind: type) -> tuple[str | None, str | None]:
    """Return the configuration that is set, as the container sees it and as the node does; None without one."""
    config = _config_argument(scheduler, kind)
    return config, None if config is None else host_path(_rendered_pod(scheduler), config) or config


def _rendered_pod(scheduler: t.Mapping[str, t.Any]) -> Pod:
    """Return the pod that kubeadm renders of the volumes."""
    volumes = mappings(scheduler, "extraVolumes", KUBEADM)
    mounts = [{"name": str(index), "mountPath": volume.get("mountPath")} for index, volume in enumerate(volumes)]
    sources = [
        {"name": str(index), "hostPath": {"path": volume.get("hostPath")}} for index, volume in enumerate(volumes)
    ]
    return Pod({"spec": {"containers": [{"name": flags.PROGRAM, "volumeMounts": mounts}], "volumes": sources}}, KUBEADM)


def _drop_config(tree: t.Any) -> None:
    kind = _kind_of_arguments(tree)
    scheduler = mapping(tree, "scheduler", KUBEADM)
    volumes = mappings(scheduler, "extraVolumes", KUBEADM)
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


def _kind_of_arguments(tree: t.Any) -> type:
    """Return the type of extraArgs. Raises ConfigError for text that is not a ClusterConfiguration of a known version."""
    if not isinstance(tree, dict) or text_of(tree.get("kind")) != "ClusterConfiguration":
        raise ConfigError("The text is not a ClusterConfiguration of kubeadm: check the ConfigMap kubeadm-config.")
    version = text_of(tree.get("apiVersion"))
    kind = _KUBEADM_KINDS.get(version[len(_KUBEADM_GROUP) :]) if version.startswith(_KUBEADM_GROUP) else None
    if kind is None:
        raise ConfigError(
            f"{KUBEADM} is of {version}, which this collection does not know: set kube_scheduler_extender_keep to"
            " false, and give kubeadm the argument yourself."
        )
    return kind


def _config_argument(scheduler: t.Mapping[str, t.Any], kind: type) -> str | None:
    """Return the value of the argument config; of several the last, as the scheduler does."""
    arguments = scheduler.get("extraArgs")
    if not meaning(arguments):
        return None
    if not isinstance(arguments, kind):
        raise ConfigError(
            f"{KUBEADM}: scheduler.extraArgs has to be a {'list' if kind is list else 'mapping'}: correct it."
        )
    if kind is list:
        values = [
            entry.get("value")
            for entry in mappings(scheduler, "extraArgs", KUBEADM)
            if text_of(entry.get("name")) == "config"
        ]
        return text_of(values[-1]) if values else None
    named = mapping(scheduler, "extraArgs", KUBEADM)
    return text_of(named["config"]) if "config" in named else None
