# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Action prometheus_config: the controller's half, which decides; the half on Prometheus' host reads, checks, writes and reloads."""

from __future__ import annotations

from ansible_collections.gpu.kubernetes.plugins.module_utils._monitoring import arguments, controller
from ansible_collections.gpu.kubernetes.plugins.plugin_utils._controller_action import ControllerAction


class ActionModule(ControllerAction):
    """Has Prometheus scrape the exporters of hosts and evaluate the rules for GPUs."""

    MODULE = "gpu.kubernetes.prometheus_config"
    ARGUMENTS = arguments.ARGUMENTS
    CONTROLLER = controller
