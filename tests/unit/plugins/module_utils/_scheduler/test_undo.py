# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Undo restores the original bytes; in an edited file, it removes only the managed settings."""

from __future__ import annotations

import pytest

pytest.importorskip("ruamel.yaml")

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._scheduler.manifest import CHECKSUM, READ
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._scheduler.control_plane import (
    BROKEN,
    GPUSHARE,
    OTHER,
    ControlPlane,
)


def test_edits_of_others_to_the_manifest_are_kept(plane: ControlPlane) -> None:
    plane.run()
    plane.manifest.write_text(plane.manifest.read_text().replace("cpu: 100m", "cpu: 200m  # more"))
    plane.run(state="absent")
    assert plane.files() == {
        "manifests/kube-scheduler.yaml": plane.text.replace("cpu: 100m", "cpu: 200m  # more").encode()
    }


def test_edits_of_others_to_the_configuration_are_kept_in_force(plane: ControlPlane) -> None:
    plane.run()
    plane.config.write_text(plane.config.read_text() + "profiles:\n- schedulerName: own\n")
    done = plane.run(state="absent")
    assert done["config_path"] == str(plane.config)
    assert plane.flags()[-1] == f"--config={plane.config}"
    assert plane.config.read_text() == (
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nclientConnection:\n"
        "  kubeconfig: /etc/kubernetes/scheduler.conf\nprofiles:\n- schedulerName: own\n"
    )
    assert CHECKSUM not in plane.manifest.read_text()


def test_edits_between_two_runs_are_kept_by_the_undo(plane: ControlPlane) -> None:
    plane.run()
    plane.manifest.write_text(plane.manifest.read_text().replace("cpu: 100m", "cpu: 200m"))
    plane.run(GPUSHARE, OTHER)
    plane.run(state="absent")
    assert plane.files() == {"manifests/kube-scheduler.yaml": plane.text.replace("cpu: 100m", "cpu: 200m").encode()}


def test_manifest_from_before_an_upgrade_is_never_restored(plane: ControlPlane) -> None:
    plane.run()
    upgraded = plane.text.replace("v1.34.4", "v1.35.0")
    plane.manifest.write_text(upgraded)
    assert plane.run(check=True)["changed"]
    plane.run(state="absent")
    assert plane.files() == {"manifests/kube-scheduler.yaml": upgraded.encode()}


def test_upgrade_that_kept_the_flag_is_undone_without_the_old_image(plane: ControlPlane) -> None:
    plane.run()
    plane.manifest.write_text(plane.manifest.read_text().replace("v1.34.4", "v1.35.0"))
    plane.run(state="absent")
    assert plane.files() == {"manifests/kube-scheduler.yaml": plane.text.replace("v1.34.4", "v1.35.0").encode()}


def test_after_an_upgrade_a_second_run_restores_everything(plane: ControlPlane) -> None:
    plane.run()
    done = plane.manifest.read_text()
    plane.manifest.write_text(plane.text)
    plane.run()
    assert plane.manifest.read_text() == done
    plane.run(state="absent")
    assert plane.manifest.read_text() == plane.text


def test_after_an_upgrade_a_configuration_of_others_is_read_again(configured_plane: ControlPlane) -> None:
    """kubeadm writes the flag of the former configuration and no checksum, so the pod would not restart."""
    before = configured_plane.files()
    configured_plane.run()
    configured_plane.manifest.write_text(configured_plane.text)
    assert configured_plane.run(state="absent", check=True)["changed"]
    assert configured_plane.run(state="absent")["changed"]
    after = configured_plane.files()
    assert after["sched/config.yaml"] == before["sched/config.yaml"]
    assert (
        configured_plane.manifest.read_text().count(CHECKSUM),
        configured_plane.manifest.read_text().count(READ),
    ) == (0, 1)
    again = configured_plane.run(state="absent")
    assert (again["changed"], again["warnings"]) == (False, [])
    # Another run and its undo change nothing more.
    configured_plane.run()
    configured_plane.run(state="absent")
    assert configured_plane.files() == after


def test_interrupted_removal_after_an_upgrade_resumes(configured_plane: ControlPlane) -> None:
    config = configured_plane.config.read_bytes()
    configured_plane.run()
    configured_plane.manifest.write_text(configured_plane.text.replace("v1.34.4", "v1.34.5"))
    configured_plane.config.write_bytes(config)
    assert configured_plane.run(state="absent")["changed"]
    assert (
        configured_plane.manifest.read_text().count(CHECKSUM),
        configured_plane.manifest.read_text().count(READ),
    ) == (0, 1)


def test_run_after_an_upgrade_records_no_checksum(configured_plane: ControlPlane) -> None:
    before = configured_plane.files()
    configured_plane.run()
    configured_plane.manifest.write_text(configured_plane.text)
    configured_plane.run()
    configured_plane.run(state="absent")
    assert configured_plane.files() == before


def test_requested_extender_of_others_is_removed_with_a_warning(configured_plane: ControlPlane) -> None:
    configured_plane.run(GPUSHARE, OTHER, config_path=None)
    for check in (True, False):
        [warning] = configured_plane.run(state="absent", config_path=None, check=check)["warnings"]
        assert "the extender http://10.0.0.9/other was there before the first run, and is removed" in warning
    assert "10.0.0.9" not in configured_plane.config.read_text()


@pytest.mark.parametrize("broken", BROKEN)
def test_broken_configuration_is_repaired_and_never_restored(configured_plane: ControlPlane, broken: str) -> None:
    text, words = BROKEN[broken]
    configured_plane.config.write_text(text)
    done = configured_plane.run(config_path=None)
    assert done["api_version"] == "kubescheduler.config.k8s.io/v1"
    assert configured_plane.urls() == [GPUSHARE["urlPrefix"]]
    assert any(words in warning for warning in done["warnings"]) or not words
    done = configured_plane.run(state="absent", config_path=None)
    assert configured_plane.manifest.read_text() == configured_plane.text
    after = configured_plane.config.read_text()
    assert "# written by the site" in after
    assert "percentageOfNodesToScore: 50" in after
    assert "apiVersion: kubescheduler.config.k8s.io/v1\n" in after
    assert "kubeconfig: /etc/kubernetes/scheduler.conf" in after.replace('"', "")
    for word in ("extenders", "gpushare", "enableHttps", "BindAddress"):
        assert word not in after


def test_flags_that_crash_are_removed(plane: ControlPlane) -> None:
    plane.manifest.write_text(
        plane.text.replace(
            "    - --leader-elect=true\n",
            "    - --port=0\n    - --leader-elect=true\n    - --policy-config-file\n    - /etc/p.json\n",
        )
    )
    assert len(plane.run()["warnings"]) == 3
    plane.run(state="absent")
    assert plane.manifest.read_text() == plane.text


def test_empty_file_of_the_kubelet_is_filled(plane: ControlPlane) -> None:
    plane.config.write_bytes(b"")
    plane.run()
    assert plane.urls() == [GPUSHARE["urlPrefix"]]
    plane.run(state="absent")
    assert plane.config.read_bytes() == b""
    assert plane.manifest.read_text() == plane.text


def test_kubeconfig_removed_by_others_is_restored_as_a_flag(plane: ControlPlane) -> None:
    plane.run()
    plane.manifest.write_text(
        plane.manifest.read_text().replace("    - --kubeconfig=/etc/kubernetes/scheduler.conf\n", "")
    )
    plane.run(state="absent")
    assert "--kubeconfig=/etc/kubernetes/scheduler.conf" in plane.flags()
    assert not any(flag.startswith("--config") for flag in plane.flags())


def test_flags_that_others_removed_are_not_added(plane: ControlPlane) -> None:
    plane.run()
    text = plane.manifest.read_text().replace(f"    - --config={plane.config}\n", "")
    plane.manifest.write_text(text.replace("    - --kubeconfig=/etc/kubernetes/scheduler.conf\n", ""))
    flags = plane.flags()
    plane.run(state="absent")
    assert plane.flags() == flags
    assert str(plane.config) not in plane.manifest.read_text()


def test_undo_without_a_record_changes_nothing(plane: ControlPlane) -> None:
    assert plane.run(state="absent")["warnings"] == []
    plane.run()
    for record in plane.state.rglob("*.json"):
        record.unlink()
    before = plane.files()
    done = plane.run(state="absent")
    assert not done["changed"]
    assert "there is no record" in done["warnings"][0]
    assert plane.files() == before


def test_damaged_record_is_named(plane: ControlPlane) -> None:
    plane.run()
    [record] = plane.state.rglob("*.json")
    record.write_text("{")
    with pytest.raises(ConfigError, match=f"{record.name}.* is damaged"):
        plane.run(state="absent")


def test_missing_manifest_removes_the_configuration(plane: ControlPlane) -> None:
    plane.run()
    plane.manifest.unlink()
    assert plane.run(state="absent")["changed"]
    assert plane.files() == {}
