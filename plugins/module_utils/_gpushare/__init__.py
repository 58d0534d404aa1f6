# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Private: how much memory of which GPU gpushare has given to which pod, from nodes and pods alone, as data and as text.

Amounts are whole units of ``aliyun.com/gpu-mem``; whether a unit is a GiB or a MiB is the device plugin's choice, and written nowhere.
"""
