# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The former file is kept until the kubelet is verified, also after interruptions and edits."""

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
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._kubelet.kubelet_node import HANDWRITTEN, Node

BASE = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
maxPods: 0 # site
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
    return {"from nothing": STEPS[0], "to another": STEPS[1], "undo": ABSENT}[name]


@pytest.fixture
def verified_node(handwritten_node: Node) -> Node:
    """A node with a change that is verified."""
    handwritten_node.run(**STEPS[0])
    assert handwritten_node.run(state="confirmed")["unverified"]
    return handwritten_node


def test_change_is_restored_or_confirmed(verified_node: Node) -> None:
    before = verified_node.config.read_bytes()
    again = verified_node.run(**STEPS[0])
    assert (again["unverified"], again["files"]) == (False, [])
    assert not verified_node.run(**STEPS[1])["unverified"]
    assert verified_node.run(**STEPS[1])["unverified"]
    predicted = verified_node.run(state="restored", check=True)
    done = verified_node.run(state="restored")
    assert predicted["changed"] is done["changed"] is done["needs_restart"] is True
    assert (done["files"], verified_node.config.read_bytes()) == ([str(verified_node.config)], before)
    assert not verified_node.run(state="restored")["changed"]
    confirmed = verified_node.run(state="confirmed")
    assert (confirmed["changed"], len(confirmed["files"])) == (False, 1)
    assert verified_node.run(state="confirmed")["files"] == verified_node.run(**STEPS[0])["files"] == []
    assert not verified_node.run(state="restored")["changed"]
    verified_node.run(**ABSENT)
    assert verified_node.run(state="absent", keep_former=True)["resources"] == ["cpu"]
    verified_node.run(state="confirmed")
    assert (verified_node.config.read_text(), verified_node.records()) == (HANDWRITTEN, [])


def test_nothing_is_kept_without_a_restart_or_without_keep_former(node: Node) -> None:
    node.run(**{**STEPS[0], "keep_former": False})
    node.change("'1'", "1000m")
    node.run(**{**STEPS[0], "values": {"kubeReserved": {"cpu": 1}}})
    assert not node.run(state="restored")["unverified"]


@pytest.mark.parametrize("edit", ["changed", "removed"])
def test_restore_never_overwrites_edits(verified_node: Node, edit: str) -> None:
    verified_node.run(**STEPS[1])
    if edit == "removed":
        verified_node.config.unlink()
    else:
        verified_node.change("maxPods:   250", "maxPods:   200")
    before = verified_node.files()
    with pytest.raises(ConfigError, match=rf"^{verified_node.config} is not as .* Remove by hand .*, and run again\.$"):
        verified_node.run(state="restored")
    assert verified_node.files() == before
    if edit == "changed":  # from here on, the edited file is the former one
        content = verified_node.config.read_bytes()
        verified_node.run(**STEPS[0])
        verified_node.run(state="restored")
        assert verified_node.config.read_bytes() == content


@pytest.mark.parametrize("edited", [False, True], ids=["unedited", "edited"])
@pytest.mark.parametrize("name", ["from nothing", "to another", "undo"])
def test_interrupted_runs_can_be_restored(tmp_path: Path, name: str, edited: bool) -> None:
    """Change, restore and confirm are interrupted after each write, and then repeated."""
    steps = (change(name), {"state": "restored"}, {"state": "confirmed"})
    for number, interruption in enumerate(itertools.product(range(3), range(3))):
        node = Node(tmp_path / str(number), BASE)
        if name != "from nothing":
            node.run(**STEPS[0])
            node.run(state="confirmed")
        if edited:
            node.change("maxPods: 0", "maxPods: 5")
        before = node.config.read_bytes()
        values = [Record.decode(path.read_bytes(), "").values for path in node.records()]
        for step in steps[: interruption[0]]:
            node.run(**step)
        node.run_interrupted(interruption[1], **steps[interruption[0]])
        node.run(state="restored")
        node.run(state="confirmed")
        assert node.config.read_bytes() == before, interruption
        assert [Record.decode(path.read_bytes(), "").values for path in node.records()] == values, interruption
        node.run_interrupted(interruption[1], **change(name))
        done = node.run(**change(name))
        assert done["warnings"] == []
        node.run(state="confirmed")
        node.run(**ABSENT)
        node.run(state="confirmed")
        assert node.config.read_text() == (BASE.replace("0 #", "5 #") if edited else BASE), interruption
        assert node.records() == []


@given(st.lists(st.tuples(st.sampled_from([*STEPS, None]), st.sampled_from([0, 1, 9])), max_size=9))
def test_any_order_of_runs_interruptions_and_edits_can_be_undone(
    steps: list[tuple[dict[str, t.Any] | None, int]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        node = Node(Path(folder) / "node", BASE)
        edits = 0
        for step, writes in steps:
            if step is None:
                node.change(f"maxPods: {edits} #", f"maxPods: {edits + 1} #")
                edits += 1
                continue
            with contextlib.suppress(ConfigError):
                node.run_interrupted(writes, **step)
            assert f"maxPods: {edits} # site" in node.config.read_text()
        for state in ("absent", "confirmed"):
            assert node.run(state=state, keep_former=True)["warnings"] == []
        assert node.config.read_text() == BASE.replace("0 #", f"{edits} #")
        assert node.records() == []
