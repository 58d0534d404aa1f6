# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The allocation of GPUs to pods, computed from nodes and pods, as data and as text: of GPU memory, and of the other resources of any strategy.

Amounts of GPU memory are whole units of ``aliyun.com/gpu-mem``. The device plugin decides whether a unit is a GiB or a MiB, and does not report it.
"""
