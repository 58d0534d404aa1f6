# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that an agent replaces: what a run backs up, records and restores."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

pytest.importorskip("ansible.errors")

from ansible.errors import AnsibleFilterError

from ansible_collections.gpu.kubernetes.plugins.filter import replaced_programs

HOOK, TOOLKIT, LEFTOVER, PACKAGE_FILE = "/usr/bin/hook", "/usr/bin/toolkit", "/usr/bin/mount", "/usr/bin/nvidia-ctk"
RECORD = "/r.json"


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class Host:
    """A host whose hook is a file and whose toolkit is a link to it, as the package installs them."""

    def __init__(self) -> None:
        self.record, self.leftover, self.mode = "", "", "0751"
        self.upgrade("1")

    def upgrade(self, release: str) -> None:
        self.package, self.hook, self.toolkit = release, f"hook {release}", "link:hook"

    def replace(self, version: str) -> None:
        self.hook = self.toolkit = self.leftover = f"agent {version}"

    def plan(self) -> dict[str, Any]:
        paths = {HOOK: self.hook, TOOLKIT: self.toolkit, LEFTOVER: self.leftover, PACKAGE_FILE: self.package}
        found = {path: describe(content, self.mode) for path, content in paths.items()}
        found[RECORD] = {"exists": True, "content": self.record} if self.record else {"exists": False}
        return replaced_programs.replaced_programs(found, [HOOK, TOOLKIT, LEFTOVER], [PACKAGE_FILE], RECORD)

    def back_up(self) -> list[str]:
        """Record the backup, and return the programs that wait for the agent."""
        plan = self.plan()
        self.record = plan["backed_up"] or self.record
        assert self.plan()["backed_up"] == ""
        return plan["unreplaced"]

    def record_replacement(self) -> None:
        self.record = self.plan()["noted"] or self.record
        assert self.plan()["noted"] == ""

    def plan_restore(self) -> tuple[list[str], list[str], list[str]]:
        """Return checksums or targets of programs to restore, the outdated ones, and those that are left."""
        plan = self.plan()
        contents = [each["checksum"] for each in plan["restore"]] + [each["target"] for each in plan["links"]]
        return contents, plan["outdated"], plan["left"]


def describe(content: str, mode: str) -> dict[str, Any]:
    """What host_files_info finds; of a link, also what it leads to."""
    if not content:
        return {"exists": False, "link": ""}
    link = content[len("link:") :] if content.startswith("link:") else ""
    return {"exists": True, "link": link, "checksum": sha256(content), "mode": mode, "uid": 0, "gid": 5}


@pytest.fixture
def host() -> Host:
    return Host()


@pytest.fixture
def replaced_host(host: Host) -> Host:
    host.back_up()
    host.replace("1")
    host.record_replacement()
    return host


def test_first_run_backs_up_files_and_records_links(host: Host) -> None:
    plan = host.plan()
    [copy] = plan["back_up"]
    attributes = {"mode": "0751", "uid": 0, "gid": 5}
    assert copy == {"path": HOOK, "checksum": sha256("hook 1"), "backup": f"hook.{sha256('hook 1')[:16]}", **attributes}
    assert sorted(json.loads(plan["backed_up"])) == sorted([HOOK, LEFTOVER, TOOLKIT])
    assert (plan["known"], plan["existing"], plan["noted"], plan["restore"]) == (False, [HOOK, TOOLKIT], "", [])
    host.back_up()
    assert (host.plan()["known"], host.plan_restore()) == (True, ([], [], []))


@pytest.mark.parametrize("upgraded", [False, True])
def test_program_at_a_new_path_is_removed(host: Host, upgraded: bool) -> None:
    host.hook = ""
    assert (host.plan()["existing"], host.plan()["back_up"]) == ([TOOLKIT], [])
    host.back_up()
    host.replace("1")
    host.package = "2" if upgraded else "1"
    assert host.plan()["remove"] == [HOOK, LEFTOVER]
    host.back_up()
    host.record_replacement()
    assert host.plan()["remove"] == [HOOK, LEFTOVER]


def test_interrupted_restore_of_mode_and_owner_is_resumed(replaced_host: Host) -> None:
    replaced_host.hook, replaced_host.toolkit, replaced_host.leftover, replaced_host.mode = (
        "hook 1",
        "link:hook",
        "",
        "0600",
    )
    [program] = replaced_host.plan()["restore"]
    assert (program["path"], program["mode"]) == (HOOK, "0751")
    assert replaced_host.plan()["unknown"] == []
    replaced_host.mode = "0751"
    assert replaced_host.plan_restore() == ([], [], [])


@pytest.mark.parametrize("is_recorded", [False, True])
def test_programs_are_restored_with_and_without_recorded_replacement(host: Host, is_recorded: bool) -> None:
    host.back_up()
    host.replace("1")
    if is_recorded:
        host.record_replacement()
    assert host.back_up() == []
    assert host.plan_restore() == ([sha256("hook 1"), "hook"], [], [])
    assert bool(host.plan()["unknown"]) is not is_recorded


@pytest.mark.parametrize("again", [False, True])
def test_new_version_of_the_agent_is_never_the_original(replaced_host: Host, again: bool) -> None:
    replaced_host.replace("2")
    if again:
        assert replaced_host.back_up() == []
    assert replaced_host.plan_restore() == ([sha256("hook 1"), "hook"], [], [])
    assert [each["checksum"] for each in replaced_host.plan()["unknown"]] == [sha256("agent 2")] * 2


def test_upgraded_package_is_backed_up_and_restored(replaced_host: Host) -> None:
    replaced_host.upgrade("2")
    # An interrupted run is repeated.
    assert [replaced_host.back_up() for _time in range(2)] == [[HOOK, TOOLKIT]] * 2
    replaced_host.replace("2")
    replaced_host.record_replacement()
    assert replaced_host.plan_restore() == ([sha256("hook 2"), "hook"], [], [])


def test_package_that_is_installed_again_waits_for_the_agent(replaced_host: Host) -> None:
    replaced_host.upgrade("1")
    assert replaced_host.back_up() == [HOOK, TOOLKIT]


def test_original_is_kept_when_package_and_agent_change(replaced_host: Host) -> None:
    replaced_host.upgrade("2")
    replaced_host.replace("2")
    assert replaced_host.back_up() == [HOOK, TOOLKIT]
    assert replaced_host.plan_restore() == ([], [], [HOOK, TOOLKIT])
    # The agent restarts and keeps the program, so it is the agent's.
    replaced_host.record_replacement()
    assert replaced_host.back_up() == []
    assert replaced_host.plan_restore() == ([sha256("hook 1"), "hook"], [HOOK, TOOLKIT], [])


@pytest.mark.parametrize("again", [False, True])
def test_programs_of_a_newer_package_are_not_overwritten(replaced_host: Host, again: bool) -> None:
    replaced_host.upgrade("2")
    if again:
        replaced_host.back_up()
    _restored, _outdated, left = replaced_host.plan_restore()
    assert HOOK in left
    assert [each["path"] for each in replaced_host.plan()["restore"]] == []


def entry(original: str, replacement: str | None = None, release: str = "1", former: Any = None) -> dict[str, Any]:
    return {"original": {"content": original}, "replacement": replacement, "release": release, "former": former}


REPLACED = entry("old", "agent")
UPGRADED = entry("new", None, "2", REPLACED)


@pytest.mark.parametrize(
    ("recorded", "now", "release", "back_up", "restore"),
    [
        (entry("old"), "old", "1", False, False),
        (entry("old"), "agent", "1", False, True),
        (REPLACED, "agent", "1", False, True),
        (REPLACED, "old", "1", False, False),
        # The same package: it is the agent's, in a new version.
        (REPLACED, "new", "1", False, True),
        (REPLACED, "missing", "1", False, True),
        # Another package.
        (REPLACED, "agent", "2", False, True),
        (REPLACED, "old", "2", True, False),
        (REPLACED, "new", "2", True, None),
        (REPLACED, "missing", "2", True, None),
        # The owner is unknown.
        (UPGRADED, "new", "2", False, None),
        (UPGRADED, "agent", "2", False, True),
        # No program existed.
        (entry("missing"), "agent", "1", False, True),
        (entry("missing"), "agent", "2", False, True),
        (entry("missing"), "missing", "1", False, False),
    ],
)
def test_must_back_up_and_must_restore_of_each_program(
    recorded: Any, now: str, release: str, back_up: bool, restore: bool | None
) -> None:
    program = {"content": now}
    assert replaced_programs.must_back_up(recorded, program, release) is back_up
    assert replaced_programs.must_restore(recorded, program, release) is restore


GOOD = {"original": {"content": "link:hook"}, "replacement": None, "release": "", "former": None}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1]",
        '{"/usr/bin/hook": {}}',
        json.dumps({HOOK: {**GOOD, "original": {"content": "sha256:" + "0" * 64}}}),
        json.dumps({HOOK: {**GOOD, "original": {"content": "link:{{ x }}"}}}),
        json.dumps({HOOK: {**GOOD, "former": {}}}),
    ],
)
def test_damaged_record_is_refused(text: str) -> None:
    with pytest.raises(AnsibleFilterError, match=r"^/r.json, the record of the replaced programs, is damaged"):
        replaced_programs.replaced_programs({RECORD: {"exists": True, "content": text}}, [], [], RECORD)


@pytest.mark.parametrize(
    "found",
    [
        {"exists": True, "link": "", "mode": "0755"},
        {"exists": True, "link": "{{ x }}"},
    ],
)
def test_other_than_files_and_links_is_refused(found: dict[str, Any]) -> None:
    with pytest.raises(AnsibleFilterError, match=f"^{HOOK} is not a regular file"):
        replaced_programs.replaced_programs({HOOK: found}, [HOOK], [], RECORD)
