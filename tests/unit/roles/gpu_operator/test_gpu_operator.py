# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes of a fake of NVIDIA's GPU Operator are shared by its labels and its ConfigMap, as planned from its ClusterPolicy, and left again."""

from __future__ import annotations

import json
from contextlib import contextmanager

import pytest
from fakes.kubernetes_api import node
from fakes.loopback_api import serve_in_thread, write_kubeconfig
from fakes.small_cluster import SmallCluster

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import FACTS, FAILURE, HERE

#: The MIG devices of the simulated NVML.
GPU, SLICES = "nvidia.com/gpu", 5
CONFIG, MIG, STATE = "nvidia.com/device-plugin.config", "nvidia.com/mig.config", "nvidia.com/mig.config.state"
PLUGIN, DISCOVERY, DAEMON = (
    "nvidia-device-plugin-daemonset",
    "gpu-feature-discovery",
    "nvidia-device-plugin-mps-control-daemon",
)
MPS_CAPABLE = "nvidia.com/mps.capable"
NVML = {"source": "nvml", "error": None, "gpus": [{"name": "GPU", "lost": False}] * 2}
POLICY = {
    "kind": "ClusterPolicy",
    "metadata": {"name": "cluster-policy"},
    "spec": {"devicePlugin": {"config": {"name": "configs"}}, "mig": {"strategy": "single"}},
    "status": {"namespace": "nvidia", "state": "ready"},
}
BY_HOST = "dict(groups.all | zip(groups.all | map('extract', hostvars, 'result')))"


class OperatedCluster(SmallCluster):
    """Nodes with two GPUs each, of which the operator's pods read the configuration when they start.

    ``limits`` are the replicas for which control daemons of MPS have started, by node.
    """

    def __init__(self, *names):
        config_map = {
            "kind": "ConfigMap",
            "metadata": {"name": "configs", "namespace": "nvidia"},
            "data": {"mine": "version: v1"},
        }
        labels = {"nvidia.com/gpu.deploy.device-plugin": "true", MIG: "all-disabled", STATE: "success"}
        nodes = [{"kind": "Node", "apiVersion": "v1", **node(name, 2, labels=dict(labels))} for name in names]
        namespace = {"kind": "Namespace", "metadata": {"name": "nvidia"}}
        super().__init__(namespace, config_map, json.loads(json.dumps(POLICY)), *nodes)
        self.applied = dict.fromkeys(names, "all-disabled")
        self.result, self.had_result, self.started = "success", False, 0
        self.limits = {name: [] for name in names}
        self.react = lambda _cluster: self.run_operator()
        self.run_operator()

    def run_operator(self):
        """Act as the MIG manager, and as the controllers of the DaemonSets and the pods that they start."""
        for item in self.all("Node"):
            name, labels = item["metadata"]["name"], item["metadata"]["labels"]
            if labels[MIG] != self.applied[name]:
                # A result of before would be taken for that of this configuration.
                self.had_result |= STATE in labels
                self.applied[name], labels[STATE] = labels[MIG], self.result
                self.delete_pods(name, PLUGIN, DISCOVERY)
            for app in (PLUGIN, DISCOVERY, DAEMON):
                if not self.find_pods(name, app) and (app != DAEMON or MPS_CAPABLE in labels):
                    self.start(app, item)

    def start(self, app, item):
        name, labels = item["metadata"]["name"], item["metadata"]["labels"]
        self.make_pod(app, name)
        config = json.loads(self.config_map["data"].get(labels.get(CONFIG, ""), "{}"))
        sharing = config.get("sharing", {})
        replicas = next((section["resources"][0]["replicas"] for section in sharing.values()), 1)
        if app == PLUGIN:
            amount = {GPU: str((SLICES if labels[MIG] != "all-disabled" else 2) * replicas)}
            item["status"].update(capacity=amount, allocatable=dict(amount))
        elif app == DAEMON:
            self.limits[name].append(replicas)
        elif "mps" in sharing:
            labels[MPS_CAPABLE] = "true"
        else:
            labels.pop(MPS_CAPABLE, None)
            self.delete_pods(name, DAEMON)

    def make_pod(self, app, name):
        self.started += 1
        statuses = [{"name": "main", "ready": True, "state": {"running": {}}}]
        self.put(
            {
                "kind": "Pod",
                "apiVersion": "v1",
                "metadata": {"name": f"{app}-{self.started}", "namespace": "nvidia", "labels": {"app": app}},
                "spec": {"nodeName": name, "containers": []},
                "status": {"phase": "Running", "containerStatuses": statuses},
            }
        )

    def find_pods(self, name, *apps):
        """The keys of pods of the operator on a node."""
        return [
            ("Pod", "nvidia", item["metadata"]["name"])
            for item in self.all("Pod")
            if item["spec"]["nodeName"] == name and item["metadata"]["labels"]["app"] in apps
        ]

    def delete_pods(self, name, *apps):
        for key in self.find_pods(name, *apps):
            del self.objects[key]

    @property
    def config_map(self):
        return self.objects["ConfigMap", "nvidia", "configs"]

    def read(self):
        """The labels and devices of the nodes, and the keys of the ConfigMap."""
        nodes = {item["metadata"]["name"]: item for item in self.all("Node")}
        labels = {
            name: {key: value for key, value in item["metadata"]["labels"].items() if key in (CONFIG, MIG)}
            for name, item in nodes.items()
        }
        devices = {name: int(item["status"]["allocatable"][GPU]) for name, item in nodes.items()}
        return labels, devices, dict(self.config_map["data"])


def share(strategies, state="present"):
    """A play that plans and changes hosts with these variables, and records their roles and what has failed."""
    entry = f"node_{state}"
    tasks = [
        {"ansible.builtin.include_role": {"name": "gpu.kubernetes.gpu_sharing"}},
        {
            "ansible.builtin.include_role": {"name": "gpu.kubernetes.{{ item }}", "tasks_from": entry},
            "loop": f"{{{{ gpu_sharing_node_plan.{entry} }}}}",
        },
        {"ansible.builtin.set_fact": {"result": f"{{{{ (result | default([])) + [gpu_sharing_node_plan.{entry}] }}}}"}},
    ]
    rescue = [
        {
            "ansible.builtin.set_fact": {"result": "{{ (result | default([])) + [failure] }}"},
            "vars": {"failure": FAILURE},
        }
    ]
    return {
        "hosts": "all",
        "gather_facts": False,
        "vars": {"gpu_sharing_state": state, "chosen": strategies, **PARAMETERS},
        "tasks": [{"block": tasks, "rescue": rescue}],
    }


PARAMETERS = {
    name: f"{{{{ (chosen[inventory_hostname] | default({{}})).{name} | default({default!r}) }}}}"
    for name, default in (
        ("gpu_sharing_strategy", ""),
        ("gpu_sharing_replicas", 0),
        ("gpu_sharing_mig_config", ""),
    )
}


def strategy(name, **more):
    return {"gpu_sharing_strategy": name, **{f"gpu_sharing_{key}": value for key, value in more.items()}}


@pytest.fixture
def run_plays(evaluate, run, tmp_path, nvml_builder):
    """Serve a cluster, and return a function that runs plays on its nodes and returns their results by host, or the output of a run in check mode."""
    library = {"library": str(nvml_builder.library("h100-mig")), "pci_path": str(nvml_builder.pci("h100-mig"))}

    @contextmanager
    def serve(cluster):
        extra = {
            "gpu_kubeconfig": str(write_kubeconfig(cluster.url, tmp_path / "kubeconfig")),
            "gpu_preflight_gpus": {"ansible_facts": {}},
            "gpu_operator_wait_timeout": 20,
            # One attempt: the fake's MIG manager works at once.
            "gpu_operator_mig_timeout": 4,
        }
        hosts = {name: {} for name in cluster.applied}

        def run_all(*plays, check=False):
            given = [{**play, "module_defaults": {"gpu.kubernetes.nvml_facts": library}} for play in plays]
            if not check:
                return evaluate(hosts, given, BY_HOST, facts={"nvml": NVML}, **extra)
            facts = {
                "hosts": "all",
                "gather_facts": False,
                "tasks": [{"ansible.builtin.set_fact": {**FACTS, "nvml": NVML}}],
            }
            (tmp_path / "check.yml").write_text(json.dumps([facts, *given]))
            return run({"all": {"hosts": hosts, "vars": HERE}}, tmp_path / "check.yml", "--check", **extra)

        with serve_in_thread(cluster):
            yield run_all

    return serve


SHARED = {
    "sliced": strategy("time_slicing", replicas=4),
    "limited": strategy("mps", replicas=2),
    "parted": strategy("mig", mig_config="all-3g.40gb"),
}


def test_failed_mig_manager_is_reported_and_refused_until_its_label_is_gone(run_plays):
    cluster = OperatedCluster("parted")
    cluster.result = "failed"
    with run_plays(cluster) as run:
        [[failed, refused]] = run(share(SHARED), share(SHARED)).values()
    cause = "Host parted (node parted): the GPU Operator's MIG manager could not apply all-3g.40gb; read its log (kubectl logs -n nvidia"
    assert failed.startswith(cause)
    assert refused.startswith(cause)
    assert "kubectl label node parted nvidia.com/mig.config-" in refused


def test_nodes_are_shared_by_labels_and_keys_and_left_again(run_plays):
    cluster = OperatedCluster(*SHARED)
    before = cluster.read()

    def expect(*steps):
        return {name: list(steps) for name in SHARED}

    role = ["gpu_operator"]
    with run_plays(cluster) as run:
        code, output = run(share(SHARED), check=True)
        assert (code, output.count("rescued=0")) == (0, len(SHARED)), output
        assert cluster.read() == before

        assert run(share(SHARED), share(SHARED)) == expect(role, [])
        labels, devices, keys = cluster.read()
        assert devices == {"sliced": 8, "limited": 4, "parted": SLICES}
        assert keys["mine"] == "version: v1"
        assert set(keys) == {"mine", labels["sliced"][CONFIG], labels["limited"][CONFIG]}
        assert labels["parted"] == {MIG: "all-3g.40gb"}
        assert cluster.find_pods("limited", DAEMON)
        assert not cluster.had_result

        # Two hosts change, and those that are still shared are removed.
        other = {**SHARED, "sliced": strategy("exclusive"), "limited": strategy("mps", replicas=3)}
        left = run(share(other), share({}, "absent"), share({}, "absent"))
    assert left == {"sliced": [role, [], []], "limited": [role, role, []], "parted": [[], role, []]}
    # The daemon has read its configuration again.
    assert cluster.limits["limited"][:2] == [2, 3]
    assert cluster.read() == before
    assert not cluster.find_pods("limited", DAEMON)


def test_error_of_the_api_during_the_wait_is_reported(run_plays):
    cluster = OperatedCluster("parted")

    def fail(cluster):
        if cluster.applied["parted"] == "all-3g.40gb":
            raise ConnectionAbortedError

    cluster.before_read = fail
    with run_plays(cluster) as run:
        [[failed]] = run(share(SHARED)).values()
    assert failed.startswith("Host parted (node parted): after 4 s, the node cannot be read"), failed
    assert "the API server's client reports: " in failed
    assert "Max retries exceeded" in failed or "Connection aborted" in failed, failed


#: The name of a node's configuration, the configuration, the operator's default for nodes without a name, and whether the devices are known.
CONFIGURATIONS = {
    "none": ("", {}, "", True),
    "default-of-others": ("", {}, "any", False),
    "name-of-others": ("mine", {}, "", False),
    "own": ("exclusive-0123abcd", {"version": "v1"}, "any", True),
}


def test_devices_of_configurations_of_others_are_not_known(evaluate_role):
    hosts = {
        name: {
            "gpu_sharing_node_plan": {"config_name": config_name, "config": config},
            "gpu_sharing_plan": {"cluster": {"operator": {"default_config": default}}},
        }
        for name, (config_name, config, default, _known) in CONFIGURATIONS.items()
    }
    found = evaluate_role("gpu_operator", hosts, "__gpu_operator_is_known")
    assert found == {name: row[-1] for name, row in CONFIGURATIONS.items()}
