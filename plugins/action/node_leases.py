# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Action node_leases: names the run to the module."""

from __future__ import annotations

from ansible_collections.gpu.kubernetes.plugins.plugin_utils._lease_action import LeaseAction


class ActionModule(LeaseAction):
    """Holds or releases as this run."""

    MODULE = "gpu.kubernetes.node_leases"
