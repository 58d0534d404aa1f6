# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The arguments of the module prometheus_config, for both of its halves."""

from __future__ import annotations

import typing as t

from .._config.files import STATE_DIR

ARGUMENTS: dict[str, t.Any] = {
    "path": {"type": "path", "default": "/etc/prometheus/prometheus.yml"},
    "targets": {"type": "dict", "default": {}},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "scrape_options": {"type": "dict", "default": {}},
    "alerts": {"type": "dict", "default": {}},
    "runbook_url": {"type": "str", "default": ""},
    "reload": {"type": "str", "choices": ["systemd", "http", "none"], "default": "systemd"},
    "service": {"type": "str", "default": "prometheus"},
    "url": {"type": "str", "default": "http://127.0.0.1:9090"},
    "promtool": {"type": "str", "default": "promtool"},
    "state_dir": {"type": "path", "default": STATE_DIR},
    "_request": {"type": "dict"},
}
