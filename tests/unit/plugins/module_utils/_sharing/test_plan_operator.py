# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes whose device plugin NVIDIA's GPU Operator deploys are shared by its labels and its ConfigMap."""

from __future__ import annotations

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.catalogue import STRATEGIES
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.gpu_operator import (
    OPERATOR_ROLE,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.node_state import reason_of
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.plan import render_plan
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.plugin_config import Request, build_config
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._sharing.operated_nodes import (
    ALL,
    CONFIG,
    MIG,
    SLICES,
    STATE,
    WHERE,
    operated,
    policy,
)
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._sharing.sharing_nodes import (
    GPU,
    config_of,
    empty_node,
    host,
    node,
    plan,
    plan_one,
)

NVIDIA = [name for name, row in STRATEGIES.items() if row.by_nvidia]
OWNED = {"gpu-kubernetes/managed-labels": '{"gpu_operator": {"nvidia.com/mig.config": {"set": "x", "was": null}}}'}


def labels_after(strategy):
    if strategy == "mig":
        return {MIG: "all-1g.10gb"}
    name = config_of(strategy).name
    return {**({CONFIG: name} if name else {}), MIG: "all-disabled"}


@pytest.mark.parametrize("before", NVIDIA)
@pytest.mark.parametrize("after", NVIDIA)
def test_pair_of_strategies_is_changed_by_labels_alone(before, after):
    """Neither the device plugin of this collection nor what it does on hosts is used."""
    declared = SLICES if after == "mig" else {}
    planned = plan([host(after, migrate=True, **declared)], [operated(before, allocated=1)], **policy())
    [row], cluster = planned["nodes"], planned["cluster"]
    assert row["blockers"] == []
    assert (row["to"], row["role"], row["labels"]) == (after, OPERATOR_ROLE, labels_after(after))
    assert (row["config_name"], row["preflight"], row["node_absent"]) == (labels_after(after).get(CONFIG, ""), [], [])
    assert (row["pause"], row["cluster_present"], row["operated"]) == (False, "", list(ALL))
    assert (cluster["present"], cluster["leaves"], cluster["plugin_configs"]) == ([], [], {})
    changes = before != after
    assert row["from"] == ([before] if changes else [])
    assert row["node_present"] == ([OPERATOR_ROLE] if changes else [])
    assert (row["cordon"], row["drain"]) == ((True, "gpu") if changes else (False, "none"))
    moves_mig = changes and "mig" in (before, after)
    expected = (labels_after(after)[MIG], True) if moves_mig else ("", False)
    assert (row["mig_config"], row["mig_changes"]) == expected
    if after != "mig":
        assert row["config"] == config_of(after).document
    else:
        assert row["config"]["flags"] == {"migStrategy": "single"}
    assert "shared by NVIDIA's GPU Operator: n1" in render_plan(planned)


def test_change_is_refused_while_pods_hold_gpus():
    [sentence] = plan_one(operated(allocated=1), "time_slicing", cluster=policy())["blockers"]
    assert sentence.startswith(
        f"{WHERE}its GPUs are shared as exclusive, time_slicing is requested, and pods hold GPUs;"
    )


def test_undeclared_strategy_stays():
    for strategy in NVIDIA:
        row = plan_one(operated(strategy, allocated=1), cluster=policy([config_of("mps")]))
        assert (row["to"], row["role"], row["node_present"], row["blockers"]) == (strategy, OPERATOR_ROLE, [], [])
        assert (row["cordon"], row["labels"]) == (False, labels_after(strategy))
    row = plan_one({**operated(), "labels": {CONFIG: "mine"}}, cluster=policy(config_map=""))
    assert (row["blockers"], row["labels"], row["node_present"]) == ([], {CONFIG: "mine"}, [])
    # What is below a name of others is not known.
    row = plan_one({**operated(), "labels": {CONFIG: "mine", MIG: "all-1g.10gb"}}, cluster=policy())
    assert (row["to"], row["config_name"], row["config"]) == ("mig", "mine", {})


def test_declared_strategy_has_a_name_where_the_operator_has_a_default():
    """What the default of the operator's ConfigMap declares is not known."""
    row = plan_one(operated(), "exclusive", cluster=policy(default_config="any"))
    named = build_config({}, STRATEGIES["exclusive"], Request(), named=True)
    assert (row["config_name"], row["config"], row["cordon"]) == (named.name, {"version": "v1"}, True)
    assert row["config_name"].startswith("exclusive-")
    assert plan_one(operated(), cluster=policy(default_config="any"))["node_present"] == []


def test_mig_has_a_name_where_the_operator_has_a_default():
    """The default may share GPUs in time, so that the device plugin would report more than the MIG devices."""
    cluster = policy(default_config="any")
    planned = plan([host("mig", **SLICES)], [operated()], **cluster)
    [row] = planned["nodes"]
    assert planned["cluster"]["operator"]["default_config"] == "any"
    named = build_config({}, STRATEGIES["mig"], Request(mig_strategy="single"), named=True)
    assert (row["config_name"], row["config"], row["blockers"]) == (named.name, named.document, [])
    assert row["labels"] == {CONFIG: named.name, MIG: "all-1g.10gb"}
    assert "enter mig (all-1g.10gb)" in row["steps"]
    # The run that follows changes nothing.
    after = {**operated("mig"), "labels": {**row["labels"], STATE: "success"}}
    cluster = policy([named], default_config="any")
    for declared in ("mig", ""):
        row = plan_one(after, declared, cluster=cluster, **(SLICES if declared else {}))
        assert (row["to"], row["node_present"], row["cordon"]) == ("mig", [], False)
        assert (row["config_name"], row["labels"][MIG]) == (named.name, "all-1g.10gb")
    # What the default declares is not known.
    row = plan_one(operated("mig"), cluster=cluster)
    assert (row["to"], row["config_name"], row["config"], row["node_present"]) == ("mig", "", {}, [])


def test_interrupted_change_is_resumed():
    reason = reason_of(["exclusive"], "mig")
    for state in ("success", "pending"):
        row = plan_one(operated("mig", reason=reason, state=state), "mig", cluster=policy(), **SLICES)
        assert (row["cordon"], row["node_present"]) == (True, [OPERATOR_ROLE])
        assert (row["mig_config"], row["mig_changes"]) == ("all-1g.10gb", False)
    # A change of MIG devices that others have begun is waited for.
    row = plan_one(operated("mig", state="pending"), "mig", cluster=policy(), **SLICES)
    assert (row["node_present"], row["mig_config"]) == ([OPERATOR_ROLE], "all-1g.10gb")


def test_node_without_gpus_is_left_alone():
    row = plan_one({**empty_node(), "gpu_operator": list(ALL)}, "time_slicing", cluster=policy(config_map=""), gpus=0)
    assert (row["blockers"], row["node_present"]) == ([], [])


def test_fresh_node_gets_its_labels_without_a_drain():
    row = plan_one({**empty_node(), "gpu_operator": list(ALL)}, "time_slicing", cluster=policy())
    assert (row["cordon"], row["node_present"]) == (False, [OPERATOR_ROLE])


def test_key_that_others_have_removed_is_added_without_a_drain():
    row = plan_one(operated("time_slicing", allocated=1), "time_slicing", cluster=policy([]))
    config = config_of("time_slicing")
    assert (row["node_present"], row["cordon"], row["blockers"]) == ([OPERATOR_ROLE], False, [])
    assert (row["config"], row["steps"]) == (config.document, [f"enter time_slicing ({config.name})"])


def test_keys_that_no_node_names_afterwards_are_unused():
    kept, former, later = (build_config({}, STRATEGIES["time_slicing"], Request(count)) for count in (2, 4, 8))
    names = {"n1": former.name, "n2": kept.name, "n3": ""}
    cluster = policy([kept, former], names)
    planned = plan([host("time_slicing", request=Request(8))], [operated("time_slicing")], **cluster)
    assert planned["nodes"][0]["labels"][CONFIG] == later.name
    assert planned["cluster"]["operator"] == {
        "namespace": "gpu-operator",
        "config_map": "configs",
        "default_config": "",
        "plugin_labels": {"app": "nvidia-device-plugin-daemonset"},
        "configured": [
            "nvidia-device-plugin-mps-control-daemon",
            "nvidia-device-plugin-daemonset",
            "gpu-feature-discovery",
        ],
        "unused": [former.name],
    }
    planned = plan([host("time_slicing")], [operated("time_slicing")], **cluster)
    assert planned["cluster"]["operator"]["unused"] == []
    # Nodes without a label have the default of the ClusterPolicy.
    cluster = policy([kept, former], names, default_config=former.name)
    planned = plan([host("time_slicing", request=Request(8))], [operated("time_slicing")], **cluster)
    assert planned["cluster"]["operator"]["unused"] == []
    # A node that leaves the operator does not name its key afterwards.
    left = operated("time_slicing", parts=[], annotations=owned_by(OPERATOR_ROLE))
    planned = plan([host("exclusive")], [left], **policy([kept, former], names))
    assert planned["cluster"]["operator"]["unused"] == [former.name]


def test_removal_takes_the_labels_of_this_collection_off():
    labelled = operated("mps", annotations=OWNED)
    planned = plan([host()], [labelled], absent=True, **policy([config_of("mps")], {"n1": config_of("mps").name}))
    [row] = planned["nodes"]
    assert (row["from"], row["node_absent"], row["labels"], row["blockers"]) == (["mps"], [OPERATOR_ROLE], {}, [])
    assert planned["cluster"]["operator"]["unused"] == [config_of("mps").name]
    assert plan_one(operated("mps"), cluster={"absent": True, **policy()})["node_absent"] == []
    held = plan_one(operated("mps", allocated=1, annotations=OWNED), cluster={"absent": True, **policy()})["blockers"]
    assert [GPU in sentence and "set mps_remove_used to true" in sentence for sentence in held] == [True]
    # The operator is gone, and its labels are still there.
    left = {**operated("exclusive", parts=[], annotations=OWNED)}
    assert plan_one(left, cluster={"absent": True})["node_absent"] == [OPERATOR_ROLE]


def owned_by(role):
    return {"gpu-kubernetes/managed-labels": f'{{"{role}": {{"{CONFIG}": {{"set": "x", "was": null}}}}}}'}


SLICED_AGAIN = {"request": Request(8)}
#: The strategy of a node, the declared one, its parameters, and whether the label of the former owner leaves the node.
HANDED_OVER = {
    "other-count": ("time_slicing", "time_slicing", SLICED_AGAIN, True),
    "other-strategy": ("time_slicing", "mps", {}, True),
    "no-configuration": ("time_slicing", "exclusive", {}, True),
    # Both owners may set the same value, so that the device plugin does not lose its configuration in between.
    "same": ("time_slicing", "time_slicing", {}, False),
    "undeclared": ("time_slicing", "", {}, False),
}


@pytest.mark.parametrize(("before", "after", "parameters", "leaves"), HANDED_OVER.values(), ids=HANDED_OVER)
def test_node_that_changes_its_owner_loses_the_labels_of_the_former_one(before, after, parameters, leaves):
    def plan_with(parts, owner):
        labelled = operated(before, parts=parts, annotations=owned_by(owner))
        return plan_one(labelled, after, cluster=policy(), **parameters)

    row = plan_with(["driver"], OPERATOR_ROLE)
    assert (row["role"], row["labels"], OPERATOR_ROLE in row["node_absent"]) == ("k8s_device_plugin", {}, leaves)
    assert ("remove labels of gpu_operator" in row["steps"]) is leaves
    row = plan_with(list(ALL), "k8s_device_plugin")
    assert (row["role"], row["node_absent"]) == (OPERATOR_ROLE, ["k8s_device_plugin"] if leaves else [])
    # Those of the same owner are replaced, and do not leave before.
    assert plan_with(list(ALL), OPERATOR_ROLE)["node_absent"] == []
    row = plan_with(["driver"], "k8s_device_plugin")
    assert OPERATOR_ROLE not in row["node_absent"]


def test_labels_for_the_operator_leave_a_node_with_another_device_plugin():
    row = plan_one(operated("mps", parts=[], annotations=OWNED), "gpushare", cluster=policy())
    assert OPERATOR_ROLE in row["node_absent"]
    row = plan_one(operated("mig", parts=[], annotations=OWNED), "exclusive", cluster=policy())
    assert (row["node_absent"], row["mig_config"]) == ([OPERATOR_ROLE], "")
    # Both have set labels, and the strategies are removed.
    both = {"gpu-kubernetes/managed-labels": '{"gpu_operator": {}, "k8s_device_plugin": {}}'}
    row = plan_one(operated("mps", annotations=both), cluster={"absent": True, **policy()})
    assert row["node_absent"] == ["k8s_device_plugin", OPERATOR_ROLE]


def test_device_plugin_beside_that_of_the_operator_is_accepted_if_it_leaves():
    plugins = ["gpu-operator/nvidia-device-plugin-daemonset"]
    assert plan_one(operated(unmanaged_plugins=plugins), "exclusive", cluster=policy())["blockers"] == []
    leaving = STRATEGIES["gpushare"].daemon_set
    row = node("gpushare", gpu_operator=list(ALL), unmanaged_plugins=[*plugins, f"kube-system/{leaving}"])
    assert plan_one(row, "exclusive", cluster=policy(), migrate=True)["blockers"] == []
    # The removal takes it off.
    both = operated(unmanaged_plugins=["kube-system/another"])
    assert plan_one(both, cluster={"absent": True, **policy()})["blockers"] == []


def test_layout_from_before_the_operator_is_left():
    row = plan_one(operated(), "exclusive", kept=["mig"], cluster=policy())
    assert (row["from"], row["node_absent"]) == (["mig"], ["mig"])


def test_cluster_without_device_plugins_of_the_operator_has_none_in_the_plan():
    planned = plan([host("exclusive")], [node(gpu_operator=["driver"])], **policy(enabled=("driver",)))
    assert (planned["cluster"]["operator"], planned["nodes"][0]["role"]) == ({}, "k8s_device_plugin")
    assert planned["nodes"][0]["operated"] == ["driver"]
