# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes and hosts for the tests of the plan, made from the catalogue, so that they cover each strategy."""

from __future__ import annotations

from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.catalogue import STRATEGIES
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.node_state import Cluster
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.plan import plan_sharing

GPU = "nvidia.com/gpu"
SLICED = {"sharing": {"timeSlicing": {"resources": [{"name": GPU, "replicas": 2}]}}}
#: Configurations of NVIDIA's device plugin, by strategy.
CONFIGS = {
    "exclusive": {},
    "time_slicing": SLICED,
    "mps": {"sharing": {"mps": {"resources": []}}},
    "mig": {"flags": {"migStrategy": "single"}},
}


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
        "labels": dict(row.label),
        "gpu_resources": amounts,
        "gpu_capacity": amounts,
        "gpu_allocated": {resource: allocated},
        "gpu_operator": False,
        "staying_plugins": {},
        "maintenance": {"reason": reason} if reason else None,
        **more,
    }


def empty_node(**more):
    """A node of which no device plugin has reported anything."""
    return node(**{"gpu_resources": {}, "gpu_capacity": {}, "gpu_allocated": {}, **more})


def label_of(strategy):
    return dict(STRATEGIES[strategy].label)


def host(strategy="", name="1", **more):
    return {"host": f"h{name}", "node": f"n{name}", "strategy": strategy, "gpus": 2, **more}


def plan(hosts, nodes, **cluster):
    """A plan; the labels of the nodes are in ``labelled`` as well."""
    labelled = {
        row.name: [each["name"] for each in nodes if row.is_labelled(each["labels"])] for row in STRATEGIES.values()
    }
    for name, more in cluster.pop("labelled", {}).items():
        labelled[name] += more
    return plan_sharing(hosts, nodes, Cluster(labelled=labelled, **cluster))


def plan_one(row, strategy="", cluster=(), **parameters):
    """The row of the plan for a host whose node is in the cluster unless *row* is None."""
    planned = plan([host(strategy, **parameters)], [row] if row else [], **dict(cluster))
    return planned["nodes"][0]
