# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds what others have in a namespace, before it is removed with everything in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterable

from .._kube_error import ApiError
from .objects import MANAGER_LABEL, Object, get_annotations, get_labels, get_name

if TYPE_CHECKING:
    from .._kube_api import Cluster

# Kubernetes creates these for other objects, and removes them with these.
_DERIVED = frozenset({"Endpoints", "Event", "Lease"})
# Kubernetes creates these in every namespace.
_BUILT_IN = frozenset({("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")})
_ACCOUNT_ANNOTATION = "kubernetes.io/service-account.name"


def find_tenants(contents: Iterable[Object], manager: str) -> list[str]:
    """Return ``Kind name`` of the objects with another manager, or none, sorted.

    *contents* are all objects of a namespace, with apiVersion, kind and metadata. What Kubernetes creates does not count, nor what a
    controller of the namespace has created, since the controller counts.
    """
    listed = list(contents)
    present = {(str(item.get("kind")), get_name(item)) for item in listed}
    return sorted(
        f"{item.get('kind')} {get_name(item)}"
        for item in listed
        if not (
            get_labels(item).get(MANAGER_LABEL) == manager
            or item.get("kind") in _DERIVED
            or (item.get("kind"), get_name(item)) in _BUILT_IN
            or (item.get("kind") == "Secret" and _ACCOUNT_ANNOTATION in get_annotations(item))
            or _has_owner(item, present)
        )
    )


def _has_owner(item: Object, present: set[tuple[str, str]]) -> bool:
    owners = (item.get("metadata") or {}).get("ownerReferences") or []
    return any(owner.get("controller") and (owner.get("kind"), owner.get("name")) in present for owner in owners)


def read_tenants(cluster: Cluster, namespace: Object) -> list[str]:
    """Return the objects that others than the namespace's manager have there.

    If the namespace cannot be read as a whole, this is the reason, because it may have tenants.
    """
    try:
        return find_tenants(
            cluster.namespace_contents(get_name(namespace)), get_labels(namespace).get(MANAGER_LABEL, "")
        )
    except ApiError as error:
        return [f"objects that cannot be listed ({str(error).rstrip('.')})"]
