# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Interrupted runs, concurrent edits, and other files in the kubelet's folder."""

from __future__ import annotations

import functools
import os
import shutil
import stat
from pathlib import Path

import pytest

pytest.importorskip("ruamel.yaml")

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.files import FilesError, sha256
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._scheduler.control_plane import (
    CONFIG,
    GPUSHARE,
    OTHER,
    ControlPlane,
)
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils.interruptions import interrupt_at_each_call


@pytest.mark.parametrize("run", ["present", "changed", "absent"])
def test_run_interrupted_at_each_step_resumes(tmp_path: Path, run: str) -> None:
    extenders = [GPUSHARE, OTHER] if run == "changed" else [GPUSHARE]
    state = "absent" if run == "absent" else "present"

    def prepare() -> ControlPlane:
        shutil.rmtree(tmp_path / "node", ignore_errors=True)
        node = ControlPlane(tmp_path / "node")
        if run != "present":
            node.run()
        return node

    node = prepare()
    old = node.files()
    node.run(*extenders, state=state)
    new = node.files()
    node = prepare()
    states = 0
    for at in interrupt_at_each_call(functools.partial(node.run, *extenders, state=state), node.folder):
        shown = {name: data for name, data in node.files().items() if not Path(name).name.startswith(".")}
        assert all(data in (old.get(name), new.get(name)) for name, data in shown.items()), at
        assert_startable(node)
        node.run(*extenders, state=state)
        assert node.files() == new, at
        node.run(state="absent")
        assert node.files() == {"manifests/kube-scheduler.yaml": node.text.encode()}, at
        states += 1
    assert states > 5


@pytest.mark.parametrize("state", ["present", "absent"])
def test_checksums_are_predicted(plane: ControlPlane, state: str) -> None:
    """An interrupted run has recorded the managed files."""
    if state == "absent":
        plane.run()
    predicted = plane.run(check=True, state=state)["checksums"]
    assert plane.run(state=state)["checksums"] == predicted
    there = {path: sha256(Path(path).read_bytes()) if Path(path).exists() else None for path in predicted}
    assert (predicted, len(there)) == (there, 3)


def assert_startable(node: ControlPlane) -> None:
    """Check that the file of --config exists."""
    for flag in node.flags():
        if flag.startswith("--config="):
            assert Path(flag.partition("=")[2]).exists()


def test_change_by_others_between_read_and_write_is_refused(plane: ControlPlane) -> None:

    def edit() -> None:
        plane.manifest.write_text(plane.text + "# now\n")

    plane.before_write = edit
    with pytest.raises(FilesError, match=r"kube-scheduler\.yaml was changed by others since it was read"):
        plane.run()
    assert plane.files() == {"manifests/kube-scheduler.yaml": (plane.text + "# now\n").encode()}


def test_files_of_the_same_pod_in_the_folder_are_reported(plane: ControlPlane) -> None:
    folder = plane.manifest.parent
    (folder / "kube-scheduler.yaml.bak").write_text(plane.text)
    (folder / "a-scheduler.json").write_text('{"kind": "Pod", "metadata": {"name": "kube-scheduler"}}')
    (folder / "etcd.yaml~").write_text("kind: Pod\n")
    (folder / "kube-apiserver.yaml").write_text(
        "kind: Pod\nmetadata: {name: kube-apiserver}\n# beside kube-scheduler\n"
    )
    (folder / ".kube-scheduler.yaml.swp").write_text(plane.text)
    warnings = plane.run()["warnings"]
    assert [text.split()[0].rpartition("/")[2] for text in warnings] == [
        "a-scheduler.json",
        "etcd.yaml~",
        "kube-scheduler.yaml.bak",
    ]
    assert "runs kube-scheduler.yaml.bak" in warnings[2]
    assert "runs kube-scheduler.yaml for now" in warnings[0]
    assert all("out of" in text for text in warnings)


@pytest.mark.parametrize("option", ["config_path", "backup_dir", "state_dir"])
def test_paths_in_the_folder_of_static_pods_are_refused(plane: ControlPlane, option: str) -> None:
    with pytest.raises(ConfigError, match=f"{option} .* lies in .*manifests"):
        plane.run(check=False, **{option: str(plane.manifest.parent / "x.yaml")})
    assert plane.files() == {"manifests/kube-scheduler.yaml": plane.text.encode()}


def test_only_content_of_others_is_backed_up(plane: ControlPlane, tmp_path: Path) -> None:
    done = plane.run(backup_dir=str(tmp_path / "state" / "kept"))
    [copy] = done["backup_files"].values()
    assert Path(copy).read_text() == plane.text
    assert plane.run(GPUSHARE, OTHER)["backup_files"] == {}


def test_key_of_an_extender_is_masked(plane: ControlPlane) -> None:
    done = plane.run({**GPUSHARE, "tlsConfig": {"keyData": "c2VjcmV0", "certData": "cHVibGlj"}})
    shown = "".join(part["after"] for part in done["diff"])
    assert "c2VjcmV0" not in shown
    assert "cHVibGlj" in shown
    assert "c2VjcmV0" in plane.config.read_text()


# Spellings of a key by others.
KEYS = {
    "folded": "extenders:\n- urlPrefix: http://a/b\n  filterVerb: f\n  tlsConfig:\n    keyData: |\n      c2Vj\n      cmV0\n",
    "flow": "extenders: [{urlPrefix: http://a/b, filterVerb: f, tlsConfig: {'keyData': 'c2Vj,cmV0', certData: x}}]\n",
    "on-two-lines": "extenders:\n- urlPrefix: http://a/b\n  filterVerb: f\n  tlsConfig:\n    keyData:\n      c2Vj\n      cmV0\n",
    "escaped": 'extenders:\n- urlPrefix: http://a/b\n  filterVerb: f\n  tlsConfig:\n    "key\\u0044ata": c2VjcmV0\n',
    "commented-out": "# tlsConfig: {keyData: c2VjcmV0}\n",
}


@pytest.mark.parametrize("written", KEYS)
def test_key_of_another_extender_is_masked_in_each_spelling(configured_plane: ControlPlane, written: str) -> None:
    configured_plane.config.write_text(CONFIG.format(version="v1") + KEYS[written])
    [config, _manifest] = configured_plane.run(config_path=None)["diff"]
    for side in ("before", "after"):
        assert "c2Vj" not in config[side]
        assert "cmV0" not in config[side]
        assert "percentageOfNodesToScore: 50" in config[side]
        assert "withheld" not in config[side]
    assert "c2Vj" in configured_plane.config.read_text()


def test_credentials_of_the_manifest_are_masked_in_the_diff(plane: ControlPlane) -> None:
    environment = "    env:\n    - {name: HTTPS_PROXY, value: 'http://bob:opensesame@proxy'}\n    - {name: API_TOKEN, value: opensesame}\n"
    text = plane.text.replace("    image:", f"{environment}    image:", 1)
    assert text != plane.text
    plane.manifest.write_text(text)
    assert "diff" not in plane.run(check=True, diff=False)
    done = plane.run()
    shown = "".join(part[side] for part in done["diff"] for side in ("before", "after"))
    assert "opensesame" not in shown
    assert "API_TOKEN" in shown
    assert "@proxy" in shown


def test_scheduler_that_is_not_root_can_read_its_configuration(plane: ControlPlane) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can change the owner")
    plane.manifest.write_text(
        plane.text.replace("  securityContext:\n", "  securityContext:\n    runAsUser: 996\n    runAsGroup: 995\n")
    )
    plane.run()
    found = os.stat(plane.config)
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (996, 995, 0o600)
