# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The exporter as a DaemonSet on a cluster in memory, and what others have deployed there."""

from __future__ import annotations

import json
import re
from functools import partial

import pytest
from fakes.kubernetes_api import node
from fakes.loopback_api import serve_in_thread, write_kubeconfig
from fakes.small_cluster import SmallCluster

DCGM = {"gpu_exporter_provider": "dcgm_exporter", "gpu_exporter_port": 19400}
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}
KEY = ("DaemonSet", "kube-system", "gpu-exporter")


def make_node(name, address):
    item = {"apiVersion": "v1", "kind": "Node", **node(name)}
    item["status"]["addresses"] = [{"type": "InternalIP", "address": address}]
    return item


def run_controllers(cluster):
    """Each DaemonSet of the role has a ready pod on each node."""
    daemon_set = cluster.objects.get(KEY)
    pods = [key for key in cluster.objects if key[0] == "Pod" and key[2].startswith("own-")]
    if daemon_set is None:
        for key in pods:
            del cluster.objects[key]
        return
    nodes = cluster.all("Node")
    daemon_set["status"] = {
        "observedGeneration": daemon_set["metadata"]["generation"],
        **dict.fromkeys(
            ("desiredNumberScheduled", "updatedNumberScheduled", "numberAvailable", "numberReady"), len(nodes)
        ),
    }
    for item in nodes:
        name = f"own-{item['metadata']['name']}"
        labels = daemon_set["spec"]["template"]["metadata"]["labels"]
        cluster.objects["Pod", "kube-system", name] = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "kube-system", "labels": labels, "uid": name},
            "spec": {"nodeName": item["metadata"]["name"], "containers": []},
            "status": {"phase": "Running", "podIP": item["status"]["addresses"][0]["address"]},
        }


@pytest.fixture
def cluster():
    with serve_in_thread(SmallCluster(NAMESPACE, make_node("w1", "10.0.0.11"), make_node("w2", "10.0.0.12"))) as server:
        server.react = run_controllers
        yield server


@pytest.fixture
def apply(run, cluster, tmp_path):
    """Run the role on two hosts: exit code, number of changed tasks, targets by host, output in one line."""
    kubeconfig = str(write_kubeconfig(cluster.url, tmp_path / "kubeconfig"))

    def play(*options, hosts=None, **variables):
        tasks = [
            {"ansible.builtin.include_role": {"name": "gpu.kubernetes.gpu_exporter"}},
            {
                "ansible.builtin.debug": {
                    "msg": "TARGET {{ inventory_hostname }} {{ gpu_exporter_target.address | default('none') }}"
                }
            },
        ]
        path = tmp_path / "play.yml"
        path.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": tasks}]))
        common = {
            "ansible_connection": "local",
            "ansible_become": False,
            "gpu_exporter_state_dir": str(tmp_path / "state"),
        }
        own = {name: {"gpu_node_name": name, **(hosts or {}).get(name, {})} for name in ("w1", "w2")}
        inventory = {"all": {"hosts": own, "vars": {**common, "gpu_kubeconfig": kubeconfig, **variables}}}
        code, output = run(inventory, path, *options)
        text = " ".join(output.split()).replace("''", "'")
        changed = sum(int(number) for number in re.findall(r"\bchanged=(\d+)", output))
        return code, changed, dict(re.findall(r"TARGET (\w+) ([\w.:]+)", text)), text

    return play


def read_container(cluster):
    return cluster.objects[KEY]["spec"]["template"]["spec"]["containers"][0]


def test_exporter_of_the_gpu_operator_is_used(apply, cluster):
    labels = {"app": "nvidia-dcgm-exporter"}
    containers = [{"name": "exporter", "image": "nvcr.io/nvidia/k8s/dcgm-exporter:4.6.0-4.8.3-distroless"}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    cluster.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gpu-operator"}})
    cluster.put(
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": "nvidia-dcgm-exporter", "namespace": "gpu-operator", "labels": labels},
            "spec": {"selector": {"matchLabels": labels}, "template": template},
        }
    )
    for number in (1, 2):
        cluster.put(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": f"p{number}", "namespace": "gpu-operator", "labels": labels},
                "spec": {"nodeName": f"w{number}", "containers": []},
                "status": {"phase": "Running", "podIP": f"10.244.{number}.7"},
            }
        )
    before = dict(cluster.objects)
    code, changes, found, output = apply(gpu_exporter_method="daemonset")
    assert (code, changes, found) == (0, 0, {"w1": "10.244.1.7:9400", "w2": "10.244.2.7:9400"}), output
    words = "DaemonSet gpu-operator/nvidia-dcgm-exporter of NVIDIA's GPU Operator serves GPU metrics at 10.244.1.7:9400"
    assert f"USED: Host w1: {words}" in output
    assert cluster.objects == before


def test_dcgm_exporter_takes_the_place_of_nvidia_gpu_exporter_and_is_removed(apply, cluster):
    code, _changes, _found, output = apply(
        gpu_exporter_method="daemonset",
        gpu_exporter_port=19835,
        gpu_exporter_web_secret="web",
        gpu_exporter_scheme="https",
    )
    assert code == 0, output
    check_pods_without_rights(read_container(cluster))
    targets, image = {"w1": "10.0.0.11:19400", "w2": "10.0.0.12:19400"}, read_container(cluster)["image"]
    code, changes, found, output = apply("--check", "--diff", **DCGM)
    assert (code, changes > 0, found, read_container(cluster)["image"]) == (0, True, targets, image), output
    code, _changes, found, output = apply(**DCGM)
    assert (code, found) == (0, targets), output
    check_dcgm_pods(cluster)
    code, changes, _found, output = apply("--limit", "w1", gpu_exporter_state="absent", **DCGM)
    assert (code, changes, "KEPT: the DaemonSet kube-system/gpu-exporter" in output) == (0, 0, True), output
    code, _changes, found, output = apply(gpu_exporter_state="absent", **DCGM)
    assert (code, found) == (0, {"w1": "none", "w2": "none"}), output
    assert {key[0] for key in cluster.objects} == {"Namespace", "Node"}


def check_pods_without_rights(container):
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "runAsUser": 65534,
    }
    assert container["args"][-1] == "--web.config.file=/etc/gpu-exporter-web/web.yml"
    assert [each["mountPath"] for each in container["volumeMounts"]] == ["/etc/gpu-exporter-web"]


def check_dcgm_pods(cluster):
    template = cluster.objects[KEY]["spec"]["template"]
    container, spec = read_container(cluster), template["spec"]
    # Kubecost reads the label of the pods.
    assert template["metadata"]["labels"]["app.kubernetes.io/component"] == "dcgm-exporter"
    assert container["image"] == "nvcr.io/nvidia/k8s/dcgm-exporter:4.6.0-4.8.3-distroless"
    assert container["args"] == ["-a", "$(NODE_IP):19400", "-f", "/etc/gpu-exporter/collectors.csv", "-c", "15000"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["ports"][0]["containerPort"] == 19400
    assert not any("nvidia.com/gpu" in container["resources"][kind] for kind in ("requests", "limits"))
    # The node's labels take the pod off it while the driver or MIG changes.
    [term] = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert [each["key"] for each in term["matchExpressions"]] == [
        "gpu-kubernetes/paused",
        "gpu-kubernetes/sharing-change",
    ]
    lines = cluster.objects["ConfigMap", "kube-system", "gpu-exporter-collectors"]["data"]["collectors.csv"]
    assert "DCGM_FI_DEV_ROW_REMAP_PENDING, gauge, " in lines


def test_exporter_of_amd_is_deployed_beside_that_of_nvidia_and_removed_alone(apply, cluster):
    amd = {"gpu_exporter_provider": "amd_device_metrics_exporter", "gpu_exporter_port": 15000}
    key = (*KEY[:2], "gpu-exporter-amd")
    # Fields of profiling require a right of their own.
    fields = ["DCGM_FI_PROF_GR_ENGINE_ACTIVE, gauge, Active engines."]
    code, _changes, _found, output = apply("--limit", "w1", gpu_exporter_collectors=fields, **DCGM)
    assert code == 0, output
    assert read_container(cluster)["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["SYS_ADMIN"]}
    cluster.react = run_amd_pod
    code, _changes, found, output = apply("--limit", "w2", **amd)
    assert (code, found) == (0, {"w2": "10.0.0.12:15000"}), output
    spec = cluster.objects[key]["spec"]["template"]["spec"]
    [container], [waiting] = spec["containers"], spec["initContainers"]
    assert container["image"] == waiting["image"] == "docker.io/rocm/device-metrics-exporter:v1.5.1"
    assert container["args"][-1] == "-bind=$(NODE_IP)"
    assert {"name": "METRICS_EXPORTER_PORT", "value": "15000"} in container["env"]
    assert not any(each["name"].startswith("NVIDIA") for each in container["env"])
    assert (container["securityContext"], "runtimeClassName" in spec) == ({"privileged": True}, False)
    assert spec["nodeSelector"] == {"gpu-kubernetes/amd.present": "true"}
    assert spec["tolerations"] == [{"key": "amd.com/gpu", "operator": "Exists"}]
    assert [each["hostPath"]["path"] for each in spec["volumes"]] == [
        "/dev",
        "/sys",
        "/var/lib/kubelet/pod-resources",
        "/var/lib/amd-metrics-exporter",
    ]
    # The undo leaves the other vendor's objects.
    code, _changes, _found, output = apply(gpu_exporter_state="absent", **amd)
    assert (code, key in cluster.objects, KEY in cluster.objects) == (0, False, True), output
    assert ("ConfigMap", "kube-system", "gpu-exporter-collectors") in cluster.objects


def test_exporter_of_intel_reads_its_configuration_and_is_removed_with_it(apply, cluster):
    intel = {"gpu_exporter_provider": "intel_xpumd", "gpu_exporter_port": 18080}
    key, config = (*KEY[:2], "gpu-exporter-intel"), ("ConfigMap", "kube-system", "gpu-exporter-intel")
    cluster.react = partial(run_pod_on_w2, name="gpu-exporter-intel")
    code, _changes, found, output = apply("--limit", "w2", **intel)
    assert (code, found) == (0, {"w2": "10.0.0.12:18080"}), output
    code, changes, _found, output = apply("--limit", "w2", **intel)
    assert (code, changes) == (0, 0), output
    spec = cluster.objects[key]["spec"]["template"]["spec"]
    [container] = spec["containers"]
    assert container["image"] == "ghcr.io/intel/xpumanager/xpumd:v2.0.0"
    assert container["args"] == ["--config=/etc/gpu-exporter/config.yaml"]
    # As the image does not run as root, and its user may not open the devices.
    assert container["securityContext"] == {"privileged": True, "runAsUser": 0, "readOnlyRootFilesystem": True}
    assert not any(each["name"].startswith("NVIDIA") for each in container["env"])
    assert ("runtimeClassName" in spec, "initContainers" in spec) == (False, False)
    assert spec["nodeSelector"] == {"gpu-kubernetes/intel.present": "true"}
    assert spec["tolerations"] == [{"key": "gpu.intel.com/i915", "operator": "Exists"}]
    assert [each["mountPath"] for each in container["volumeMounts"]] == ["/etc/gpu-exporter", "/dev/dri"]
    assert spec["volumes"][0]["configMap"]["name"] == config[2]
    assert 'endpoint: "${env:NODE_IP}:18080"' in cluster.objects[config]["data"]["config.yaml"]
    code, _changes, _found, output = apply(gpu_exporter_state="absent", **intel)
    assert (code, {each[0] for each in cluster.objects}) == (0, {"Namespace", "Node"}), output


def run_amd_pod(cluster):
    """The DaemonSet for AMD has a ready pod on w2."""
    run_pod_on_w2(cluster, "gpu-exporter-amd")


def run_pod_on_w2(cluster, name):
    """The DaemonSet of that name has a ready pod on w2."""
    daemon_set = cluster.objects.get((*KEY[:2], name))
    if daemon_set is None:
        cluster.objects.pop(("Pod", "kube-system", f"{name}-w2"), None)
        return
    counts = ("desiredNumberScheduled", "updatedNumberScheduled", "numberAvailable", "numberReady")
    daemon_set["status"] = {
        "observedGeneration": daemon_set["metadata"]["generation"],
        **dict.fromkeys(counts, 1),
    }
    cluster.objects["Pod", "kube-system", f"{name}-w2"] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{name}-w2",
            "namespace": "kube-system",
            "labels": daemon_set["spec"]["template"]["metadata"]["labels"],
            "uid": "amd-w2",
        },
        "spec": {"nodeName": "w2", "containers": []},
        "status": {"phase": "Running", "podIP": "10.0.0.12"},
    }


def test_hosts_with_other_variables_are_refused(apply, cluster):
    code, _changes, _found, output = apply(hosts={"w2": {"gpu_exporter_interval": 5}}, **DCGM)
    assert (code != 0, KEY in cluster.objects) == (True, False), output
    assert "Host w2 differs from w1 in variables of gpu_exporter" in output
