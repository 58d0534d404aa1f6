# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes, pods and their GPUs in a Kubernetes cluster.

Nothing here imports Ansible or the kubernetes client; objects are dictionaries as the API server sends them.
"""
