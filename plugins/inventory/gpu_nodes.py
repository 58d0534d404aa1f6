# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Inventory gpu_nodes."""

from __future__ import annotations

DOCUMENTATION = r"""
name: gpu_nodes
short_description: GPU nodes and control planes of a Kubernetes cluster as hosts
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Lists the nodes of a cluster once, and adds those with GPUs to the group C(gpu_nodes) and control planes to C(kube_control_plane).
  - A node has a GPU if it has the resource of a device plugin or a label of a vendor's programs, or if Node Feature Discovery has found an
    NVIDIA GPU on its PCI bus. O(gpu_labels) marks further nodes, such as new ones that have no driver yet.
  - Each GPU node is also in one group by product (C(gpu_product_NAME)), by vendor (C(gpu_vendor_nvidia)) and by sharing strategy
    (C(gpu_sharing_mps)), and in those of C(gpu_state_not_ready), C(gpu_state_cordoned) and C(gpu_state_not_allocatable) that are true.
  - Host variables are C(ansible_host), C(gpu_node_name) and the dictionary C(gpu_node), with C(vendors), C(products), C(gpus), C(strategy), C(capacity),
    C(allocatable), C(ready), C(schedulable), C(control_plane), C(taints), C(labels), C(kubelet_version), C(container_runtime_version),
    C(architecture) and C(os_image).
  - C(gpus) is the number of GPUs by the vendor's label, such as C(nvidia.com/gpu.count). Without this label, it is the capacity of the resource of whole
    GPUs, such as C(nvidia.com/gpu). It is 0 if a label or a resource shows that pods share the GPUs. Time slicing without any label is not recognized,
    and each of its replicas counts as a GPU.
  - The name of the file ends with V(gpu_nodes.yml) or V(gpu_nodes.yaml).
  - Kubelets write the labels and addresses of their nodes. No such value is used as a template, and no value that is not an address is used as one.
options:
  plugin:
    description: The name of this plugin.
    type: str
    required: true
    choices: [gpu.kubernetes.gpu_nodes]
  selector:
    description: Labels that a node must have to be a host.
    type: dict
    default: {}
  gpu_labels:
    description:
      - Labels one of which marks a GPU node by itself.
      - A new node has neither a driver nor a device plugin, so that nothing but its label, or Node Feature Discovery, says that it has a GPU.
    type: dict
    default: {}
  control_planes:
    description: Whether control planes are hosts, too. Sharing by memory or by percent changes kube-scheduler on them.
    type: bool
    default: true
  address_from:
    description:
      - Where C(ansible_host) is from; the first that a node has is used. Without any, Ansible connects to the name of the node.
      - Each is V(InternalIP), V(ExternalIP), V(Hostname), V(name) for the name of the node, V(annotation:KEY), or a network such as
        V(10.20.0.0/16) of which the node has an address.
    type: list
    elements: str
    default: [InternalIP, ExternalIP, Hostname]
extends_documentation_fragment:
  - gpu.kubernetes.k8s_auth
  - constructed
  - inventory_cache
requirements:
  - kubernetes >= 24.2.0
notes:
  - If the API server cannot be read, Ansible goes on with the other sources. Set E(ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED) to V(true) to end the run,
    so that no run covers a part of the nodes by mistake.
  - The account needs the right to list nodes.
seealso:
  - module: gpu.kubernetes.gpu_nodes_info
"""

EXAMPLES = r"""
# gpu_nodes.yml: the cluster of the current context
plugin: gpu.kubernetes.gpu_nodes

---
# site.gpu_nodes.yml: new nodes have the label pool=gpu, and Ansible connects by the network of the administrators
plugin: gpu.kubernetes.gpu_nodes
kubeconfig: ~/.kube/config
gpu_labels:
  pool: gpu
address_from: [10.20.0.0/16, InternalIP]
compose:
  ansible_user: "'admin'"
groups:
  large: gpu_node.gpus >= 8
keyed_groups:
  - key: gpu_node.labels['topology.kubernetes.io/zone'] | default('')
    prefix: zone
cache: true
cache_plugin: ansible.builtin.jsonfile
cache_connection: ~/.cache/gpu-nodes
cache_timeout: 300
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleParserError
from ansible.plugins.inventory import BaseInventoryPlugin, Cacheable, Constructable
from ansible.utils.unsafe_proxy import wrap_var

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_api import AUTH_ARG_SPEC, open_cluster
from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.inventory import (
    InventoryHost,
    Options,
    build_hosts,
    find_unknown_source,
    reduce_node,
    sanitize_group_name,
)

if TYPE_CHECKING:
    from ansible.inventory.data import InventoryData
    from ansible.parsing.dataloader import DataLoader

    from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.objects import Object

SUFFIXES = ("gpu_nodes.yml", "gpu_nodes.yaml")


class InventoryModule(BaseInventoryPlugin, Constructable, Cacheable):
    """Ansible's entry point."""

    NAME = "gpu.kubernetes.gpu_nodes"

    # By default, Ansible keeps every character of a label in the name of a keyed group.
    _sanitize_group_name = staticmethod(sanitize_group_name)

    def verify_file(self, path: str) -> bool:
        """Return whether the file is for this plugin, by its name."""
        return bool(super().verify_file(path)) and path.endswith(SUFFIXES)

    def parse(self, inventory: InventoryData, loader: DataLoader, path: str, cache: bool = True) -> None:
        """Add hosts, groups and variables. Raises AnsibleParserError with one sentence."""
        super().parse(inventory, loader, path, cache)
        self._read_config_data(path)
        unknown = find_unknown_source(self.get_option("address_from"))
        if unknown:
            raise AnsibleParserError(
                f"address_from has {unknown!r}, which is not a source of addresses; use InternalIP, ExternalIP, Hostname, name, annotation:KEY "
                "or a network such as 10.20.0.0/16."
            )
        options = Options(
            self.get_option("selector"),
            self.get_option("gpu_labels"),
            self.get_option("address_from"),
            self.get_option("control_planes"),
        )
        hosts, warnings = build_hosts(self._read_nodes(path, cache), options)
        for warning in warnings:
            self.display.warning(warning)
        for host in hosts:
            self._add(host)

    def _read_nodes(self, path: str, cache: bool) -> list[Object]:
        """Return the nodes from the cache if it is enabled and has them, else from the cluster."""
        caches, key = self.get_option("cache"), self.get_cache_key(path)
        if caches and cache and key in self._cache:
            return list(self._cache[key])
        try:
            cluster = open_cluster({name: self.get_option(name) for name in AUTH_ARG_SPEC})
            nodes = cluster.gather("nodes", reduce_node)
        except ApiError as error:
            raise AnsibleParserError(str(error)) from error
        if caches:
            self._cache[key] = nodes
        return nodes

    def _add(self, host: InventoryHost) -> None:
        self.inventory.add_host(host.name)
        for group in host.groups:
            self.inventory.add_group(group)
            self.inventory.add_child(group, host.name)
        # Kubelets have written them: Ansible must not evaluate them.
        variables: dict[str, Any] = wrap_var(dict(host.variables))
        for name, value in variables.items():
            self.inventory.set_variable(host.name, name, value)
        strict = self.get_option("strict")
        self._set_composite_vars(self.get_option("compose"), variables, host.name, strict)
        self._add_host_to_composed_groups(self.get_option("groups"), variables, host.name, strict)
        self._add_host_to_keyed_groups(self.get_option("keyed_groups"), variables, host.name, strict)
