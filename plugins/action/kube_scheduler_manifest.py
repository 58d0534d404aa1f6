# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Action kube_scheduler_manifest: the controller's half, which decides; the node's half reads and writes."""

from __future__ import annotations

from ansible_collections.gpu.kubernetes.plugins.module_utils._scheduler import arguments, controller
from ansible_collections.gpu.kubernetes.plugins.plugin_utils._controller_action import ControllerAction


class ActionModule(ControllerAction):
    """Asks the control plane for the files of kube-scheduler, decides, and has them written."""

    MODULE = "gpu.kubernetes.kube_scheduler_manifest"
    ARGUMENTS = arguments.ARGUMENTS
    CONTROLLER = controller
