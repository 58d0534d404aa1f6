#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_workload_lint
short_description: Find mistakes in workloads that request GPUs
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Finds what the API server refuses, what stays pending, and what runs otherwise than meant, such as a request that differs from its limit, a
    misspelt resource, a taint that is not tolerated, or an image whose CUDA is newer than the driver.
  - Reads manifests, the output of C(helm template) and C(kustomize build), and the workloads of a cluster. Pods are found in objects of any kind that have
    C(containers), or an Argo C(container), custom resources included.
  - Rules that need facts of a cluster are skipped without them, and RV(skipped) names them.
  - The rules are listed in the guide about the linter. C(python3 -m ansible_collections.gpu.kubernetes.plugins.module_utils._lint.command) is the same as a
    command, with the folder of the collections in C(PYTHONPATH).
options:
  paths:
    description: Files on the controller, and folders of which all C(.yaml), C(.yml) and C(.json) files are read.
    type: list
    elements: path
    default: []
  content:
    description: Manifests as a text.
    type: str
  live:
    description: Whether to read the workloads of the cluster. Of the pods of a custom resource, one is read.
    type: bool
    default: false
  namespaces:
    description: The namespaces of these workloads; empty for all.
    type: list
    elements: str
    default: []
  cluster:
    description: Whether to compare with the nodes, pods, RuntimeClasses and DeviceClasses of the cluster. Always done with O(live=true).
    type: bool
    default: false
  cluster_paths:
    description: The same facts from files in which C(kubectl get -o json) has saved them.
    type: list
    elements: path
    default: []
  default_runtime:
    description: The container runtime of pods without a RuntimeClass, such as V(runc) or V(nvidia).
    type: str
    default: ""
  device_ownership:
    description: Whether containerd gives devices to the user of a container (C(device_ownership_from_security_context)).
    type: bool
  admission_plugins:
    description:
      - Plugins of the API server that are enabled besides its defaults, such as V(ExtendedResourceToleration). On GKE, that one need not be named.
    type: list
    elements: str
    default: []
  baseline:
    description: File with a former result as JSON, whose findings are left out.
    type: path
  fail_on:
    description: The least grave severity that fails the task.
    type: str
    choices: [error, warning, note, never]
    default: error
  format:
    description: Format of RV(report).
    type: str
    choices: [text, json, sarif, junit]
    default: text
extends_documentation_fragment:
  - gpu.kubernetes.k8s_auth
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.info
  - gpu.kubernetes.attributes.api
notes:
  - An annotation C(gpu.kubernetes/ignore-GPU008) with a reason, on the object or on its pod, has findings of that rule ignored.
requirements:
  - PyYAML
  - kubernetes >= 24.2.0, for a cluster
"""

EXAMPLES = r"""
- name: Check the manifests of a repository
  gpu.kubernetes.gpu_workload_lint:
    paths: [deploy/]
    fail_on: warning

- name: Check what runs on the cluster
  gpu.kubernetes.gpu_workload_lint:
    live: true
    default_runtime: runc
    fail_on: never
  register: lint

- name: Show the findings
  ansible.builtin.debug:
    msg: "{{ lint.findings | map(attribute='message') }}"
"""

RETURN = r"""
schema:
  description: The name and version of the format, which C(docs/schemas/gpu-lint-v1.json) describes.
  returned: success and failure
  type: str
  sample: gpu.kubernetes/lint/v1
findings:
  description:
    - The findings, by place, each with C(rule), C(severity), C(source), C(line), C(kind), C(namespace), C(name), C(container), C(pointer), C(message),
      C(fix) and C(fingerprint), which stays the same when lines move.
  returned: success and failure
  type: list
  elements: dict
  sample:
    - rule: GPU003
      severity: error
      source: deploy/train.yaml
      line: 17
      kind: Job
      namespace: team
      name: train
      container: main
      pointer: /spec/template/spec/containers/0/resources/limits/nvidia.com~1gpu
      message: asks for 0.5 of nvidia.com/gpu, which is not a whole number
      fix: ask for whole GPUs, or share GPUs and ask for parts by the strategy's own resource
      fingerprint: 3f0c1f7f2a4e4f7d8d0f6f0a3c5b7e91
ignored:
  description: Findings with a reason in an annotation.
  returned: success and failure
  type: list
  elements: dict
  sample: []
skipped:
  description: Rules that did not run, with what is not known.
  returned: success and failure
  type: dict
  sample: {GPU013: nodes not known}
unreadable:
  description:
    - The files of folders in O(paths) that cannot be read, as sentences. The other files are checked, and the task fails.
  returned: success and failure
  type: list
  elements: str
  sample: []
summary:
  description: The number of objects, of those with pods, and of findings by severity.
  returned: success and failure
  type: dict
  sample: {documents: 3, workloads: 1, error: 1, warning: 0, note: 0}
text:
  description: The result as a text.
  returned: success and failure
  type: str
  sample: "deploy/train.yaml:17: error GPU003 Job/team/train container main asks for 0.5 of nvidia.com/gpu, ..."
report:
  description: The result as O(format).
  returned: success and failure
  type: str
  sample: "deploy/train.yaml:17: error GPU003 Job/team/train container main asks for 0.5 of nvidia.com/gpu, ..."
"""

import json

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_api import AUTH_ARG_SPEC, connect
from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._lint.lint import build_context, lint, read_baseline
from ansible_collections.gpu.kubernetes.plugins.module_utils._lint.live import read_facts, read_workloads
from ansible_collections.gpu.kubernetes.plugins.module_utils._lint.manifests import (
    ReadError,
    read_path,
    read_text,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._lint.writers import FORMATS
from ansible_collections.gpu.kubernetes.plugins.module_utils._module import build_module

ARGUMENT_SPEC = {
    **AUTH_ARG_SPEC,
    "paths": {"type": "list", "elements": "path", "default": []},
    "content": {"type": "str"},
    "live": {"type": "bool", "default": False},
    "namespaces": {"type": "list", "elements": "str", "default": []},
    "cluster": {"type": "bool", "default": False},
    "cluster_paths": {"type": "list", "elements": "path", "default": []},
    "default_runtime": {"type": "str", "default": ""},
    "device_ownership": {"type": "bool"},
    "admission_plugins": {"type": "list", "elements": "str", "default": []},
    "baseline": {"type": "path"},
    "fail_on": {"type": "str", "choices": ["error", "warning", "note", "never"], "default": "error"},
    "format": {"type": "str", "choices": ["text", "json", "sarif", "junit"], "default": "text"},
}


def main() -> None:
    """Run the module."""
    module = build_module(AnsibleModule, ARGUMENT_SPEC)
    params = module.params
    if not (params["paths"] or params["content"] or params["live"]):
        module.fail_json(msg="There is nothing to check; set paths, content or live.")
    cluster = connect(module) if params["live"] or params["cluster"] else None
    known: set[str] = set()
    unreadable: list[str] = []
    try:
        documents = [each for path in params["paths"] for each in read_path(path, unreadable)]
        documents += read_text(params["content"], "content") if params["content"] else []
        documents += read_workloads(cluster, params["namespaces"]) if cluster and params["live"] else []
        saved = [each for path in params["cluster_paths"] for each in read_path(path)]
        context = build_context(
            saved,
            default_runtime=params["default_runtime"],
            device_ownership=params["device_ownership"],
            admission_plugins=tuple(params["admission_plugins"]),
            **(read_facts(cluster) if cluster else {}),
        )
        if params["baseline"]:
            with open(params["baseline"], encoding="utf-8") as file:
                known = read_baseline(json.load(file))
    except (ReadError, ApiError) as error:
        module.fail_json(msg=str(error))
        return
    except (OSError, ValueError, AttributeError) as error:
        module.fail_json(msg=f"The baseline {params['baseline']} cannot be read ({error}); write it with format json.")
        return
    result = lint(documents, context, known)
    text, grave = FORMATS["text"](result), result.count_grave(params["fail_on"])
    report = FORMATS[params["format"]](result)
    answer = {**result.as_dict(), "unreadable": unreadable, "text": text, "report": report}
    if unreadable:
        module.fail_json(msg=f"{' '.join(unreadable)} The other files were checked. {text}", **answer)
    if grave:
        module.fail_json(msg=f"{grave} findings are {params['fail_on']}s or graver. {text}", **answer)
    module.exit_json(changed=False, **answer)


if __name__ == "__main__":
    main()
