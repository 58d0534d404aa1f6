# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Undo restores the original bytes; in an edited file, it removes only the managed settings."""

from __future__ import annotations

import functools
import shutil
from pathlib import Path

import pytest

pytest.importorskip("ruamel.yaml")

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.files import FilesError
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._kubelet.kubelet_node import (
    HANDWRITTEN,
    KUBEADM,
    VALUES,
    Node,
)
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils.interruptions import interrupt_at_each_call


def test_edits_of_others_are_kept(handwritten_node: Node) -> None:
    handwritten_node.run()
    handwritten_node.change("maxPods:   250", "maxPods:   200")
    done = handwritten_node.run(state="absent")
    assert done["warnings"] == []
    assert done["needs_restart"]
    assert handwritten_node.config.read_text() == HANDWRITTEN.replace("maxPods:   250", "maxPods:   200")


def test_settings_changed_by_others_are_kept_with_a_warning(handwritten_node: Node) -> None:
    handwritten_node.run()
    handwritten_node.change("'1Gi'", "'4Gi'")
    done = handwritten_node.run(state="absent")
    [warning] = done["warnings"]
    assert "kubeReserved.memory was changed by others since and is left as it is" in warning
    text = handwritten_node.config.read_text()
    assert "memory: '4Gi'" in text
    assert "cpu" not in text
    assert text.endswith("systemReserved:\n")
    assert handwritten_node.records() == []


def test_another_spelling_by_others_is_still_managed(node: Node) -> None:
    node.run()
    node.change("'1Gi'", "1024Mi # one")
    assert not node.run()["changed"]
    node.run(state="absent")
    assert node.config.read_text() == KUBEADM


def test_edits_between_two_runs_are_kept_by_the_undo(node: Node) -> None:
    node.run()
    node.change("rotateCertificates: true", "rotateCertificates: false")
    node.run({"kubeReserved": {"cpu": 2}})
    node.run(state="absent")
    assert node.config.read_text() == KUBEADM.replace("rotateCertificates: true", "rotateCertificates: false")


def test_file_rewritten_by_kubeadm_gets_the_settings_again(node: Node) -> None:
    """As `kubeadm upgrade node` does."""
    node.run()
    upgraded = KUBEADM.replace("syncFrequency: 0s", "syncFrequency: 1s")
    node.config.write_text(upgraded)
    done = node.run()
    assert (done["changed"], done["warnings"]) == (True, [])
    assert node.config.read_text().startswith(upgraded)
    node.run(state="absent")
    assert node.config.read_text() == upgraded


def test_undo_of_file_rewritten_by_kubeadm_changes_only_the_record(node: Node) -> None:
    node.run()
    node.config.write_text(KUBEADM)
    done = node.run(state="absent")
    assert (done["changed"], done["needs_restart"], len(done["files"])) == (False, False, 1)
    assert node.records() == []


def test_missing_file_removes_the_record(node: Node) -> None:
    node.run(keep_former=True)
    node.config.unlink()
    done = node.run(state="absent")
    assert (done["changed"], done["reserved"], done["unverified"]) == (False, {}, False)
    assert node.records() == []


def test_damaged_record_is_named(node: Node) -> None:
    node.run()
    [record] = node.records()
    for text in ("{", "[]", '{"format": 1}', '{"format": 1, "record": {"file": {"original": "?", "written": []}}}'):
        record.write_text(text)
        with pytest.raises(ConfigError, match=f"{record.name}.* is damaged"):
            node.run(state="absent")
    record.write_text('{"format": 2}')
    with pytest.raises(ConfigError, match="is of format 2 and not 1"):
        node.run()


def test_change_by_others_between_read_and_write_is_refused(node: Node) -> None:
    def edit() -> None:
        node.config.write_text(KUBEADM + "# now\n")

    node.before_write = edit
    with pytest.raises(FilesError, match=r"config\.yaml was changed by others since it was read"):
        node.run()
    assert node.files() == {"kubelet/config.yaml": (KUBEADM + "# now\n").encode()}
    assert node.records() == []


@pytest.mark.parametrize("run", ["present", "changed", "absent"])
def test_run_interrupted_at_each_step_resumes(tmp_path: Path, run: str) -> None:
    values = {"kubeReserved": {"cpu": 2}} if run == "changed" else VALUES
    state = "absent" if run == "absent" else "present"

    def prepare() -> Node:
        shutil.rmtree(tmp_path / "node", ignore_errors=True)
        node = Node(tmp_path / "node", HANDWRITTEN)
        if run != "present":
            node.run()
        return node

    node = prepare()
    old = node.files()
    node.run(values, state=state)
    new = node.files()
    node = prepare()
    states = 0
    for at in interrupt_at_each_call(functools.partial(node.run, values, state=state), node.folder):
        shown = {name: data for name, data in node.files().items() if not Path(name).name.startswith(".")}
        assert shown in (old, new), at
        assert node.run(values, state=state)["warnings"] == [], at
        assert node.files() == new, at
        node.run(state="absent")
        assert node.config.read_text() == HANDWRITTEN, at
        states += 1
    assert states > 5
