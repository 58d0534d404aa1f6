# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measurements that people run and read: they print, and no gate depends on what they print."""
