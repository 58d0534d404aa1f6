# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("ansible.module_utils.basic")

from ansible_collections.gpu.kubernetes.tests.unit.plugins.modules import node_module

# A package manager for the test: one file a package, with its version.
DPKG_QUERY = """#!/bin/sh
status() {{ [ "$1" = "$(cat "{db}.half" 2>/dev/null)" ] && echo half-configured || echo installed; }}
for name; do :; done
case "$name" in *Package*)
    cd "{db}"
    for name in *; do [ ! -f "$name" ] || echo "$(status "$name") $name $(cat "$name")"; done
    exit ;;
esac
[ -f "{db}/$name" ] || exit 1
printf '%s %s' "$(status "$name")" "$(cat "{db}/$name")"
"""
APT_MARK = """#!/bin/sh
touch "{db}.held"
verb=$1; shift
case "$verb" in
    showhold) cat "{db}.held" ;;
    hold) printf '%s\\n' "$@" >> "{db}.held" ;;
    unhold) for name; do sed -i "/^$name$/d" "{db}.held"; done ;;
esac
"""
APT_GET = """#!/bin/sh
echo "$@" >> "{db}.log"
[ "$LC_ALL$LANGUAGE" = C.UTF-8 ] && [ "$ZYPP_LOCK_TIMEOUT" = 300 ] || exit 99
case "$*" in *--simulate*autoremove*) [ -f "{db}/toolkit" ] || [ ! -f "{db}/helper" ] || echo "Remv helper [2-1]"; exit 0 ;; esac
case "$*" in *--simulate*) [ ! -f "{db}.others" ] || cat "{db}.others"; exit 0 ;; esac
[ -f "{db}.broken" ] && {{ echo "W: noise" >&2; echo "E: Unable to locate package" >&2; exit 100; }}
doing=
for word; do
    case "$doing:$word" in
        :install | :purge) doing=$word ;;
        install:*)
            [ ! -f "{db}.killed" ] || kill -9 $PPID
            echo 1.17.8-1 > "{db}/${{word%%=*}}"
            [ ! -f "{db}.company" ] || {{ echo 1.17.8-1 > "{db}/libtoolkit"; echo 2-1 > "{db}/helper"; }} ;;
        purge:*) rm "{db}/$word" ;;
    esac
done
[ "$doing" != install ] || [ ! -f "{db}.half" ] || {{ echo "E: Sub-process dpkg returned an error code (1)" >&2; exit 100; }}
"""


APT_CACHE = """#!/bin/sh
shift
for name; do echo " $name | 1.17.8-1 | http://repository.example.com/archive bookworm/main amd64 Packages"; done
"""


class Host:
    def __init__(self, root: Path) -> None:
        self.programs, self.db = root / "bin", root / "db"
        self.programs.mkdir()
        self.db.mkdir()
        for name, text in (
            ("dpkg-query", DPKG_QUERY),
            ("apt-get", APT_GET),
            ("apt-mark", APT_MARK),
            ("apt-cache", APT_CACHE),
        ):
            (self.programs / name).write_text(text.format(db=self.db))
            (self.programs / name).chmod(0o755)

    def run(self, check: bool = False, **arguments: object) -> dict[str, object]:
        given = {"name": ["toolkit", "base"], "manager": "apt", **arguments}
        return node_module.run("host_packages", given, check=check, folder=str(self.programs))

    @property
    def calls(self) -> list[str]:
        log = Path(f"{self.db}.log")
        return [line for line in log.read_text().splitlines() if "--simulate" not in line] if log.exists() else []


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_what_could_not_be_configured_goes_with_the_rest(host: Host, tmp_path: Path) -> None:
    """As a package of which DKMS cannot build the kernel module."""
    record = str(tmp_path / "record.json")
    Path(f"{host.db}.half").write_text("base")
    failed = host.run(record=record)
    assert "dpkg returned an error" in str(failed["msg"])
    assert failed["changed"] is True
    assert sorted(path.name for path in host.db.iterdir()) == ["base", "toolkit"]
    gone = host.run(state="absent", name=[], record=record)
    assert gone["packages"] == ["base", "toolkit"]
    assert list(host.db.iterdir()) == []
    assert not Path(record).exists()


@pytest.mark.parametrize("check", [False, True])
def test_asking_changes_nothing(host: Host, tmp_path: Path, check: bool) -> None:
    record = tmp_path / "record.json"
    asked = host.run(check, state="available", version="1.17.8", record=str(record), hold=True)
    assert (asked["changed"], asked["packages"], asked["held"]) == (False, ["toolkit", "base"], [])
    assert (host.calls, record.exists()) == ([], False)
    refused = host.run(check, state="available", version="1.18.*")
    assert refused["failed"]
    assert str(refused["msg"]).startswith("apt has no version 1.18.* of toolkit and base: ask for one that")
    assert [call.split()[-1] for call in host.calls] == ["update"]


def test_install_and_remove(host: Host) -> None:
    checked = host.run(check=True)
    assert (checked["changed"], host.calls) == (True, [])
    done = host.run()
    assert (done["changed"], done["packages"]) == (True, ["toolkit", "base"])
    assert done["packages"] == checked["packages"]
    assert done["diff"] == checked["diff"]
    assert len(host.calls) == 2
    assert host.run(check=True)["changed"] is False
    assert host.run()["changed"] is False
    assert len(host.calls) == 2
    assert host.run(state="absent", check=True)["changed"] is True
    assert sorted(entry.name for entry in host.db.iterdir()) == ["base", "toolkit"]
    gone = host.run(state="absent")
    assert (gone["changed"], gone["packages"]) == (True, ["toolkit", "base"])
    assert gone["diff"]["before"] == "toolkit: 1.17.8-1\nbase: 1.17.8-1\n"
    assert host.run(state="absent")["changed"] is False
    assert list(host.db.iterdir()) == []


def test_only_what_is_missing_is_installed(host: Host) -> None:
    (host.db / "base").write_text("0.9-1")
    assert host.run()["packages"] == ["toolkit"]
    assert host.run(version="1.17.8")["packages"] == ["base"]
    assert host.calls[-1].endswith("install base=1.17.8-*")


@pytest.mark.parametrize("check", [False, True])
def test_a_refusal_is_one_sentence_and_touches_nothing(host: Host, check: bool) -> None:
    (host.db / "base").write_text("1.0-1")
    Path(f"{host.db}.others").write_text("Purg docker-gpu [1.0]\nPurg base [1.0-1]\n")
    answer = host.run(check=check, state="absent")
    assert answer["msg"].startswith("Cannot remove base, because docker-gpu would have to go too: ")
    assert answer["msg"].endswith(".")
    Path(f"{host.db}.held").write_text("base\n")
    answer = host.run(check=check, version="2.0")
    assert answer["msg"].startswith("Cannot change base, because somebody put a hold on it: ")
    assert (host.db / "base").read_text() == "1.0-1"


@pytest.fixture
def recorded(host: Host, tmp_path: Path) -> dict[str, object]:
    """Arguments with a record, on a host where something was there before and more comes with the packages."""
    Path(f"{host.db}.company").touch()
    (host.db / "bash").write_text("5-1")
    return {"record": str(tmp_path / "state" / "record.json")}


def test_all_that_was_installed_goes_and_nothing_else(host: Host, recorded: dict[str, object]) -> None:
    wanted = {**recorded, "hold": True, "version": "1.17.*"}
    checked = host.run(check=True, **wanted)
    assert checked["held"] == ["base", "toolkit"]
    assert not Path(str(recorded["record"])).exists()
    done = host.run(**wanted)
    assert done["packages"] == ["toolkit", "base"]
    assert done["held"] == ["base", "libtoolkit", "toolkit"]
    for check in (True, False):
        again = host.run(check=check, **wanted)
        assert (again["changed"], again["held"]) == (False, [])
    assert host.run(check=True, hold=False, **recorded)["released"] == ["base", "libtoolkit", "toolkit"]
    (host.db / "toolkit").write_text("1.16-1")
    assert host.run(**wanted)["packages"] == ["toolkit"], "a hold of our own is no hindrance"
    gone: dict[str, object] = {**recorded, "name": [], "state": "absent"}
    assert host.run(check=True, **gone)["packages"] == ["base", "libtoolkit", "toolkit"]
    assert host.run(**gone)["packages"] == ["base", "libtoolkit", "toolkit", "helper"]
    assert [entry.name for entry in host.db.iterdir()] == ["bash"]
    assert not Path(str(recorded["record"])).exists()
    for check in (True, False):
        assert host.run(check=check, **gone)["changed"] is False


def test_what_came_with_it_and_needs_it_goes_with_it(host: Host, recorded: dict[str, object]) -> None:
    host.run(**recorded)
    Path(f"{host.db}.others").write_text("Purg helper [2-1]\nPurg toolkit [1.17.8-1]\n")
    gone: dict[str, object] = {**recorded, "name": [], "state": "absent"}
    checked, done = host.run(check=True, **gone), host.run(**gone)
    assert done["packages"] == ["base", "libtoolkit", "toolkit", "helper"]
    assert done["diff"]["before"].endswith("helper: 2-1\n")
    assert (checked["packages"], checked["diff"]) == (done["packages"], done["diff"])
    assert host.calls[-1].endswith(" purge base libtoolkit toolkit helper")
    assert [entry.name for entry in host.db.iterdir()] == ["bash"]


def test_what_has_a_version_of_its_own_is_neither_asked_for_one_nor_held(host: Host) -> None:
    done = host.run(name=["toolkit"], unversioned=["base"], version="1.17.8", hold=True)
    assert host.calls[-1].endswith(" install toolkit=1.17.8-* base")
    assert (done["packages"], done["held"]) == (["toolkit", "base"], ["toolkit"])


@pytest.mark.parametrize("check", [False, True])
def test_parts_that_differ_are_brought_to_one_version(host: Host, check: bool) -> None:
    (host.db / "toolkit").write_text("1.17.7-1")
    (host.db / "base").write_text("1.17.8-1")
    assert host.run(check)["changed"] is False
    asked: dict[str, object] = {"unversioned": ["helper"], "same_version": True}
    assert host.run(check, state="available", **asked)["replaced"] == ["toolkit"]
    done = host.run(check, **asked)
    assert (done["packages"], done["replaced"]) == (["toolkit", "helper"], ["toolkit"])
    assert host.run(check, version="1.17.*")["changed"] is check, "they have been brought to one"
    endings = [call.partition(" install ")[2] or call.split()[-1] for call in host.calls]
    assert endings == ([] if check else ["update", "toolkit=1.17.8-* helper"])


def test_what_was_there_before_stays(host: Host, recorded: dict[str, object]) -> None:
    (host.db / "base").write_text("1.17.8-1")
    (host.db / "helper").write_text("2-1")
    host.run(**recorded)
    assert host.run(state="absent", **recorded)["packages"] == ["libtoolkit", "toolkit"]
    assert sorted(entry.name for entry in host.db.iterdir()) == ["base", "bash", "helper"]


def test_what_came_with_it_and_somebody_wants_to_keep_stays(host: Host, recorded: dict[str, object]) -> None:
    host.run(**recorded)
    Path(f"{host.db}.held").write_text("helper\n")
    assert host.run(state="absent", **recorded)["packages"] == ["base", "libtoolkit", "toolkit"]
    assert sorted(entry.name for entry in host.db.iterdir()) == ["bash", "helper"]


def test_holds_that_are_lost_are_put_on_again_and_let_go_on_request(host: Host, recorded: dict[str, object]) -> None:
    host.run(hold=True, **recorded)
    Path(f"{host.db}.held").write_text("libtoolkit\nfirefox\n")
    assert host.run(hold=True, **recorded)["held"] == ["base", "toolkit"]
    assert host.run(**recorded)["changed"] is False
    released = host.run(hold=False, **recorded)
    assert (released["changed"], released["released"]) == (True, ["base", "libtoolkit", "toolkit"])
    assert Path(f"{host.db}.held").read_text() == "firefox\n"
    assert host.run(hold=False, **recorded)["changed"] is False


def test_a_run_that_was_killed_is_made_up_for(host: Host, recorded: dict[str, object]) -> None:
    Path(f"{host.db}.killed").touch()
    with pytest.raises(AssertionError):  # a process that is killed gives no answer
        host.run(**recorded)
    Path(f"{host.db}.killed").unlink()
    # what the package manager did after all
    for name, version in (("toolkit", "1.17.8-1"), ("libtoolkit", "1.17.8-1"), ("base", "1.17.8-1"), ("helper", "2-1")):
        (host.db / name).write_text(version)
    host.run(**recorded)
    gone: dict[str, object] = {**recorded, "name": [], "state": "absent"}
    assert host.run(**gone)["packages"] == ["base", "libtoolkit", "toolkit", "helper"]


@pytest.mark.parametrize("check", [False, True])
def test_pacman_holds_nothing(host: Host, check: bool) -> None:
    assert host.run(check=check, manager="pacman", hold=True)["msg"].startswith(
        "pacman is not asked to hold packages: "
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [({"name": ["--force-yes"]}, "'--force-yes' is no name of"), ({"version": "1 -y"}, "'1 -y' is no version of")],
)
def test_what_looks_like_an_option_is_refused(host: Host, arguments: dict[str, object], words: str) -> None:
    assert host.run(**arguments)["msg"].startswith(words)
    assert host.calls == []


def test_a_package_manager_that_is_not_there(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(host.programs))
    assert host.run(manager="pacman")["msg"] == (
        "Cannot run pacman (No such file or directory): name the package manager that this host has instead of pacman."
    )


def test_a_failure_tells_the_managers_own_words(host: Host) -> None:
    Path(f"{host.db}.broken").touch()
    answer = host.run()
    assert answer["failed"]
    assert answer["msg"] == (
        "apt-get failed for toolkit and base (E: Unable to locate package): "
        "put that right on the host or in its repositories, and run again."
    )
    assert answer["command"][-1] == "update"
    assert "W: noise" in answer["stderr"]
