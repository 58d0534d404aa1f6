# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import typing as t

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.files import TEMP_TAG
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.crio import Crio
from ansible_collections.gpu.kubernetes.plugins.module_utils._toml import loads
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.crio_files import (
    KATA,
    PATH,
    SHIPPED,
    default,
    nvidia,
    table,
)
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.node import CrioNode

if t.TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("managed", "edited"), [(f'"{PATH}"', '"/opt/other"'), ('default_runtime = "nvidia"', 'default_runtime = "kata"')]
)
def test_third_value_by_others_is_refused(tmp_path: Path, managed: str, edited: str) -> None:
    node = CrioNode(tmp_path, SHIPPED + KATA.replace(default("kata"), ""))
    node.present(set_default=True)
    text = node.text().replace(managed, edited)
    assert text != node.text()
    node.config.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"others changed crio\.runtime\..*: remove that setting, then run again"):
        node.absent()
    assert node.text() == text


def test_check_run_repeat_and_undo_restore_the_folder(tmp_path: Path) -> None:
    node = CrioNode(tmp_path, "# site\n", _10_crio=SHIPPED)
    before = node.snapshot()
    predicted = node.present(check=True)
    assert predicted.changed
    assert node.snapshot() == before
    outcome = node.present()
    assert outcome.after == predicted.after == node.config.read_bytes()
    assert outcome.reasons == [
        "name the NVIDIA runtime's binary",
        "give the runtime its type",
        "inherit from runtime crun",
    ]
    assert (outcome.backup_file, outcome.restart_required) == (None, True)
    assert outcome.facts == {"default_runtime": "crun", "drop_in": str(node.config)}
    assert loads(node.text()) == {
        "crio": {
            "runtime": {
                "runtimes": {
                    "nvidia": {
                        "runtime_path": PATH,
                        "runtime_type": "oci",
                        "runtime_root": "/run/crun",
                        "monitor_path": "/usr/libexec/crio/conmon",
                        "allowed_annotations": ["io.containers.trace-syscall"],
                    }
                }
            }
        }
    }
    assert not node.present(check=True).changed
    assert not node.present().changed
    assert node.absent().changed
    assert not node.config.exists()
    assert node.config.parent.is_dir()
    assert not node.absent().changed
    assert node.main.read_text(encoding="utf-8") == "# site\n"


def test_folder_of_drop_ins_is_created_and_removed(tmp_path: Path) -> None:
    node = CrioNode(tmp_path)
    node.config.parent.rmdir()
    assert node.present().changed
    assert nvidia(node.text()) == {"runtime_path": PATH, "runtime_type": "oci"}
    node.absent()
    assert not node.config.parent.exists()


@pytest.mark.parametrize(
    ("main", "others", "root"),
    [
        (default("runc"), {"_10_crio": SHIPPED}, "/run/crun"),
        ("", {"_10_crio": SHIPPED, "_20_site": default("runc")}, "/run/runc"),
        (SHIPPED, {"_10_kata": KATA}, "/run/crun"),
        (SHIPPED.replace("crun", "nvidia"), {}, "/run/nvidia"),
        (
            SHIPPED,
            {"_10_own": table("nvidia-cdi", PATH + ".cdi", 'runtime_root = "/cdi"\n') + default("nvidia-cdi")},
            "/run/crun",
        ),
        ("", {"_10_kata": KATA}, None),
    ],
    ids=[
        "later file",
        "default of the site",
        "not from Kata",
        "existing runtime",
        "not from NVIDIA's",
        "none",
    ],
)
def test_inherited_runtime_root_by_source(tmp_path: Path, main: str, others: dict[str, str], root: str | None) -> None:
    node = CrioNode(tmp_path, main, **others)
    node.present()
    assert nvidia(node.text()).get("runtime_root") == root
    assert "privileged_without_host_devices" not in nvidia(node.text())


def test_settings_that_change_the_program_are_not_inherited(tmp_path: Path) -> None:
    more = 'inherit_default_runtime = true\nruntime_config_path = "/x"\nplatform_runtime_paths = { "linux/arm64" = "/y" }\n'
    node = CrioNode(tmp_path, default("crun") + table("crun", "/usr/bin/crun", more))
    node.present()
    assert nvidia(node.text()) == {"runtime_path": PATH, "runtime_type": "oci"}


def test_inherited_settings_follow_their_source(tmp_path: Path) -> None:
    node = CrioNode(tmp_path, SHIPPED)
    node.present(settings={"crio": {"runtime": {"runtimes": {"nvidia": {"no_sync_log": True}}}}})
    node.main.write_text(SHIPPED.replace("/run/crun", "/run/moved").replace("monitor_path", "# monitor_path"))
    requested = {"settings": {"crio": {"runtime": {"runtimes": {"nvidia": {"no_sync_log": True}}}}}}
    assert node.present(**requested).changed
    assert nvidia(node.text()) == {
        "runtime_path": PATH,
        "runtime_type": "oci",
        "runtime_root": "/run/moved",
        "allowed_annotations": ["io.containers.trace-syscall"],
        "no_sync_log": True,
    }
    assert not node.present(**requested).changed


def test_existing_drop_in_is_edited_and_restored(tmp_path: Path) -> None:
    text = "# by nvidia-ctk\n\n" + table(path="/old", more='monitor_env = ["A=1"] # site\n')
    node = CrioNode(tmp_path, SHIPPED)
    node.config.write_text(text)
    outcome = node.present(set_default=True)
    assert outcome.backup_file
    assert node.text().startswith("# by nvidia-ctk\n")
    assert 'monitor_env = ["A=1"] # site\n' in node.text()
    assert nvidia(node.text())["runtime_path"] == PATH
    assert outcome.facts["default_runtime"] == "nvidia"
    node.absent()
    assert node.text() == text


@pytest.mark.parametrize(
    ("main", "first", "after", "default_runtime"),
    [
        (SHIPPED, True, None, "crun"),
        (default("runc") + table("runc", "/usr/bin/runc"), True, None, "runc"),
        ("", True, None, None),
        (SHIPPED.replace('default_runtime = "crun"', 'default_runtime = "nvidia"'), None, "", ""),
        (default("nvidia") + table(), None, "", ""),
    ],
    ids=["main file", "another", "none", "empty over main file", "no other runtime"],
)
def test_default_runtime_is_set_and_undone(
    tmp_path: Path, main: str, first: bool | None, after: str | None, default_runtime: str | None
) -> None:
    node = CrioNode(tmp_path, main)
    assert node.present(set_default=first).facts["default_runtime"] == "nvidia"
    assert not node.present().changed, "the default changes without set_default"
    outcome = node.present(set_default=False)
    assert outcome.facts["default_runtime"] == default_runtime
    assert loads(node.text())["crio"]["runtime"].get("default_runtime") == after
    assert not node.present(set_default=False).changed
    if after is None:
        node.absent()
        assert not node.config.exists()


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("_99_nvidia", table(), "describes runtime nvidia too; "),
        ("_99_nvidia", table(path="/old"), "describes runtime nvidia too; "),
        ("_99_zeta", table(), "replaces its runtime nvidia."),
    ],
)
def test_warnings_about_other_files(tmp_path: Path, name: str, text: str, words: str) -> None:
    node = CrioNode(tmp_path, SHIPPED, **{name: text})
    [warning] = node.present().warnings
    assert words in warning
    assert str(node.drop_ins[name]) in warning


@pytest.mark.parametrize(
    ("text", "requested"),
    [
        (table(path="/old"), {}),
        (default("crun"), {"set_default": True}),
        (default("nvidia"), {"set_default": False}),
        (table(path="/old") + default("crun"), {"set_default": False}),
        (table(more="inherit_default_runtime = true\n"), {}),
        ("[crio.runtime]\npids_limit = 1\n", {"settings": {"crio": {"runtime": {"pids_limit": 4096}}}}),
    ],
)
def test_overridden_settings_are_refused(tmp_path: Path, text: str, requested: dict[str, t.Any]) -> None:
    node = CrioNode(tmp_path, SHIPPED, _99_zeta=text)
    before = node.snapshot()
    with pytest.raises(ConfigError, match=f"{node.drop_ins['_99_zeta']} is read after .* give drop_in: "):
        node.present(**requested)
    assert {name: found for name, found in node.snapshot().items() if "/etc" in name} == {
        name: found for name, found in before.items() if "/etc" in name
    }


def test_default_without_a_runtime_warns(tmp_path: Path) -> None:
    [warning] = CrioNode(tmp_path, default("lost")).present().warnings
    assert "default runtime is lost, but there is no such runtime" in warning


@pytest.mark.parametrize(
    ("requested", "words"),
    [
        ({"enable_cdi": False}, "no switch for CDI"),
        ({"runtime_name": "No"}, "runtime_name 'No'"),
        (
            {"settings": {"crio": {"runtime": {"runtimes": {"nvidia": {"inherit_default_runtime": True}}}}}},
            "remove it",
        ),
        ({"settings": {"crio": 5}}, "settings: crio has to be a table"),
        (
            {"settings": {"crio": {"runtime": {"runtimes": {"runc": {"no_sync_log": True}}}}}},
            "crio.conf, and CRI-O would read the drop-in's table instead, as a whole: set that there.",
        ),
    ],
)
def test_invalid_requests_are_refused(tmp_path: Path, requested: dict[str, t.Any], words: str) -> None:
    node = CrioNode(tmp_path, SHIPPED)
    with pytest.raises(ConfigError) as caught:
        node.present(**requested)
    assert words in str(caught.value)
    assert not node.config.exists()


@pytest.mark.parametrize("text", ["broken = [", "crio = 5", "[crio.runtime]\nruntimes = 1"])
def test_unreadable_drop_in_is_named(tmp_path: Path, text: str) -> None:
    node = CrioNode(tmp_path, SHIPPED, _10_wrong=text)
    with pytest.raises(ConfigError, match=str(node.drop_ins["_10_wrong"])):
        node.present()


def test_nested_files_are_read_in_order(tmp_path: Path) -> None:
    node = CrioNode(tmp_path, SHIPPED)
    nested = node.config.parent / "99-nvidia.d" / "deep.conf"
    nested.parent.mkdir()
    nested.write_text(default("runc"))
    node.present()
    assert nvidia(node.text())["runtime_root"] == "/run/runc", (
        "a folder is read in the order of its own name, before 99-nvidia.toml"
    )


def test_drop_in_that_crio_does_not_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="lies where CRI-O does not read it: give a file in /etc/crio/"):
        Crio(path="/etc/crio/nvidia.toml", main="/etc/crio/crio.conf")
    Crio(path="/etc/crio/crio.conf.d/nested/nvidia.toml", main="/etc/crio/crio.conf")


@pytest.mark.parametrize("second", [True, None, False])
def test_source_is_kept_once_nvidia_is_the_default(tmp_path: Path, second: bool | None) -> None:
    node = CrioNode(tmp_path, SHIPPED.replace('default_runtime = "crun"', 'default_runtime = "runc"'))
    first = node.present(set_default=True).after
    outcome = node.present(set_default=second)
    assert nvidia(node.text())["runtime_root"] == "/run/runc"
    assert outcome.changed is (second is False)
    assert second is False or outcome.after == first


def test_set_default_false_restores_the_default_of_the_site(tmp_path: Path) -> None:
    node = CrioNode(tmp_path, SHIPPED.replace('default_runtime = "crun"', 'default_runtime = "runc"'))
    node.config.write_text(default("nvidia") + table())
    assert node.present(set_default=False).facts["default_runtime"] == "runc"
    assert "default_runtime" not in node.text()
    assert nvidia(node.text())["runtime_root"] == "/run/runc"


def test_later_files_are_read(tmp_path: Path) -> None:
    later = table("own", "/usr/bin/own", 'runtime_root = "/run/own"\n')
    node = CrioNode(tmp_path, default("own"), _99_zz=later)
    assert node.present().warnings == []
    assert nvidia(node.text())["runtime_root"] == "/run/own"


class TestUndo:
    def test_removal_of_default_of_others_is_refused(self, tmp_path: Path) -> None:
        node = CrioNode(tmp_path, SHIPPED)
        text = node.present().after
        node.main.write_text(SHIPPED.replace('default_runtime = "crun"', 'default_runtime = "nvidia"'))
        with pytest.raises(
            ConfigError, match=f"{node.main} makes nvidia the default runtime, and CRI-O does not start"
        ):
            node.absent()
        assert node.config.read_bytes() == text

    def test_default_in_the_drop_in_is_removed(self, tmp_path: Path) -> None:
        node = CrioNode(tmp_path, SHIPPED)
        node.present()
        node.config.write_text(default("nvidia") + "\n" + node.text())
        outcome = node.absent()
        removed, kept = outcome.warnings
        assert removed == f"{node.config}: the default runtime is left to the other files, because nvidia is gone."
        assert kept.startswith(f"{node.config} was changed by others since; what it held is kept in ")
        assert "nvidia" not in node.text()

    def test_broken_file_of_others_is_ignored(self, tmp_path: Path) -> None:
        node = CrioNode(tmp_path, SHIPPED)
        node.present()
        node.config.with_name("50-x.conf").write_text("a = [")
        node.absent()
        assert not node.config.exists()


@pytest.mark.parametrize("more", ["runtime_config_path = '/x'\n", "platform_runtime_paths = { a = '/x' }\n"])
def test_settings_that_override_the_program_are_refused(tmp_path: Path, more: str) -> None:
    node = CrioNode(tmp_path, SHIPPED)
    node.config.write_text(table(more=more))
    with pytest.raises(ConfigError, match="with which CRI-O does not start runtime_path: remove it"):
        node.present()


def test_temporary_file_of_interrupted_run_is_not_a_drop_in(tmp_path: Path) -> None:
    node = CrioNode(tmp_path, SHIPPED)
    leftover = node.config.with_name(f".{node.config.name}{TEMP_TAG}abcdef")
    leftover.write_text("broken = [")
    assert node.present(check=True).changed
    assert leftover.exists()
    assert node.present().changed
    assert not leftover.exists()


def test_names_of_the_daemon() -> None:
    crio = Crio(path="/crio.conf.d/d", main="/m")
    assert (crio.name, crio.syntax.name, os.path.basename(crio.path)) == ("crio", "TOML", "d")
