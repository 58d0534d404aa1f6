# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A change is written only if the daemon accepts it."""

from __future__ import annotations

import os
import typing as t
from dataclasses import replace

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._config import files
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes import samples
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.node import Node

if t.TYPE_CHECKING:
    from pathlib import Path


class TestValidate:
    """With fake answers of containerd."""

    def node(self, tmp_path: Path, *answers: tuple[int, str, str]) -> Node:
        node = Node(tmp_path, samples.KUBEADM_V3)
        node.answer("/usr/bin/containerd", *answers)
        return node

    def dump(self, default: str = "runc", binary: str = "/usr/bin/nvidia-container-runtime") -> tuple[int, str, str]:
        section = f"plugins.'{samples.V3}'.containerd"
        text = (
            f"version = 3\n[{section}]\ndefault_runtime_name = '{default}'\n[{section}.runtimes.runc]\n"
            f"[{section}.runtimes.nvidia.options]\nBinaryName = '{binary}'\n"
        )
        return 0, text, ""

    def test_accepted_change_is_written(self, tmp_path: Path) -> None:
        assert self.node(tmp_path, self.dump()).present().changed

    @pytest.mark.parametrize("state", ["present", "absent"])
    def test_edit_during_the_validation_is_kept(self, tmp_path: Path, state: str) -> None:
        node = Node(tmp_path, samples.KUBEADM_V3)
        if state == "absent":
            node.present()
            node.confirm()
        edited = node.text() + "# site\n"
        changes = [edited]

        def execute(_command: t.Sequence[str]) -> tuple[int, str, str]:
            if changes:
                node.config.write_text(changes.pop(), encoding="utf-8")
            return self.dump()

        node.host = replace(node.host, binary="/usr/bin/containerd", execute=execute)
        run = node.present if state == "present" else node.absent
        with pytest.raises(
            files.FilesError, match="was changed by others since it was read, and was not replaced; run again"
        ):
            run()
        assert node.text() == edited
        assert not os.path.exists(node.host.restart_marker("containerd"))
        assert run().changed
        assert "# site" in node.text()

    @pytest.mark.parametrize("check", [True, False])
    @pytest.mark.parametrize(
        ("answers", "words"),
        [
            (
                [(1, "", "containerd: no such thing"), (0, "version = 3", "")],
                "with the change: no such thing; nothing was",
            ),
            ([(1, "", "containerd: bad"), (1, "", "containerd: bad before")], "even as it is now: bad before"),
            ([(0, "DUMP", "")], "has no runtime nvidia"),
        ],
    )
    def test_refused_change_is_not_written(
        self, tmp_path: Path, check: bool, answers: list[tuple[int, str, str]], words: str
    ) -> None:
        replies = [self.dump(binary="/other") if answer[1] == "DUMP" else answer for answer in answers]
        node = self.node(tmp_path, *replies)
        with pytest.raises(ConfigError, match=words):
            node.present(check=check)
        assert node.text() == samples.KUBEADM_V3
        assert not (tmp_path / "state").exists()

    def test_undo_restores_original_that_containerd_rejects(self, tmp_path: Path) -> None:
        node = self.node(tmp_path, self.dump(), (1, "", "containerd: rejected before"))
        node.present()
        assert any("rejected before" in warning for warning in node.absent().warnings)
        assert node.text() == samples.KUBEADM_V3

    def test_other_removals_are_validated(self, tmp_path: Path) -> None:
        node = self.node(tmp_path, self.dump(), (1, "", "containerd: no"))
        node.present()
        node.config.write_text(node.text() + "# edited\n", encoding="utf-8")
        before = node.text()
        with pytest.raises(ConfigError, match="without the change: no; nothing was written"):
            node.absent()
        assert node.text() == before
