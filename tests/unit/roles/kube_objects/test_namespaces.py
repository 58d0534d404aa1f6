# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What kube_objects removes with a namespace, and what it reads for it."""

from __future__ import annotations

import base64
import json

from fakes.loopback_api import serving, write_kubeconfig
from fakes.small_cluster import SmallCluster

MANAGED = {"labels": {"app.kubernetes.io/managed-by": "gpu.kubernetes"}}
SECRET = base64.b64encode(b"hunter2-hunter2").decode()


def item(kind, name, namespace="", version="v1", **more):
    place = {"namespace": namespace} if namespace else {}
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name, **place, **more.pop("metadata", {})},
        **more,
    }


def test_namespace_with_unmanaged_objects_stays_and_its_secrets_are_not_read(run, tmp_path):
    namespaces = [item("Namespace", name, metadata=MANAGED) for name in ("ingress", "secret", "unused")]
    objects = [
        *namespaces,
        item("Ingress", "theirs", "ingress", "networking.k8s.io/v1"),
        item("Secret", "theirs", "secret", data={"password": SECRET}),
        item("ServiceAccount", "default", "unused"),
        item("ConfigMap", "kube-root-ca.crt", "unused"),
        item("ConfigMap", "own", "unused", metadata=MANAGED),
        item("Event", "own.1", "unused"),
    ]
    with serving(SmallCluster(*json.loads(json.dumps(objects)))) as server:
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
        code, said = run("node ansible_connection=local ansible_become=false\n", playbook, "-vvv")
        assert code == 0, said
        assert [name for kind, _namespace, name in server.objects if kind == "Namespace"] == ["ingress", "secret"]
    assert "KEPT: namespace ingress; it has Ingress theirs." in said
    assert "KEPT: namespace secret; it has Secret theirs." in said
    assert SECRET not in said
