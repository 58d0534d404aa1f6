# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kube-scheduler as a static pod: what `_config` has to know of its configuration file and its manifest.

`node` reads a control plane, `node_state` is what was read, `plan` decides on it, `controller` runs that. All functions work on
trees of dictionaries and lists, so that this layer needs no YAML library.
"""
