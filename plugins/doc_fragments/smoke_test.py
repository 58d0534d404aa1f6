# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the documentation of all modules that prove nodes by pods has in common.

Their other half is ``ARGUMENTS`` in ``module_utils/_kubernetes/smoke_face.py``.
"""

from __future__ import annotations


class ModuleDocFragment:
    """Documentation of the options."""

    DOCUMENTATION = r"""
options:
  state:
    description:
      - With V(present), the nodes are tested. Pods of earlier runs that cannot be alive any more are removed on the way.
      - With V(absent), nothing is tested, and all pods of this module in O(namespace) are removed, whatever their age.
    type: str
    choices: [present, absent]
    default: present
  nodes:
    description: The nodes to test. Required with O(state=present).
    type: list
    elements: str
  image:
    description: The image to run. Required with O(state=present).
    type: str
  image_pull_policy:
    description: When the kubelet pulls the image.
    type: str
    choices: [Always, IfNotPresent, Never]
    default: IfNotPresent
  image_pull_secrets:
    description: Names of secrets in O(namespace) for a private registry.
    type: list
    elements: str
    default: []
  command:
    description: What to run instead of the image's entry point.
    type: list
    elements: str
    default: []
  args:
    description: Arguments instead of the image's own.
    type: list
    elements: str
    default: []
  expected_output:
    description: Text that the pod has to print. Empty means that a good exit code is enough.
    type: str
    default: Test PASSED
  runtime_class:
    description: The RuntimeClass for the pod; empty for the nodes' default runtime.
    type: str
    default: ""
  namespace:
    description: Where the pods are created. It has to exist.
    type: str
    default: default
  tolerations:
    description: Tolerations of the pods. The taint C(nvidia.com/gpu) is tolerated in any case.
    type: list
    elements: dict
    default: []
  run_as_user:
    description:
      - User ID of the container. V(0) is root, for hosts whose GPU device files are not open to everybody.
    type: int
    default: 65534
requirements:
  - kubernetes >= 24.2.0
attributes:
  check_mode:
    support: full
    details:
      - Nothing is created in check mode; nodes that could be tested are reported as skipped, which is not a pass.
  diff_mode:
    support: N/A
    details: Nothing that lasts is created.
  idempotent:
    support: full
    details:
      - Nothing remains of a test, so it reports no change. Only the removal of pods that an interrupted earlier run
        left behind is reported as a change.
"""
