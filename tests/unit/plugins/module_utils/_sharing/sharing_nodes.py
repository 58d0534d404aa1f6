# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes and hosts for the tests of the plan, made from the catalogue, so that they cover each strategy."""

from __future__ import annotations

from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.catalogue import STRATEGIES
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.node_state import Cluster, is_labelled
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.plan import plan_sharing
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.plugin_config import LABEL, Request, build_config

GPU = "nvidia.com/gpu"
SLICED = {"sharing": {"timeSlicing": {"resources": [{"name": GPU, "replicas": 2}]}}}
#: What hosts declare beside the strategy.
REQUESTS = {"time_slicing": Request(4), "mps": Request(4), "mig": Request(mig_strategy="mixed")}


def config_of(strategy):
    """The node's own configuration of NVIDIA's device plugin, where all nodes have whole GPUs."""
    return build_config({}, STRATEGIES[strategy], REQUESTS.get(strategy, Request()))


def node(strategy="exclusive", allocated=0, reason="", name="n1", **more):
    """A node of a strategy, with allocated units of its resource, and the reason of its maintenance or ""."""
    row = STRATEGIES[strategy]
    resource = row.counted[""]
    amounts = (
        {resource: 2} if row.by_nvidia else {GPU: 0, resource: 2, **dict.fromkeys(row.in_capacity_until_removed, 2)}
    )
    return {
        "name": name,
        "known": True,
        "labels": label_of(strategy),
        "gpu_resources": amounts,
        "gpu_capacity": amounts,
        "gpu_allocated": {resource: allocated},
        "gpu_operator": [],
        "staying_plugins": {},
        "maintenance": {"reason": reason} if reason else None,
        **more,
    }


def empty_node(**more):
    """A node of which no device plugin has reported anything."""
    return node(**{"gpu_resources": {}, "gpu_capacity": {}, "gpu_allocated": {}, **more})


def label_of(strategy):
    name = config_of(strategy).name
    return {**STRATEGIES[strategy].label, **({LABEL: name} if name else {})}


def host(strategy="", name="1", **more):
    request = REQUESTS.get(strategy, Request())
    return {
        "host": f"h{name}",
        "node": f"n{name}",
        "strategy": strategy,
        "gpus": 2,
        "request": request,
        "has_layout": strategy == "mig",
        **more,
    }


def plan(hosts, nodes, **cluster):
    """A plan; the labels of the nodes are in ``labelled`` as well."""
    labelled = {
        row.name: [each["name"] for each in nodes if is_labelled(each["labels"], row)] for row in STRATEGIES.values()
    }
    for name, more in cluster.pop("labelled", {}).items():
        labelled[name] += more
    return plan_sharing(hosts, nodes, Cluster(labelled=labelled, **cluster))


def plan_one(row, strategy="", cluster=(), **parameters):
    """The row of the plan for a host whose node is in the cluster unless *row* is None."""
    planned = plan([host(strategy, **parameters)], [row] if row else [], **dict(cluster))
    return planned["nodes"][0]
