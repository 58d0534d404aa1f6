# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration of container runtimes: decisions as pure functions over plain data, and their record.

No Ansible in here.  `trees` compares and edits plain trees, `schema` knows the versions of containerd, `shape` the types
of its settings and `shims` its runtimes; `containerd` decides, `imports` and `owners` look around, `proof` asks containerd,
`journal` records and `undo` takes back, `config_file` reads and edits, `places` says where things lie, `masking` hides
credentials and `apply` acts.  Private to this collection.
"""
