#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module kube_scheduler_manifest."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kube_scheduler_manifest
short_description: Give a kubeadm cluster's kube-scheduler extenders, on one node
version_added: 0.1.0
author:
  - gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Makes the kube-scheduler of one control plane, which runs as a static pod, use a C(KubeSchedulerConfiguration) with extenders such as
    those of sharing strategies.
  - A configuration that kube-scheduler has already is merged and never replaced. Profiles and the extenders of others stay. C(v1beta2) and
    C(v1beta3) are migrated to C(v1), and settings that would keep kube-scheduler from starting, such as C(enableHttps), are repaired. What
    cannot be migrated without changing where pods run is an error that names it, and older API versions are refused.
  - Both files are edited as data, on the controller. Comments, order, quoting and indentation stay as they are, the result is read
    again and has to mean what was requested, and each file is replaced in one step, with its mode and owner, unless others have changed it
    meanwhile. A hard link to it keeps the former content.
  - Flags that kube-scheduler ignores beside C(--config), such as C(--kubeconfig), C(--profiling) and C(--kube-api-qps), are copied into the
    configuration when it gets C(--config). They stay on the command line as well, where kubeadm writes them again with each upgrade, where
    audits search for them, and where they have an effect again without C(--config). Flags with which its version does not start
    (C(--policy-config-file), C(--port)) are removed.
  - An annotation with the checksum of the configuration makes the kubelet restart the pod, because kube-scheduler reads it only when it
    starts.
  - This module waits for nothing. Run it on one control plane after the other, and verify each time that kube-scheduler is healthy.
extends_documentation_fragment:
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.node
attributes:
  check_mode:
    support: full
    details: Nothing at all is written on the node, neither the files nor the record, lock or backups.
  diff_mode:
    support: full
    details: Credentials are masked in it, such as keys of extenders (C(keyData)) and passwords in the environment.
  idempotent:
    support: full
options:
  path:
    description:
      - The manifest of the static pod. Other files in its folder that hold a kube-scheduler, too, or look like backups, are warned of,
        since the kubelet reads every file there.
      - Left out, it is C(kube-scheduler.yaml) in the C(staticPodPath) of the kubelet's configuration, which is what the running kubelet was given by
        C(--config) and C(--config-dir), or else kubeadm's C(/var/lib/kubelet/config.yaml); where none names it, in C(/etc/kubernetes/manifests).
      - Left out on a node whose Kubernetes distribution starts kube-scheduler itself, the distribution's own settings name a configuration that is
        written, and RV(unit) has to be restarted. RV(path) is then the file of these settings.
    type: path
  config_path:
    description:
      - The C(KubeSchedulerConfiguration) on the node, outside the folder of O(path).
      - Left out, it is the file that C(--config) names already, else C(/etc/kubernetes/gpu-kubernetes-scheduler.yaml).
      - If it is given and C(--config) names another file, that file stays and its content is merged into this one.
    type: path
  backup_dir:
    description: Where replaced content of others is kept, for people to read. Left out, it is C(backups) below O(state_dir).
    type: path
  state_dir:
    description: Directory for the record of changes and for backups. The kubelet must not read it.
    type: path
    default: /var/lib/gpu-kubernetes
  kubernetes_version:
    description:
      - Version of Kubernetes, 1.25 or newer, such as V(v1.34.4). It decides which plugins a configuration can have.
      - Left out, the tag of kube-scheduler's image tells it. An image that is named by digest alone needs this option.
    type: str
  extenders:
    description:
      - The extenders, in the spelling of C(KubeSchedulerConfiguration), with C(urlPrefix), C(filterVerb), C(bindVerb), C(managedResources)
        and so on.
      - One that manages the same resources as an extender in the configuration, or has its C(urlPrefix), is replaced. Those of earlier
        runs that are no longer requested are removed, with a warning if they bound pods.
      - One whose host kube-scheduler reaches through a proxy only, by C(HTTP_PROXY) and C(NO_PROXY) of its pod, is warned of.
      - What kube-scheduler would refuse is refused here first. At most one of all extenders may have a C(bindVerb).
      - Needed for O(state=present), ignored for O(state=absent).
    type: list
    elements: dict
    default: []
  state:
    description:
      - V(present) gives kube-scheduler the extenders.
      - V(absent) undoes what earlier runs changed. A file that others did not edit since is restored to its original bytes, if the running
        kube-scheduler accepts them and they hold none of the extenders; otherwise only the managed settings are removed. A manifest
        from before an upgrade and a configuration that kube-scheduler refuses are never restored. Extenders that were there before and have
        been requested since are removed, too, and a warning names them.
    type: str
    choices: [present, absent]
    default: present
  _request:
    description: What the controller requests of the node. Not for playbooks.
    type: dict
requirements:
  - ruamel.yaml >= 0.17.21 on the controller
notes:
  - Some Kubernetes distributions, and managed control planes, have no static pod whose edits would stay. The error names the remedy.
  - Where each run of the cluster's installer overwrites the configuration, a warning names the variable of its inventory and its value.
  - C(kubeadm upgrade) rewrites the manifest. Run the module again afterwards, or give kubeadm the flag and the volume, too.
  - YAML is edited where it is plain. Refused are merge keys (C(<<)), tags, several documents, line ends of Windows, a byte order mark, and
    anchors that share what has to be changed.
seealso:
  - module: gpu.kubernetes.config_snapshot
  - name: KubeSchedulerConfiguration
    description: Meaning of the settings.
    link: https://kubernetes.io/docs/reference/config-api/kube-scheduler-config.v1/
"""

EXAMPLES = r"""
- name: Let an extender place the pods that request GPU memory
  gpu.kubernetes.kube_scheduler_manifest:
    extenders:
      - urlPrefix: http://127.0.0.1:12345/scheduler
        filterVerb: filter
        bindVerb: bind
        enableHTTPS: false
        nodeCacheCapable: true
        managedResources:
          - name: aliyun.com/gpu-mem
            ignoredByScheduler: false
        ignorable: false
  become: true

- name: Undo all changes
  gpu.kubernetes.kube_scheduler_manifest:
    state: absent
  become: true
"""

RETURN = r"""
path:
  description: The manifest.
  returned: success
  type: str
  sample: /etc/kubernetes/manifests/kube-scheduler.yaml
config_path:
  description: The configuration on the node that kube-scheduler has with extenders; null if none is managed any more.
  returned: success
  type: str
  sample: /etc/kubernetes/gpu-kubernetes-scheduler.yaml
api_version:
  description: API version of the configuration, null as RV(config_path).
  returned: success
  type: str
  sample: kubescheduler.config.k8s.io/v1
config_checksum:
  description:
    - SHA-256 of the configuration, null as RV(config_path).
    - With O(state=present) the pod has it in the annotation C(gpu-kubernetes/scheduler-config-checksum), so that the mirror pod shows when the
      kubelet has restarted kube-scheduler.
  returned: success
  type: str
  sample: 0f343b0931126a20f133d67c2b018a3b5ff2ee0f3a1c1d2f9e8e6a4c1f0b2d3e
managed:
  description:
    - Whether this module changes or has changed files of the node. With O(state=present), V(false) if others have configured kube-scheduler as
      requested, in whatever spelling; nothing is written then.
  returned: success
  type: bool
  sample: true
files:
  description: The files that are written or removed, in that order, this module's own record among them. Empty if there is nothing to do.
  returned: success
  type: list
  elements: str
  sample:
    - /var/lib/gpu-kubernetes/state/kube_scheduler/etc-kubernetes-manifests-kube-scheduler.yaml.93e1f0a2c4b5.json
    - /etc/kubernetes/gpu-kubernetes-scheduler.yaml
    - /etc/kubernetes/manifests/kube-scheduler.yaml
other_manifests:
  description:
    - Other files in the folder of the manifest that hold a pod C(kube-scheduler). The kubelet runs the one whose name is the last, also after
      its next scan. A warning names each.
  returned: success
  type: list
  elements: str
  sample: [/etc/kubernetes/manifests/kube-scheduler.yaml.bak]
unit:
  description:
    - The systemd unit that has to be restarted after a change, since the Kubernetes distribution starts kube-scheduler itself.
    - Empty for a static pod, which the kubelet restarts.
  returned: success
  type: str
  sample: ""
argument:
  description: The argument with which RV(unit) starts kube-scheduler if it has extenders; empty without RV(unit).
  returned: success
  type: str
  sample: ""
checksums:
  description: SHA-256 of each of RV(files) as it is afterwards, null for one that is removed.
  returned: success
  type: dict
  sample:
    /etc/kubernetes/manifests/kube-scheduler.yaml: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
diff:
  description: Each file that changes, with its content before and after.
  returned: success, in diff mode
  type: list
  elements: dict
backup_files:
  description: Backups of content of others that was replaced, by file.
  returned: changed, not in check mode
  type: dict
  sample:
    /etc/kubernetes/manifests/kube-scheduler.yaml: >-
      /var/lib/gpu-kubernetes/backups/etc-kubernetes-manifests-kube-scheduler.yaml.93e1f0a2c4b5.0f343b0931126a20
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.node import run_node_half
from ansible_collections.gpu.kubernetes.plugins.module_utils._module import build_module
from ansible_collections.gpu.kubernetes.plugins.module_utils._scheduler.arguments import ARGUMENTS
from ansible_collections.gpu.kubernetes.plugins.module_utils._scheduler.node import read


def main() -> None:
    """Be the node's half; the controller's is the action plugin of this name."""
    module = build_module(AnsibleModule, ARGUMENTS)
    run_node_half(module, "kube_scheduler_manifest", read)


if __name__ == "__main__":
    main()
