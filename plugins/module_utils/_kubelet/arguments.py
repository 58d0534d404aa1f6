# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The arguments of the module kubelet_config, for both of its halves."""

from __future__ import annotations

import typing as t

from .._config.files import STATE_DIR

ARGUMENTS: dict[str, t.Any] = {
    "path": {"type": "path"},
    "values": {"type": "dict", "default": {}},
    "state": {"type": "str", "choices": ["present", "absent", "restored", "confirmed"], "default": "present"},
    "keep_former": {"type": "bool", "default": False},
    "state_dir": {"type": "path", "default": STATE_DIR},
    "_request": {"type": "dict"},
}
