# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Namespaces that kube_objects removes or keeps, and the objects that it reads."""

from __future__ import annotations

import base64
import json

from fakes.loopback_api import serve_in_thread, write_kubeconfig
from fakes.small_cluster import SmallCluster

MANAGED = {"labels": {"app.kubernetes.io/managed-by": "gpu.kubernetes"}}
SECRET = base64.b64encode(b"hunter2-hunter2").decode()


def make_item(kind, name, namespace="", version="v1", **more):
    place = {"namespace": namespace} if namespace else {}
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name, **place, **more.pop("metadata", {})},
        **more,
    }


def test_namespace_with_unmanaged_objects_stays_and_its_secrets_are_not_read(run, tmp_path):
    namespaces = [make_item("Namespace", name, metadata=MANAGED) for name in ("ingress", "secret", "unused")]
    objects = [
        *namespaces,
        make_item("Ingress", "unmanaged", "ingress", "networking.k8s.io/v1"),
        make_item("Secret", "unmanaged", "secret", data={"password": SECRET}),
        make_item("ServiceAccount", "default", "unused"),
        make_item("ConfigMap", "kube-root-ca.crt", "unused"),
        make_item("ConfigMap", "own", "unused", metadata=MANAGED),
        make_item("Event", "own.1", "unused"),
    ]
    with serve_in_thread(SmallCluster(*json.loads(json.dumps(objects)))) as server:
        access = {"kubeconfig": str(write_kubeconfig(server.url, tmp_path / "kubeconfig"))}
        play = {
            "hosts": "all",
            "gather_facts": False,
            "module_defaults": {"group/gpu.kubernetes.api": access, "group/kubernetes.core.k8s": access},
            "tasks": [
                {
                    "ansible.builtin.include_role": {"name": "gpu.kubernetes.kube_objects"},
                    "vars": {"kube_objects_state": "absent", "kube_objects_shared": namespaces},
                }
            ],
        }
        playbook = tmp_path / "play.yml"
        playbook.write_text(json.dumps([play]))
        code, output = run("node ansible_connection=local ansible_become=false\n", playbook, "-vvv")
        assert code == 0, output
        assert [name for kind, _namespace, name in server.objects if kind == "Namespace"] == ["ingress", "secret"]
    assert "KEPT: namespace ingress; it has Ingress unmanaged." in output
    assert "KEPT: namespace secret; it has Secret unmanaged." in output
    assert SECRET not in output
