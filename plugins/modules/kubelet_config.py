#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module kubelet_config."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kubelet_config
short_description: Set a part of the kubelet's configuration, on one node
version_added: 0.1.0
author:
  - gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Merges settings such as C(kubeReserved), C(systemReserved) and C(evictionHard) into the C(KubeletConfiguration) that a node's kubelet
    reads. All else in the file stays, and an undo removes only what was given.
  - The file is edited as data, on the controller. Comments, order, quoting and indentation stay as they are, the result is read
    again and has to mean what was requested, and the file is replaced in one step, with its mode and owner, unless others have changed it
    meanwhile. A hard link to it keeps the former content. A setting that means the same
    already, such as V(1024Mi) for V(1Gi), stays as it is written.
  - What the kubelet would refuse is refused first. That is text that is not a quantity or a percentage, a resource or signal that the kubelet
    does not know, and memory in thousandths of a byte (V(512m)).
  - What would override a setting is refused, too, and named with its place. That is a flag of the kubelet's command
    line, as in C(KUBELET_EXTRA_ARGS), C(KUBELET_KUBEADM_ARGS), the unit itself or the distribution's own settings, and a drop-in of C(--config-dir)
    that is read later and sets something else.
  - This module restarts nothing. The kubelet reads its configuration when it starts; see RV(needs_restart) and O(keep_former).
extends_documentation_fragment:
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.node
attributes:
  check_mode:
    support: full
    details: Nothing at all is written on the node, neither the file nor the record, lock or backups.
  diff_mode:
    support: full
    details: Credentials are masked in it, such as C(staticPodURLHeader).
  idempotent:
    support: full
options:
  path:
    description:
      - The configuration.
      - Left out, it is the file that C(--config) names in the systemd unit C(kubelet.service), with its drop-ins and environment files, else
        in the arguments of the running kubelet, else C(/var/lib/kubelet/config.yaml).
      - Where a Kubernetes distribution starts the kubelet itself with a folder of drop-ins, it is a drop-in of its own in that folder, which is
        created, and removed once it holds no settings.
    type: path
  values:
    description:
      - A part of a C(KubeletConfiguration), which is merged mapping by mapping; lists are replaced as a whole.
      - It replaces what was given in earlier runs, so that settings that are no longer given get their former values. Empty
        mappings request nothing.
      - Where the kubelet reads text, as in C(kubeReserved), numbers are written as text.
      - C(evictionHard) replaces all thresholds that the kubelet has by default; a warning names those that are lost.
      - For O(state=present) alone.
    type: dict
    default: {}
  state:
    description:
      - V(present) has the file hold O(values).
      - V(absent) undoes what earlier runs changed. A file that others did not edit since is restored to its original bytes; otherwise each
        managed setting gets its former value, unless others have changed it since.
      - V(restored) restores the file as it was before a change with O(keep_former=true), however many runs have made it. Where others have
        edited the file since, the task fails, and their edits stay.
      - V(confirmed) discards what there was before such a change, once the kubelet is verified with it, or with what was restored.
    type: str
    choices: [present, absent, restored, confirmed]
    default: present
  keep_former:
    description:
      - Whether what there was before a change that needs a restart of the kubelet is kept until O(state=confirmed), in the record of changes.
    type: bool
    default: false
  state_dir:
    description: Directory for the record of changes and for backups.
    type: path
    default: /var/lib/gpu-kubernetes
  _request:
    description: What the controller requests of the node. Not for playbooks.
    type: dict
requirements:
  - ruamel.yaml >= 0.17.21 on the controller
notes:
  - C(kubeadm upgrade node) rewrites the file from the ConfigMap C(kubelet-config) in C(kube-system) and from its own patches. Run the
    module again afterwards.
  - Some Kubernetes distributions, or older releases of them, have no such folder and give the kubelet its configuration themselves. The error names
    their setting.
  - YAML is edited where it is plain. Refused are merge keys (C(<<)), tags, several documents, line ends of Windows, a byte order mark, and
    anchors that share what has to be changed.
seealso:
  - plugin: gpu.kubernetes.node_allocatable
    plugin_type: filter
    description: What the node has left for pods.
  - name: KubeletConfiguration
    description: Meaning of the settings.
    link: https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/
"""

EXAMPLES = r"""
- name: Keep resources for the kubelet, the container runtime and the system
  gpu.kubernetes.kubelet_config:
    values:
      kubeReserved:
        cpu: 500m
        memory: 1Gi
      systemReserved:
        cpu: 500m
        memory: 1Gi
  become: true

- name: Undo all changes
  gpu.kubernetes.kubelet_config:
    state: absent
  become: true
"""

RETURN = r"""
path:
  description: The configuration.
  returned: success
  type: str
  sample: /var/lib/kubelet/config.yaml
service:
  description: The systemd unit that runs the kubelet.
  returned: success
  type: str
  sample: kubelet
needs_restart:
  description: Whether the kubelet has to be restarted for the change, that is, whether it changes what the file means.
  returned: success
  type: bool
  sample: true
unverified:
  description: Whether there was a change with O(keep_former=true) already that has not been confirmed, as after an interrupted run.
  returned: success
  type: bool
  sample: false
reserved:
  description:
    - What the kubelet reserves once it has read the file, with drop-ins, flags and its own defaults; for the filter
      P(gpu.kubernetes.node_allocatable#filter).
    - Empty where nothing was requested and nothing is on record.
  returned: success
  type: dict
  sample:
    kubeReserved: {cpu: 500m, memory: 1Gi}
    systemReserved: {}
    evictionHard: {memory.available: 100Mi, nodefs.available: 10%}
resources:
  description: Of C(cpu), C(memory) and C(ephemeral-storage), those whose allocatable amount depends on the settings.
  returned: success
  type: list
  elements: str
  sample: [cpu, memory]
files:
  description: The files that are written or removed, in that order, this module's own record among them. Empty if there is nothing to do.
  returned: success
  type: list
  elements: str
  sample:
    - /var/lib/gpu-kubernetes/state/kubelet/var-lib-kubelet-config.yaml.0a4cf2d0c7f1.json
    - /var/lib/kubelet/config.yaml
diff:
  description: The file, if it changes, with its content before and after.
  returned: success, in diff mode
  type: list
  elements: dict
backup_files:
  description: Backups of content of others that was replaced, by file.
  returned: changed, not in check mode
  type: dict
  sample:
    /var/lib/kubelet/config.yaml: /var/lib/gpu-kubernetes/backups/var-lib-kubelet-config.yaml.0a4cf2d0c7f1.0f343b0931126a20
"""

import functools
import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils import _commands
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.node import run_node_half
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubelet.arguments import ARGUMENTS
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubelet.node import read
from ansible_collections.gpu.kubernetes.plugins.module_utils._module import build_module


def main() -> None:
    """Be the node's half; the controller's is the action plugin of this name."""
    module = build_module(AnsibleModule, ARGUMENTS)

    def run(command: t.Sequence[str]) -> tuple[int, str]:
        if not module.get_bin_path(command[0]):
            return 127, ""
        return _commands.run(command)[:2]

    run_node_half(module, "kubelet_config", functools.partial(read, run=run))


if __name__ == "__main__":
    main()
