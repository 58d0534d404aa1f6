# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Docker's daemon.json: edits, undo, validation."""

from __future__ import annotations

import json
import stat
import typing as t

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.change_log import Change, ChangeLog, Record
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.formats import JSON
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.json_document import loads
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.redact import redact_pair
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.validate import Verdict
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.docker import Docker
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.docker_files import (
    BINARY,
    FILES,
    KUBEADM,
    NVIDIA,
    REQUESTED,
)
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.node import DockerNode

if t.TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("requested", REQUESTED, ids=["plain", "all", "off", "settings"])
def test_check_run_repeat_and_undo_restore_the_file(tmp_path: Path, name: str, requested: dict[str, t.Any]) -> None:
    text = FILES[name]
    node = DockerNode(tmp_path, text)
    start = node.snapshot()
    predicted = node.present(check=True, **requested)
    assert node.snapshot() == start, "check mode changed a file"
    done = node.present(**requested)
    assert (done.changed, done.after, done.restart_required) == (True, predicted.after, True)
    assert node.config.read_bytes() == done.after
    assert (tmp_path / "state" / "pending" / "docker.restart").exists()
    tree = loads(node.text())
    assert tree["runtimes"]["nvidia"]["path"] == BINARY
    assert {**tree, "runtimes": 0, "default-runtime": 0, "features": 0, "log-level": 0, "big": 0} == {
        **loads(text),
        "runtimes": 0,
        "default-runtime": 0,
        "features": 0,
        "log-level": 0,
        "big": 0,
    }
    assert not node.present(check=True, **requested).changed
    again = node.present(**requested)
    assert (again.changed, again.restart_required) == (False, True)
    node.confirm()
    assert not node.present(**requested).restart_required
    outcome = node.absent(check=True)
    assert node.config.read_bytes() == done.after
    undo = node.absent()
    assert (undo.changed, undo.restart_required, undo.after) == (True, True, outcome.after)
    assert node.config.read_bytes() == text.encode(), "the original bytes are not restored"
    assert not node.absent().changed
    assert not list((tmp_path / "state" / "state").rglob("*.json"))


def test_only_managed_lines_are_added(tmp_path: Path) -> None:
    node = DockerNode(tmp_path, KUBEADM)
    node.present(set_default=True, enable_cdi=True)
    managed = """\
  "storage-driver": "overlay2",
  "default-runtime": "nvidia",
  "features": {
    "cdi": true
  },
  "runtimes": {
    "nvidia": {
      "path": "/usr/bin/nvidia-container-runtime"
    }
  }
"""
    assert node.text() == KUBEADM.replace('  "storage-driver": "overlay2"\n', managed)


def test_missing_file_is_created_and_removed_with_its_directory(tmp_path: Path) -> None:
    node = DockerNode(tmp_path, None)
    done = node.present()
    assert (done.before, done.backup_file) == (None, None)
    assert node.text() == json.dumps({"runtimes": {"nvidia": NVIDIA}}, indent=4) + "\n"
    assert stat.S_IMODE(node.config.stat().st_mode) == 0o644
    assert node.absent().after is None
    assert not (tmp_path / "etc").exists()


class TestEditsOfOthers:
    def test_member_after_the_managed_one_is_kept(self, tmp_path: Path) -> None:
        node = DockerNode(tmp_path, KUBEADM)
        node.present(set_default=True)
        node.config.write_text(node.text()[: -len("\n}\n")] + ',\n  "debug": true\n}\n', encoding="utf-8")
        assert not node.present(set_default=True).changed
        node.absent()
        assert node.text() == KUBEADM.replace('"overlay2"\n', '"overlay2",\n  "debug": true\n')

    def test_member_before_the_managed_one_is_kept(self, tmp_path: Path) -> None:
        node = DockerNode(tmp_path, KUBEADM)
        node.present()
        node.config.write_text(node.text().replace("{\n", '{\n  "debug": true,\n', 1), encoding="utf-8")
        node.present(enable_cdi=True)
        node.absent()
        assert node.text() == KUBEADM.replace("{\n", '{\n  "debug": true,\n', 1)

    @pytest.mark.parametrize("remedy", ["remove the setting", "restore the former value"])
    def test_value_of_others_at_managed_key_is_refused(self, tmp_path: Path, remedy: str) -> None:
        text = KUBEADM.replace("{\n", '{\n  "log-level": "info",\n', 1)
        node = DockerNode(tmp_path, text)
        backup = node.present(settings={"log-level": "debug"}).backup_file
        edited = node.text().replace('"debug"', '"warn"')
        node.config.write_text(edited, encoding="utf-8")
        for check in (True, False):
            with pytest.raises(ConfigError, match="others changed log-level after this module set it") as caught:
                node.absent(check=check)
            assert node.text() == edited
        assert str(node.config) in str(caught.value)
        assert str(backup) in str(caught.value)
        removed = remedy == "remove the setting"
        line = '  "log-level": "warn",\n'
        node.config.write_text(edited.replace(line, "" if removed else line.replace("warn", "info")), encoding="utf-8")
        node.absent()
        assert node.text() == (KUBEADM if removed else text)

    def test_value_of_others_is_restored_after_another_run(self, tmp_path: Path) -> None:
        node = DockerNode(tmp_path, KUBEADM)
        node.present(settings={"log-level": "debug"})
        node.config.write_text(node.text().replace('"debug"', '"warn"'), encoding="utf-8")
        assert node.present(settings={"log-level": "debug"}).changed
        node.absent()
        assert loads(node.text()) == {**loads(KUBEADM), "log-level": "warn"}

    @pytest.mark.parametrize("key", ["runtimes", "features"])
    def test_empty_table_stays_after_undo_of_two_runtimes(self, tmp_path: Path, key: str) -> None:
        text = KUBEADM.replace("{\n", f'{{\n  "{key}": {{}},\n', 1)
        node = DockerNode(tmp_path, text)
        node.present(enable_cdi=True)
        node.present(runtime_name="nvidia-cdi")
        node.absent()
        node.absent(runtime_name="nvidia-cdi")
        assert node.text() == text

    def test_path_of_others_is_refused(self, tmp_path: Path) -> None:
        node = DockerNode(tmp_path, KUBEADM)
        node.present()
        edited = node.text().replace(BINARY, "/opt/other")
        node.config.write_text(edited, encoding="utf-8")
        with pytest.raises(ConfigError, match=r"runtimes\.nvidia\.path"):
            node.absent()
        assert node.text() == edited

    def test_runtime_without_its_path_is_removed(self, tmp_path: Path) -> None:
        node = DockerNode(tmp_path, KUBEADM)
        node.present()
        edited = node.text().replace(f'"{BINARY}"', f'"{BINARY}",\n      "runtimeArgs": []')
        node.config.write_text(edited, encoding="utf-8")
        node.absent()
        assert loads(node.text()) == loads(KUBEADM)

    def test_earlier_runtime_without_a_path_is_kept(self, tmp_path: Path) -> None:
        text = '{"runtimes": {"nvidia": {"runtimeArgs": ["--debug"]}}}'
        node = DockerNode(tmp_path, text)
        node.present()
        node.config.write_text(node.text() + "\n", encoding="utf-8")
        node.absent()
        assert node.text() == text + "\n"

    def test_default_set_by_others_is_removed_with_the_runtime(self, tmp_path: Path) -> None:
        node = DockerNode(tmp_path, FILES["other runtimes"])
        node.present()
        node.config.write_text(node.text().replace('"crun",', '"nvidia",'), encoding="utf-8")
        outcome = node.absent()
        assert outcome.facts == {"default_runtime": None}
        assert any("runc again" in warning for warning in outcome.warnings)

    def test_unmanaged_runtime_is_kept(self, tmp_path: Path) -> None:
        node = DockerNode(tmp_path, FILES["by nvidia-ctk"])
        outcome = node.absent()
        assert not outcome.changed
        assert any("left as it is" in warning for warning in outcome.warnings)

    def test_two_runtimes_are_undone_one_by_one(self, tmp_path: Path) -> None:
        node = DockerNode(tmp_path, KUBEADM)
        node.present(enable_cdi=True)
        node.present(runtime_name="nvidia-cdi", runtime_path="/usr/bin/other", enable_cdi=True)
        node.absent()
        assert loads(node.text())["features"] == {"cdi": True}, "the other runtime requires it"
        assert list(loads(node.text())["runtimes"]) == ["nvidia-cdi"]
        node.absent(runtime_name="nvidia-cdi")
        assert node.text() == KUBEADM


def test_record_keeps_values_of_json(tmp_path: Path) -> None:
    record = Record(b"a", b"b", entries={"nvidia": (Change(("x",), "settings", None, [None, 10**30, "\ud800"]),)})
    log = ChangeLog(str(tmp_path / "d.json"), str(tmp_path / "record.json"), JSON, Docker.rules)
    log.write("sha", {"sha": record}, keep=False)
    assert log.load("sha", {"x": [None, 10**30, "\ud800"]}) == record


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{\n  "a": 1,\n  // no\n}', "line 3, column 3: Expecting property name"),
        (b'{"a": 1}\n}\n', "line 2, column 1: Extra data"),
        (b'{"a": 1, "a": 2}', "the key 'a' is in one object twice"),
        (b"[]", "line 1, column 1: the document has to be an object"),
        (b'\xef\xbb\xbf{"a": 1}', "line 1, column 1: Unexpected UTF-8 BOM"),
        (b'{"a": "\xff"}', "line 1, column 8: a byte that is not UTF-8"),
        (b'{"a": {{ docker_log_level }} }', "is a template"),
    ],
)
def test_invalid_files_are_refused(tmp_path: Path, content: bytes, words: str) -> None:
    node = DockerNode(tmp_path, content)
    with pytest.raises(ConfigError, match=words) as caught:
        node.present()
    assert str(node.config) in str(caught.value)
    assert str(caught.value).endswith(".")
    assert node.config.read_bytes() == content
    assert not (tmp_path / "state").exists()


def test_template_is_refused_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a template"):
        Docker(str(tmp_path / "daemon.json.j2")).check_owner("")


class TestValidate:
    """With a fake for dockerd's answers."""

    def node(self, tmp_path: Path, *answers: tuple[int, str, str]) -> DockerNode:
        node = DockerNode(tmp_path, KUBEADM)
        self.commands = node.answer("/usr/bin/dockerd", *answers)
        return node

    def test_accepted_change_is_written(self, tmp_path: Path) -> None:
        assert self.node(tmp_path, (0, "", "configuration OK")).present().changed
        (command,) = self.commands
        assert command[:2] == ["/usr/bin/dockerd", "--validate"]
        assert command[2].startswith("--config-file=")
        assert command[2].endswith("/daemon.json")

    @pytest.mark.parametrize("check", [True, False])
    @pytest.mark.parametrize(
        ("answers", "words"),
        [
            (
                [(1, "", "unable to configure: no such option"), (0, "", "configuration OK")],
                "docker refuses .* with the change: unable to configure: no such option; nothing was written",
            ),
            ([(1, "", "bad"), (1, "", "bad before")], "even as it is now: bad before"),
        ],
    )
    def test_refused_change_is_not_written(
        self, tmp_path: Path, check: bool, answers: list[tuple[int, str, str]], words: str
    ) -> None:
        node = self.node(tmp_path, *answers)
        with pytest.raises(ConfigError, match=words):
            node.present(check=check)
        assert node.text() == KUBEADM
        assert not (tmp_path / "state").exists()

    @pytest.mark.parametrize(
        ("errors", "refusal"),
        [
            ("Status: unknown flag: --validate\nSee 'dockerd --help'., Code: 125\n", None),
            ("cannot use http://me:opensesame@proxy.example in /x\n", "cannot use http://********@proxy.example in /x"),
            ("", "exit status 1"),
        ],
    )
    def test_refusal_quotes_dockerd(self, tmp_path: Path, errors: str, refusal: str | None) -> None:
        data = b'{"proxies": {"http-proxy": "http://me:opensesame@proxy.example"}}'
        verdict = Docker("/d.json").validate("dockerd", data, str(tmp_path), lambda _command: (1, "", errors))
        assert verdict == Verdict(refusal, {})
        assert not list(tmp_path.iterdir())


def test_credentials_are_masked() -> None:
    text = """\
{
  "log-opts": {"splunk-token": "opensesame", "tag": "#x"},
  "proxies": {"http-proxy": "http:\\/\\/me:opensesame@proxy.example", "no-proxy": "localhost"},
  "exec-opts": ["x.password=opensesame", "shown"]
}
"""
    before, after = redact_pair(
        text.encode(), text.replace('splunk-token": "opensesame', 'splunk-token": "new').encode(), JSON
    )
    assert "opensesame" not in before + after
    for shown in ("proxy.example", "localhost", "shown", "#x", "splunk-token"):
        assert shown in before
    assert [line for line in after.splitlines() if line not in before.splitlines()] == [
        '    "splunk-token": "******** (changed)",'
    ]
    assert redact_pair(b"{", None, JSON) == ("# 1 bytes, withheld because they are not valid JSON\n", "")


def test_any_sequence_of_runs_can_be_undone(tmp_path_factory: pytest.TempPathFactory) -> None:
    hypothesis = pytest.importorskip("hypothesis")
    from hypothesis import strategies as st

    switch = st.sampled_from([None, True, False])
    runs = st.fixed_dictionaries(
        {
            "set_default": switch,
            "enable_cdi": switch,
            "runtime_name": st.sampled_from(["nvidia", "nvidia-cdi"]),
            "settings": st.sampled_from([{}, REQUESTED[3]["settings"]]),
        }
    )

    @hypothesis.given(st.sampled_from(sorted(FILES)), st.lists(runs, min_size=1, max_size=4), st.booleans())
    def check(name: str, sequence: list[dict[str, t.Any]], is_edited: bool) -> None:
        text = FILES[name]
        node = DockerNode(tmp_path_factory.mktemp("node"), text)
        node.apply_and_undo(
            sequence, lambda content: content.replace(b"{", b'{"edited": 1, ', 1) if is_edited else content
        )
        if is_edited:
            tree = loads(node.text())
            assert tree == {"edited": 1, **loads(text)}
        else:
            assert node.text() == text

    check()
