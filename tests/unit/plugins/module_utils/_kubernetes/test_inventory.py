# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes become hosts, with which groups and address."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.kubernetes_api import node

from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.inventory import (
    Options,
    build_hosts,
    describe_node,
    find_address,
    find_unknown_source,
    reduce_node,
    sanitize_group_name,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.plugin_config import LABEL

DEFAULTS = Options({}, {}, ("InternalIP", "ExternalIP", "Hostname"))
PCI = "feature.node.kubernetes.io/pci-"
CONTROL_PLANE = {"node-role.kubernetes.io/control-plane": ""}


def offer(*names: str, **options: Any) -> dict[str, Any]:
    """A node that has and offers a unit of each of these resources."""
    found = node("n", **options)
    found["status"]["capacity"] = found["status"]["allocatable"] = dict.fromkeys(names, "1")
    return found


@pytest.mark.parametrize(
    ("given", "groups"),
    [
        (offer("nvidia.com/gpu"), "gpu_nodes gpu_vendor_nvidia gpu_sharing_exclusive"),
        (
            offer("nvidia.com/gpu", labels={"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"}),
            "gpu_nodes gpu_product_nvidia_a100_sxm4_40gb gpu_vendor_nvidia gpu_sharing_exclusive",
        ),
        (offer("nvidia.com/mig-1g.5gb"), "gpu_nodes gpu_vendor_nvidia gpu_sharing_mig"),
        (
            offer("nvidia.com/gpu", labels={"nvidia.com/mig.strategy": "single"}),
            "gpu_nodes gpu_vendor_nvidia gpu_sharing_mig",
        ),
        (
            offer("nvidia.com/gpu.shared", labels={"nvidia.com/gpu.sharing-strategy": "time-slicing"}),
            "gpu_nodes gpu_vendor_nvidia gpu_sharing_time_slicing",
        ),
        (
            offer("nvidia.com/gpu", labels={LABEL: "mps-4-01234567"}),
            "gpu_nodes gpu_vendor_nvidia gpu_sharing_mps",
        ),
        (
            offer("aliyun.com/gpu-mem", labels={"gpushare": "true"}),
            "gpu_nodes gpu_vendor_nvidia gpu_sharing_gpushare",
        ),
        (offer("aliyun.com/gpu-mem"), "gpu_nodes gpu_vendor_nvidia gpu_sharing_gpushare"),
        (offer("nano-gpu/gpu-percent"), "gpu_nodes gpu_vendor_nvidia gpu_sharing_nano_gpu"),
        (offer("amd.com/gpu"), "gpu_nodes gpu_vendor_amd"),
        (offer("gpu.intel.com/xe"), "gpu_nodes gpu_vendor_intel"),
        (
            offer("amd.com/gpu", labels={"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"}),
            "gpu_nodes gpu_product_amd_instinct_mi300x_oam gpu_vendor_amd",
        ),
        (
            offer("amd.com/gpu", labels={"gpu-kubernetes/amd.present": "true", "gpu-kubernetes/amd.product": "MI300X"}),
            "gpu_nodes gpu_product_mi300x gpu_vendor_amd",
        ),
        (offer("amd.com/nic"), ""),
        (offer("gpu.intel.com/i915_monitoring"), ""),
        # Nodes without a device plugin.
        (node("n", labels={f"{PCI}10de.present": "true"}), "gpu_nodes gpu_vendor_nvidia gpu_state_not_allocatable"),
        (
            node("n", labels={f"{PCI}0302_10de.present": "true"}),
            "gpu_nodes gpu_vendor_nvidia gpu_state_not_allocatable",
        ),
        (
            node("n", labels={"nvidia.com/gpu.present": "true"}),
            "gpu_nodes gpu_vendor_nvidia gpu_state_not_allocatable",
        ),
        # A network card of NVIDIA, and the graphics of a processor.
        (node("n", labels={f"{PCI}0200_10de.present": "true"}), ""),
        (node("n", labels={f"{PCI}0300_8086.present": "true"}), ""),
        (node("n", labels={f"{PCI}10de.present": "false"}), ""),
        (offer("cpu", "nvidia.com/hostdev"), ""),
        # States.
        (
            node("n", gpus=2, allocatable=0, ready=False, unschedulable=True),
            "gpu_nodes gpu_vendor_nvidia gpu_state_not_ready gpu_state_cordoned gpu_state_not_allocatable",
        ),
        (node("n", labels=CONTROL_PLANE), "kube_control_plane"),
        (
            node("n", gpus=1, labels=CONTROL_PLANE),
            "gpu_nodes gpu_vendor_nvidia gpu_sharing_exclusive kube_control_plane",
        ),
    ],
)
def test_groups_follow_from_resources_labels_and_conditions(given: dict[str, Any], groups: str) -> None:
    hosts, warnings = build_hosts([reduce_node(given)], DEFAULTS)
    assert [" ".join(host.groups) for host in hosts] == ([groups] if groups else [])
    assert warnings == []


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (DEFAULTS, ["c1", "w1"]),
        (Options({}, {}, (), control_planes=False), ["w1"]),
        (Options({"zone": "a"}, {}, ()), ["w1"]),
        (Options({}, {"pool": "gpu"}, ()), ["c1", "new", "w1"]),
        (Options({"zone": "b"}, {"pool": "gpu"}, ()), []),
    ],
)
def test_selector_and_labels_choose_the_hosts(options: Options, names: list[str]) -> None:
    nodes = [
        node("w1", gpus=1, labels={"zone": "a"}),
        node("new", labels={"pool": "gpu"}),
        node("w2"),
        node("c1", labels=CONTROL_PLANE),
    ]
    assert [host.name for host in build_hosts(nodes, options)[0]] == names


@pytest.mark.parametrize("name", ["localhost", "all", "ungrouped", "-oProxyCommand=x", "{{ x }}", "a\nb", ""])
def test_node_with_a_name_of_ansible_is_left_out_with_a_warning(name: str) -> None:
    hosts, warnings = build_hosts([node(name, gpus=1)], DEFAULTS)
    assert hosts == []
    assert len(warnings) == 1
    assert "means something else to Ansible" in warnings[0]
    assert warnings[0].isprintable()


ADDRESSES = [
    {"type": "Hostname", "address": "gpu1.example.com"},
    {"type": "InternalIP", "address": "10.1.0.5"},
    {"type": "InternalIP", "address": "fd00::5"},
    {"type": "ExternalIP", "address": "192.0.2.5"},
]


@pytest.mark.parametrize(
    ("sources", "address"),
    [
        (["InternalIP"], "10.1.0.5"),
        (["ExternalIP", "InternalIP"], "192.0.2.5"),
        (["InternalDNS", "Hostname"], "gpu1.example.com"),
        (["name"], "gpu1"),
        (["192.0.0.0/16"], "192.0.2.5"),
        (["fd00::/8"], "fd00::5"),
        (["172.16.0.0/12"], ""),
        (["172.16.0.0/12", "Hostname"], "gpu1.example.com"),
        (["annotation:example.com/address"], "203.0.113.9"),
        (["annotation:example.com/none", "InternalIP"], "10.1.0.5"),
        ([], ""),
    ],
)
def test_address_is_that_of_the_first_source(sources: list[str], address: str) -> None:
    given = node("gpu1", annotations={"example.com/address": "203.0.113.9"})
    given["status"]["addresses"] = ADDRESSES
    assert find_address(reduce_node(given), sources) == address


@pytest.mark.parametrize(
    "text", ["-oProxyCommand=x", "{{ lookup('pipe', 'id') }}", "a b", "fe80::1%-x", "a/b", "user@a", "localhost", "a\n"]
)
def test_text_that_is_no_address_is_ignored(text: str) -> None:
    given = node("gpu1", annotations={"address": text})
    given["status"]["addresses"] = [{"type": "InternalIP", "address": text}]
    assert find_address(given, ["InternalIP", "annotation:address", "10.0.0.0/8"]) == ""


@pytest.mark.parametrize("source", ["internalIP", "annotation:", "10.0.0.1", "10.0.0.1/8", "label:a", ""])
def test_unknown_source_of_addresses_is_found(source: str) -> None:
    assert find_unknown_source(["InternalIP", source]) == source
    assert find_unknown_source(["InternalIP", "name", "annotation:a/b", "10.0.0.0/8", "fd00::/8"]) == ""


@pytest.mark.parametrize(
    ("name", "group"), [("zone_a-b.c", "zone_a_b_c"), ("{{ x }}", "___x___"), ("4g", "_4g"), ("", ""), (7, "_7")]
)
def test_group_names_have_letters_digits_and_underscores(name: Any, group: str) -> None:
    assert sanitize_group_name(name) == group


COUNT = "nvidia.com/gpu.count"


@pytest.mark.parametrize(
    ("given", "gpus"),
    [
        (node("n", labels={COUNT: "2", "gpu-kubernetes/amd.count": "4", "gpu-kubernetes/intel.count": "x"}), 6),
        (node("n"), 0),
        # Without the label of a vendor.
        (node("n", gpus=8), 8),
        (node("n", gpus=8, allocatable=0), 8),
        (offer("amd.com/gpu"), 1),
        (offer("amd.com/gpu", labels={COUNT: "8"}), 9),
        (offer("gpu.intel.com/i915", "gpu.intel.com/xe"), 2),
        # The label counts, whatever the node offers.
        (node("n", gpus=32, labels={COUNT: "8"}), 8),
        (node("n", gpus=8, labels={COUNT: "x"}), 0),
        # Units that are no whole GPUs.
        (node("n", gpus=32, labels={LABEL: "mps-4-01234567"}), 0),
        (node("n", gpus=32, labels={"nvidia.com/gpu.sharing-strategy": "time-slicing"}), 0),
        (node("n", gpus=7, labels={"nvidia.com/mig.strategy": "single"}), 0),
        (offer("nvidia.com/gpu", "nvidia.com/mig-1g.5gb"), 0),
        (offer("nvidia.com/gpu.shared"), 0),
        (offer("nvidia.com/gpu", labels={"gpushare": "true"}), 0),
        (offer("nvidia.com/gpu", "aliyun.com/gpu-mem"), 0),
    ],
)
def test_gpus_are_counted_by_the_label_of_their_vendor_else_by_whole_gpus(given: dict[str, Any], gpus: int) -> None:
    assert describe_node(reduce_node(given))["gpus"] == gpus


def test_facts_of_a_node_are_amounts_taints_and_versions() -> None:
    given = node("w1", gpus=8, allocatable=7, labels={"nvidia.com/gpu.count": "8"}, taints=[])
    given["spec"]["taints"] = [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]
    given["status"]["nodeInfo"] = {"kubeletVersion": "v1.34.4", "architecture": "amd64", "bootID": "x"}
    facts = describe_node(reduce_node(given))
    assert facts.pop("labels") == {"nvidia.com/gpu.count": "8"}
    assert facts == {
        "name": "w1",
        "vendors": ["nvidia"],
        "products": [],
        "gpus": 8,
        "strategy": "exclusive",
        "capacity": {"nvidia.com/gpu": 8},
        "allocatable": {"nvidia.com/gpu": 7},
        "ready": True,
        "schedulable": True,
        "control_plane": False,
        "taints": ["nvidia.com/gpu=present:NoSchedule"],
        "kubelet_version": "v1.34.4",
        "container_runtime_version": "",
        "architecture": "amd64",
        "os_image": "",
    }
