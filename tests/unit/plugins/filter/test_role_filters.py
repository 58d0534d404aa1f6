# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters that replace long expressions of roles."""

from __future__ import annotations

import importlib
import json
from base64 import b64encode
from typing import Any

import pytest

pytest.importorskip("ansible.errors")

from ansible.errors import AnsibleFilterError

from ansible_collections.gpu.kubernetes.plugins.filter import workload_state
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.objects import APPLIED_ANNOTATION

#: Arguments of another form than the documented one.
WRONG = {
    "admission_policies": ([{"name": "x", "prefix": "y"}], "n"),
    "allocated_nodes": ([{}],),
    "apt_places": ("", {"/etc/apt/sources.list": "no Base64"}, "Debian", ["bookworm"]),
    "driver_managed": ({},),
    "driver_test": (None, "nvidia.com/gpu", True),
    "driver_works": ({},),
    "exporter_plan": ({"provider": "other"}, {}, {}),
    "failure_messages": (7,),
    "gpushare_recounted": ([{}],),
    "has_unknown_objects": (["text"],),
    "host_limit": ("a few", 5),
    "host_values": (["a"], {}, "fact"),
    "keys_where": ([],),
    "kubelet_problem": ({"found": []}, "n", ""),
    "kubelet_stability": ({"NRestarts": "many"}, {}, 1, 5),
    "lease_seconds": (1, {"forks": 0, "jobs": 1, "evictions": 1}),
    "mask_credentials": ([7],),
    "image_reference": ("registry",),
    "key_problem": ("*", []),
    "matching_versions": ("570", "570"),
    "may_be_image": ("a/b", "a/b:v1"),
    "network_peers": ("text",),
    "vendor_queries": ({"plugins": [{}]}, "n"),
    "vendor_tests": ({"plugins": [{}]}, {}, ""),
    "node_condition": ("text",),
    "node_names": (["a"], {}),
    "object_references": ("name",),
    "object_states": ([{}], [[]]),
    "refusals": ({"runtime": {}},),
    "rollback_order": ([{}], "", "host"),
    "scheduler_pod_state": ({}, {}, {}),
    "scheduler_pods": ([{}], "own"),
    "unconnected_gpus": ({"gpus": [{"fabric": "text"}]},),
    "unavailable_nodes": ([{}],),
    "scheduler_record": ([{}], [], {}, {}, ""),
    "url_credentials": (None,),
    "values_of": (["open"], None),
    "workload_state": ({"kind": "Job"}, [[], []]),
}
MODULES = [importlib.import_module(f"ansible_collections.gpu.kubernetes.plugins.filter.{name}") for name in WRONG]
FILTERS: dict[str, Any] = {name: call for module in MODULES for name, call in module.FilterModule().filters().items()}


@pytest.mark.parametrize("name", FILTERS)
def test_filter_with_input_of_another_form_raises(name: str) -> None:
    with pytest.raises(AnsibleFilterError, match=name):
        FILTERS[name](*WRONG[name])


def test_apt_places_reads_files_in_base64() -> None:
    targets = "Release: bookworm\nRepo-URI: http://a.example.com/\nSourcesentry: /etc/apt/sources.list:1\n"
    content = b64encode("deb [trusted=yes] http://a.example.com bookworm main # ä\n".encode()).decode()
    assert FILTERS["apt_places"](targets, {"/etc/apt/sources.list": content}, "Debian", ["bookworm"]) == [
        {"url": "http://a.example.com/", "suite": "bookworm", "options": {"Trusted": "yes"}}
    ]


def test_host_values_returns_values_of_hosts_that_have_them() -> None:
    hosts = {"a": {"fact": 1, "facts": {"name": "A"}}, "b": {"facts": {}}, "c": {"fact": 0}}
    values = FILTERS["host_values"]
    assert (values("abc", hosts, "fact"), values("abc", hosts, "facts.name")) == ([1, 0], ["A"])


@pytest.mark.parametrize(
    ("limit", "total", "least", "number"),
    [
        (0, 50, 0, 0),
        ("0%", 50, 0, 0),
        ("0 %", 50, 0, 0),
        (3, 50, 0, 3),
        ("3", 2, 0, 3),
        ("10%", 50, 0, 5),
        # Rounded down, as Kubernetes does.
        ("10%", 59, 0, 5),
        ("1%", 50, 0, 0),
        ("1%", 50, 1, 1),
        ("100%", 5000, 0, 5000),
        ("0%", 0, 0, 0),
    ],
)
def test_host_limit_of_number_or_percentage_is_a_number(limit: int | str, total: int, least: int, number: int) -> None:
    assert FILTERS["host_limit"](limit, total, least=least) == number


@pytest.mark.parametrize("limit", ["", "-1", "101%", "1.5", "10%%", "%", None, True, [1]])
def test_host_limit_of_another_form_raises(limit: Any) -> None:
    with pytest.raises(AnsibleFilterError, match="neither a number nor a percentage"):
        FILTERS["host_limit"](limit, 50)


def test_node_condition_returns_condition_or_nothing() -> None:
    ready = {"type": "Ready", "status": "True"}
    node = {"status": {"conditions": [{"type": "PIDPressure"}, ready]}}
    condition = FILTERS["node_condition"]
    assert (condition(node), condition(node, "Other"), condition({})) == (ready, {}, {})


@pytest.mark.parametrize(
    ("version", "requested", "matches"),
    [
        ("570.124.06", "570.124.06", True),
        ("570.124.06", "570.*", True),
        ("570.124.06-1", "570.124.06", True),
        # The version of a package, where the library reports its own.
        ("570.124.06", "570.124.06-1ubuntu1", True),
        ("5701.1", "570.*", False),
        ("570.12", "570.124.06", False),
        ("", "570.*", False),
        (None, "570.*", False),
        ("", "", True),
    ],
)
def test_matching_versions_are_of_the_version_or_branch(version: str | None, requested: str, matches: bool) -> None:
    assert bool(FILTERS["matching_versions"]([version], requested)) is matches


def test_node_names_are_those_of_inventory_and_host() -> None:
    hosts = {
        "a": {"gpu_node_name": "A", "ansible_facts": {"nodename": "B.Example"}},
        "c": {"ansible_facts": {}},
        "d": {},
    }
    assert FILTERS["node_names"](hosts, hosts) == ["A", "b.example"]


def test_object_references_with_kind_are_queries() -> None:
    references = FILTERS["object_references"]
    assert references(["a"]) == [{"name": "a"}]
    assert references(["a"], "Node") == [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}]


def labelled_object(manager: str | None) -> dict[str, Any]:
    return {"metadata": {"labels": {"app.kubernetes.io/managed-by": manager} if manager else None}}


def test_object_states_follow_the_label() -> None:
    own = labelled_object("gpu.kubernetes")
    desired = [{**own, "kind": kind} for kind in "abcd"]
    states = FILTERS["object_states"](
        desired, [[], [own], [labelled_object("Helm")], [labelled_object(None)]], compare=True
    )
    assert {state: [each["kind"] for each in items] for state, items in states.items()} == {
        "missing": ["a"],
        "managed": ["b"],
        "unmanaged": ["c", "d"],
        "unsupported": [],
        "due": ["a", "b", "c", "d"],
    }
    states = FILTERS["object_states"](desired[:2], [[], []], known=[True, False], compare=True)
    assert [[each["kind"] for each in states[name]] for name in ("missing", "due", "unsupported")] == [
        ["a"],
        ["a"],
        ["b"],
    ]
    applied = {**own, "metadata": {**own["metadata"], "annotations": {APPLIED_ANNOTATION: json.dumps(own)}}}
    assert FILTERS["object_states"]([own], [[applied]], compare=True)["due"] == []
    # Only then are all templates of the objects rendered.
    assert "due" not in FILTERS["object_states"]([own], [[applied]])


DIGEST = "sha256:" + "0a" * 32
#: Registry, repository and tag; and the name of the image, or the error message.
IMAGES = {
    "tag": (("reg.example.com:5000", "a/b", "v1"), "reg.example.com:5000/a/b:v1"),
    "digest": (("reg.example.com/mirror", "a/b", DIGEST), f"reg.example.com/mirror/a/b@{DIGEST}"),
    "tag and digest": (("reg.example.com", "a/b", f"v1@{DIGEST}"), f"reg.example.com/a/b:v1@{DIGEST}"),
    "slashes": (("reg.example.com/", "/a/b", "v1"), "reg.example.com/a/b:v1"),
    "number": (("reg.example.com", "pause", 3.10), "reg.example.com/pause:3.1"),
    "short digest": (("reg.example.com", "a/b", "sha256:abc"), "is not sha256: and 64 hexadecimal digits"),
    "tag and short digest": (("reg.example.com", "a/b", "v1@sha256:abc"), "is not sha256: and 64 hexadecimal digits"),
    "tag and no digest": (("reg.example.com", "a/b", "v1@"), "is not sha256: and 64 hexadecimal digits"),
    "no repository": (("reg.example.com", "", "v1"), "needs a registry, a repository, and a tag or digest"),
    "two parts": (("reg.example.com", "a/b"), "needs a registry, a repository, and a tag or digest"),
}


@pytest.mark.parametrize(("parts", "expected"), IMAGES.values(), ids=IMAGES)
def test_image_reference_joins_registry_repository_and_tag_or_digest(parts: Any, expected: str) -> None:
    if " " not in expected:
        assert FILTERS["image_reference"](list(parts)) == expected
        return
    with pytest.raises(AnsibleFilterError, match=expected):
        FILTERS["image_reference"](list(parts))


def test_no_image_is_the_published_one_where_there_is_none() -> None:
    may_be_image = FILTERS["may_be_image"]
    assert [may_be_image(["", ""], published) for published in ("", "a/b:v1")] == [False, True]


def test_mask_credentials_masks_each_line() -> None:
    lines = ['FLAG: --manifest-url-header="Authorization:opensesame"', "E1 no node"]
    assert FILTERS["mask_credentials"](lines) == ['FLAG: --manifest-url-header="********"', "E1 no node"]


LOOP = {"ansible_loop_var": "item"}


@pytest.mark.parametrize(
    ("results", "messages"),
    [
        ({"msg": "one\n  two", "failed": True}, ["one two"]),
        ({"failed": True}, []),
        # Of a loop, only the failed items are reported.
        ({"msg": "One or more items failed", "results": [{**LOOP, "msg": "a", "failed": True}, {**LOOP, "msg": "b"}]}, ["a"]),
        ({"msg": "All items skipped", "results": []}, []),
        # A module's own results are not a loop.
        ({"msg": "a", "results": [{"node": "n"}]}, ["a"]),
        # Tasks that may fail are not marked as failed.
        ([{"msg": "a"}, {"nodes": []}, {"msg": "a"}, {"msg": "b"}], ["a", "b"]),
        ([{"msg": "no answer of http://me:opensesame@p"}], ["no answer of http://********@p"]),
    ],
)  # fmt: skip
def test_failure_messages_are_those_of_failed_results(results: Any, messages: list[str]) -> None:
    assert FILTERS["failure_messages"](results) == messages


def test_url_credentials_are_separated_and_decoded() -> None:
    split = FILTERS["url_credentials"]
    assert split("https://a%40b:c+d@host:8443/x?y=1") == {
        "url": "https://host:8443/x?y=1",
        "username": "a@b",
        "password": "c+d",
    }
    assert split("https://host/x") == {"url": "https://host/x"}


LOST, FOUND = {"lost": True}, {"lost": False}


@pytest.mark.parametrize(
    ("error", "gpus", "works"),
    [
        (None, [], True),
        (None, [LOST], True),
        ("x", [], False),
        ("x", [LOST], False),
        ("x", [FOUND], False),
        ("x", [LOST, FOUND], True),
    ],
)
def test_driver_works_if_some_gpus_are_lost(error: str | None, gpus: list[Any], works: bool) -> None:
    assert FILTERS["driver_works"]({"error": error, "gpus": gpus}) is works


def row(name: str, expected: int, capacity: int, allocated: int = 1) -> dict[str, Any]:
    return {"name": name, "expected": expected, "capacity": capacity, "allocated": allocated}


def test_gpushare_recounted_are_nodes_with_other_amounts_or_unit() -> None:
    rows = [
        row("b", 2, 3),
        row("same", 2, 2),
        row("free", 2, 3, 0),
        row("new", 2, 0),
        row("gone", 0, 2),
        row("a", 1, 2),
    ]
    recounted = FILTERS["gpushare_recounted"]
    assert recounted(rows) == ["a", "b"]
    assert recounted(rows, [row("same", 2, 2), row("free", 2, 2, 0)], drained=["b"]) == ["a", "same"]


def scheduler(name: str, command: list[str], checksum: str = "", mirror: bool = True) -> dict[str, Any]:
    marks = {
        **({"kubernetes.io/config.mirror": "x"} if mirror else {}),
        **({"gpu-kubernetes/scheduler-config-checksum": checksum} if checksum else {}),
    }
    metadata = {"name": f"kube-scheduler-{name}", "annotations": marks}
    return {"metadata": metadata, "spec": {"nodeName": name, "containers": [{"command": command}]}}


def test_scheduler_pods_compares_file_and_checksum() -> None:
    pods = [
        scheduler("cp1", ["kube-scheduler", "--config=/a"], "1"),
        scheduler("cp2", ["kube-scheduler", "--config", "/a"], "2"),
        scheduler("cp3", ["kube-scheduler", "--config=/b"], "1"),
        scheduler("cp4", ["kube-scheduler", "--config=/a"]),
        scheduler("cp5", [], mirror=False),
    ]
    compare = FILTERS["scheduler_pods"]
    assert compare(pods, "kube-scheduler-cp1") == {"managed": ["cp1", "cp2", "cp3"], "without": ["cp3", "cp4"]}
    assert compare(pods[:1], "kube-scheduler-cp9")["without"] == ["cp1"]


DAEMON_SET = {"kind": "DaemonSet", "spec": {}}
DEPLOYMENT = {"kind": "Deployment", "spec": {"replicas": 1}}
ALL = {"desiredNumberScheduled": 2, "updatedNumberScheduled": 2, "numberReady": 2}
ONE = {"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1}


@pytest.mark.parametrize(
    ("desired", "status", "ready", "nowhere"),
    [
        (DAEMON_SET, ALL, True, False),
        (DAEMON_SET, {**ALL, "numberReady": 1}, False, False),
        (DAEMON_SET, {**ALL, "observedGeneration": 1}, False, False),
        (DAEMON_SET, {}, False, True),
        (DEPLOYMENT, ONE, True, False),
        (DEPLOYMENT, {**ONE, "replicas": 2}, False, False),
        (DEPLOYMENT, {}, False, False),
    ],
)
def test_workload_is_ready_if_all_counts_agree(
    desired: dict[str, Any], status: dict[str, Any], ready: bool, nowhere: bool
) -> None:
    workload = {"metadata": {"generation": 2}, "status": {"observedGeneration": 2, **status}}
    state = FILTERS["workload_state"](desired, [[workload], []])
    assert (state["ready"], state["nowhere"]) == (ready, nowhere)
    assert FILTERS["workload_state"](desired, [[], []]) == {
        "ready": False,
        "nowhere": False,
        "reason": workload_state.NO_POD,
    }


UNPROCESSED = {"spec": {}, "status": {"phase": "Pending"}}
WAITING = {"spec": {"nodeName": "n"}, "status": {"containerStatuses": [{"state": {"waiting": {"reason": "ErrImage"}}}]}}
INITIALIZING = {
    "spec": {"nodeName": "n"},
    "status": {
        "initContainerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}],
        "containerStatuses": [{"state": {"waiting": {"reason": "PodInitializing"}}}],
    },
}
REFUSED = {"spec": {}, "status": {"conditions": [{"type": "PodScheduled", "message": "0/3 nodes"}]}}


@pytest.mark.parametrize(
    ("pods", "reason"),
    [
        ([], workload_state.NO_POD),
        ([UNPROCESSED], "no scheduler has processed its pods; check that kube-scheduler runs"),
        ([REFUSED], "0/3 nodes"),
        ([WAITING, UNPROCESSED], "ErrImage"),
        ([INITIALIZING], "CrashLoopBackOff"),
    ],
)
def test_workload_state_explains_why_pods_are_not_ready(pods: list[Any], reason: str) -> None:
    assert FILTERS["workload_state"](DEPLOYMENT, [[], pods])["reason"].startswith(reason)
