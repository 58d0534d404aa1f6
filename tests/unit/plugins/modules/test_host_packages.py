# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("ansible.module_utils.basic")

from ansible_collections.gpu.kubernetes.plugins.modules import host_packages
from ansible_collections.gpu.kubernetes.tests.unit.plugins.modules import node_module

# A fake package manager: one file a package, with its version.
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
    unhold) [ ! -f "{db}.locked" ] || exit 100; for name; do sed -i "/^$name$/d" "{db}.held"; done ;;
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
            [ ! -f "{db}.dependencies" ] || {{ echo 1.17.8-1 > "{db}/libtoolkit"; echo 2-1 > "{db}/helper"; }} ;;
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
        all_arguments = {"name": ["toolkit", "base"], "manager": "apt", **arguments}
        return node_module.run("host_packages", all_arguments, check=check, folder=str(self.programs))

    @property
    def calls(self) -> list[str]:
        log = Path(f"{self.db}.log")
        return [line for line in log.read_text().splitlines() if "--simulate" not in line] if log.exists() else []


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_absent_removes_unconfigured_package_too(host: Host, tmp_path: Path) -> None:
    """Such as a package whose kernel module DKMS cannot build."""
    record = str(tmp_path / "record.json")
    Path(f"{host.db}.half").write_text("base")
    failed = host.run(record=record)
    assert "dpkg returned an error" in str(failed["msg"])
    assert failed["changed"] is True
    assert sorted(path.name for path in host.db.iterdir()) == ["base", "toolkit"]
    removed = host.run(state="absent", name=[], record=record)
    assert removed["packages"] == ["base", "toolkit"]
    assert list(host.db.iterdir()) == []
    assert not Path(record).exists()


@pytest.mark.parametrize("check", [False, True])
def test_available_changes_nothing(host: Host, tmp_path: Path, check: bool) -> None:
    record = tmp_path / "record.json"
    planned = host.run(check, state="available", version="1.17.8", record=str(record), hold=True)
    assert (planned["changed"], planned["packages"], planned["held"]) == (False, ["toolkit", "base"], [])
    assert (host.calls, record.exists()) == ([], False)
    rejected = host.run(check, state="available", version="1.18.*")
    assert rejected["failed"]
    assert str(rejected["msg"]).startswith("apt has no version 1.18.* of toolkit and base: request one that")
    assert [call.split()[-1] for call in host.calls] == ["update"]


def test_install_and_remove(host: Host) -> None:
    planned = host.run(check=True)
    assert (planned["changed"], host.calls) == (True, [])
    result = host.run()
    assert (result["changed"], result["packages"]) == (True, ["toolkit", "base"])
    assert result["packages"] == planned["packages"]
    assert result["diff"] == planned["diff"]
    assert len(host.calls) == 2
    assert host.run(check=True)["changed"] is False
    assert host.run()["changed"] is False
    assert len(host.calls) == 2
    assert host.run(state="absent", check=True)["changed"] is True
    assert sorted(entry.name for entry in host.db.iterdir()) == ["base", "toolkit"]
    removed = host.run(state="absent")
    assert (removed["changed"], removed["packages"]) == (True, ["toolkit", "base"])
    assert removed["diff"]["before"] == "toolkit: 1.17.8-1\nbase: 1.17.8-1\n"
    assert host.run(state="absent")["changed"] is False
    assert list(host.db.iterdir()) == []


def test_present_installs_only_missing_packages(host: Host) -> None:
    (host.db / "base").write_text("0.9-1")
    assert host.run()["packages"] == ["toolkit"]
    assert host.run(version="1.17.8")["packages"] == ["base"]
    assert host.calls[-1].endswith("install base=1.17.8-*")


@pytest.mark.parametrize("check", [False, True])
def test_rejected_request_changes_nothing(host: Host, check: bool) -> None:
    (host.db / "base").write_text("1.0-1")
    Path(f"{host.db}.others").write_text("Purg docker-gpu [1.0]\nPurg base [1.0-1]\n")
    result = host.run(check=check, state="absent")
    assert result["msg"].startswith("Cannot remove base, because docker-gpu would be removed too: ")
    assert result["msg"].endswith(".")
    Path(f"{host.db}.held").write_text("base\n")
    result = host.run(check=check, version="2.0")
    assert result["msg"].startswith("Cannot change base, because of an unmanaged hold: ")
    assert (host.db / "base").read_text() == "1.0-1"


@pytest.fixture
def record_arguments(host: Host, tmp_path: Path) -> dict[str, object]:
    """Arguments with a record, on a host with an installed package, where the packages have dependencies."""
    Path(f"{host.db}.dependencies").touch()
    (host.db / "bash").write_text("5-1")
    return {"record": str(tmp_path / "state" / "record.json")}


def test_absent_removes_exactly_the_installed_packages(host: Host, record_arguments: dict[str, object]) -> None:
    arguments = {**record_arguments, "hold": True, "version": "1.17.*"}
    planned = host.run(check=True, **arguments)
    assert planned["held"] == ["base", "toolkit"]
    assert not Path(str(record_arguments["record"])).exists()
    result = host.run(**arguments)
    assert result["packages"] == ["toolkit", "base"]
    assert result["held"] == ["base", "libtoolkit", "toolkit"]
    for check in (True, False):
        again = host.run(check=check, **arguments)
        assert (again["changed"], again["held"]) == (False, [])
    assert host.run(check=True, hold=False, **record_arguments)["released"] == ["base", "libtoolkit", "toolkit"]
    (host.db / "toolkit").write_text("1.16-1")
    assert host.run(**arguments)["packages"] == ["toolkit"], "a managed hold is accepted"
    absent: dict[str, object] = {**record_arguments, "name": [], "state": "absent"}
    assert host.run(check=True, **absent)["packages"] == ["base", "libtoolkit", "toolkit"]
    assert host.run(**absent)["packages"] == ["base", "libtoolkit", "toolkit", "helper"]
    assert [entry.name for entry in host.db.iterdir()] == ["bash"]
    assert not Path(str(record_arguments["record"])).exists()
    for check in (True, False):
        assert host.run(check=check, **absent)["changed"] is False


def test_absent_removes_dependent_dependencies(host: Host, record_arguments: dict[str, object]) -> None:
    host.run(**record_arguments)
    Path(f"{host.db}.others").write_text("Purg helper [2-1]\nPurg toolkit [1.17.8-1]\n")
    absent: dict[str, object] = {**record_arguments, "name": [], "state": "absent"}
    planned, result = host.run(check=True, **absent), host.run(**absent)
    assert result["packages"] == ["base", "libtoolkit", "toolkit", "helper"]
    assert result["diff"]["before"].endswith("helper: 2-1\n")
    assert (planned["packages"], planned["diff"]) == (result["packages"], result["diff"])
    assert host.calls[-1].endswith(" purge base libtoolkit toolkit helper")
    assert [entry.name for entry in host.db.iterdir()] == ["bash"]


def test_unversioned_package_has_no_version_and_no_hold(host: Host) -> None:
    result = host.run(name=["toolkit"], unversioned=["base"], version="1.17.8", hold=True)
    assert host.calls[-1].endswith(" install toolkit=1.17.8-* base")
    assert (result["packages"], result["held"]) == (["toolkit", "base"], ["toolkit"])


@pytest.mark.parametrize("check", [False, True])
def test_same_version_replaces_different_versions(host: Host, check: bool) -> None:
    (host.db / "toolkit").write_text("1.17.7-1")
    (host.db / "base").write_text("1.17.8-1")
    assert host.run(check)["changed"] is False
    arguments: dict[str, object] = {"unversioned": ["helper"], "same_version": True}
    assert host.run(check, state="available", **arguments)["replaced"] == ["toolkit"]
    result = host.run(check, **arguments)
    assert (result["packages"], result["replaced"]) == (["toolkit", "helper"], ["toolkit"])
    assert host.run(check, version="1.17.*")["changed"] is check, "the versions are the same now"
    endings = [call.partition(" install ")[2] or call.split()[-1] for call in host.calls]
    assert endings == ([] if check else ["update", "toolkit=1.17.8-* helper"])


def test_absent_keeps_packages_from_before(host: Host, record_arguments: dict[str, object]) -> None:
    (host.db / "base").write_text("1.17.8-1")
    (host.db / "helper").write_text("2-1")
    host.run(**record_arguments)
    assert host.run(state="absent", **record_arguments)["packages"] == ["libtoolkit", "toolkit"]
    assert sorted(entry.name for entry in host.db.iterdir()) == ["base", "bash", "helper"]


def test_absent_keeps_dependency_with_unmanaged_hold(host: Host, record_arguments: dict[str, object]) -> None:
    host.run(**record_arguments)
    Path(f"{host.db}.held").write_text("helper\n")
    assert host.run(state="absent", **record_arguments)["packages"] == ["base", "libtoolkit", "toolkit"]
    assert sorted(entry.name for entry in host.db.iterdir()) == ["bash", "helper"]


def test_hold_restores_missing_holds_and_releases_managed_ones(host: Host, record_arguments: dict[str, object]) -> None:
    host.run(hold=True, **record_arguments)
    Path(f"{host.db}.held").write_text("libtoolkit\nfirefox\n")
    assert host.run(hold=True, **record_arguments)["held"] == ["base", "toolkit"]
    assert host.run(**record_arguments)["changed"] is False
    released = host.run(hold=False, **record_arguments)
    assert (released["changed"], released["released"]) == (True, ["base", "libtoolkit", "toolkit"])
    assert Path(f"{host.db}.held").read_text() == "firefox\n"
    assert host.run(hold=False, **record_arguments)["changed"] is False


def test_hold_whose_release_failed_stays_managed(host: Host, record_arguments: dict[str, object]) -> None:
    host.run(hold=True, **record_arguments)
    locked = Path(f"{host.db}.locked")
    locked.touch()
    assert host.run(hold=False, **record_arguments)["failed"]
    locked.unlink()
    assert host.run(hold=False, **record_arguments)["released"] == ["base", "libtoolkit", "toolkit"]
    assert Path(f"{host.db}.held").read_text() == ""


def test_interrupted_run_is_resumed(host: Host, record_arguments: dict[str, object]) -> None:
    Path(f"{host.db}.killed").touch()
    with pytest.raises(AssertionError):  # a killed process has no result
        host.run(**record_arguments)
    Path(f"{host.db}.killed").unlink()
    # The package manager completed the installation.
    for name, version in (("toolkit", "1.17.8-1"), ("libtoolkit", "1.17.8-1"), ("base", "1.17.8-1"), ("helper", "2-1")):
        (host.db / name).write_text(version)
    host.run(**record_arguments)
    absent: dict[str, object] = {**record_arguments, "name": [], "state": "absent"}
    assert host.run(**absent)["packages"] == ["base", "libtoolkit", "toolkit", "helper"]


@pytest.mark.parametrize("check", [False, True])
def test_hold_with_pacman_is_rejected(host: Host, check: bool) -> None:
    assert host.run(check=check, manager="pacman", hold=True)["msg"].startswith("hold is not supported with pacman: ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"name": ["--force-yes"]}, "'--force-yes' is not a package name"),
        ({"version": "1 -y"}, "'1 -y' is not a package version"),
    ],
)
def test_option_as_name_or_version_is_rejected(host: Host, arguments: dict[str, object], words: str) -> None:
    assert host.run(**arguments)["msg"].startswith(words)
    assert host.calls == []


def test_missing_package_manager_fails(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(host.programs))
    assert host.run(manager="pacman")["msg"] == (
        "Cannot run pacman (No such file or directory): name the package manager that this host has instead of pacman."
    )


def test_failure_contains_the_managers_message(host: Host) -> None:
    Path(f"{host.db}.broken").touch()
    result = host.run()
    assert result["failed"]
    assert result["msg"] == (
        "apt-get failed for toolkit and base (E: Unable to locate package): "
        "correct that on the host or in its repositories, and run again."
    )
    assert result["command"][-1] == "update"
    assert "W: noise" in result["stderr"]


def test_command_has_most_of_the_time_of_its_task(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[float] = []
    monkeypatch.setattr(host_packages._commands, "run", lambda *_words, limit=0.0: limits.append(limit) or (0, "", ""))
    assert host_packages.run_command(["apt-get", "install"], "apt") == (0, "", "")
    tasks = Path(__file__).resolve().parents[4] / "roles" / "vendor_packages" / "tasks"
    timeouts = [int(found) for found in re.findall(r"timeout: (\d+)", (tasks / "install.yml").read_text())]
    assert timeouts == [3600]
    assert 3000 <= limits[0] < timeouts[0]
