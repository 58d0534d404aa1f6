# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue of managed clusters: how the API shows whose a node is, and who owns which part of its GPUs there.

A row is data, and nodes of no row are of clusters whose hosts the administrator manages. Sources: the providers' documentation of GPU nodes.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

Object = t.Mapping[str, t.Any]

#: What a container mounts that advertises devices.
DEVICE_PLUGINS = "/var/lib/kubelet/device-plugins"


@dataclass(frozen=True)
class Owner:
    """A managed cluster or a kind of its nodes, which all the non-empty marks show, and who owns what.

    ``kubelet`` is a regular expression for the kubelet's version, ``image`` is a part of the name of the operating system, ``label`` is a label's
    name with or without a value, and ``api_group`` is a group of the API server.
    """

    name: str
    driver: str
    plugin: str
    kubelet: str = ""
    image: str = ""
    label: str = ""
    api_group: str = ""
    #: Whether the user installs the device plugin. Otherwise the provider has one.
    is_plugin_open: bool = False
    #: A label of nodes on which the provider installs no device plugin: who sets it installs the driver and the device plugin.
    opt_out: str = ""
    #: Admission plugins of the API server that the provider enables besides its defaults.
    admission_plugins: tuple[str, ...] = ()
    #: Whether nodes may get labels of this collection.
    is_labelled: bool = True
    #: Labels, as shell patterns with a value, each of which shows GPUs of NVIDIA; and labels with the product of the GPUs.
    marks: tuple[str, ...] = ()
    products: tuple[str, ...] = ()


_AWS = r"-eks-"
#: The same labels of NVIDIA's GPU feature discovery and of node feature discovery, on nodes of any row.
MARKS = (
    "nvidia.com/gpu.present=true",
    "nvidia.com/gpu.product=*",
    "feature.node.kubernetes.io/pci-*10de*.present=true",
)
PRODUCTS = ("nvidia.com/gpu.product",)
OWNERS: tuple[Owner, ...] = (
    Owner(
        "EKS Auto Mode",
        "AWS",
        "AWS",
        kubelet=_AWS,
        label="eks.amazonaws.com/compute-type=auto",
        is_labelled=False,
        marks=("eks.amazonaws.com/instance-gpu-manufacturer=nvidia",),
    ),
    Owner(
        "EKS with Bottlerocket",
        "AWS, in the image",
        "AWS, in the image",
        kubelet=_AWS,
        image="Bottlerocket",
        is_labelled=False,
        marks=("karpenter.k8s.aws/instance-gpu-manufacturer=nvidia",),
    ),
    # Of node groups, no label shows GPUs.
    Owner(
        "EKS",
        "the image of the nodes",
        "you",
        kubelet=_AWS,
        is_plugin_open=True,
        marks=("karpenter.k8s.aws/instance-gpu-manufacturer=nvidia", "k8s.amazonaws.com/accelerator=nvidia-*"),
        products=("k8s.amazonaws.com/accelerator", "karpenter.k8s.aws/instance-gpu-name"),
    ),
    Owner(
        "GKE",
        "GKE's installer (gpu-driver-version)",
        "GKE",
        kubelet=r"-gke\.",
        opt_out="gke-no-default-nvidia-gpu-device-plugin=true",
        admission_plugins=("ExtendedResourceToleration",),
        marks=("cloud.google.com/gke-accelerator=nvidia-*",),
        products=("cloud.google.com/gke-accelerator",),
    ),
    Owner(
        "AKS",
        "AKS, unless the pool has --gpu-driver none",
        "you",
        label="kubernetes.azure.com/cluster",
        is_plugin_open=True,
        marks=("kubernetes.azure.com/accelerator=nvidia",),
    ),
    Owner("OpenShift", "NVIDIA's GPU Operator, by OLM", "NVIDIA's GPU Operator", api_group="config.openshift.io"),
)


def find_owner(node: Object, api_groups: t.Collection[str]) -> Owner | None:
    """Return whose the *node* is, None if no row shows it."""
    return next((row for row in OWNERS if _is_of(row, node, api_groups)), None)


def _is_of(row: Owner, node: Object, api_groups: t.Collection[str]) -> bool:
    info = (node.get("status") or {}).get("nodeInfo") or {}
    return all(
        (
            not row.kubelet or re.search(row.kubelet, str(info.get("kubeletVersion"))),
            not row.image or row.image in str(info.get("osImage")),
            not row.label or has_label(node, row.label),
            not row.api_group or row.api_group in api_groups,
        )
    )


def list_admission_plugins(nodes: t.Iterable[Object]) -> set[str]:
    """Return the admission plugins that the providers of *nodes* enable besides the API server's defaults."""
    owners = {find_owner(node, ()) for node in nodes}
    return {name for owner in owners if owner for name in owner.admission_plugins}


def has_label(node: Object, label: str) -> bool:
    """Return whether the *node* has the *label*, of any value if none is given."""
    name, equals, value = label.partition("=")
    labels = node["metadata"].get("labels") or {}
    return name in labels and (not equals or labels[name] == value)


def list_api_groups(services: t.Iterable[Object]) -> set[str]:
    """Return the groups of the API server, as its APIServices name them."""
    return {str(each["spec"].get("group") or "") for each in services}


def find_plugins(daemon_sets: t.Iterable[Object]) -> list[str]:
    """Return the names, with their namespaces, of DaemonSets that mount the kubelet's folder for device plugins."""
    return sorted(
        f"{each['metadata'].get('namespace', '')}/{each['metadata']['name']}"
        for each in daemon_sets
        if any(
            ((volume.get("hostPath") or {}).get("path") or "").rstrip("/") == DEVICE_PLUGINS
            for volume in each["spec"]["template"]["spec"].get("volumes") or []
        )
    )


def describe_cluster(
    nodes: t.Sequence[Object], services: t.Sequence[Object], daemon_sets: t.Sequence[Object], resource: str
) -> dict[str, t.Any]:
    """Return {gpu_nodes, owners, plugins, notes, problems}.

    *gpu_nodes* are the names of nodes that offer the *resource*. *owners* are the rows that nodes have, as {name, nodes, driver, plugin}. Of
    *notes* and *problems*, each is a sentence.
    """
    groups = list_api_groups(services)
    plugins = find_plugins(daemon_sets)
    by_owner: dict[Owner, list[Object]] = {}
    for node in nodes:
        owner = find_owner(node, groups)
        if owner:
            by_owner.setdefault(owner, []).append(node)
    offering = [node for node in nodes if _count(node, "capacity", resource) > 0]
    notes = [sentence for owner, members in by_owner.items() for sentence in _note(owner, members, plugins)]
    if not by_owner:
        notes.append(
            "No node is of a managed cluster that is known here: manage its hosts with gpu_cluster_scope: hosts, if you can."
        )
    return {
        "gpu_nodes": [node["metadata"]["name"] for node in offering],
        "owners": [
            {"name": row.name, "nodes": len(members), "driver": row.driver, "plugin": row.plugin}
            for row, members in by_owner.items()
        ],
        "plugins": plugins,
        "notes": notes,
        "problems": _find_problems(nodes, offering, resource),
    }


def add_test(cluster: t.Mapping[str, t.Any], test: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return the description of a *cluster* with the problems of a smoke test, and in *untested* a sentence for each node without a verdict.

    *test* is the result of the task, also of one that was skipped or failed.
    """
    results = test.get("results") or []
    failed = [each for each in results if not each["passed"] and not each["skipped"]]
    skipped = [each for each in results if each["skipped"]]
    problems = [f"Node {each['node']} did not pass the test: {each['reason']}." for each in failed]
    if "results" not in test and test.get("msg"):
        problems.append(f"The test could not run: {str(test['msg']).rstrip('.')}.")
    return {
        **cluster,
        "problems": [*cluster["problems"], *problems],
        "untested": [f"Node {each['node']} was not tested: {each['reason']}." for each in skipped],
    }


def _note(owner: Owner, nodes: t.Sequence[Object], plugins: t.Sequence[str]) -> t.Iterator[str]:
    yield f"{owner.name} ({len(nodes)} nodes): driver and toolkit are owned by {owner.driver}, the device plugin by {owner.plugin}."
    refused = [node for node in nodes if owner.opt_out and has_label(node, owner.opt_out)]
    if owner.is_plugin_open and not plugins:
        yield (
            f"{owner.name}: no DaemonSet mounts {DEVICE_PLUGINS}, so run gpu.kubernetes.prepare_managed_cluster, unless the image of the nodes has a"
            " device plugin."
        )
    elif refused:
        names = ", ".join(node["metadata"]["name"] for node in refused)
        yield (
            f"{owner.name}: {names} has the label {owner.opt_out}, so that {owner.plugin} installs no device plugin there; its owner is then who"
            " set the label, such as NVIDIA's GPU Operator."
        )


def _find_problems(nodes: t.Sequence[Object], offering: t.Sequence[Object], resource: str) -> list[str]:
    found = []
    if not offering:
        found.append(f"None of the {len(nodes)} nodes offers {resource}.")
    for node in offering:
        capacity, allocatable = (_count(node, kind, resource) for kind in ("capacity", "allocatable"))
        if allocatable < capacity:
            found.append(
                f"Node {node['metadata']['name']}: {capacity - allocatable} of {capacity} {resource} are unhealthy."
            )
    return found


def _count(node: Object, kind: str, resource: str) -> int:
    value = str(((node.get("status") or {}).get(kind) or {}).get(resource) or "0")
    return int(value) if value.isdigit() else 0


# -- what is prepared through the API server alone

#: The labels that are set: the product of the GPUs, and the mark of nodes that get the device plugin.
ACCELERATOR = "accelerator"
PLUGIN_LABEL = "gpu-kubernetes/device-plugin"
#: Taints that come and go: DaemonSets tolerate those of Kubernetes, and no pod belongs on a node that an autoscaler or an update removes.
_PASSING_TAINTS = re.compile(
    r"\A(node\.kubernetes\.io/|node\.cloudprovider\.kubernetes\.io/|karpenter\.sh/|ToBeDeletedByClusterAutoscaler|DeletionCandidateOfClusterAutoscaler)"
)


@dataclass
class Preparation:
    """What a run would do. ``labels`` has the labels of each node, also of those that get none."""

    labels: dict[str, dict[str, str]]
    plugin_nodes: list[str] = field(default_factory=list)
    selector: dict[str, str] = field(default_factory=dict)
    tolerations: list[dict[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)


def plan_preparation(
    cluster: tuple[t.Sequence[Object], t.Sequence[Object], t.Sequence[Object]],
    resource: str,
    selector: t.Mapping[str, str],
) -> Preparation:
    """Return what to do in a *cluster*, which is (nodes, APIServices, DaemonSets), for GPUs of the *resource*.

    Nodes with GPUs are those with all labels of *selector*; without one, those whose labels or capacity show GPUs.
    """
    nodes, services, daemon_sets = cluster
    groups = list_api_groups(services)
    owners = {_name(node): find_owner(node, groups) for node in nodes}
    plan = Preparation({name: {} for name in owners})
    if not any(owners.values()):
        plan.refusals.append(
            "No node is of a managed cluster that is known here, so run gpu.kubernetes.label_gpu_nodes and gpu.kubernetes.deploy_device_plugin, which"
            " connect to the hosts."
        )
        return plan
    with_gpus = find_gpu_nodes(nodes, groups, resource, selector)
    if not with_gpus:
        plan.refusals.append(
            "No node of the managed cluster has the labels of gpu_managed_cluster_node_selector, so correct it, or leave it out to find nodes by their"
            " labels and capacity."
            if selector
            else "No node of the cluster shows by its labels or its capacity that it has GPUs of NVIDIA, so set gpu_managed_cluster_node_selector to a label"
            " that all your nodes with GPUs have and no others, such as that of their node group."
        )
    _plan_labels(plan, with_gpus)
    _plan_plugin(plan, with_gpus, daemon_sets, resource, selector)
    return plan


def find_gpu_nodes(
    nodes: t.Iterable[Object], api_groups: t.Collection[str], resource: str, selector: t.Mapping[str, str]
) -> list[tuple[Object, Owner]]:
    """Return the nodes with GPUs of managed clusters, and whose each is; *resource* and *selector* as in plan_preparation."""
    return [
        (node, owner)
        for node in nodes
        for owner in [find_owner(node, api_groups)]
        if owner and _has_gpus(node, owner, resource, selector)
    ]


def _name(node: Object) -> str:
    return str(node["metadata"]["name"])


def _has_gpus(node: Object, owner: Owner, resource: str, selector: t.Mapping[str, str]) -> bool:
    labels = node["metadata"].get("labels") or {}
    if selector:
        return all(labels.get(name) == value for name, value in selector.items())
    texts = [f"{name}={value}" for name, value in labels.items()]
    marks = (*owner.marks, *MARKS)
    return _count(node, "capacity", resource) > 0 or any(fnmatchcase(text, mark) for text in texts for mark in marks)


def _plan_labels(plan: Preparation, with_gpus: t.Sequence[tuple[Object, Owner]]) -> None:
    unknown = []
    for node, owner in with_gpus:
        labels = node["metadata"].get("labels") or {}
        product = next((labels[name] for name in (*owner.products, *PRODUCTS) if labels.get(name)), "")
        if owner.is_labelled and product:
            plan.labels[_name(node)][ACCELERATOR] = product.lower()
        elif owner.is_labelled and ACCELERATOR not in labels:
            unknown.append(_name(node))
    if unknown:
        plan.notes.append(
            f"No label of {', '.join(unknown)} names the product of the GPUs, so that {ACCELERATOR} is not set there; set it in the node group."
        )


def _plan_plugin(
    plan: Preparation,
    with_gpus: t.Sequence[tuple[Object, Owner]],
    daemon_sets: t.Sequence[Object],
    resource: str,
    selector: t.Mapping[str, str],
) -> None:
    has_managed = bool(find_plugins(each for each in daemon_sets if has_label(each, _MANAGED)))
    chosen: list[Object] = []
    left: dict[str, list[str]] = {}
    for node, owner in with_gpus:
        # Driver and runtime of a node that the provider left out are not those that this device plugin expects.
        if owner.opt_out and has_label(node, owner.opt_out):
            left.setdefault(f"its owner is who set the label {owner.opt_out}", []).append(_name(node))
        elif not owner.is_plugin_open:
            left.setdefault(f"the device plugin is owned by {owner.plugin}", []).append(_name(node))
        elif _count(node, "capacity", resource) > 0 and not has_managed:
            others = " and ".join(find_plugins(daemon_sets)) or "the image of the nodes"
            left.setdefault(f"{others} offers {resource} already", []).append(_name(node))
        else:
            chosen.append(node)
    plan.notes += [
        f"No device plugin is deployed on {', '.join(names)}, since {reason}." for reason, names in left.items()
    ]
    if not chosen:
        return
    kept_off = [name for names in left.values() for name in names]
    if selector and kept_off:
        plan.refusals.append(
            f"gpu_managed_cluster_node_selector also selects {', '.join(kept_off)}, where others offer the GPUs, and two device plugins would allocate the"
            " same GPUs twice, so give it a label that these nodes do not have."
        )
    plan.plugin_nodes = [_name(node) for node in chosen]
    plan.selector = dict(selector) or {PLUGIN_LABEL: "true"}
    plan.tolerations = list_tolerations(chosen)
    if not selector:
        for name in plan.plugin_nodes:
            plan.labels[name][PLUGIN_LABEL] = "true"
        plan.notes.append(
            "Nodes that join later get no device plugin before the next run; with gpu_managed_cluster_node_selector they get it by themselves."
        )


_MANAGED = "app.kubernetes.io/managed-by=gpu.kubernetes"


def list_tolerations(nodes: t.Iterable[Object]) -> list[dict[str, str]]:
    """Return a toleration for each taint of the *nodes* that lasts, in a stable order."""
    taints = {
        (taint["key"], taint["effect"])
        for node in nodes
        for taint in (node.get("spec") or {}).get("taints") or []
        if not _PASSING_TAINTS.match(taint["key"])
    }
    return [{"key": key, "operator": "Exists", "effect": effect} for key, effect in sorted(taints)]
