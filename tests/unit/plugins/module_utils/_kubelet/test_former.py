# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The former file is kept until the kubelet is verified, whatever kills the runs and whoever edits in between."""

from __future__ import annotations

import contextlib
import itertools
import tempfile
import typing as t
from pathlib import Path

import pytest

pytest.importorskip("ruamel.yaml")
pytest.importorskip("hypothesis")

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubelet.record import Record
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._kubelet.kubelet_node import CARED_FOR, Node

BASE = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
maxPods: 0 # theirs
kubeReserved: {memory: 1Gi}
"""
ONE: dict[str, t.Any] = {"kubeReserved": {"cpu": "1"}}
TWO: dict[str, t.Any] = {"kubeReserved": {"cpu": "2", "memory": "2Gi"}}
PRESENT, ABSENT = {"state": "present", "keep_former": True}, {"state": "absent", "keep_former": True}
STEPS: tuple[dict[str, t.Any], ...] = (
    {**PRESENT, "values": ONE},
    {**PRESENT, "values": TWO},
    {**PRESENT, "values": {"systemReserved": {"cpu": "1"}}},
    ABSENT,
    {"state": "restored"},
    {"state": "confirmed"},
)


def change(name: str) -> dict[str, t.Any]:
    return {"from nothing": STEPS[0], "to another": STEPS[1], "back": ABSENT}[name]


@pytest.fixture
def held(cared_for: Node) -> Node:
    """A node with a change that is verified."""
    cared_for.run(**STEPS[0])
    assert cared_for.run(state="confirmed")["unproved"]
    return cared_for


def test_a_change_is_restored_or_confirmed(held: Node) -> None:
    before = held.config.read_bytes()
    again = held.run(**STEPS[0])
    assert (again["unproved"], again["files"]) == (False, [])
    assert not held.run(**STEPS[1])["unproved"]
    assert held.run(**STEPS[1])["unproved"]
    predicted = held.run(state="restored", check=True)
    done = held.run(state="restored")
    assert predicted["changed"] is done["changed"] is done["needs_restart"] is True
    assert (done["files"], held.config.read_bytes()) == ([str(held.config)], before)
    assert not held.run(state="restored")["changed"]
    confirmed = held.run(state="confirmed")
    assert (confirmed["changed"], len(confirmed["files"])) == (False, 1)
    assert held.run(state="confirmed")["files"] == held.run(**STEPS[0])["files"] == []
    assert not held.run(state="restored")["changed"]
    held.run(**ABSENT)
    assert held.run(state="absent", keep_former=True)["resources"] == ["cpu"]
    held.run(state="confirmed")
    assert (held.config.read_text(), held.records()) == (CARED_FOR, [])


def test_nothing_is_kept_without_a_restart_or_without_keep_former(node: Node) -> None:
    node.run(**{**STEPS[0], "keep_former": False})
    node.change("'1'", "1000m")
    node.run(**{**STEPS[0], "values": {"kubeReserved": {"cpu": 1}}})
    assert not node.run(state="restored")["unproved"]


@pytest.mark.parametrize("edit", ["changed", "removed"])
def test_edits_of_others_are_never_overwritten_by_the_former_file(held: Node, edit: str) -> None:
    held.run(**STEPS[1])
    if edit == "removed":
        held.config.unlink()
    else:
        held.change("maxPods:   250", "maxPods:   200")
    before = held.files()
    with pytest.raises(ConfigError, match=rf"^{held.config} is not as .* Remove by hand .*, and run again\.$"):
        held.run(state="restored")
    assert held.files() == before
    if edit == "changed":  # from here on theirs is what there was before
        theirs = held.config.read_bytes()
        held.run(**STEPS[0])
        held.run(state="restored")
        assert held.config.read_bytes() == theirs


@pytest.mark.parametrize("edited", [False, True], ids=["alone", "edited"])
@pytest.mark.parametrize("name", ["from nothing", "to another", "back"])
def test_killed_anywhere_it_can_be_restored(tmp_path: Path, name: str, edited: bool) -> None:
    """A change, a restoration and its end, killed after each of its writes; then the same without a kill."""
    steps = (change(name), {"state": "restored"}, {"state": "confirmed"})
    for number, death in enumerate(itertools.product(range(3), range(3))):
        node = Node(tmp_path / str(number), BASE)
        if name != "from nothing":
            node.run(**STEPS[0])
            node.run(state="confirmed")
        if edited:
            node.change("maxPods: 0", "maxPods: 5")
        before = node.config.read_bytes()
        values = [Record.decode(path.read_bytes(), "").values for path in node.records()]
        for step in steps[: death[0]]:
            node.run(**step)
        node.run_and_die(death[1], **steps[death[0]])
        node.run(state="restored")
        node.run(state="confirmed")
        assert node.config.read_bytes() == before, death
        assert [Record.decode(path.read_bytes(), "").values for path in node.records()] == values, death
        node.run_and_die(death[1], **change(name))
        done = node.run(**change(name))
        assert done["warnings"] == []
        node.run(state="confirmed")
        node.run(**ABSENT)
        node.run(state="confirmed")
        assert node.config.read_text() == (BASE.replace("0 #", "5 #") if edited else BASE), death
        assert node.records() == []


@given(st.lists(st.tuples(st.sampled_from([*STEPS, None]), st.sampled_from([0, 1, 9])), max_size=9))
def test_no_order_of_runs_kills_and_edits_loses_anything(steps: list[tuple[dict[str, t.Any] | None, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        node = Node(Path(folder) / "node", BASE)
        edits = 0
        for step, writes in steps:
            if step is None:
                node.change(f"maxPods: {edits} #", f"maxPods: {edits + 1} #")
                edits += 1
                continue
            with contextlib.suppress(ConfigError):
                node.run_and_die(writes, **step)
            assert f"maxPods: {edits} # theirs" in node.config.read_text()
        for state in ("absent", "confirmed"):
            assert node.run(state=state, keep_former=True)["warnings"] == []
        assert node.config.read_text() == BASE.replace("0 #", f"{edits} #")
        assert node.records() == []
