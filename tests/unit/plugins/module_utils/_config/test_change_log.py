# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import copy
import datetime
import json
import os
import re
import stat
import typing as t
from dataclasses import replace

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._config import change_log
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.change_log import Change, ChangeLog, Record, Rules
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.files import sha256
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.formats import TOML
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.tree import MISSING
from ansible_collections.gpu.kubernetes.plugins.module_utils._document import is_same

if t.TYPE_CHECKING:
    from pathlib import Path

A, B, C = ("t", "a"), ("t", "b"), ("t", "c")
RULES = Rules(
    "type",
    shared=frozenset(["shared", "version"]),
    defining=frozenset(["own", "inherit", "default", "import"]),
    appended=frozenset(["import"]),
    inherited=frozenset(["inherit"]),
    unopposed=frozenset(["version"]),
)


def make_record(*changes: Change, name: str = "nvidia", **other: t.Any) -> Record:
    return Record(b"met", b"written", entries={name: changes}, **other)


class TestAddStep:
    def test_first_value_is_restored(self) -> None:
        one = change_log.add_step(
            make_record(), "nvidia", {"t": {"a": 1}}, {"t": {"a": 2, "b": 1}}, {A: "x", B: "y"}, RULES
        )
        two = change_log.add_step(one, "nvidia", {"t": {"a": 2, "b": 1}}, {"t": {"a": 3, "b": 1}}, {}, RULES)
        assert two.entries["nvidia"] == (Change(B, "y", MISSING, 1), Change(A, "x", 1, 3))

    def test_first_value_again_is_not_recorded(self) -> None:
        one = change_log.add_step(make_record(), "nvidia", {"t": {"a": 1}}, {"t": {"a": 2}}, {}, RULES)
        assert change_log.add_step(one, "nvidia", {"t": {"a": 2}}, {"t": {"a": 1}}, {}, RULES).entries["nvidia"] == ()


class TestSplitRecord:
    def test_shared_changes_are_assigned_to_another_entry(self) -> None:
        changes = (Change(A, "version", MISSING, 2), Change(B, "own", MISSING, 1))
        both = Record(b"met", b"w", entries={"nvidia": changes, "nvidia-cdi": (Change(C, "own", MISSING, 1),)})
        undo, rest = change_log.split_record(both, "nvidia", RULES)
        assert [change.path for change in undo] == [B]
        assert [change.path for change in rest.entries["nvidia-cdi"]] == [C, A]
        undo, rest = change_log.split_record(rest, "nvidia-cdi", RULES)
        assert [change.path for change in undo] == [C, A]
        assert rest.entries == {}

    def test_leaf_moves_to_last_entry_with_first_value(self) -> None:
        one = change_log.add_step(
            make_record(), "one", {"t": {"a": "runc"}}, {"t": {"a": "one"}}, {A: "default"}, RULES
        )
        two = change_log.add_step(one, "two", {"t": {"a": "one"}}, {"t": {"a": "two"}}, {A: "default"}, RULES)
        assert change_log.split_record(two, "one", RULES)[0] == ()
        undo, rest = change_log.split_record(two, "two", RULES)
        assert undo == (Change(A, "default", "runc", "two"),)
        assert rest.changes == ()


class TestUndoChanges:
    @pytest.mark.parametrize(
        ("tree", "changes", "expected"),
        [
            ({"t": {"a": 2, "b": 1}}, [Change(A, "", 1, 2), Change(B, "", MISSING, 1)], {"t": {"a": 1}}),
            ({"t": {"a": 2}}, [Change(A, "", MISSING, 2)], {}),
            ({"t": {"a": 2}}, [Change(("t",), "", {}, MISSING), Change(A, "", MISSING, 2)], {"t": {}}),
            ({"t": {"a": 9, "b": 1}}, [Change(A, "", 1, 2), Change(B, "", MISSING, 1)], {"t": {"a": 9}}),
            ({"t": {"b": 1}}, [Change(A, "", 1, MISSING)], {"t": {"a": 1, "b": 1}}),
            ({"t": {"b": 1}}, [Change(A, "", MISSING, 2)], {"t": {"b": 1}}),
            ({}, [Change(A, "", 1, MISSING)], {"t": {"a": 1}}),
            ({"t": {"a": True}}, [Change(A, "", MISSING, 1)], {"t": {"a": True}}),
        ],
    )
    def test_undo_of_each_change(self, tree: t.Any, changes: list[Change], expected: t.Any) -> None:
        assert is_same(change_log.undo_changes(tree, changes, [], RULES), expected)

    def test_entry_without_its_essential_setting_is_removed(self) -> None:
        tree = {"r": {"nvidia": {"type": "x", "site": 1}, "kata": {"type": "k"}}}
        change = Change(("r", "nvidia", "type"), "own", MISSING, "x")
        assert change_log.undo_changes(tree, [change], [("r",)], RULES) == {"r": {"kata": {"type": "k"}}}

    def test_undo_of_any_step_restores_unchanged_tree(self) -> None:
        hypothesis = pytest.importorskip("hypothesis")
        from hypothesis import strategies as st

        values: t.Any = st.one_of(st.booleans(), st.integers(0, 2), st.just([1]), st.just({}))
        tables = st.dictionaries(
            st.sampled_from("ab"),
            st.recursive(values, lambda inner: st.dictionaries(st.sampled_from("xyz"), inner, max_size=3)),
        )

        @hypothesis.given(tables, tables)
        def undo(before: t.Any, other: t.Any) -> None:
            after = copy.deepcopy(before)
            _merge_same_kinds(after, other)
            done = change_log.add_step(Record(b"met", b"w"), "nvidia", before, after, {}, RULES)
            assert is_same(change_log.undo_changes(after, done.entries["nvidia"], [], RULES), before)

        undo()


@pytest.mark.parametrize(
    ("change", "now", "conflicts"),
    [
        (Change(A, "settings", MISSING, 1), 1, False),
        (Change(A, "settings", MISSING, 1), MISSING, False),
        (Change(A, "settings", MISSING, 1), 2, True),
        (Change(A, "settings", MISSING, 1), True, True),
        (Change(A, "settings", MISSING, 1), {"x": 1}, True),
        (Change(A, "settings", 1, 2), 1, False),
        (Change(A, "settings", 1, 2), MISSING, False),
        (Change(A, "settings", 1, 2), 3, True),
        (Change(A, "default", 1, MISSING), MISSING, False),
        (Change(A, "default", 1, MISSING), 1, False),
        (Change(A, "default", 1, MISSING), 2, True),
        (Change(A, "settings", {}, MISSING), {"x": 1}, False),
        (Change(A, "import", MISSING, ["x"]), ["y"], False),
        (Change(A, "version", MISSING, 2), 3, False),
        (Change(A, "inherit", MISSING, False), True, False),
    ],
)
def test_conflict_is_a_third_value(change: Change, now: t.Any, conflicts: bool) -> None:
    tree = {} if now is MISSING else {"t": {"a": now}}
    assert change_log.find_conflicts([change], tree, RULES) == ([A] if conflicts else [])


class TestChangeLog:
    def make(self, tmp_path: Path, rules: Rules = RULES) -> ChangeLog:
        return ChangeLog(str(tmp_path / "config.toml"), str(tmp_path / "state" / "config.json"), TOML, rules)

    def test_round_trip_keeps_types(self, tmp_path: Path) -> None:
        values: list[t.Any] = [
            1,
            1.0,
            True,
            "x\n",
            [1, [2]],
            {"a": 1},
            datetime.date(2026, 1, 2),
            float("inf"),
            MISSING,
        ]
        changes = tuple(Change(("t", str(n)), "k", MISSING, value) for n, value in enumerate(values))
        log = self.make(tmp_path)
        log.write("x", {"x": Record(None, b"\xff", "/copy", ("/a", "/a/b"), "/root", {"nvidia": changes})}, keep=False)
        loaded = log.load("x", {})
        assert loaded is not None
        assert (loaded.original, loaded.written, loaded.backup) == (None, b"\xff", "/copy")
        assert (loaded.created_dirs, loaded.imported_by) == (("/a", "/a/b"), "/root")
        assert all(is_same(new.after, old.after) for new, old in zip(loaded.entries["nvidia"], changes))
        assert stat.S_IMODE(os.stat(log.file).st_mode) == 0o600
        assert stat.S_IMODE(os.stat(os.path.dirname(log.file)).st_mode) == 0o700

    def test_no_record_writes_no_file(self, tmp_path: Path) -> None:
        assert self.make(tmp_path).load("x", {}) is None
        self.make(tmp_path).write("x", {"x": None}, keep=True)
        self.make(tmp_path).keep_only("x")
        assert self.make(tmp_path).written is MISSING
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        ("content", "value", "expected"),
        [
            # Recorded content selects its record; other content selects the changes of the latest record that still apply.
            (b"old", None, "settled"),
            (b"new", None, "intended"),
            (b"met", "settled", None),
            (b"edited", "intended", "intended"),
            (b"edited", "settled", None),
            (b"edited", None, None),
        ],
    )
    def test_record_is_chosen_by_hash(
        self, tmp_path: Path, content: bytes, value: str | None, expected: str | None
    ) -> None:
        log = self.make(tmp_path)
        old = Record(b"met", b"old", entries={"nvidia": (Change(A, "k", MISSING, "settled"),)})
        new = Record(b"met", b"new", entries={"nvidia": (Change(A, "k", MISSING, "intended"),)})
        log.write("x", {sha256(b"old"): old, sha256(b"new"): new}, keep=True)
        found = log.load(sha256(content), {"t": {"a": value}} if value else {})
        assert (found.entries["nvidia"][0].after if found else None) == expected

    @pytest.mark.parametrize(
        ("content", "tree", "expected"),
        [
            (b"new", {}, []),  # as it was written
            (b"old", {}, []),  # of an earlier run, which a rollback restores
            (b"edited", {"t": {"a": "intended", "b": ["x", "y"]}}, []),
            (b"edited", {"t": {"a": "intended", "b": ["x", "y"], "c": 3}}, []),  # migrated to another version
            (b"edited", {"t": {"a": "other", "b": ["x", "y"]}}, [A]),
            (b"edited", {"t": {"a": "intended", "b": ["x"]}}, [B]),
            (b"met", {}, [A, B]),  # the file as first found
            (None, {}, [A, B]),
        ],
    )
    def test_drift_is_what_the_file_does_not_have_any_more(
        self, tmp_path: Path, content: bytes | None, tree: dict[str, t.Any], expected: list[t.Any]
    ) -> None:
        log = self.make(tmp_path)
        assert log.find_drift(sha256(content), tree) == []
        version = Change(C, "version", MISSING, 2)
        changes = (Change(A, "own", MISSING, "intended"), Change(B, "import", ["x"], ["x", "y"]), version)
        old, new = (Record(b"met", each, entries={"nvidia": changes}) for each in (b"old", b"new"))
        log.write(sha256(b"new"), {sha256(b"old"): old, sha256(b"new"): new}, keep=True)
        assert log.find_drift(sha256(content), tree) == expected
        # After the undo.
        log.write(sha256(b"met"), {sha256(b"new"): new, sha256(b"met"): None}, keep=False)
        assert log.find_drift(sha256(b"met"), {}) == []

    def test_interrupted_removal_keeps_old_record(self, tmp_path: Path) -> None:
        log = self.make(tmp_path)
        old = Record(b"met", b"old", entries={"nvidia": (Change(A, "k", MISSING, 1),)})
        log.write("x", {sha256(b"old"): old, sha256(b"gone"): None}, keep=True)
        assert log.load(sha256(b"gone"), {}) is None
        assert log.load(sha256(b"old"), {"t": {"a": 1}}) is not None
        assert log.load(sha256(b"edited by others"), {"t": {"a": 1}}) == old

    @pytest.mark.parametrize(
        ("backup", "words"),
        [
            (
                "/backups/config",
                r"t\.a and t\.b .* remove that setting, or restore the former value from /backups/config, ",
            ),
            (None, r"t\.a and t\.b .* remove that setting, then run again\.$"),
        ],
    )
    def test_refusal_names_file_settings_and_backup(self, tmp_path: Path, backup: str | None, words: str) -> None:
        log, changes = self.make(tmp_path), [Change(path, "settings", MISSING, 1) for path in (A, B, C)]
        log.write("x", {"x": make_record(*changes, backup=backup)}, keep=False)
        tree = {"t": {"a": 2, "b": 2, "c": 1}}
        log.refuse_conflicts("x", tree, "nvidia")
        log.refuse_conflicts("other", tree, "nvidia-cdi")
        with pytest.raises(ConfigError, match=words) as caught:
            log.refuse_conflicts("other", tree, "nvidia")
        assert str(caught.value).startswith(f"{log.target} was left as it is")
        assert "\n" not in str(caught.value)

    def test_another_entry_keeps_shared_settings_and_their_conflicts(self, tmp_path: Path) -> None:
        log = self.make(tmp_path)
        both = {"one": (Change(A, "shared", False, True),), "two": (Change(B, "own", MISSING, 1),)}
        log.write("x", {"x": Record(b"met", b"w", entries=both)}, keep=False)
        log.refuse_conflicts("other", {"t": {"a": "auto", "b": 1}}, "one")
        assert not (log.load("other", {"t": {"a": "auto", "b": 1}}) or make_record()).entries.get("one")

    def test_changes_of_a_migrated_file_are_located(self, tmp_path: Path) -> None:
        log = self.make(tmp_path, replace(RULES, locate=lambda path, _tree: ("new", *path[1:])))
        log.write("x", {"x": make_record(Change(("old", "x"), "k", MISSING, 1))}, keep=False)
        tree: t.Any = {"new": {"x": 1}}
        found = log.load("other", tree)
        assert found is not None
        assert found.entries["nvidia"][0].path == ("new", "x")
        tree["new"]["x"] = 2
        with pytest.raises(ConfigError, match=r"others changed new\.x"):
            log.refuse_conflicts("other", tree, "nvidia")

    def test_contents_that_a_rollback_can_restore(self, tmp_path: Path) -> None:
        log, one, two = (
            self.make(tmp_path),
            make_record(Change(A, "k", MISSING, 1)),
            make_record(Change(A, "k", MISSING, 2)),
        )
        log.write("s1", {"s0": None, "s1": one}, keep=True)
        log.write("s2", {"s1": one, "s2": two}, keep=True)
        assert log.written == "s2"
        assert [log.load(sha, {}) for sha in ("s0", "s1", "s2")] == [None, one, two]
        log.keep_only("unknown")
        assert log.load("s2", {}) == two
        log.keep_only("s1")
        assert log.written == "s2"
        assert log.load("s1", {}) == one
        assert log.load("s2", {"t": {"a": 2}}) is None
        log.write("s3", {"s1": one, "s3": None}, keep=True)
        log.keep_only("s3")
        assert not os.path.exists(log.file)

    @pytest.mark.parametrize(
        ("changes", "tree", "expected"),
        [
            # kinds and values at a, b and c; the tree; how many changes remain
            ([("own", 1), ("shared", 1)], {"a": 1, "b": 1}, 2),
            ([("own", 1), ("shared", 1)], {"a": 2, "b": 1}, 0),
            ([("default", 1), ("inherit", 1), ("shared", 1)], {"a": 2, "b": 1, "c": 1}, 2),
            ([("settings", 1), ("shared", 1)], {"a": 1, "b": 1}, 2),
            ([("settings", 1), ("shared", 1)], {"b": 1}, 0),
        ],
    )
    def test_replaced_file_has_nothing_managed(
        self, tmp_path: Path, changes: list[tuple[str, int]], tree: dict[str, t.Any], expected: int
    ) -> None:
        log = self.make(tmp_path)
        managed = [Change(path, kind, MISSING, after) for path, (kind, after) in zip((A, B, C), changes)]
        log.write("x", {"x": make_record(*managed)}, keep=False)
        found = log.load("other", {"t": tree})
        assert len(found.entries["nvidia"] if found else ()) == expected

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            ("{", "is damaged"),
            ("[]", "is damaged"),
            ("[" * 100_000, "is damaged"),
            ('{"format": 1}', "'record' is missing"),
            ('{"format": 1, "record": {}}', "'written' is missing"),
            ('{"format": 1, "record": {"written": null}}', "'versions' is missing"),
            ('{"format": 1, "record": {"written": null, "versions": 3}}', "is damaged"),
            ('{"format": 1, "record": {"written": null, "versions": [{"sha": [], "record": null}]}}', "is damaged"),
            (
                '{"format": 1, "record": {"written": null, "versions": [{"sha": "x", "record": {"original": 1}}]}}',
                "is damaged",
            ),
            ('{"format": 1, "record": {"written": null, "versions": [{"sha": "x", "record": 3}]}}', "is damaged"),
            ('{"format": 1, "record": {"written": null, "versions": [{"sha": "x", "record": ENTRIES}]}}', "is damaged"),
            ('{"format": 2, "record": null}', "is of format 2"),
        ],
    )
    def test_damaged_record_is_refused(self, tmp_path: Path, content: str, words: str) -> None:
        log = self.make(tmp_path)
        os.mkdir(os.path.dirname(log.file))
        entries = '{"original": null, "written": null, "backup": null, "created_dirs": [], "entries": []}'
        with open(log.file, "w", encoding="utf-8") as stream:
            stream.write(content.replace("ENTRIES", entries))
        with pytest.raises(ConfigError, match=words) as caught:
            log.load("x", {})
        message = str(caught.value)
        assert message.startswith(f"{log.file}, the record of changes to {log.target}, is ")
        assert re.search(r"(move it away .*; then run again|run the release .* wrote it)\.$", message)
        assert "\n" not in message

    def test_file_is_readable_json(self, tmp_path: Path) -> None:
        log = self.make(tmp_path)
        log.write("x", {"x": make_record(Change(A, "default", MISSING, "nvidia"))}, keep=False)
        with open(log.file, encoding="utf-8") as stream:
            content = json.load(stream)
        assert content["path"] == str(tmp_path / "config.toml")


def _merge_same_kinds(tree: dict[str, t.Any], other: dict[str, t.Any]) -> None:
    """Merge *other* into *tree*, but replace no table by a value and no value by a table."""
    for key, value in other.items():
        if isinstance(value, dict) and isinstance(tree.get(key), dict):
            _merge_same_kinds(tree[key], value)
        elif key not in tree or isinstance(value, dict) is isinstance(tree[key], dict):
            tree[key] = copy.deepcopy(value)
