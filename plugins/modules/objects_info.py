#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: objects_info
short_description: Look for several Kubernetes objects of any kind at once
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Answers in one go what a loop over M(kubernetes.core.k8s_info) asks one by one, each with a start of Python and a connection.
  - Takes manifests, so that what is about to be applied can be looked for as it is.
options:
  objects:
    description:
      - What to look for. Of each, C(apiVersion), C(kind) and C(metadata) count, of a Pod its C(spec.nodeName), and of a ResourceSlice its
        C(spec.driver).
      - One with C(metadata.name) is read by its name, one without is a list of all that carry its C(metadata.labels), of
        Pods those that are on its C(spec.nodeName), of ResourceSlices those of its C(spec.driver).
      - Without C(metadata.namespace), objects of all namespaces are listed.
    type: list
    elements: dict
    required: true
  unknown_kinds:
    description:
      - What to do about a kind that the API does not have, such as that of a newer Kubernetes. With V(none), there is none of it.
    type: str
    choices: [fail, none]
    default: fail
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.info
  - gpu.kubernetes.attributes.api
seealso:
  - module: kubernetes.core.k8s_info
requirements:
  - kubernetes >= 24.2.0
"""

EXAMPLES = r"""
- name: Look for the RuntimeClass and the pods of the device plugin
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

- name: Look which GPUs NVIDIA's driver for dynamic resource allocation hands out, if the cluster knows any
  gpu.kubernetes.objects_info:
    objects:
      - apiVersion: resource.k8s.io/v1
        kind: ResourceSlice
        metadata: {}
        spec:
          driver: gpu.nvidia.com
    unknown_kinds: none
  register: slices

- name: Show the handler
  ansible.builtin.debug:
    msg: "{{ (cluster.found[0] | first).handler | default('there is none') }}"
"""

RETURN = r"""
found:
  description:
    - What was found of each of O(objects), in their order. A list with one object or none for a name, with any number for labels.
    - C(metadata.managedFields) is left out.
  returned: success
  type: list
  elements: list
  sample: [[{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: nvidia}, handler: nvidia}], []]
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_api import AUTH_ARG_SPEC, Cluster, connect
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.api import ApiError

# By which of its fields objects of a kind are looked for.
FIELDS = {"Pod": "nodeName", "ResourceSlice": "driver"}


def look_for(cluster: Cluster, wanted: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what the cluster has of one of the wanted. Raises ApiError, also for one that does not say what it is."""
    meta = wanted.get("metadata") or {}
    if not (wanted.get("apiVersion") and wanted.get("kind") and isinstance(meta, dict)):
        raise ApiError(f"objects must each have apiVersion, kind and metadata, not {wanted!r}; correct it.")
    field = FIELDS.get(str(wanted["kind"]), "")
    value = wanted["spec"].get(field) if isinstance(wanted.get("spec"), dict) else None
    found = cluster.objects(
        str(wanted["apiVersion"]),
        str(wanted["kind"]),
        name=str(meta.get("name") or ""),
        namespace=str(meta.get("namespace") or ""),
        labels=meta.get("labels") or {},
        fields=f"spec.{field}={value}" if value else "",
    )
    for item in found:
        item.get("metadata", {}).pop("managedFields", None)
    return found


def main() -> None:
    """Run the module."""
    spec = {
        **AUTH_ARG_SPEC,
        "objects": {"type": "list", "elements": "dict", "required": True},
        "unknown_kinds": {"type": "str", "choices": ["fail", "none"], "default": "fail"},
    }
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    cluster = connect(module)
    found: list[list[dict[str, Any]]] = []
    for wanted in module.params["objects"]:
        try:
            found.append(look_for(cluster, wanted))
        except ApiError as error:
            # What has a name and is not there is none of it already.
            if error.status != 404 or module.params["unknown_kinds"] == "fail":
                module.fail_json(msg=str(error))
            found.append([])
    module.exit_json(changed=False, found=found)


if __name__ == "__main__":
    main()
