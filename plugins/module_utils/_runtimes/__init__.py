# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration of container runtimes: decisions as pure functions over plain data, and their record.

No Ansible in here.  For every daemon, `apply` acts, through the face that `daemon` describes: `config_file` reads and edits
files in the syntaxes of `formats`, `trees` compares and edits plain trees, `draft` decides what runtimes have in common,
`shape` knows the types of settings, `proof` asks the daemon, `journal` records and `undo` takes back, `places` says where
things lie and `masking` hides credentials.  Of containerd, `schema` knows the versions and `shims` the runtimes, `containerd`
decides, `imports` and `owners` look around and `containerd_daemon` is its face; `drop_in` decides on a file beside it, with the face
`containerd_drop_in`. Docker is in `docker` as a whole, CRI-O in `crio`.
Private to this collection.
"""
