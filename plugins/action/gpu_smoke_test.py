# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Action gpu_smoke_test: runs the module on the controller without a process of its own."""

from __future__ import annotations

from ansible_collections.gpu.kubernetes.plugins.modules import gpu_smoke_test
from ansible_collections.gpu.kubernetes.plugins.plugin_utils._api_action import ApiAction


class ActionModule(ApiAction):
    """Runs the module."""

    MODULE = gpu_smoke_test
