#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: objects_info
short_description: Read several Kubernetes objects of any kind at once
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal module of this collection, which can change in any release.
  - Replaces a loop over M(kubernetes.core.k8s_info), whose every item starts Python and connects.
  - Accepts manifests, so that the objects of a deployment can be read before they are applied.
options:
  objects:
    description:
      - The objects to read, by C(apiVersion), C(kind) and C(metadata), a Pod also by C(spec.nodeName), and a ResourceSlice by C(spec.driver).
      - With C(metadata.name), one object is read. Without it, all objects with these C(metadata.labels) are listed, of Pods those on
        C(spec.nodeName), of ResourceSlices those of C(spec.driver).
      - Without C(metadata.namespace), objects of all namespaces are listed.
    type: list
    elements: dict
    default: []
  namespaces:
    description:
      - Namespaces as manifests. For each of them, RV(tenants) has the objects without the namespace's label C(app.kubernetes.io/managed-by).
      - All kinds of the API server are listed, custom resources included, with their metadata alone, so that no Secret is read.
    type: list
    elements: dict
    default: []
  unknown_kinds:
    description:
      - Whether a kind that the API does not have, such as one of a newer Kubernetes, fails or has no objects.
    type: str
    choices: [fail, none]
    default: fail
extends_documentation_fragment:
  - gpu.kubernetes.k8s_auth
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.info
  - gpu.kubernetes.attributes.api
seealso:
  - module: kubernetes.core.k8s_info
requirements:
  - kubernetes >= 24.2.0
"""

EXAMPLES = r"""
- name: Read the RuntimeClass and the pods of the device plugin
  gpu.kubernetes.objects_info:
    objects:
      - apiVersion: node.k8s.io/v1
        kind: RuntimeClass
        metadata:
          name: nvidia
      - apiVersion: v1
        kind: Pod
        metadata:
          namespace: kube-system
          labels:
            name: nvidia-device-plugin-ds
  register: cluster

- name: Read the GPUs of NVIDIA's driver for dynamic resource allocation, if the cluster has that API
  gpu.kubernetes.objects_info:
    objects:
      - apiVersion: resource.k8s.io/v1
        kind: ResourceSlice
        metadata: {}
        spec:
          driver: gpu.nvidia.com
    unknown_kinds: none
  register: slices

- name: Find what others have in a namespace
  gpu.kubernetes.objects_info:
    namespaces:
      - apiVersion: v1
        kind: Namespace
        metadata:
          name: gpu
          labels:
            app.kubernetes.io/managed-by: gpu.kubernetes
  register: shared

- name: Show the handler
  ansible.builtin.debug:
    msg: "{{ (cluster.found[0] | first).handler | default('there is none') }}"
"""

RETURN = r"""
found:
  description:
    - The objects of each entry of O(objects), in their order, as a list.
    - C(metadata.managedFields) is left out.
  returned: success
  type: list
  elements: list
  sample: [[{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: nvidia}, handler: nvidia}], []]
known:
  description: For each entry of O(objects), in their order, whether the API has its kind. V(false) only with O(unknown_kinds=none).
  returned: success
  type: list
  elements: bool
  sample: [true, true]
tenants:
  description:
    - The unmanaged objects of each namespace of O(namespaces), as C(Kind name).
    - Objects that Kubernetes or a controller of the namespace has created are left out. If a kind cannot be listed, the entry says so.
  returned: success
  type: dict
  sample: {gpu: [Deployment inference, Secret registry]}
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_api import AUTH_ARG_SPEC, Cluster, connect
from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.namespaces import read_tenants
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.objects import get_name
from ansible_collections.gpu.kubernetes.plugins.module_utils._module import Module, build_module

ARGUMENTS: dict[str, Any] = {
    **AUTH_ARG_SPEC,
    "objects": {"type": "list", "elements": "dict", "default": []},
    "namespaces": {"type": "list", "elements": "dict", "default": []},
    "unknown_kinds": {"type": "str", "choices": ["fail", "none"], "default": "fail"},
}
# The field by which objects of a kind are selected.
FIELDS = {"Pod": "nodeName", "ResourceSlice": "driver"}


def read_objects(cluster: Cluster, desired: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the objects of one entry. Raises ApiError, also for an entry without apiVersion or kind."""
    meta = desired.get("metadata") or {}
    if not (desired.get("apiVersion") and desired.get("kind") and isinstance(meta, dict)):
        raise ApiError(f"objects must each have apiVersion, kind and metadata, not {desired!r}; correct it.")
    field = FIELDS.get(str(desired["kind"]), "")
    value = desired["spec"].get(field) if isinstance(desired.get("spec"), dict) else None
    found = cluster.objects(
        str(desired["apiVersion"]),
        str(desired["kind"]),
        name=str(meta.get("name") or ""),
        namespace=str(meta.get("namespace") or ""),
        labels=meta.get("labels") or {},
        fields=f"spec.{field}={value}" if value else "",
    )
    for item in found:
        item.get("metadata", {}).pop("managedFields", None)
    return found


def run(module: Module) -> None:
    """Report the requested objects and namespaces."""
    cluster = connect(module)
    found: list[list[dict[str, Any]]] = []
    known: list[bool] = []
    for desired in module.params["objects"]:
        try:
            found.append(read_objects(cluster, desired))
            known.append(True)
        except ApiError as error:
            # A missing object with a name is an empty list already.
            if error.status != 404 or module.params["unknown_kinds"] == "fail":
                module.fail_json(msg=str(error))
            found.append([])
            known.append(False)
    tenants = {get_name(namespace): read_tenants(cluster, namespace) for namespace in module.params["namespaces"]}
    module.exit_json(changed=False, found=found, known=known, tenants=tenants)


def main() -> None:
    """Run the module."""
    run(build_module(AnsibleModule, ARGUMENTS))


if __name__ == "__main__":
    main()
