# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Undo: the original bytes where others did not edit, and the managed settings where they did."""

from __future__ import annotations

import functools
import shutil
from pathlib import Path

import pytest

pytest.importorskip("ruamel.yaml")

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.files import FilesError
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._kubelet.kubelet_node import (
    CARED_FOR,
    KUBEADM,
    VALUES,
    Node,
)
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils.mortal import deaths


def test_edits_of_others_are_kept(cared_for: Node) -> None:
    cared_for.run()
    cared_for.change("maxPods:   250", "maxPods:   200")
    done = cared_for.run(state="absent")
    assert done["warnings"] == []
    assert done["needs_restart"]
    assert cared_for.config.read_text() == CARED_FOR.replace("maxPods:   250", "maxPods:   200")


def test_settings_that_others_have_changed_since_stay_with_a_warning(cared_for: Node) -> None:
    cared_for.run()
    cared_for.change("'1Gi'", "'4Gi'")
    done = cared_for.run(state="absent")
    [warning] = done["warnings"]
    assert "kubeReserved.memory was changed by others since and is left as it is" in warning
    text = cared_for.config.read_text()
    assert "memory: '4Gi'" in text
    assert "cpu" not in text
    assert text.endswith("systemReserved:\n")
    assert cared_for.records() == []


def test_what_others_wrote_in_another_spelling_is_still_managed(node: Node) -> None:
    node.run()
    node.change("'1Gi'", "1024Mi # one")
    assert not node.run()["changed"]
    node.run(state="absent")
    assert node.config.read_text() == KUBEADM


def test_edits_between_two_runs_survive_the_undo(node: Node) -> None:
    node.run()
    node.change("rotateCertificates: true", "rotateCertificates: false")
    node.run({"kubeReserved": {"cpu": 2}})
    node.run(state="absent")
    assert node.config.read_text() == KUBEADM.replace("rotateCertificates: true", "rotateCertificates: false")


def test_a_file_that_kubeadm_rewrote_gets_the_settings_again(node: Node) -> None:
    """As `kubeadm upgrade node` does."""
    node.run()
    upgraded = KUBEADM.replace("syncFrequency: 0s", "syncFrequency: 1s")
    node.config.write_text(upgraded)
    done = node.run()
    assert (done["changed"], done["warnings"]) == (True, [])
    assert node.config.read_text().startswith(upgraded)
    node.run(state="absent")
    assert node.config.read_text() == upgraded


def test_an_undo_after_kubeadm_rewrote_the_file_changes_the_record_alone(node: Node) -> None:
    node.run()
    node.config.write_text(KUBEADM)
    done = node.run(state="absent")
    assert (done["changed"], done["needs_restart"], len(done["files"])) == (False, False, 1)
    assert node.records() == []


def test_a_node_that_lost_its_file_loses_the_record(node: Node) -> None:
    node.run(keep_former=True)
    node.config.unlink()
    done = node.run(state="absent")
    assert (done["changed"], done["reserved"], done["unproved"]) == (False, {}, False)
    assert node.records() == []


def test_a_damaged_record_is_named(node: Node) -> None:
    node.run()
    [record] = node.records()
    for text in ("{", "[]", '{"format": 1}', '{"format": 1, "record": {"file": {"original": "?", "written": []}}}'):
        record.write_text(text)
        with pytest.raises(ConfigError, match=f"{record.name}.* is damaged"):
            node.run(state="absent")
    record.write_text('{"format": 2}')
    with pytest.raises(ConfigError, match="is of format 2 and not 1"):
        node.run()


def test_a_change_by_others_between_reading_and_writing_is_refused(node: Node) -> None:
    def edit() -> None:
        node.config.write_text(KUBEADM + "# now\n")

    node.before_write = edit
    with pytest.raises(FilesError, match=r"config\.yaml was changed by others meanwhile"):
        node.run()
    assert node.files() == {"kubelet/config.yaml": (KUBEADM + "# now\n").encode()}
    assert node.records() == []


@pytest.mark.parametrize("run", ["present", "changed", "absent"])
def test_a_run_killed_anywhere_leaves_old_or_new_and_the_next_one_resumes(tmp_path: Path, run: str) -> None:
    values = {"kubeReserved": {"cpu": 2}} if run == "changed" else VALUES
    state = "absent" if run == "absent" else "present"

    def prepared() -> Node:
        shutil.rmtree(tmp_path / "node", ignore_errors=True)
        node = Node(tmp_path / "node", CARED_FOR)
        if run != "present":
            node.run()
        return node

    node = prepared()
    old = node.files()
    node.run(values, state=state)
    new = node.files()
    node = prepared()
    states = 0
    for at in deaths(functools.partial(node.run, values, state=state), node.folder):
        shown = {name: data for name, data in node.files().items() if not Path(name).name.startswith(".")}
        assert shown in (old, new), at
        assert node.run(values, state=state)["warnings"] == [], at
        assert node.files() == new, at
        node.run(state="absent")
        assert node.config.read_text() == CARED_FOR, at
        states += 1
    assert states > 5
