# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import stat
import typing as t

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.validate import Verdict
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.containerd import daemon
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.containerd.plan import Request
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.containerd.schema import Release
from ansible_collections.gpu.kubernetes.plugins.module_utils._toml import loads
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.samples import V3

if t.TYPE_CHECKING:
    from pathlib import Path

BINARY = "/usr/bin/nvidia-container-runtime"


class FakeContainerd:
    """A fake of the program, which stores the configuration that it reads."""

    def __init__(self, status: int = 0, output: str = "version = 3\n", errors: str = "") -> None:
        self.answer = (status, output, errors)
        self.command: t.Sequence[str] = ()
        self.read = b""
        self.modes: list[int] = []

    def __call__(self, command: t.Sequence[str]) -> tuple[int, str, str]:
        self.command = command
        if "--config" in command:
            with open(command[2], "rb") as stream:
                self.read = stream.read()
            self.modes = [stat.S_IMODE(os.stat(p).st_mode) for p in (command[2], os.path.dirname(command[2]))]
            return self.answer[0], self.answer[1], self.answer[2].replace("CANDIDATE", command[2])
        return self.answer


class TestValidateFile:
    def test_candidate_is_private_and_removed(self, tmp_path: Path) -> None:
        fake = FakeContainerd()
        verdict = daemon.validate_file("/x/containerd", "/etc/c.toml", b"version = 3\n", str(tmp_path), fake)
        assert verdict == Verdict(None, {"version": 3})
        assert fake.command[0] == "/x/containerd"
        assert list(fake.command[3:]) == ["config", "dump"]
        assert fake.read == b"version = 3\n"
        assert fake.modes == [0o600, 0o700]
        assert list(tmp_path.iterdir()) == []

    def test_relative_imports_are_resolved_beside_the_file(self, tmp_path: Path) -> None:
        fake = FakeContainerd()
        data = b'version = 3\nimports = ["conf.d/*.toml", "/abs/x.toml"]\n'
        daemon.validate_file("containerd", "/etc/containerd/c.toml", data, str(tmp_path), fake)
        assert loads(fake.read.decode())["imports"] == ["/etc/containerd/conf.d/*.toml", "/abs/x.toml"]

    @pytest.mark.parametrize(
        ("errors", "expected"),
        [
            ("time=x level=warning msg=y\ncontainerd: failed to load TOML from CANDIDATE: bad thing\n", None),
            ("containerd: cannot use hunter2\n", "cannot use ********"),
            ("", "exit status 1"),
        ],
    )
    def test_refusal_quotes_containerd(self, tmp_path: Path, errors: str, expected: str | None) -> None:
        data = b'version = 3\npassword = "hunter2"\n'
        verdict = daemon.validate_file("containerd", "/etc/c.toml", data, str(tmp_path), FakeContainerd(1, "", errors))
        assert verdict.refusal == (expected or "failed to load TOML from /etc/c.toml: bad thing")

    def test_unreadable_output_has_no_effective_configuration(self, tmp_path: Path) -> None:
        assert daemon.validate_file("c", "/c", b"", str(tmp_path), FakeContainerd(0, "= not TOML")) == Verdict(None, {})


class TestEffect:
    def effective(self, binary: str = BINARY, default: str = "runc", **more: t.Any) -> Verdict:
        runtimes = {"runc": {}, "nvidia": {"options": {"BinaryName": binary}}}
        section = {"default_runtime_name": default, "runtimes": runtimes}
        return Verdict(None, {"version": 3, "plugins": {V3: {"containerd": section}}, **more})

    @pytest.mark.parametrize(
        ("verdict", "requested", "words"),
        [
            ({}, {}, None),
            ({"default": "nvidia"}, {"set_default": True}, None),
            ({"default": "crun"}, {}, "no such runtime"),
            ({"binary": "/other"}, {}, "has no runtime nvidia"),
            ({"default": "runc"}, {"set_default": True}, "has runc as the default runtime"),
            ({"default": "nvidia"}, {"set_default": False}, "has nvidia as the default runtime"),
        ],
    )
    def test_check_effect_of_each_request(
        self, verdict: dict[str, t.Any], requested: dict[str, t.Any], words: str | None
    ) -> None:
        request = Request(path="/etc/c.toml", **requested)
        if words is None:
            daemon.check_effect(self.effective(**verdict), request)
        else:
            with pytest.raises(ConfigError, match=words):
                daemon.check_effect(self.effective(**verdict), request)

    @pytest.mark.parametrize("effective", [{}, {"version": 1}, {"version": 3, "plugins": {}}])
    def test_configuration_without_a_section_is_accepted(self, effective: dict[str, t.Any]) -> None:
        daemon.check_effect(Verdict(None, effective), Request(path="/c"))


class TestRelease:
    @pytest.mark.parametrize(
        ("answer", "expected"),
        [
            ((0, "containerd containerd.io 1.7.27 0544", ""), Release(1, 7)),
            ((1, "containerd containerd.io 1.7.27 0544", ""), None),
            ((0, "", ""), None),
        ],
    )
    def test_release_is_read_from_the_version(self, answer: tuple[int, str, str], expected: Release | None) -> None:
        assert daemon.read_release("containerd", FakeContainerd(*answer)) == expected
