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
# As kubeadm 1.34 keeps it.
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
def test_it_is_added_once_and_removed_again(text: str) -> None:
    kept = with_config(text, PATH, SYNTAX)
    assert with_config(kept, PATH, SYNTAX) == kept
    before, after = yaml.safe_load(text), yaml.safe_load(kept)
    scheduler, former = after.pop("scheduler"), before.pop("scheduler", {})
    assert after == before
    assert scheduler["extraVolumes"] == former.get("extraVolumes", []) + VOLUMES
    if "v1beta4" in text:
        assert scheduler["extraArgs"] == [*former.get("extraArgs", []), {"name": "config", "value": PATH}]
    else:
        assert scheduler["extraArgs"] == {**former.get("extraArgs", {}), "config": PATH}
    back = without_config(kept, SYNTAX)
    assert yaml.safe_load(back) == {"scheduler": {}, **yaml.safe_load(text)}
    assert without_config(back, SYNTAX) == back


def test_kubeadms_own_text_comes_back_to_the_byte() -> None:
    assert without_config(with_config(BARE, PATH, SYNTAX), SYNTAX) == BARE


def test_what_others_wrote_stays_to_the_letter() -> None:
    kept = with_config(LIST, PATH, SYNTAX)
    assert "value: 0.0.0.0 # for Prometheus\n" in kept
    assert without_config(kept, SYNTAX).splitlines()[:15] == LIST.splitlines()[:15]


def test_another_configuration_is_not_replaced() -> None:
    other = with_config(BARE, "/etc/kubernetes/other.yaml", SYNTAX).replace(VOLUME, "theirs")
    with pytest.raises(ConfigError, match=r"gives kube-scheduler the configuration /etc/kubernetes/other\.yaml"):
        with_config(other, PATH, SYNTAX)
    assert without_config(other, SYNTAX) == other


def test_one_of_somebody_else_that_is_the_same_stays() -> None:
    theirs = with_config(BARE, PATH, SYNTAX).replace(VOLUME, "theirs")
    assert with_config(theirs, PATH, SYNTAX) == theirs
    assert without_config(theirs, SYNTAX) == theirs


@pytest.mark.parametrize(
    ("host", "mount", "asked"),
    [
        ("/etc/kubernetes/sched", "/etc/scheduler", "/etc/scheduler/c.yaml"),
        ("/etc/kubernetes/sched/", "/etc/kubernetes/sched", "/etc/kubernetes/sched/c.yaml"),
        ("/etc/kubernetes/sched/c.yaml", "/c.yaml", "/c.yaml"),
    ],
)
def test_a_file_that_is_seen_by_another_path_is_the_same(host: str, mount: str, asked: str) -> None:
    volume = f"extraVolumes:\n  - hostPath: {host}\n    mountPath: {mount}\n    name: sched\n"
    theirs = LIST.replace("value: 0.0.0.0", f"value: 0.0.0.0\n  - name: config\n    value: {asked}")
    theirs = theirs.replace("extraVolumes:\n", volume)
    path = "/etc/kubernetes/sched/c.yaml"
    assert with_config(theirs, path, SYNTAX) == theirs
    assert without_config(theirs, SYNTAX) == theirs
    with pytest.raises(
        ConfigError, match=r"the configuration /etc/kubernetes/sched/c\.yaml, and /etc/other\.yaml is to"
    ):
        with_config(theirs, "/etc/other.yaml", SYNTAX)


@pytest.mark.parametrize("text", [BARE, LIST, MAP])
def test_a_managed_one_is_replaced_by_another(text: str) -> None:
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
def test_what_is_not_known_is_refused(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        with_config(text, PATH, SYNTAX)
