# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import stat
import typing as t

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes import proof
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.containerd import Request
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.proof import Verdict
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.schema import Release
from ansible_collections.gpu.kubernetes.plugins.module_utils._toml import loads
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.samples import V3

if t.TYPE_CHECKING:
    from pathlib import Path

BINARY = "/usr/bin/nvidia-container-runtime"


class Containerd:
    """Stands for the binary; keeps what it was given to read."""

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


class TestJudge:
    def test_candidate_is_private_and_gone_afterwards(self, tmp_path: Path) -> None:
        fake = Containerd()
        verdict = proof.judge("/x/containerd", "/etc/c.toml", b"version = 3\n", str(tmp_path), fake)
        assert verdict == Verdict(None, {"version": 3})
        assert fake.command[0] == "/x/containerd"
        assert list(fake.command[3:]) == ["config", "dump"]
        assert fake.read == b"version = 3\n"
        assert fake.modes == [0o600, 0o700]
        assert list(tmp_path.iterdir()) == []

    def test_relative_imports_are_looked_up_beside_the_file(self, tmp_path: Path) -> None:
        fake = Containerd()
        data = b'version = 3\nimports = ["conf.d/*.toml", "/abs/x.toml"]\n'
        proof.judge("containerd", "/etc/containerd/c.toml", data, str(tmp_path), fake)
        assert loads(fake.read.decode())["imports"] == ["/etc/containerd/conf.d/*.toml", "/abs/x.toml"]

    @pytest.mark.parametrize(
        ("errors", "expected"),
        [
            ("time=x level=warning msg=y\ncontainerd: failed to load TOML from CANDIDATE: bad thing\n", None),
            ("containerd: cannot use hunter2\n", "cannot use ********"),
            ("", "exit status 1"),
        ],
    )
    def test_refusal_in_containerds_words(self, tmp_path: Path, errors: str, expected: str | None) -> None:
        data = b'version = 3\npassword = "hunter2"\n'
        verdict = proof.judge("containerd", "/etc/c.toml", data, str(tmp_path), Containerd(1, "", errors))
        assert verdict.refusal == (expected or "failed to load TOML from /etc/c.toml: bad thing")

    def test_output_that_cannot_be_read_proves_nothing_more(self, tmp_path: Path) -> None:
        assert proof.judge("c", "/c", b"", str(tmp_path), Containerd(0, "= not TOML")) == Verdict(None, {})


class TestEffect:
    def effective(self, binary: str = BINARY, default: str = "runc", **more: t.Any) -> Verdict:
        runtimes = {"runc": {}, "nvidia": {"options": {"BinaryName": binary}}}
        section = {"default_runtime_name": default, "runtimes": runtimes}
        return Verdict(None, {"version": 3, "plugins": {V3: {"containerd": section}}, **more})

    @pytest.mark.parametrize(
        ("verdict", "asked", "words"),
        [
            ({}, {}, None),
            ({"default": "nvidia"}, {"set_default": True}, None),
            ({"default": "crun"}, {}, "no such runtime"),
            ({"binary": "/other"}, {}, "does not see runtime nvidia"),
            ({"default": "runc"}, {"set_default": True}, "takes runc as the default runtime"),
            ({"default": "nvidia"}, {"set_default": False}, "takes nvidia as the default runtime"),
        ],
    )
    def test_checks(self, verdict: dict[str, t.Any], asked: dict[str, t.Any], words: str | None) -> None:
        request = Request(path="/etc/c.toml", **asked)
        if words is None:
            proof.check_effect(self.effective(**verdict), request)
        else:
            with pytest.raises(ConfigError, match=words):
                proof.check_effect(self.effective(**verdict), request)

    @pytest.mark.parametrize("effective", [{}, {"version": 1}, {"version": 3, "plugins": {}}])
    def test_nothing_to_go_by(self, effective: dict[str, t.Any]) -> None:
        proof.check_effect(Verdict(None, effective), Request(path="/c"))


class TestBinary:
    def test_given_one_is_taken(self) -> None:
        assert proof.find_binary("/x/containerd") == "/x/containerd"

    def test_found_in_path(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(proof, "SEARCH_PATH", str(tmp_path))
        monkeypatch.setenv("PATH", "/nowhere")
        assert proof.find_binary(None) is None
        (tmp_path / "containerd").write_text("#!/bin/sh\n", encoding="utf-8")
        (tmp_path / "containerd").chmod(0o755)
        assert proof.find_binary(None) == str(tmp_path / "containerd")

    @pytest.mark.parametrize(
        ("answer", "expected"),
        [
            ((0, "containerd containerd.io 1.7.27 0544", ""), Release(1, 7)),
            ((1, "containerd containerd.io 1.7.27 0544", ""), None),
            ((0, "", ""), None),
        ],
    )
    def test_release(self, answer: tuple[int, str, str], expected: Release | None) -> None:
        assert proof.ask_release("containerd", Containerd(*answer)) == expected

    def test_run(self) -> None:
        assert proof.run(["/bin/sh", "-c", "echo out; echo err >&2; exit 3"]) == (3, "out\n", "err\n")
        with pytest.raises(ConfigError, match="Cannot run /nowhere/containerd"):
            proof.run(["/nowhere/containerd"])
