# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Action kubelet_config: the controller's half, which decides; the node's half reads and writes."""

from __future__ import annotations

from ansible_collections.gpu.kubernetes.plugins.module_utils._kubelet import arguments, controller
from ansible_collections.gpu.kubernetes.plugins.plugin_utils._controller_action import ControllerAction


class ActionModule(ControllerAction):
    """Asks the node for its kubelet's configuration, decides, and has it written."""

    MODULE = "gpu.kubernetes.kubelet_config"
    ARGUMENTS = arguments.ARGUMENTS
    CONTROLLER = controller
