# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role does on a host, case by case."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from ansible_collections.gpu.kubernetes.plugins.module_utils._exporters.plan import find_groups, plan_exporter

ANY = "0.0.0.0"  # noqa: S104 - compared, not bound
CHECKSUM = "a" * 64
HASH = "$2y$10$" + "a" * 53
PARAMS: dict[str, Any] = {
    "state": "present",
    "provider": "nvidia_gpu_exporter",
    "method": "archive",
    "version": "",
    "url": "",
    "src": "",
    "sha256": {"x86_64": CHECKSUM},
    "repository": {},
    "address": "",
    "port": 0,
    "scheme": "http",
    "backend": "nvml",
    "interval": 15,
    "arguments": [],
    "collectors": [],
    "certificate": False,
    "key": False,
    "users": {},
    "web_config": "",
}
HOST: dict[str, Any] = {
    "address": "192.0.2.9",
    "architecture": "x86_64",
    "manager": "apt",
    "listeners": [],
    "unit": "nvidia_gpu_exporter",
    "unit_files": [],
    "record": {},
    "device": {"mode": "0666", "group": "root"},
}
UNIT = "/etc/systemd/system/nvidia_gpu_exporter.service"
DAEMON_SET = {"method": "daemonset"}
DCGM = {"provider": "dcgm_exporter", "method": "daemonset"}
PACKAGE = {"method": "package", "sha256": {}}
OPERATOR = {
    "namespace": "gpu-operator",
    "name": "nvidia-dcgm-exporter",
    "exporter": "dcgm_exporter",
    "owner": "NVIDIA's GPU Operator",
    "managed": False,
    "address": "10.244.1.7:9400",
}
OWN = {**OPERATOR, "namespace": "kube-system", "name": "gpu-exporter", "owner": "", "managed": True}
AMD_PODS = {"provider": "amd_device_metrics_exporter", "method": "daemonset"}
INTEL_PODS = {"provider": "intel_xpumd", "method": "daemonset"}
AMD = {**OPERATOR, "name": "amd", "exporter": "amd_device_metrics_exporter", "owner": ""}


def test_pods_of_this_role_leave_beside_those_of_others() -> None:
    found = plan(DAEMON_SET, {"address": "10.0.0.11", "exporters": [OWN, OPERATOR]})
    assert (found["problems"], found["in_cluster"], found["target"]["address"]) == ([], "absent", "10.244.1.7:9400")


def listen(program: str, port: int = 9835, address: str = "::", **more: Any) -> dict[str, Any]:
    return {"address": address, "port": port, "pid": 7, "program": program, "unit": "", "container": False, **more}


def plan(params: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None, **host: Any) -> dict[str, Any]:
    return plan_exporter({**PARAMS, **(params or {})}, {**HOST, **host}, cluster or {})


@pytest.mark.parametrize(
    ("params", "cluster", "host", "expected"),
    [
        ({}, {}, {}, ("archive", "", False, "192.0.2.9:9835")),
        ({}, {"address": "10.0.0.11", "exporters": []}, {}, ("archive", "", False, "10.0.0.11:9835")),
        ({"address": "fd00::1", "port": 9999}, {"address": "10.0.0.11"}, {}, ("archive", "", False, "[fd00::1]:9999")),
        # Nobody reaches 0.0.0.0, and pods listen on the address of their node.
        ({"address": ANY}, {"address": "10.0.0.11"}, {}, ("archive", "", False, "10.0.0.11:9835")),
        ({"address": "::"}, {}, {"address": "fd00::9"}, ("archive", "", False, "[fd00::9]:9835")),
        (
            {**DAEMON_SET, "address": "127.0.0.1"},
            {"address": "10.0.0.11"},
            {},
            ("", "present", False, "10.0.0.11:9835"),
        ),
        ({}, {}, {"record": {"method": "archive"}, "unit_files": [UNIT]}, ("archive", "", False, "192.0.2.9:9835")),
        ({}, {}, {"record": {"method": "package"}}, ("archive", "", True, "192.0.2.9:9835")),
        (DAEMON_SET, {}, {}, ("", "present", False, "192.0.2.9:9835")),
        (DAEMON_SET, {}, {"record": {"method": "archive"}}, ("absent", "present", False, "192.0.2.9:9835")),
        (DCGM, {}, {}, ("", "present", False, "192.0.2.9:9400")),
        ({**PACKAGE, "repository": {"url": "u"}}, {}, {}, ("package", "", False, "192.0.2.9:9835")),
        ({**PACKAGE, "src": "x.deb", "sha256": {"x86_64": CHECKSUM}}, {}, {}, ("package", "", False, "192.0.2.9:9835")),
        # An exporter of another vendor's GPUs.
        ({}, {"address": "10.0.0.11", "exporters": [AMD]}, {}, ("archive", "", False, "10.0.0.11:9835")),
        # The role's own service and pods.
        (
            {},
            {},
            {"record": {"method": "archive"}, "listeners": [listen("nvidia_gpu_exporter", unit="nvidia_gpu_exporter")]},
            ("archive", "", False, "192.0.2.9:9835"),
        ),
        (
            DCGM,
            {"exporters": [OWN]},
            {"listeners": [listen("dcgm-exporter", 9400, container=True)]},
            ("", "present", False, "192.0.2.9:9400"),
        ),
    ],
)
def test_exporter_is_deployed(params: Any, cluster: Any, host: Any, expected: Any) -> None:
    found = plan(params, cluster, **host)
    assert (found["problems"], found["notice"]) == ([], "")
    assert (found["on_host"], found["in_cluster"], found["replaces"], found["target"]["address"]) == expected


@pytest.mark.parametrize(
    ("params", "host", "expected"),
    [
        ({}, {}, ("", "")),
        ({}, {"record": {"method": "archive"}}, ("absent", "")),
        (DAEMON_SET, {}, ("", "absent")),
        # Checks of what is to be deployed do not concern a removal.
        ({"sha256": {}}, {"listeners": [listen("nginx")], "record": {"method": "archive"}}, ("absent", "")),
    ],
)
def test_exporter_is_removed(params: Any, host: Any, expected: Any) -> None:
    found = plan({**params, "state": "absent"}, {"exporters": [OPERATOR]}, **host)
    assert (found["problems"], found["target"]) == ([], {})
    assert (found["on_host"], found["in_cluster"]) == expected


@pytest.mark.parametrize(
    ("cluster", "listeners", "words", "target"),
    [
        (
            [OPERATOR],
            [],
            "DaemonSet gpu-operator/nvidia-dcgm-exporter of NVIDIA's GPU Operator serves GPU metrics at 10.244.1.7:9400",
            ("10.244.1.7:9400", "dcgm_exporter"),
        ),
        ([{**OPERATOR, "address": ""}], [], "serves GPU metrics once its pod has an address", None),
        (
            [{**OPERATOR, "owner": "NVSentinel", "namespace": "nvsentinel"}],
            [listen("nginx")],
            "of NVSentinel serves",
            ("10.244.1.7:9400", "dcgm_exporter"),
        ),
        (
            [],
            [listen("nvidia_gpu_exporter")],
            "nvidia_gpu_exporter (pid 7) serves GPU metrics at 10.0.0.11:9835",
            ("10.0.0.11:9835", "nvidia_gpu_exporter"),
        ),
        (
            [],
            [listen("python3", 9401, "10.0.0.12", unit="dcgm-exporter")],
            "dcgm-exporter.service (pid 7) serves GPU metrics at 10.0.0.12:9401",
            ("10.0.0.12:9401", "dcgm_exporter"),
        ),
    ],
)
def test_exporter_of_others_is_used(cluster: Any, listeners: Any, words: str, target: Any) -> None:
    place = {"address": "10.0.0.11", "exporters": cluster}
    found = plan({"sha256": {}}, place, listeners=listeners, record={"method": "archive"})
    assert words in found["notice"]
    expected = {"address": target[0], "exporter": target[1], "scheme": "http"} if target else {}
    assert (found["problems"], found["on_host"], found["in_cluster"], found["target"]) == ([], "absent", "", expected)


@pytest.mark.parametrize(
    ("params", "cluster", "host", "words"),
    [
        ({}, [], {"address": ""}, "internal address is unknown; set gpu_exporter_listen_address"),
        (
            {},
            [],
            {"listeners": [listen("nginx")]},
            "nginx (pid 7) listens on port 9835; stop it, or set gpu_exporter_port",
        ),
        ({}, [], {"listeners": [listen("", unit="web", pid=None)]}, "web.service (pid None) listens on port 9835"),
        (
            {},
            [],
            {"listeners": [listen("nvidia_gpu_exporter", 9835, "127.0.0.1")]},
            "nvidia_gpu_exporter (pid 7) serves GPU metrics on 127.0.0.1 alone",
        ),
        ({}, [OWN], {}, "the DaemonSet kube-system/gpu-exporter of this role runs on the node; remove it first"),
        ({}, [], {"unit_files": [UNIT]}, f"{UNIT} is not managed by this collection"),
        ({}, [], {"architecture": "riscv64"}, "nvidia_gpu_exporter is not released for riscv64"),
        (
            {"sha256": {"x86_64": CHECKSUM}},
            [],
            {"architecture": "aarch64"},
            "take the one of nvidia_gpu_exporter_2.0.0_linux_arm64.tar.gz from https://github.com/utkuozdemir/nvidia_gpu_exporter/releases/",
        ),
        ({"sha256": {"x86_64": "abc"}}, [], {}, "no SHA-256 checksum for x86_64"),
        ({"version": "1.14.0", "sha256": {}}, [], {}, "nvidia_gpu_exporter_1.14.0_linux_x86_64.tar.gz from"),
        (
            {**DCGM, "method": "archive"},
            [],
            {},
            "dcgm-exporter is not deployed by the method archive; set gpu_exporter_method to daemonset",
        ),
        ({"provider": "intel_xpumd"}, [], {}, "Intel's xpumd is not deployed by the method archive"),
        ({**INTEL_PODS, "web_config": "/w.yml"}, [], {}, "Intel's xpumd serves plain HTTP alone"),
        ({**AMD_PODS, "method": "archive"}, [], {}, "is not deployed by the method archive"),
        ({**AMD_PODS, "scheme": "https"}, [], {}, "AMD's device-metrics-exporter serves plain HTTP alone"),
        (PACKAGE, [], {}, "no distribution has the package nvidia-gpu-exporter; set gpu_exporter_src"),
        (
            {"method": "package", "url": "https://x/y.rpm"},
            [],
            {"manager": "zypper"},
            "is installed with apt or dnf, and not with zypper",
        ),
        ({**PACKAGE, "src": "y.deb"}, [], {}, "no SHA-256 checksum for x86_64; take the one of the package"),
        ({"certificate": True}, [], {}, "only one of gpu_exporter_tls_certificate and gpu_exporter_tls_key"),
        (
            {"users": {"prometheus": "secret"}},
            [],
            {},
            "the password of prometheus in gpu_exporter_basic_auth_users is not a bcrypt hash",
        ),
        ({**DAEMON_SET, "users": {"prometheus": HASH}}, [], {}, "set gpu_exporter_web_secret to the name of a Secret"),
        ({**DCGM, "version": "latest"}, [], {}, "the version latest of dcgm-exporter is not known"),
        (
            {**DCGM, "collectors": ["DCGM_FI_DEV_GPU_UTIL_RATIO, gauge, x"]},
            [],
            {},
            "has another unit than its name before dcgm-exporter 4.9",
        ),
    ],
)
def test_exporter_is_refused(params: Any, cluster: Any, host: Any, words: str) -> None:
    (problem,) = plan(params, {"exporters": cluster}, **host)["problems"]
    assert words in problem
    assert "secret" not in problem.lower() or "Secret with web.yml" in problem


@pytest.mark.parametrize(
    ("params", "address", "expected"),
    [
        ({}, "fd00::9", "[fd00::9]:9835"),
        ({"address": ANY}, "10.0.0.11", "0.0.0.0:9835"),
        ({"address": "::"}, "10.0.0.11", "[::]:9835"),
        (DAEMON_SET, "10.0.0.11", "$(NODE_IP):9835"),
        ({**DAEMON_SET, "address": ANY}, "10.0.0.11", "$(NODE_IP):9835"),
        (DAEMON_SET, "fd00::9", "[$(NODE_IP)]:9835"),
    ],
)
def test_exporter_listens_on_its_address(params: Any, address: str, expected: str) -> None:
    assert plan(params, {"address": address})["arguments"][0] == f"--web.listen-address={expected}"


@pytest.mark.parametrize(("address", "bind"), [("10.0.0.11", "$(NODE_IP)"), ("fd00::9", "[$(NODE_IP)]")])
def test_exporter_of_amd_is_a_row(address: str, bind: str) -> None:
    found = plan({**AMD_PODS, "arguments": ["-x"]}, {"address": address, "exporters": [OWN]})
    assert (found["problems"], found["in_cluster"], found["port"]) == ([], "present", 5000)
    assert found["arguments"] == ["-monitor-gpu=true", "-monitor-nic=false", "-enable-k8s=false", f"-bind={bind}", "-x"]
    assert (found["registry"], found["repository"], found["tag"]) == (
        "docker.io",
        "rocm/device-metrics-exporter",
        "v1.5.1",
    )
    assert (found["resource"], found["present_label"]) == ("amd.com/gpu", "gpu-kubernetes/amd.present")
    assert found["target"]["exporter"] == "amd_device_metrics_exporter"


@pytest.mark.parametrize(
    ("address", "interval", "endpoint", "receiver"),
    [
        ("10.0.0.11", 15, "${env:NODE_IP}:8080", ("15s", "1000ms")),
        # The collection has to take twice as long as the samples.
        ("fd00::9", 1, "[${env:NODE_IP}]:8080", ("1s", "500ms")),
        ("10.0.0.11", 0, "${env:NODE_IP}:8080", ("1s", "500ms")),
    ],
)
def test_exporter_of_intel_is_a_row(address: str, interval: int, endpoint: str, receiver: tuple[str, str]) -> None:
    params = {**INTEL_PODS, "interval": interval, "arguments": ["-x"]}
    found = plan(params, {"address": address, "exporters": [OWN, AMD]})
    assert (found["problems"], found["in_cluster"], found["port"]) == ([], "present", 8080)
    assert found["arguments"] == ["--config=/etc/gpu-exporter/config.yaml", "-x"]
    config = yaml.safe_load(found["config"])
    assert config["exporters"] == {"prometheus": {"endpoint": endpoint}}
    assert tuple(config["receivers"]["intelxpu"].values()) == receiver
    assert config["service"]["pipelines"] == {"metrics": {"receivers": ["intelxpu"], "exporters": ["prometheus"]}}
    assert config["service"]["telemetry"]["metrics"] == {"level": "none"}
    assert (found["registry"], found["repository"], found["tag"]) == ("ghcr.io", "intel/xpumanager/xpumd", "v2.0.0")
    assert (found["resource"], found["present_label"]) == ("gpu.intel.com/i915", "gpu-kubernetes/intel.present")
    assert found["target"]["exporter"] == "intel_xpumd"


def test_exporter_of_intels_chart_is_used() -> None:
    chart = {**OPERATOR, "namespace": "intel-xpumd", "name": "xpumd", "exporter": "intel_xpumd", "owner": ""}
    found = plan(INTEL_PODS, {"address": "10.0.0.11", "exporters": [{**chart, "address": "10.244.1.9:8080"}]})
    assert (found["problems"], found["in_cluster"], found["target"]["address"]) == ([], "", "10.244.1.9:8080")
    assert found["notice"].startswith("DaemonSet intel-xpumd/xpumd serves GPU metrics at 10.244.1.9:8080")


def test_pods_for_another_vendor_keep_nothing_off_a_mixed_node() -> None:
    own = {**AMD, "namespace": "kube-system", "name": "gpu-exporter-amd", "managed": True, "address": "10.0.0.11:5000"}
    place = {"address": "10.0.0.11", "exporters": [own]}
    assert plan({}, place)["problems"] == []
    assert "remove it first" in plan({}, {**place, "exporters": [OWN]})["problems"][0]
    # An exporter of NVIDIA's operator replaces those of NVIDIA alone.
    assert plan(DAEMON_SET, {**place, "exporters": [own, OPERATOR]})["in_cluster"] == ""


def test_listener_on_all_addresses_is_reached_at_the_node() -> None:
    found = plan({"address": ANY}, {"address": "10.0.0.11"}, listeners=[listen("nvidia_gpu_exporter", unit="x")])
    assert found["target"]["address"] == "10.0.0.11:9835"


def test_plan_has_no_url_of_the_user() -> None:
    assert "word" not in str(plan({"url": "https://mirror:word@192.0.2.1/x.tar.gz"}))
    assert plan()["url"].endswith("/v2.0.0/nvidia_gpu_exporter_2.0.0_linux_x86_64.tar.gz")


def test_arguments_of_each_provider() -> None:
    assert plan({"web_config": "/etc/w.yml", "arguments": ["--log.level=warn"]})["arguments"] == [
        "--web.listen-address=192.0.2.9:9835",
        "--collect.backend=nvml",
        "--collect.interval=15s",
        "--web.config.file=/etc/w.yml",
        "--log.level=warn",
    ]
    dcgm = plan({**DCGM, "interval": 30, "web_config": "/w.yml"})
    assert dcgm["arguments"] == [
        *("-a", "$(NODE_IP):9400", "-f", "/etc/gpu-exporter/collectors.csv", "-c", "30000"),
        *("--web-config-file", "/w.yml"),
    ]
    assert (dcgm["registry"], dcgm["repository"], dcgm["tag"]) == (
        "nvcr.io",
        "nvidia/k8s/dcgm-exporter",
        "4.6.0-4.8.3-distroless",
    )


def test_profiling_fields_are_recognized() -> None:
    line = "DCGM_FI_PROF_GR_ENGINE_ACTIVE, gauge, x"
    found = [plan({**DCGM, "collectors": lines}) for lines in ([], [line])]
    assert [each["profiling"] for each in found] == [False, True]
    assert found[1]["config"] == f"{found[0]['config']}{line}\n"
    other = plan({**DAEMON_SET, "collectors": [line]})
    assert (other["profiling"], other["config"]) == (False, "")


@pytest.mark.parametrize(
    ("device", "groups"),
    [({}, []), ({"mode": "0666", "group": "root"}, []), ({"mode": "0660", "group": "video"}, ["video"])],
)
def test_device_of_a_group_adds_it(device: Any, groups: list[str]) -> None:
    assert find_groups(device) == groups
