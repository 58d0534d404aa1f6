# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The candidate that CRI-O validates, and the effect of its result."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.apply import ensure_present
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.crio_files import SHIPPED, table
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.node import CrioNode

if t.TYPE_CHECKING:
    from pathlib import Path


class TestValidate:
    def _host(self, node: CrioNode, script: str) -> t.Any:
        binary = node.root / "crio"
        binary.write_text(f"#!/bin/sh\n{script}\n")
        binary.chmod(0o755)
        return type(node.host)(**{**vars(node.host), "binary": str(binary)})

    def _present(self, node: CrioNode, script: str, **requested: t.Any) -> t.Any:
        return ensure_present(node.daemon(requested), self._host(node, script))

    def test_candidate_is_among_the_other_drop_ins(self, tmp_path: Path) -> None:
        node = CrioNode(tmp_path, SHIPPED, _10_site="# site\n")
        calls = tmp_path / "calls"
        self._present(node, f'echo "$@" > {calls}; ls "$4" >> {calls}; cat "$4/99-nvidia.toml"')
        first, *listed = calls.read_text().splitlines()
        assert first.startswith(f"--config {node.main} --config-dir ")
        assert first.endswith(" config")
        assert listed == ["10-site.conf", "99-nvidia.toml"]

    def test_missing_main_file_is_accepted(self, tmp_path: Path) -> None:
        node = CrioNode(tmp_path)
        self._present(node, '[ "$2" = "" ] && cat "$4/99-nvidia.toml"')
        assert node.config.exists()

    def test_refusal_quotes_crio(self, tmp_path: Path) -> None:
        node = CrioNode(tmp_path, SHIPPED)
        with pytest.raises(ConfigError, match="no such thing; nothing was written"):
            self._present(node, '[ -s "$4/99-nvidia.toml" ] || exit 0; echo no such thing >&2; exit 1')
        assert not node.config.exists()

    def test_nested_folders_are_linked(self, tmp_path: Path) -> None:
        node = CrioNode(tmp_path, SHIPPED)
        below = node.config.parent / "below.d" / "deep.conf"
        below.parent.mkdir()
        below.write_text("# deep\n")
        self._present(node, '[ -f "$4/below.d/deep.conf" ] && [ ! -L "$4/below.d" ] && cat "$4/99-nvidia.toml"')
        assert node.config.exists()

    def test_refusal_of_unchanged_files_is_named(self, tmp_path: Path) -> None:
        node = CrioNode(tmp_path, SHIPPED)
        fatal = r"""echo 'time="now" level=fatal msg="loading \\"x\\" failed"' >&2; exit 1"""
        with pytest.raises(ConfigError, match='even as it is now: loading "x" failed; correct that first'):
            self._present(node, fatal)

    def test_another_effect_is_refused(self, tmp_path: Path) -> None:
        node = CrioNode(tmp_path, SHIPPED)
        with pytest.raises(ConfigError, match="but with /old; search for another file"):
            self._present(node, f"cat <<END\n{table(path='/old')}\nEND")
        assert not node.config.exists()
