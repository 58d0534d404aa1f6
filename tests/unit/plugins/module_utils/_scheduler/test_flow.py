# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of the module on one node: files that are written, merged and refused."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from pathlib import Path

import pytest

pytest.importorskip("ruamel.yaml")

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._scheduler import node
from ansible_collections.gpu.kubernetes.plugins.module_utils._scheduler.manifest import CHECKSUM
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._scheduler.control_plane import (
    CONFIG,
    GPUSHARE,
    MANIFESTS,
    OTHER,
    RT,
    ControlPlane,
)


@pytest.mark.parametrize("manifest", MANIFESTS)
def test_check_run_repeat_and_undo_restore_the_files(tmp_path: Path, manifest: str) -> None:
    node = ControlPlane(tmp_path, manifest)
    if "config" in manifest:
        node.config = tmp_path / "sched" / "config.yaml"
        node.config.parent.mkdir()
        node.config.write_text(CONFIG.format(version="v1"))
    first = node.files()
    predicted = node.run(check=True)
    assert predicted["changed"]
    assert node.files() == first
    assert not node.state.exists()
    done = node.run()
    assert node.requests == ["read", "write"]
    assert (done["diff"], done["config_checksum"]) == (predicted["diff"], predicted["config_checksum"])
    assert done["config_checksum"] == hashlib.sha256(node.config.read_bytes()).hexdigest()
    after = node.files()
    for check in (True, False):
        again = node.run(check=check)
        assert not again["changed"]
        assert again["diff"] == []
        assert again["config_checksum"] == done["config_checksum"]
    assert node.files() == after
    assert node.run(state="absent", check=True)["changed"]
    assert node.files() == after
    assert node.run(state="absent")["changed"]
    assert node.files() == first
    assert not node.run(state="absent")["changed"]
    assert not list(node.state.rglob("*.json"))


def test_only_lines_are_added_to_kubeadms_manifest(plane: ControlPlane) -> None:
    before = plane.text.splitlines()
    done = plane.run()
    after = plane.manifest.read_text().splitlines()
    added = iter(after)
    assert all(line in added for line in before)
    assert sorted(set(after) - set(before)) == sorted(
        [
            "  annotations:",
            f"    {CHECKSUM}: '{done['config_checksum']}'",
            f"    - --config={plane.config}",
            f"    - mountPath: {plane.config}",
            "      name: gpu-kubernetes-scheduler-config",
            f"      path: {plane.config}",
            "      type: File",
            "    name: gpu-kubernetes-scheduler-config",
        ]
    )
    assert stat.S_IMODE(os.stat(plane.config).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(plane.manifest).st_mode) == 0o600


def test_configuration_has_settings_of_the_flags(tmp_path: Path) -> None:
    node = ControlPlane(tmp_path, "kubeadm-1.34.4-flags.yaml")
    flags = node.flags()
    node.run()
    assert node.config.read_text().splitlines()[:6] == [
        "apiVersion: kubescheduler.config.k8s.io/v1",
        "kind: KubeSchedulerConfiguration",
        "clientConnection:",
        "  kubeconfig: /etc/kubernetes/scheduler.conf",
        "  qps: 100",
        "enableProfiling: false",
    ]
    assert node.flags() == [*flags, f"--config={node.config}"]
    node.manifest.write_text(node.manifest.read_text().replace("--profiling=false", "--profiling=true"))
    warnings = node.run()["warnings"]
    assert [text for text in warnings if "--profiling=true" in text and "enableProfiling" in text] == warnings
    assert warnings


def test_existing_configuration_is_merged(configured_plane: ControlPlane) -> None:
    before = configured_plane.config.read_text()
    done = configured_plane.run(config_path=None)
    assert done["config_path"] == str(configured_plane.config)
    assert configured_plane.config.read_text().startswith(before)
    assert configured_plane.urls() == ["http://10.0.0.9/other", GPUSHARE["urlPrefix"]]
    assert [
        line for line in configured_plane.manifest.read_text().splitlines() if line not in configured_plane.text
    ] == [
        "  annotations:",
        f"    {CHECKSUM}: '{done['config_checksum']}'",
    ]


def test_new_path_has_content_of_the_former(configured_plane: ControlPlane, tmp_path: Path) -> None:
    first = configured_plane.files()
    new = tmp_path / "new.yaml"
    done = configured_plane.run(config_path=str(new))
    assert done["config_path"] == str(new)
    assert configured_plane.urls(new) == ["http://10.0.0.9/other", GPUSHARE["urlPrefix"]]
    assert "# written by the site" in new.read_text()
    assert configured_plane.flags()[-1] == f"--config={new}"
    assert not configured_plane.run(config_path=str(new))["changed"]
    configured_plane.run(state="absent", config_path=None)
    assert configured_plane.files() == first


def test_existing_file_at_new_path_is_refused(configured_plane: ControlPlane, tmp_path: Path) -> None:
    (tmp_path / "new.yaml").write_text(CONFIG.format(version="v1"))
    with pytest.raises(ConfigError, match=r"new\.yaml is there, too"):
        configured_plane.run(config_path=str(tmp_path / "new.yaml"))


def test_extenders_follow_the_request(plane: ControlPlane) -> None:
    plane.run(GPUSHARE, OTHER)
    assert plane.urls() == [GPUSHARE["urlPrefix"], OTHER["urlPrefix"]]
    moved = {**GPUSHARE, "urlPrefix": "http://10.96.0.20:12345/gpushare-scheduler", "httpTimeout": "7s"}
    done = plane.run(moved)
    assert done["changed"]
    assert done["warnings"] == []  # the removed extender does not bind
    assert plane.urls() == [moved["urlPrefix"]]
    assert "httpTimeout: '7s'" in plane.config.read_text()
    plane.run(state="absent")
    assert plane.files() == {"manifests/kube-scheduler.yaml": plane.text.encode()}


# The extender of the tests in the spelling of an administrator, without its defaults.
BY_HAND = """\
extenders:
    - managedResources: [{name: aliyun.com/gpu-mem}]   # site
      urlPrefix: "http://127.0.0.1:12345/gpushare-scheduler/"
      httpTimeout: 5000ms
      nodeCacheCapable: true
      bindVerb: bind
      filterVerb: filter
"""


def test_extender_as_requested_changes_nothing(configured_plane: ControlPlane) -> None:
    configured_plane.config.write_text(CONFIG.format(version="v1") + BY_HAND)
    before = configured_plane.files()
    for check in (True, False):
        done = configured_plane.run(config_path=None, check=check)
        assert (done["changed"], done["files"], done["managed"]) == (False, [], False)
    assert configured_plane.files() == before
    assert not configured_plane.state.exists()
    assert not configured_plane.run(config_path=None, state="absent")["changed"]
    assert configured_plane.files() == before


def test_equal_settings_in_another_spelling_are_kept(configured_plane: ControlPlane) -> None:
    configured_plane.config.write_text(CONFIG.format(version="v1") + BY_HAND.replace("bindVerb: bind", "weight: 3"))
    done = configured_plane.run(config_path=None)
    assert done["managed"]
    lines = configured_plane.config.read_text().splitlines()
    assert sorted(lines) == sorted((CONFIG.format(version="v1") + BY_HAND).splitlines())
    configured_plane.run(config_path=None, state="absent")


def test_container_of_another_name_is_found_by_its_program(plane: ControlPlane) -> None:
    side = "  - image: registry.example.com/proxy:1\n    name: kube-scheduler-proxy\n"
    text = plane.text.replace("    name: kube-scheduler\n", "    name: scheduler\n", 1)
    plane.manifest.write_text(text.replace("  containers:\n", "  containers:\n" + side, 1))
    before = plane.files()
    assert plane.run()["changed"]
    assert not plane.run()["changed"]
    assert f"    - --config={plane.config}" in plane.manifest.read_text().splitlines()
    plane.run(state="absent")
    assert plane.files() == before


def test_extender_that_binds_is_removed_with_a_warning(plane: ControlPlane) -> None:
    plane.run()
    for check in (True, False):
        warning = plane.run(OTHER, check=check)["warnings"][1]
        assert f"the extender {GPUSHARE['urlPrefix']} for aliyun.com/gpu-mem is removed" in warning
    assert plane.urls() == [OTHER["urlPrefix"]]
    assert not any("is removed" in warning for warning in plane.run(OTHER)["warnings"])


def test_extender_behind_a_proxy_warns(plane: ControlPlane) -> None:
    plane.manifest.write_text(
        plane.text.replace("    image: ", "    env:\n    - name: HTTP_PROXY\n      value: http://proxy\n    image: ", 1)
    )
    assert plane.run(check=True)["warnings"] == []
    [warning] = plane.run({**GPUSHARE, "urlPrefix": "http://10.96.0.20:12345/x"})["warnings"]
    assert "Add 10.96.0.20 to NO_PROXY" in warning


def test_kubespray_warning_names_its_variable(plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    assert plane.run(check=True)["warnings"] == []
    monkeypatch.setattr(node, "detect", lambda _exists: "kubespray")
    assert plane.run(state="absent")["warnings"] == []  # nothing is managed
    for _again in range(2):
        [warning] = plane.run({**GPUSHARE, "tlsConfig": {"keyData": "c2VjcmV0"}})["warnings"]
        setting = json.loads(warning.partition("kube_scheduler_extenders in its inventory ")[2].rstrip("."))
        assert setting == [{**GPUSHARE, "tlsConfig": {"keyData": "********"}}]
    assert "c2VjcmV0" in plane.config.read_text()
    [warning] = plane.run(state="absent")["warnings"]
    assert "from kube_scheduler_extenders in its inventory" in warning


def test_change_of_only_the_record_is_a_change(configured_plane: ControlPlane) -> None:
    """An extender of others that is requested becomes managed, which changes no file of kube-scheduler."""
    configured_plane.run(config_path=None)
    for check in (True, False):
        done = configured_plane.run(GPUSHARE, OTHER, config_path=None, check=check)
        assert (done["changed"], done["diff"], len(done["files"])) == (True, [], 1)
    assert not configured_plane.run(GPUSHARE, OTHER, config_path=None)["changed"]


def test_change_of_only_the_configuration_restarts_the_pod(plane: ControlPlane) -> None:
    first = plane.run()["config_checksum"]
    plane.config.write_text(plane.config.read_text() + "enableProfiling: false\n")
    done = plane.run()
    assert [part["after_header"] for part in done["diff"]] == [str(plane.manifest)]
    assert done["config_checksum"] != first
    assert done["config_checksum"] in plane.manifest.read_text()


def test_missing_manifest_names_the_remedy(plane: ControlPlane) -> None:
    plane.manifest.rename(plane.manifest.with_suffix(".yml"))
    with pytest.raises(
        ConfigError, match=r"which path names.*kube-scheduler\.yml in the same folder may be it.*second scheduler"
    ):
        plane.run()
    assert not plane.run(state="absent")["changed"]


def test_distribution_whose_scheduler_is_not_configured_names_the_remedy(
    plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    distribution, remedy = "k0s", "k0s.yaml"
    kubelet = plane.folder / "kubelet.yaml"
    kubelet.write_text(f"staticPodPath: {plane.manifest.parent}\n")
    monkeypatch.setattr(node, "list_configurations", lambda *_arguments: [str(kubelet)])
    monkeypatch.setattr(node, "detect", lambda _exists: distribution)
    with pytest.raises(ConfigError, match=f"is not edited: .*second scheduler with a schedulerName.*{remedy}"):
        plane.run(path=None)
    assert plane.run()["changed"]
    assert plane.run(path=None, state="absent")["changed"]
    plane.manifest.unlink()
    with pytest.raises(ConfigError, match=f"second scheduler with a schedulerName.*{remedy}"):
        plane.run()


def test_configuration_of_the_kubelet_is_read_as_yaml(
    plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubelet = tmp_path / "kubelet.yaml"
    kubelet.write_text(f"'staticPodPath': {plane.manifest.parent}\n")
    monkeypatch.setattr(node, "list_configurations", lambda *_arguments: [str(kubelet)])
    assert plane.run(path=None)["path"] == str(plane.manifest)
    assert plane.requests == ["read", "read", "write"]


def test_image_without_a_version_requires_one(plane: ControlPlane) -> None:
    plane.manifest.write_text(plane.text.replace(":v1.34.4", "@sha256:" + "0" * 64))
    with pytest.raises(ConfigError, match="give kubernetes_version"):
        plane.run()
    with pytest.raises(
        ConfigError, match=r"kubernetes_version is 1\.24\.17, and Kubernetes before 1\.25 is not supported"
    ):
        plane.run(kubernetes_version="1.24.17")
    assert plane.run(kubernetes_version="1.25.0")["api_version"] == "kubescheduler.config.k8s.io/v1"


def test_version_other_than_the_image_warns(plane: ControlPlane) -> None:
    assert "the former is used" in plane.run(kubernetes_version="v1.33.0")["warnings"][0]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("kind: Pod\n", "kind: Deployment\n", "not a manifest of a Pod"),
        (
            "    - kube-scheduler\n    - --a",
            "    - other\n    image: registry.example.com/other:v1\n    name: scheduler\n  - command:\n    - another\n    - --a",
            "is started by another",
        ),
        ("    - kube-scheduler\n", "    - /bin/sh\n    - -c\n    - kube-scheduler --v=2\n", "is started by /bin/sh"),
        ("  containers:\n", "\tcontainers:\n", "cannot be read as YAML"),
        ("spec:\n", "spec: &all\n  <<: {hostNetwork: true}\n", "merge key"),
        ("  hostNetwork: true\n", "  hostNetwork: true\r\n", "line ends of Windows"),
    ],
)
def test_manifest_that_cannot_be_edited_is_refused(plane: ControlPlane, old: str, new: str, message: str) -> None:
    plane.manifest.write_bytes(plane.text.replace(old, new, 1).encode())
    before = plane.files()
    with pytest.raises(ConfigError, match=message):
        plane.run()
    assert plane.files() == before


def test_manifest_in_json_stays_json(plane: ControlPlane) -> None:
    tree = RT.read(plane.text.encode(), "")
    text = json.dumps({**tree, "spec": {**tree["spec"], "hostNetwork": True}}, indent=4)
    plane.manifest.write_text(text)
    plane.run()
    assert json.loads(plane.manifest.read_text())["spec"]["containers"][0]["command"][-1] == f"--config={plane.config}"
    plane.run(state="absent")
    assert plane.manifest.read_text() == text


@pytest.mark.parametrize("timeout", ["15", "'15'", "5 s", "''", "1.5"])
def test_invalid_timeout_of_others_is_refused(configured_plane: ControlPlane, timeout: str) -> None:
    good = configured_plane.config.read_text()
    configured_plane.config.write_text(f"{good}      httpTimeout: {timeout}\n")
    before = configured_plane.files()
    with pytest.raises(ConfigError, match=r"extenders\[0\]\.httpTimeout is .*not a duration"):
        configured_plane.run(config_path=None)
    assert configured_plane.files() == before
    # An extender that is requested is corrected.
    configured_plane.run({**OTHER, "httpTimeout": "5s"}, config_path=None)
    assert "httpTimeout: '5s'" in configured_plane.config.read_text()


@pytest.mark.parametrize("timeout", ["15s", "'1m30.5s'", "'0'", "+1.5h", "500\u03bcs"])
def test_valid_timeout_of_others_is_kept(configured_plane: ControlPlane, timeout: str) -> None:
    configured_plane.config.write_text(f"{configured_plane.config.read_text()}      httpTimeout: {timeout}\n")
    assert configured_plane.run(config_path=None)["changed"]
    assert f"httpTimeout: {timeout}\n" in configured_plane.config.read_text()
