# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""YAML files of Kubernetes on nodes: what the modules have in common whose controller's half decides and whose node's half reads and writes.

Private to this collection.
"""
