# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Arguments that all modules for container runtimes have; the documentation fragment `runtime_config` describes them."""

from __future__ import annotations

import typing as t

ARGUMENTS: dict[str, t.Any] = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "runtime_name": {"type": "str", "default": "nvidia"},
    "runtime_path": {"type": "path", "default": "/usr/bin/nvidia-container-runtime"},
    "set_default": {"type": "bool"},
    "enable_cdi": {"type": "bool"},
    "validate": {"type": "bool", "default": True},
    "settings": {"type": "dict", "default": {}},
    "backup": {"type": "bool", "default": True},
    "state_dir": {"type": "path", "default": "/var/lib/gpu-kubernetes"},
}
