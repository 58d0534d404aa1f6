# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects of a fake of NVIDIA's GPU Operator, for a real API server: a ClusterPolicy, and a device plugin that reads its configurations.

There is no program of the operator: a test sets the labels that the operator sets. The kind has the operator's names, and a schema of the test's own that
accepts any field.
"""

from __future__ import annotations

from typing import Any

NAMESPACE, CONFIG_MAP, PLUGIN = "gpu-operator", "fake-plugin-configs", "nvidia-device-plugin-daemonset"
#: The node's label that lets the device plugin of the operator run there.
DEPLOY_PLUGIN = "nvidia.com/gpu.deploy.device-plugin"
#: Configurations of an administrator.
OTHERS = {"mine": "version: v1\n"}
_ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
KIND: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "clusterpolicies.nvidia.com"},
    "spec": {
        "group": "nvidia.com",
        "scope": "Cluster",
        "names": {
            "kind": "ClusterPolicy",
            "listKind": "ClusterPolicyList",
            "plural": "clusterpolicies",
            "singular": "clusterpolicy",
        },
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": _ANY, "status": _ANY}}},
            }
        ],
    },
}
#: Without more, the ClusterPolicy enables all parts.
POLICY: dict[str, Any] = {
    "apiVersion": "nvidia.com/v1",
    "kind": "ClusterPolicy",
    "metadata": {"name": "cluster-policy"},
    "spec": {"devicePlugin": {"config": {"name": CONFIG_MAP}}, "mig": {"strategy": "single"}},
}
STATUS = {"status": {"namespace": NAMESPACE, "state": "ready"}}


def declare_operator() -> list[dict[str, Any]]:
    """Return what an administrator creates: the operator's namespace, its ConfigMap and the ClusterPolicy."""
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": CONFIG_MAP, "namespace": NAMESPACE},
            "data": OTHERS,
        },
        POLICY,
    ]


def deploy_plugin(image: str) -> list[dict[str, Any]]:
    """Return the device plugin and what it needs; *image* has config-manager, too."""
    name = {"name": PLUGIN}
    account = {**name, "namespace": NAMESPACE}
    authorization = "rbac.authorization.k8s.io"
    return [
        {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": name, "handler": "nvidia"},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account},
        {
            "apiVersion": f"{authorization}/v1",
            "kind": "ClusterRole",
            "metadata": name,
            "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}],
        },
        {
            "apiVersion": f"{authorization}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": name,
            "roleRef": {"apiGroup": authorization, "kind": "ClusterRole", **name},
            "subjects": [{"kind": "ServiceAccount", **account}],
        },
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": account,
            "spec": {
                "selector": {"matchLabels": {"app": PLUGIN}},
                "template": {"metadata": {"labels": {"app": PLUGIN}}, "spec": _build_pod(image)},
            },
        },
    ]


def _build_pod(image: str) -> dict[str, Any]:
    """A pod as the operator's: config-manager before the device plugin, and beside it."""
    configs = [
        {"name": "available-configs", "mountPath": "/available-configs"},
        {"name": "config", "mountPath": "/config"},
    ]
    node = {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    settings = {
        "CONFIG_FILE_SRCDIR": "/available-configs",
        "CONFIG_FILE_DST": "/config/config.yaml",
        "FALLBACK_STRATEGIES": "empty",
        "PROCESS_TO_SIGNAL": "nvidia-device-plugin",
    }
    common = {"image": image, "imagePullPolicy": "Never"}

    def manager(container: str, **more: str) -> dict[str, Any]:
        return {
            **common,
            "name": container,
            "command": ["config-manager"],
            "env": [node, *_list_variables({**settings, **more})],
            "volumeMounts": configs,
            "securityContext": {"privileged": True},
        }

    folder = "/var/lib/kubelet/device-plugins"
    plugin = {
        **common,
        "name": "nvidia-device-plugin",
        "env": _list_variables(
            {
                "CONFIG_FILE": "/config/config.yaml",
                "NVIDIA_VISIBLE_DEVICES": "all",
                "NVIDIA_DRIVER_CAPABILITIES": "utility",
            }
        ),
        "volumeMounts": [*configs, {"name": "device-plugins", "mountPath": folder}],
    }
    return {
        "serviceAccountName": PLUGIN,
        "runtimeClassName": PLUGIN,
        "shareProcessNamespace": True,
        "nodeSelector": {DEPLOY_PLUGIN: "true"},
        "initContainers": [manager("config-manager-init", ONESHOT="true", SEND_SIGNAL="false")],
        "containers": [plugin, manager("config-manager")],
        "volumes": [
            {"name": "device-plugins", "hostPath": {"path": folder, "type": "Directory"}},
            {"name": "available-configs", "configMap": {"name": CONFIG_MAP}},
            {"name": "config", "emptyDir": {}},
        ],
    }


def _list_variables(values: dict[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values.items()]
