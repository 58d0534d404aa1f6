# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
import yaml

pytest.importorskip("ruamel.yaml")

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._scheduler.manifest import (
    VOLUME,
    with_config,
    without_config,
)
from ansible_collections.gpu.kubernetes.plugins.plugin_utils._yaml import RoundTrip

PATH, SYNTAX = "/etc/kubernetes/scheduler-config.yaml", RoundTrip()
# As kubeadm 1.34 stores it.
BARE = """apiServer: {}
apiVersion: kubeadm.k8s.io/v1beta4
caCertificateValidityPeriod: 87600h0m0s
certificatesDir: /etc/kubernetes/pki
clusterName: lab
etcd:
  local:
    dataDir: /var/lib/etcd
kind: ClusterConfiguration
kubernetesVersion: v1.34.4
networking:
  dnsDomain: cluster.local
  serviceSubnet: 10.96.0.0/16
proxy: {}
scheduler: {}
"""
LIST = BARE.replace(
    "scheduler: {}\n",
    """scheduler:
  extraArgs:
  - name: bind-address
    value: 0.0.0.0 # for Prometheus
  extraVolumes:
  - hostPath: /etc/localtime
    mountPath: /etc/localtime
    name: time
""",
)
MAP = BARE.replace("v1beta4", "v1beta3").replace("scheduler: {}\n", "scheduler:\n  extraArgs:\n    v: '2'\n")
VOLUMES = [{"name": VOLUME, "hostPath": PATH, "mountPath": PATH, "readOnly": True, "pathType": "File"}]


@pytest.mark.parametrize("text", [BARE, LIST, MAP, BARE.replace("scheduler: {}\n", "")])
def test_configuration_is_added_once_and_removed(text: str) -> None:
    changed = with_config(text, PATH, SYNTAX)
    assert with_config(changed, PATH, SYNTAX) == changed
    before, after = yaml.safe_load(text), yaml.safe_load(changed)
    scheduler, former = after.pop("scheduler"), before.pop("scheduler", {})
    assert after == before
    assert scheduler["extraVolumes"] == former.get("extraVolumes", []) + VOLUMES
    if "v1beta4" in text:
        assert scheduler["extraArgs"] == [*former.get("extraArgs", []), {"name": "config", "value": PATH}]
    else:
        assert scheduler["extraArgs"] == {**former.get("extraArgs", {}), "config": PATH}
    undone = without_config(changed, SYNTAX)
    assert yaml.safe_load(undone) == {"scheduler": {}, **yaml.safe_load(text)}
    assert without_config(undone, SYNTAX) == undone


def test_undo_restores_the_text_of_kubeadm() -> None:
    assert without_config(with_config(BARE, PATH, SYNTAX), SYNTAX) == BARE


def test_text_of_others_is_kept() -> None:
    changed = with_config(LIST, PATH, SYNTAX)
    assert "value: 0.0.0.0 # for Prometheus\n" in changed
    assert without_config(changed, SYNTAX).splitlines()[:15] == LIST.splitlines()[:15]


def test_another_configuration_is_not_replaced() -> None:
    other = with_config(BARE, "/etc/kubernetes/other.yaml", SYNTAX).replace(VOLUME, "other")
    with pytest.raises(ConfigError, match=r"gives kube-scheduler the configuration /etc/kubernetes/other\.yaml"):
        with_config(other, PATH, SYNTAX)
    assert without_config(other, SYNTAX) == other


def test_equal_configuration_of_others_is_kept() -> None:
    other = with_config(BARE, PATH, SYNTAX).replace(VOLUME, "other")
    assert with_config(other, PATH, SYNTAX) == other
    assert without_config(other, SYNTAX) == other


@pytest.mark.parametrize(
    ("host", "mount", "inside"),
    [
        ("/etc/kubernetes/sched", "/etc/scheduler", "/etc/scheduler/c.yaml"),
        ("/etc/kubernetes/sched/", "/etc/kubernetes/sched", "/etc/kubernetes/sched/c.yaml"),
        ("/etc/kubernetes/sched/c.yaml", "/c.yaml", "/c.yaml"),
    ],
)
def test_file_with_another_path_in_the_container_is_equal(host: str, mount: str, inside: str) -> None:
    volume = f"extraVolumes:\n  - hostPath: {host}\n    mountPath: {mount}\n    name: sched\n"
    other = LIST.replace("value: 0.0.0.0", f"value: 0.0.0.0\n  - name: config\n    value: {inside}")
    other = other.replace("extraVolumes:\n", volume)
    path = "/etc/kubernetes/sched/c.yaml"
    assert with_config(other, path, SYNTAX) == other
    assert without_config(other, SYNTAX) == other
    with pytest.raises(
        ConfigError, match=r"the configuration /etc/kubernetes/sched/c\.yaml, and /etc/other\.yaml is to"
    ):
        with_config(other, "/etc/other.yaml", SYNTAX)


@pytest.mark.parametrize("text", [BARE, LIST, MAP])
def test_managed_configuration_is_replaced(text: str) -> None:
    moved = with_config(with_config(text, "/etc/kubernetes/first.yaml", SYNTAX), PATH, SYNTAX)
    assert yaml.safe_load(moved) == yaml.safe_load(with_config(text, PATH, SYNTAX))
    assert yaml.safe_load(without_config(moved, SYNTAX)) == {"scheduler": {}, **yaml.safe_load(text)}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [", "cannot be read as YAML"),
        ("kind: InitConfiguration\n", "not a ClusterConfiguration"),
        (BARE.replace("v1beta4", "v1beta9"), "kubeadm.k8s.io/v1beta9, which this collection does not know"),
        (LIST.replace("v1beta4", "v1beta3"), "has to be a mapping"),
        (MAP.replace("v1beta3", "v1beta4"), "has to be a list"),
    ],
)
def test_unknown_form_is_refused(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        with_config(text, PATH, SYNTAX)
