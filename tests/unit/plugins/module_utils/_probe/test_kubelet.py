# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import typing as t

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._probe.kubelet import (
    DEFAULT_ENDPOINT,
    describe_kubelet,
    find_daemon,
    find_server,
    list_configurations,
    list_processes,
    read_path,
    reads_driver_from_runtime,
)

CRIO = "unix:///var/run/crio/crio.sock"
DOCKER = "unix:///run/cri-dockerd.sock"
FLAGS = "/var/lib/kubelet/kubeadm-flags.env"
CONFIG = "/var/lib/kubelet/config.yaml"
YAML = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncontainerRuntimeEndpoint: %s\n"
OTHER_PROCESSES = [["/sbin/init"], [], ["/usr/bin/kubelet-exporter", f"--container-runtime-endpoint={DOCKER}"]]


@pytest.mark.parametrize(
    ("words", "files", "endpoint"),
    [
        ([], {}, DEFAULT_ENDPOINT),
        ([f"--container-runtime-endpoint={CRIO}"], {}, CRIO),
        (["--v", "2", "--container-runtime-endpoint", CRIO], {}, CRIO),
        (["--config=/c"], {"/c": YAML % CRIO}, CRIO),
        (["--config", "/c"], {"/c": YAML % f'"{CRIO}"  # site'}, CRIO),
        (["--config=/c"], {"/c": YAML % f"'{CRIO}'"}, CRIO),
        (["--config=/c"], {"/c": json.dumps({"containerRuntimeEndpoint": CRIO})}, CRIO),
        # a flag overrides the file, and so does a drop-in
        (["--config=/c", f"--container-runtime-endpoint={DOCKER}"], {"/c": YAML % CRIO}, DOCKER),
        (
            ["--config=/c", "--config-dir=/d"],
            {
                "/c": YAML % DEFAULT_ENDPOINT,
                "/d": ["10.conf", "20.conf", "30.yaml"],
                "/d/10.conf": YAML % DOCKER,
                "/d/20.conf": YAML % CRIO,
                "/d/30.yaml": YAML % DOCKER,
            },
            CRIO,
        ),
        # no value, no mapping, no file
        (["--config=/c"], {"/c": YAML % ""}, DEFAULT_ENDPOINT),
        (["--config=/c"], {"/c": "other:\n  containerRuntimeEndpoint: unix:///x\n"}, DEFAULT_ENDPOINT),
        (["--config=/c"], {"/c": "[1]"}, DEFAULT_ENDPOINT),
        (["--config=/c"], {}, DEFAULT_ENDPOINT),
        (["--container-runtime-endpoint"], {}, DEFAULT_ENDPOINT),
        (["--container-runtime=docker"], {}, "unix:///var/run/dockershim.sock"),
        (["--container-runtime=remote"], {}, DEFAULT_ENDPOINT),
    ],
)
def test_describe_kubelet_that_runs_by_flags_and_files(
    words: list[str], files: dict[str, t.Any], endpoint: str
) -> None:
    # the flags of kubeadm are ignored because the kubelet runs with others
    files = {**files, FLAGS: f'KUBELET_KUBEADM_ARGS="--container-runtime-endpoint={DOCKER}"\n'}
    result = describe_kubelet([*OTHER_PROCESSES, ["/usr/bin/kubelet", *words]], files.get)
    assert (result["running"], result["endpoint"]) == (True, endpoint)


@pytest.mark.parametrize(
    ("files", "endpoint"),
    [
        ({FLAGS: f'KUBELET_KUBEADM_ARGS="--container-runtime-endpoint={CRIO} --pod-infra-container-image=x"\n'}, CRIO),
        ({FLAGS: 'KUBELET_KUBEADM_ARGS=""\n', CONFIG: YAML % CRIO}, CRIO),
        ({CONFIG: YAML % CRIO}, CRIO),
        ({FLAGS: 'KUBELET_KUBEADM_ARGS="unclosed\n', CONFIG: YAML % CRIO}, CRIO),
        ({CONFIG: "kind: KubeletConfiguration\n"}, DEFAULT_ENDPOINT),
    ],
)
def test_describe_kubelet_that_does_not_run_by_kubeadm(files: dict[str, str], endpoint: str) -> None:
    result = describe_kubelet(OTHER_PROCESSES, files.get)
    assert (result["running"], result["endpoint"]) == (False, endpoint)


def test_describe_kubelet_without_kubelet_has_none() -> None:
    expected = {"running": False, "endpoint": None, "daemon": None, "cgroup_driver": None}
    assert describe_kubelet(OTHER_PROCESSES, {}.get) == expected
    assert list_configurations(OTHER_PROCESSES, {}.get) == []


@pytest.mark.parametrize(
    ("words", "files", "driver"),
    [
        ([], {}, "cgroupfs"),
        (["--config=/c"], {"/c": "kind: KubeletConfiguration\ncgroupDriver: systemd\n"}, "systemd"),
        (["--config=/c"], {"/c": json.dumps({"cgroupDriver": "systemd"})}, "systemd"),
        (["--config=/c", "--cgroup-driver=cgroupfs"], {"/c": "cgroupDriver: systemd\n"}, "cgroupfs"),
        (
            ["--config=/c", "--config-dir=/d"],
            {"/c": "cgroupDriver: systemd\n", "/d": ["1.conf"], "/d/1.conf": "cgroupDriver: cgroupfs\n"},
            "cgroupfs",
        ),
    ],
)
def test_describe_kubelet_returns_cgroup_driver(words: list[str], files: dict[str, t.Any], driver: str) -> None:
    assert describe_kubelet([["/usr/bin/kubelet", *words]], files.get)["cgroup_driver"] == driver


@pytest.mark.parametrize(
    ("kubelet", "daemon", "runtime", "expected"),
    [
        ("1.34.4", "containerd", "2.4.2+unknown", True),
        ("1.34.4", "containerd", "1.7.28", False),
        ("1.30.1", "containerd", "2.0.0", False),
        ("1.31.2-gke.100", "crio", "1.31.0", True),
        ("1.30.1", "docker", "20.10.24", False),
        ("1.34.4", "docker", "28.0.1", True),
        (None, "containerd", "1.7.28", True),
        ("1.34.4", "containerd", None, True),
    ],
)
def test_reads_driver_from_runtime_by_versions(
    kubelet: str | None, daemon: str, runtime: str | None, expected: bool
) -> None:
    assert reads_driver_from_runtime(kubelet, daemon, runtime) is expected


def test_list_configurations_in_order() -> None:
    files = {"/d": ["10.conf", "20.yaml", "30.conf"], CONFIG: "kind: KubeletConfiguration\n"}
    running = [*OTHER_PROCESSES, ["kubelet", "--config=/c", "--config-dir", "/d"]]
    assert list_configurations(running, files.get) == ["/c", "/d/10.conf", "/d/30.conf"]
    assert list_configurations([["kubelet"]], files.get) == []  # it reads no file, not even that of kubeadm
    assert list_configurations(OTHER_PROCESSES, files.get) == [CONFIG]


@pytest.mark.parametrize(
    ("endpoint", "daemon"),
    [
        (DEFAULT_ENDPOINT, "containerd"),
        ("/run/k3s/containerd/containerd.sock", "containerd"),
        (CRIO, "crio"),
        (DOCKER, "docker"),
        ("unix:///var/run/dockershim.sock", "docker"),
        ("unix:///run/docker/containerd/containerd.sock", "containerd"),
        ("unix:///run/frakti.sock", None),
    ],
)
def test_find_daemon_by_socket(endpoint: str, daemon: str | None) -> None:
    assert find_daemon(endpoint) == daemon


def test_read_path_of_this_host() -> None:
    assert read_path("/proc/self/cmdline").split("\0")[:-1] in list_processes()
    assert read_path("/nonexistent") is None
    assert "self" in read_path("/proc")


def test_list_processes_ignores_containers(tmp_path: t.Any) -> None:
    for name, namespace in (("self", "pid:[1]"), ("7", "pid:[1]"), ("8", "pid:[2]"), ("9", None)):
        folder = tmp_path / name
        folder.joinpath("ns").mkdir(parents=True)
        if namespace:
            os.symlink(namespace, folder / "ns" / "pid")
        folder.joinpath("cmdline").write_bytes(f"kubelet\0--number={name}\0".encode())
    # a process with an unreadable namespace is listed
    assert sorted(list_processes(str(tmp_path))) == [["kubelet", "--number=7"], ["kubelet", "--number=9"]]


@pytest.mark.parametrize(
    ("words", "files", "server"),
    [
        (
            [],
            {"/etc/kubernetes/kubelet.conf": "clusters:\n- cluster:\n    server: https://10.0.0.1:6443\n"},
            "https://10.0.0.1:6443",
        ),
        (["--kubeconfig=/k"], {"/k": "  server: 'http://127.0.0.1:10261'\n"}, "http://127.0.0.1:10261"),
        (["--kubeconfig=/k"], {"/k": "clusters: []\n", "/etc/kubernetes/kubelet.conf": "server: a\n"}, ""),
        ([], {}, ""),
    ],
)
def test_find_server_returns_the_url_of_the_kubeconfig(words: list[str], files: dict[str, str], server: str) -> None:
    assert find_server([["/usr/bin/kubelet", *words]], files.get) == server
