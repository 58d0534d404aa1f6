# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of each node follows from its parameters and state, for each pair of strategies and each interruption."""

from __future__ import annotations

from itertools import product

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing import catalogue
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.catalogue import (
    IN_CLUSTER,
    NVIDIA_ROLE,
    OWN_PLUGIN,
    STRATEGIES,
    WITH_NODE_ROLE,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.node_state import (
    CHANGE_LABEL,
    REASON,
    Cluster,
    reason_of,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.plan import (
    list_blockers,
    plan_sharing,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.plugin_config import Request
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._sharing.sharing_nodes import (
    GPU,
    SLICED,
    config_of,
    empty_node,
    host,
    label_of,
    node,
    plan,
    plan_one,
)

PAIRS = list(product(STRATEGIES, STRATEGIES))
TO_GPUSHARE = reason_of(["exclusive"], "gpushare")


def roles_of(before, after):
    """The roles whose entry points node_absent and node_present run for a change from one strategy to another."""
    old, new = STRATEGIES[before], STRATEGIES[after]
    off = [NVIDIA_ROLE] if (new.by_nvidia and old.by_nvidia) or config_of(before).name else []
    off = off if old.by_nvidia else [NVIDIA_ROLE] if new.host_role else []
    on = [NVIDIA_ROLE] if (new.by_nvidia and (old.by_nvidia or new.host_role)) or old.host_role else []
    return [*off, *filter(None, [old.node_role])], [*filter(None, [new.node_role]), *on]


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_pair_of_strategies_is_left_and_entered_once(before, after):
    old, new = STRATEGIES[before], STRATEGIES[after]
    config = config_of(after)
    planned = plan([host(after, migrate=True, kept=[before] if old.host_record else [])], [node(before, allocated=1)])
    [row], cluster = planned["nodes"], planned["cluster"]
    assert list_blockers(planned) == []
    assert (row["to"], row["config_name"], row["config"]) == (after, config.name, config.document)
    if before == after:
        assert (row["from"], row["node_absent"], row["steps"]) == ([], [], [])
        assert (row["cordon"], row["drain"]) == (False, "none")
        assert row["node_present"] == ([new.node_role] if new.node_role else [])
        return
    assert row["from"] == [before]
    absent, present = roles_of(before, after)
    assert row["node_absent"] == absent
    assert row["node_present"] == present
    assert row["preflight"] == ([new.node_role] if new.node_role else [])
    assert (row["cordon"], row["drain"]) == (True, "gpu")
    entered = f"{after} ({config.name})" if config.name else after
    assert row["steps"] == ["cordon", "drain of gpu pods", f"leave {before}", f"enter {entered}", "uncordon"]
    # NVIDIA's device plugin has the GPUs open while a role changes the host.
    assert row["pause"] is (NVIDIA_ROLE in absent and (new.by_nvidia or bool(old.host_role)))
    assert row["preflight_absent"] == ([old.host_role] if old.checks_leaving else [])
    # NVIDIA's role deploys the objects of its strategies.
    assert row["cluster_present"] == (after if new.in_cluster and not new.by_nvidia else "")
    assert cluster["enters"] == ([after] if new.in_cluster else [])
    assert cluster["leaves"] == ([before] if old.in_cluster else [])
    assert cluster["extenders"] == ([after] if new.scheduler == "extender" else [])
    assert cluster["scheduler_changes"] is ("extender" in (old.scheduler, new.scheduler))


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_pair_of_strategies_is_refused_while_pods_hold_gpus(before, after):
    found = plan_one(node(before, allocated=1), after)["blockers"]
    if before == after:
        assert found == []
    else:
        [sentence] = found
        assert sentence.startswith(
            f"Host h1 (node n1): its GPUs are shared as {before}, {after} is requested, and pods"
        )


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_pair_of_strategies_is_resumed_after_each_step(before, after):
    """After the cordon the old plugin is there; then neither is; then the new one, and the node is still cordoned."""
    old, new = STRATEGIES[before], STRATEGIES[after]
    if before == after:
        return
    reason = reason_of([before], after)
    states = (node(before, reason=reason), empty_node(reason=reason), node(after, reason=reason))
    for state in states:
        row = plan_one(state, after)
        assert row["blockers"] == []
        assert (row["to"], row["cordon"], row["reason"], row["drain"]) == (after, True, reason, "none")
        # The plugin comes back last.
        comes_back = new.by_nvidia or bool(old.host_role)
        assert row["node_present"] == [*filter(None, [new.node_role]), *([NVIDIA_ROLE] if comes_back else [])]
        # Also on a node without the strategy, because its objects may be in the cluster.
        others = {NVIDIA_ROLE, new.node_role}
        assert [role for role in row["node_absent"] if role not in others] == [*filter(None, [old.node_role])]


@pytest.mark.parametrize("after", ["mps", "mig"])
def test_plugin_stays_off_a_node_whose_configuration_is_named_and_whose_host_is_not_ready(after):
    """The interrupted run has named the configuration, and the role has not prepared the host for the plugin yet."""
    off = {**label_of(after), CHANGE_LABEL: "true"}
    row = plan_one(empty_node(strategy=after, reason=reason_of(["exclusive"], after), labels=off), after)
    assert (row["pause"], row["cordon"], row["blockers"]) == (True, True, [])
    assert row["node_present"] == [STRATEGIES[after].node_role, NVIDIA_ROLE]


@pytest.mark.parametrize(
    ("before", "after", "absent"),
    [
        ("time_slicing", Request(2), [NVIDIA_ROLE]),
        ("time_slicing", Request(4, rename=True), [NVIDIA_ROLE]),
        # The control daemon reads its limits at its start.
        ("mps", Request(2), [NVIDIA_ROLE, "mps"]),
        # A layout is not removed for another way to name its devices.
        ("mig", Request(mig_strategy="single"), [NVIDIA_ROLE]),
    ],
)
def test_another_configuration_of_a_strategy_is_a_change(before, after, absent):
    row = plan_one(node(before), before, request=after)
    assert (row["from"], row["to"], row["cordon"], row["pause"]) == ([before], before, True, True)
    assert row["node_absent"] == absent
    assert row["node_present"] == [*filter(None, [STRATEGIES[before].node_role]), NVIDIA_ROLE]
    [sentence] = plan_one(node(before, allocated=1), before, request=after)["blockers"]
    assert f"shared as {before}, {before} is requested, and pods hold GPUs" in sentence


@pytest.mark.parametrize(
    ("before", "after", "more", "pods"),
    [
        ("exclusive", "mig", {"may_reboot": True}, "all"),
        ("mig", "exclusive", {"may_reboot": True, "kept": ["mig"]}, "all"),
        ("exclusive", "mig", {}, "gpu"),
        ("exclusive", "mps", {"may_reboot": True}, "gpu"),
    ],
)
def test_change_that_may_reboot_the_host_evicts_all_pods(before, after, more, pods):
    assert plan_one(node(before, allocated=1), after, migrate=True, **more)["drain"] == pods
    assert plan_one(node(before), after, **more)["drain"] == "none"


def test_another_layout_of_mig_devices_is_a_change():
    row = plan_one(node("mig"), "mig", differs=True)
    assert (row["from"], row["cordon"], row["node_absent"]) == (["mig"], True, [NVIDIA_ROLE])
    assert row["node_present"] == ["mig", NVIDIA_ROLE]
    assert plan_one(node("exclusive"), "exclusive", differs=True)["steps"] == []


@pytest.mark.parametrize("declared", ["", "mig"])
def test_mig_devices_without_a_declared_layout_stay(declared):
    row = plan_one(
        node(), declared, config={"flags": {"migStrategy": "single"}}, request=Request(), has_layout=False, differs=True
    )
    assert (row["to"], row["cordon"], row["preflight"], row["node_present"]) == ("mig", False, [], [])


def test_daemon_of_the_configuration_of_all_nodes_is_left_to_its_chart():
    row = plan_one(node(), config={"sharing": {"mps": {"resources": [{"name": GPU, "replicas": 2}]}}})
    assert (row["to"], row["cordon"], row["preflight"], row["node_present"]) == ("mps", False, [], [])


@pytest.mark.parametrize("strategy", ["time_slicing", "mps", "mig"])
def test_undeclared_node_keeps_its_configuration(strategy):
    row = plan_one(node(strategy, allocated=1))
    assert (row["from"], row["to"], row["cordon"], row["blockers"]) == ([], strategy, False, [])
    assert (row["config_name"], row["config"]) == (config_of(strategy).name, {})


def test_node_without_a_plugin_is_cordoned_only_if_its_host_changes():
    assert not plan_one(empty_node(), "time_slicing")["cordon"]
    row = plan_one(empty_node(), "mps")
    assert (row["from"], row["cordon"], row["pause"], row["node_present"]) == ([], True, True, ["mps", NVIDIA_ROLE])


def test_any_number_of_strategies_with_an_extender_is_distinguished(monkeypatch):
    other = catalogue.Strategy(
        "other", ("other/*",), role="other", scheduler="extender", in_cluster=True, label={"other": "true"}
    )
    for module, name, rows in (
        ("plan", "IN_CLUSTER", IN_CLUSTER),
        ("blockers", "IN_CLUSTER", IN_CLUSTER),
        ("change", "OWN_PLUGIN", OWN_PLUGIN),
        ("change", "WITH_NODE_ROLE", WITH_NODE_ROLE),
    ):
        path = f"ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.{module}.{name}"
        monkeypatch.setattr(path, (*rows, other))
    monkeypatch.setitem(catalogue.STRATEGIES, "other", other)
    planned = plan([host("other")], [node("gpushare")], labelled={"nano_gpu": ["w9"], "other": ["w8"]})
    assert planned["nodes"][0]["from"] == ["gpushare"]
    assert planned["cluster"]["extenders"] == ["nano_gpu", "other"]
    [sentence] = planned["cluster"]["blockers"]
    assert sentence.startswith("Node w9: uses nano_gpu, and kube-scheduler accepts only one extender")
    planned = plan([host("other"), host("gpushare", "2")], [node(), node(name="n2")])
    assert "gpushare, for h2, and other, for h1, each need an extender" in planned["cluster"]["blockers"][0]


#: A node, the parameters, and what is planned: strategies that leave, the strategy afterwards, whether the node is cordoned, and which pods are evicted.
CASES = {
    "as-it-is": (node(), {}, ([], "exclusive", False, "none")),
    "as-configured": (node(), {"config": SLICED}, ([], "time_slicing", False, "none")),
    "declared-as-configured": (
        node(),
        {"config": SLICED, "strategy": "time_slicing", "request": Request()},
        ([], "time_slicing", False, "none"),
    ),
    "shared-undeclared": (node("gpushare", allocated=3), {}, ([], "gpushare", False, "none")),
    "shared-undeclared-without-label": (node("gpushare", labels={}), {}, ([], "gpushare", False, "none")),
    "leaves": (node("gpushare"), {"strategy": "exclusive"}, (["gpushare"], "exclusive", True, "none")),
    # Pods with a resource that the node keeps do not block.
    "leaves-beside-allocated-whole-gpus": (
        node("gpushare", gpu_allocated={GPU: 1}),
        {"strategy": "exclusive"},
        (["gpushare"], "exclusive", True, "none"),
    ),
    "enters-beside-other-resources": (
        empty_node(gpu_capacity={"nvidia.com/hostdev": 1}, gpu_allocated={"nvidia.com/hostdev": 1}),
        {"strategy": "gpushare"},
        ([], "gpushare", False, "none"),
    ),
    # The node is cordoned, so that no pod starts meanwhile; pods are evicted only if that is allowed.
    "enters-idle": (node(), {"strategy": "gpushare"}, (["exclusive"], "gpushare", True, "none")),
    "enters-first": (empty_node(), {"strategy": "gpushare"}, ([], "gpushare", False, "none")),
    "enters-without-gpus": (node(), {"strategy": "gpushare", "gpus": 0}, ([], "gpushare", False, "none")),
    "number-of-gpus-unknown": (
        node(),
        {"strategy": "gpushare", "gpus": None},
        (["exclusive"], "gpushare", True, "none"),
    ),
    # A pod that the interrupted drain did not evict.
    "labelled-and-allocated-whole": (
        node("gpushare", gpu_allocated={GPU: 1}),
        {"strategy": "gpushare", "migrate": True},
        (["exclusive"], "gpushare", True, "gpu"),
    ),
    "interrupted-when-done": (
        node("gpushare", allocated=3, reason=TO_GPUSHARE),
        {"strategy": "gpushare"},
        ([], "gpushare", True, "none"),
    ),
    "interrupted-when-done-and-migrate": (
        node("nano_gpu", allocated=3, reason=reason_of(["gpushare"], "nano_gpu")),
        {"strategy": "nano_gpu", "migrate": True},
        (["gpushare"], "nano_gpu", True, "none"),
    ),
    # The label is removed, and the device plugin still reports memory, or only the number of GPUs remains.
    "interrupted-without-label": (
        node("gpushare", labels={}),
        {"strategy": "exclusive"},
        (["gpushare"], "exclusive", True, "none"),
    ),
    "interrupted-at-the-count": (
        empty_node(gpu_capacity={"aliyun.com/gpu-count": 2}),
        {},
        (["gpushare"], "exclusive", True, "none"),
    ),
    # Another declaration reverts the change before anything is on the node.
    "interrupted-before-the-label": (
        node(reason=TO_GPUSHARE),
        {"strategy": "exclusive"},
        (["gpushare"], "exclusive", True, "none"),
    ),
    "interrupted-before-the-label-and-other-strategy": (
        empty_node(reason=TO_GPUSHARE),
        {"strategy": "nano_gpu"},
        (["gpushare"], "nano_gpu", True, "none"),
    ),
    "cordoned-for-another-reason": (
        node(reason="driver"),
        {"strategy": "exclusive"},
        ([], "exclusive", False, "none"),
    ),
    "host-files-kept": (node(), {"kept": ["nano_gpu"]}, (["nano_gpu"], "exclusive", True, "none")),
    "several-leave": (
        node("nano_gpu", gpu_capacity={"aliyun.com/gpu-count": 2}),
        {"strategy": "exclusive"},
        (["gpushare", "nano_gpu"], "exclusive", True, "none"),
    ),
    "tags-without-a-change": (
        node(),
        {"strategy": "exclusive", "cluster": {"run_tags": ["device_plugin"]}},
        ([], "exclusive", False, "none"),
    ),
    "tags-beside-an-interrupted-change": (
        node("gpushare", reason=TO_GPUSHARE),
        {"strategy": "gpushare", "cluster": {"run_tags": ["device_plugin"]}},
        ([], "gpushare", False, "none"),
    ),
    "tags-of-a-change": (
        node("gpushare"),
        {"strategy": "exclusive", "cluster": {"run_tags": ["device_plugin", "sharing"]}},
        (["gpushare"], "exclusive", True, "none"),
    ),
    # A run that does not act on GPUs is not blocked by allocated GPUs.
    "allocated-and-other-tags": (
        node("gpushare", allocated=3),
        {"strategy": "exclusive", "cluster": {"run_tags": []}},
        (["gpushare"], "exclusive", True, "none"),
    ),
    "other-plugin-agrees-with-any-configuration": (
        node("gpushare"),
        {"strategy": "gpushare", "config": SLICED},
        ([], "gpushare", False, "none"),
    ),
}


@pytest.mark.parametrize(("row", "parameters", "expected"), CASES.values(), ids=CASES)
def test_plan_follows_from_parameters_and_node_state(row, parameters, expected):
    planned = plan_one(row, **parameters)
    assert planned["blockers"] == []
    assert (planned["from"], planned["to"], planned["cordon"], planned["drain"]) == expected


def test_node_without_gpus_keeps_only_a_present_strategy():
    assert plan_one(node("gpushare"), "gpushare", gpus=0)["node_present"] == ["gpushare"]
    assert plan_one(empty_node(), "gpushare", gpus=0)["node_present"] == []


def test_nodes_that_leave_are_cordoned_with_the_strategies_as_reason():
    row = plan_one(node("gpushare", gpu_capacity={"aliyun.com/gpu-count": 2}), "nano_gpu")
    assert row["reason"] == f"{REASON}: gpushare to nano_gpu"
    assert plan_one(node(), "exclusive")["reason"] == ""


@pytest.mark.parametrize("request_row", [{"node": "n"}, {"host": "h", "node": "n", "extra": 1}])
def test_host_with_missing_or_unknown_fields_raises_type_error(request_row):
    with pytest.raises(TypeError):
        plan_sharing([request_row], [], Cluster())


def test_unknown_strategy_raises_key_error():
    with pytest.raises(KeyError, match="other"):
        plan_sharing([{"host": "h", "node": "n", "strategy": "other"}], [], Cluster())


def generate_hosts(st):
    """A hypothesis strategy of hosts: a node without a name, and parameters."""
    states = st.builds(
        node,
        strategy=st.sampled_from(list(STRATEGIES)),
        allocated=st.integers(0, 1),
        reason=st.sampled_from(["", "driver", *(reason_of([name], "exclusive") for name in STRATEGIES)]),
        labels=st.sampled_from([label_of(name) for name in STRATEGIES]),
    )
    parameters = {"migrate": st.booleans(), "gpus": st.sampled_from([None, 0, 2])}
    return st.tuples(
        states,
        st.fixed_dictionaries({"strategy": st.sampled_from(["", *STRATEGIES]), **parameters}),
    )


def test_only_nodes_that_change_are_drained_and_all_of_them_are_cordoned():
    hypothesis = pytest.importorskip("hypothesis")

    @hypothesis.given(made=generate_hosts(hypothesis.strategies))
    def check(made):
        row, parameters = made
        planned = plan_one(row, **parameters)
        if planned["from"] or planned["drain"] != "none":
            assert planned["cordon"]
        if planned["drain"] != "none":
            assert parameters["migrate"]
        assert bool(planned["reason"]) is planned["cordon"]

    check()


def test_plan_of_a_host_does_not_depend_on_others():
    hypothesis = pytest.importorskip("hypothesis")
    st = hypothesis.strategies

    @hypothesis.given(made=st.lists(generate_hosts(st), max_size=4))
    def check(made):
        hosts = [host(name=str(number), **given) for number, (_row, given) in enumerate(made)]
        nodes = [{**row, "name": f"n{number}"} for number, (row, _given) in enumerate(made)]
        together = plan(hosts, nodes)["nodes"]
        assert together == [plan([each], [row])["nodes"][0] for each, row in zip(hosts, nodes)]

    check()
