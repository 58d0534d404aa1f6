# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the GPUs of a host are shared follows from its parameters and the state of its node."""

from __future__ import annotations

import json

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.catalogue import EXTENDED, STRATEGIES
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.decision import (
    MAINTENANCE,
    REASON,
    decide,
    read_configured,
)

LABELS = {"gpushare": {"gpushare": "true"}, "nano_gpu": {"gpu-kubernetes/nano-gpu": "true"}, "": {}}
SLICED = {"sharing": {"timeSlicing": {"resources": [{"name": "nvidia.com/gpu", "replicas": 2}]}}}


def node(shared="", changing=False, held=0, count=0, memory=0, whole=None, resource="nvidia.com/gpu", annotation=None):
    """A row of gpu_nodes_info: the label of a strategy or none, cordoned for a change or not, and units that pods hold.

    ``count`` and ``memory`` are of gpushare's resources, ``whole`` the node's GPUs of NVIDIA's device plugin, by the name of ``resource``.
    """
    of = "aliyun.com/gpu-mem" if shared == "gpushare" or memory else "nano-gpu/gpu-percent" if shared else resource
    text = json.dumps({"reason": REASON}) if changing else annotation
    return {
        "labels": LABELS[shared],
        "annotations": {} if text is None else {MAINTENANCE: text},
        "gpu_resources": {"aliyun.com/gpu-mem": memory},
        "gpu_capacity": {resource: (0 if shared else 2) if whole is None else whole, "aliyun.com/gpu-count": count},
        "gpu_allocated": {of: held},
    }


def decide_one(row, *, run_tags=(), check_allocated=True, **parameters):
    """The decision for one host, whose node is in the cluster unless *row* is None."""
    nodes = [] if row is None else [{"name": "n1", **row}]
    decisions = decide([{"host": "h1", "node": "n1", **parameters}], nodes, run_tags, check_allocated)
    assert decisions["error"] == ""
    return decisions["hosts"]["h1"]


EXCLUSIVE = {"strategy": "exclusive"}
GPUSHARE = {"strategy": "gpushare"}
NANO_GPU = {"strategy": "nano_gpu"}
MIGRATE = {"migrate": True}
SOME_TAGS = {"run_tags": ["device_plugin"]}
SCHEDULER_ALONE = {"run_tags": ["scheduler"]}
OTHER_TAGS = {"check_allocated": False}
GS, NG = ["gpushare"], ["nano_gpu"]
#: A node, the parameters, and what is decided: the strategy, whether the node is drained of GPU pods, whether it is cordoned and uncordoned, which
#: strategies leave it, and which extenders come to it or leave it.
CASES = {
    "as-it-is": (node(), {}, ("exclusive", False, False, [], [])),
    "not-in-the-cluster": (None, {}, ("exclusive", False, False, [], [])),
    "not-in-the-cluster-declared": (None, GPUSHARE, ("gpushare", False, False, [], GS)),
    "as-configured": (node(), {"config": SLICED}, ("time_slicing", False, False, [], [])),
    "declared-as-configured": (
        node(),
        {"config": SLICED, "strategy": "time_slicing"},
        ("time_slicing", False, False, [], []),
    ),
    "shared-undeclared": (node("gpushare", held=3), {}, ("gpushare", False, False, [], [])),
    "shared-undeclared-without-label": (node(memory=32), {}, ("gpushare", False, True, [], GS)),
    "leaves": (node("gpushare"), EXCLUSIVE, ("exclusive", False, True, GS, GS)),
    "leaves-drained": (node("gpushare", held=3), {**EXCLUSIVE, **MIGRATE}, ("exclusive", True, True, GS, GS)),
    # Pods that hold what the node keeps on offering are no reason to refuse.
    "leaves-beside-held-whole-gpus": (
        {**node("gpushare"), "gpu_allocated": {"nvidia.com/gpu": 1}},
        EXCLUSIVE,
        ("exclusive", False, True, GS, GS),
    ),
    "joins": (node(held=1), {**GPUSHARE, **MIGRATE}, ("gpushare", True, True, [], GS)),
    "joins-beside-other-resources": (
        node(held=1, resource="nvidia.com/hostdev"),
        GPUSHARE,
        ("gpushare", False, False, [], GS),
    ),
    # Cordoned, so that no pod comes in between; no pod is evicted unless that is allowed.
    "joins-idle": (node(), GPUSHARE, ("gpushare", False, True, [], GS)),
    "first-of-all": (node(whole=0), GPUSHARE, ("gpushare", False, False, [], GS)),
    "interrupted-when-done": (node("gpushare", changing=True, held=3), GPUSHARE, ("gpushare", False, True, [], [])),
    # The label is gone, and the device plugin still offers memory, or has left the number of GPUs.
    "interrupted-without-label": (node(memory=32, count=2), EXCLUSIVE, ("exclusive", False, True, GS, GS)),
    "interrupted-at-the-count": (node(count=2), EXCLUSIVE, ("exclusive", False, True, GS, GS)),
    "interrupted-at-the-count-undeclared": (node(count=2), {}, ("exclusive", False, True, GS, GS)),
    # Nothing is left to see, and the removal may not be complete.
    "interrupted-at-the-end": (node(changing=True), EXCLUSIVE, ("exclusive", False, True, GS, GS)),
    "interrupted-on-the-way-to-nano": (node(changing=True, whole=0), NANO_GPU, ("nano_gpu", False, True, [], NG)),
    "cordoned-for-another-reason": (
        node(annotation='{"reason": "driver"}'),
        EXCLUSIVE,
        ("exclusive", False, False, [], []),
    ),
    "annotation-unreadable": (node(annotation="{"), EXCLUSIVE, ("exclusive", False, False, [], [])),
    "annotation-of-another-form": (node(annotation='["reason"]'), EXCLUSIVE, ("exclusive", False, False, [], [])),
    "nano-undeclared": (node("nano_gpu", held=3), {}, ("nano_gpu", False, False, [], [])),
    "nano-leaves": (node("nano_gpu"), EXCLUSIVE, ("exclusive", False, True, NG, NG)),
    # The label is gone, and programs of the host are still nano-gpu's.
    "nano-interrupted-without-label": (node(), {"programs_kept": True}, ("exclusive", False, True, NG, NG)),
    "nano-joins": (node(), NANO_GPU, ("nano_gpu", False, True, [], NG)),
    "nano-interrupted-when-done": (
        node("nano_gpu", changing=True, held=3),
        NANO_GPU,
        ("nano_gpu", False, True, [], []),
    ),
    "from-one-to-the-other": (node("gpushare", held=3), {**NANO_GPU, **MIGRATE}, ("nano_gpu", True, True, GS, NG + GS)),
    "and-back": (node("nano_gpu"), GPUSHARE, ("gpushare", False, True, NG, GS + NG)),
    "both-leave": (node("nano_gpu", count=2), EXCLUSIVE, ("exclusive", False, True, GS + NG, GS + NG)),
    "some-tags-without-a-change": (node(), {**SOME_TAGS, **EXCLUSIVE}, ("exclusive", False, False, [], [])),
    "scheduler-alone": (node("gpushare", held=3), SCHEDULER_ALONE, ("gpushare", False, False, [], [])),
    # A run that does not touch the GPUs is not refused because pods hold them.
    "held-and-not-touched": (node("gpushare", held=3), {**OTHER_TAGS, **EXCLUSIVE}, ("exclusive", False, True, GS, GS)),
    "some-tags-after-an-interruption": (
        node("gpushare", changing=True),
        {**SOME_TAGS, **GPUSHARE},
        ("gpushare", False, False, [], []),
    ),
    "all-tags-of-a-change": (
        node("gpushare"),
        {"run_tags": ["device_plugin", "gpushare"], **EXCLUSIVE},
        ("exclusive", False, True, GS, GS),
    ),
}


@pytest.mark.parametrize(("row", "parameters", "expected"), CASES.values(), ids=CASES)
def test_decision_follows_from_parameters_and_node_state(row, parameters, expected):
    decision = decide_one(row, **parameters)
    leaves = [strategy.name for strategy in EXTENDED if decision[f"leaves_{strategy.name}"]]
    assert decision["error"] == ""
    assert (decision["decided"], decision["empties"], decision["returns"], leaves, decision["extended_by"]) == expected
    assert decision["reason"] == "change of how GPUs are shared"


HELD = "pods hold GPUs; end them first, or set gpu_sharing_migrate to true"
#: A node, the parameters, and parts of the sentence that refuses the host.
REFUSED = {
    "leaves-held": (
        node("gpushare", held=3),
        EXCLUSIVE,
        ["its GPUs are shared as gpushare, exclusive is asked for, and", HELD],
    ),
    "joins-held": (
        node(held=1),
        GPUSHARE,
        ["its GPUs are shared as exclusive, time_slicing, mps or mig, gpushare is asked for, and", HELD],
    ),
    # The resources of NVIDIA's device plugin, whatever its configuration is today.
    "joins-held-shared": (node(held=1, resource="nvidia.com/gpu.shared"), GPUSHARE, [HELD]),
    "joins-held-slices": (node(held=1, resource="nvidia.com/mig-1g.5gb"), GPUSHARE, [HELD]),
    "joins-held-by-another-name": (
        node(held=1, resource="example.com/gpu"),
        {**GPUSHARE, "resource_name": "example.com/gpu"},
        [HELD],
    ),
    "interrupted-and-held": (node(memory=32, held=3), EXCLUSIVE, ["shared as gpushare", HELD]),
    "back-after-an-interruption": (node(count=2, held=1), GPUSHARE, [HELD]),
    "nano-leaves-held": (node("nano_gpu", held=3), EXCLUSIVE, ["its GPUs are shared as nano_gpu, exclusive is", HELD]),
    "nano-joins-held": (node(held=1), NANO_GPU, ["nano_gpu is asked for", HELD]),
    "from-one-to-the-other-held": (
        node("gpushare", held=3),
        NANO_GPU,
        ["shared as gpushare, nano_gpu is asked for", HELD],
    ),
    "some-tags-of-a-change": (
        node("gpushare"),
        {**SOME_TAGS, **EXCLUSIVE},
        ["its sharing strategy changes to exclusive", "this run leaves out gpushare; run with all of these tags"],
    ),
    "scheduler-alone-of-a-change": (
        node("gpushare"),
        {**SCHEDULER_ALONE, **NANO_GPU},
        ["this run leaves out device_plugin, gpushare, nano_gpu; run"],
    ),
    "some-tags-of-nano": (node("nano_gpu"), {**SOME_TAGS, **EXCLUSIVE}, ["this run leaves out nano_gpu; run"]),
    "some-tags-of-joining": (node(), {**SOME_TAGS, **NANO_GPU}, ["this run leaves out nano_gpu; run"]),
}


@pytest.mark.parametrize(("row", "parameters", "parts"), REFUSED.values(), ids=REFUSED)
def test_change_of_a_node_is_refused_in_one_sentence(row, parameters, parts):
    error = decide_one(row, **parameters)["error"]
    assert error.startswith("Host h1 (node n1): ")
    for part in parts:
        assert part in error
    assert error.endswith(".")
    assert ". " not in error


def test_held_gpus_are_reported_before_missing_tags():
    assert HELD in decide_one(node("gpushare", held=3), **SOME_TAGS, **EXCLUSIVE)["error"]


def test_strategy_that_contradicts_the_device_plugins_configuration_is_refused():
    assert decide_one(node(), strategy="mps", config=SLICED)["error"] == (
        "Host h1: gpu_sharing_strategy is mps, and k8s_device_plugin_config shares GPUs as time_slicing; NVIDIA's device plugin does the same on "
        "all of its nodes, so make both agree (sharing.timeSlicing for time_slicing, sharing.mps for mps, flags.migStrategy for mig, none of them "
        "for exclusive)."
    )


def test_strategy_of_its_own_plugin_agrees_with_any_configuration():
    assert decide_one(node("gpushare"), config=SLICED, **GPUSHARE)["error"] == ""


@pytest.mark.parametrize(
    ("config", "strategy"),
    [
        ({}, "exclusive"),
        ({"sharing": None, "flags": None}, "exclusive"),
        ({"sharing": {"mps": {"resources": []}}}, "mps"),
        ({"sharing": {"mps": {}, "timeSlicing": {"resources": []}}}, "time_slicing"),
        ({"flags": {"migStrategy": "single"}}, "mig"),
        ({"flags": {"migStrategy": "none"}}, "exclusive"),
        ({"flags": {"migStrategy": None}}, "exclusive"),
        ({"sharing": SLICED["sharing"], "flags": {"migStrategy": "mixed"}}, "time_slicing"),
        ({"sharing": "text"}, "exclusive"),
        ("text", "exclusive"),
    ],
)
def test_strategy_is_read_from_the_device_plugins_configuration(config, strategy):
    assert read_configured(config) == strategy


#: A node, whether programs are kept for nano-gpu, and which strategies are on it.
PRESENT = {
    "plain": (node(), False, []),
    "labelled": (node("gpushare"), False, GS),
    "label-of-others": ({**node(), "labels": {"gpushare": "no"}}, False, []),
    "left-count": (node(count=2), False, GS),
    "still-offers": (node(memory=32), False, GS),
    # The kubelet keeps the capacity for some minutes after the plugin.
    "memory-in-capacity-alone": ({**node(), "gpu_capacity": {"aliyun.com/gpu-mem": 32}}, False, []),
    "nano-labelled": (node("nano_gpu"), False, NG),
    "nano-programs-kept": (node(), True, NG),
    "both": (node("gpushare"), True, GS + NG),
    "not-in-the-cluster": (None, False, []),
}


@pytest.mark.parametrize(("row", "kept", "names"), PRESENT.values(), ids=PRESENT)
def test_strategies_on_a_node_are_found_by_what_it_has(row, kept, names):
    decision = decide_one(row, programs_kept=kept)
    assert [strategy.name for strategy in EXTENDED if decision[f"has_{strategy.name}"]] == names


def decide_together(strategies, second_scheduler="", row=None):
    requests = [
        {"host": f"w{number}", "node": f"n{number}", "strategy": each} for number, each in enumerate(strategies)
    ]
    nodes = [{"name": request["node"], **(row or node())} for request in requests]
    return decide(requests, nodes, second_scheduler=second_scheduler)


def test_two_extenders_for_one_scheduler_refuse_the_run():
    assert decide_together(["gpushare", "nano_gpu", "nano_gpu"])["error"] == (
        "gpushare, which w0 would have, and nano_gpu, which w1, w2 would have, each need an extender that binds pods, and a kube-scheduler takes only "
        "one; set one gpu_sharing_strategy for all of these hosts, or, with a second scheduler of your own for one of the two, name that one in "
        "gpu_sharing_second_scheduler."
    )


@pytest.mark.parametrize(
    ("strategies", "second_scheduler"),
    [
        (["gpushare", "gpushare", "exclusive"], ""),
        (["gpushare", "nano_gpu", "nano_gpu"], "gpushare"),
        ([], ""),
    ],
)
def test_one_extender_for_each_scheduler_is_accepted(strategies, second_scheduler):
    assert decide_together(strategies, second_scheduler)["error"] == ""


def test_refused_host_does_not_count_for_the_scheduler():
    requests = [{"host": "a", "node": "a", **GPUSHARE}, {"host": "b", "node": "b", **NANO_GPU}]
    decisions = decide(requests, [{"name": "a", **node(held=1)}, {"name": "b", **node()}])
    assert decisions["hosts"]["a"]["error"] != ""
    assert decisions["error"] == ""


@pytest.mark.parametrize("request_row", [{"node": "n"}, {"host": "h", "node": "n", "extra": 1}])
def test_request_with_missing_or_unknown_fields_raises_type_error(request_row):
    with pytest.raises(TypeError):
        decide([request_row], [])


def test_unknown_strategy_raises_key_error():
    with pytest.raises(KeyError, match="other"):
        decide([{"host": "h", "node": "n", "strategy": "other"}], [])


def made_up_hosts(st):
    """A hypothesis strategy of hosts: a row of gpu_nodes_info without a name, and parameters."""
    return st.tuples(
        st.builds(
            node,
            shared=st.sampled_from(list(LABELS)),
            changing=st.booleans(),
            held=st.integers(0, 1),
            count=st.integers(0, 1),
            memory=st.integers(0, 1),
            whole=st.integers(0, 1),
        ),
        st.fixed_dictionaries(
            {"strategy": st.sampled_from(["", *STRATEGIES]), "migrate": st.booleans(), "programs_kept": st.booleans()}
        ),
    )


def test_only_nodes_that_change_are_drained_and_all_of_them_are_cordoned():
    hypothesis = pytest.importorskip("hypothesis")

    @hypothesis.given(host=made_up_hosts(hypothesis.strategies))
    def check(host):
        row, parameters = host
        decision = decide_one(row, **parameters)
        leaves = {strategy.name for strategy in EXTENDED if decision[f"leaves_{strategy.name}"]}
        assert decision["decided"] not in leaves
        if leaves:
            assert decision["returns"]
        if decision["empties"]:
            assert decision["returns"]
            assert parameters["migrate"]
        if HELD in decision["error"]:
            assert not parameters["migrate"]

    check()


def test_decision_for_a_host_does_not_depend_on_others():
    hypothesis = pytest.importorskip("hypothesis")
    st = hypothesis.strategies

    @hypothesis.given(hosts=st.lists(made_up_hosts(st), max_size=4))
    def check(hosts):
        requests = [{"host": f"h{number}", "node": f"n{number}", **given} for number, (_row, given) in enumerate(hosts)]
        nodes = [{"name": f"n{number}", **row} for number, (row, _given) in enumerate(hosts)]
        together = decide(requests, nodes)["hosts"]
        assert list(together) == [request["host"] for request in requests]
        for request, row in zip(requests, nodes):
            assert together[request["host"]] == decide([request], [row])["hosts"][request["host"]]

    check()
