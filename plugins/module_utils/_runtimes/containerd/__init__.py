# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""containerd's configuration. `schema` knows the versions and the kinds of runtimes, `plan` decides, `imports` reads what files import.

`daemon` describes config.toml to `_config` and lets containerd check it, `drop_in` describes a file beside it, on which `imports` decides.
`undo` serves both.
"""
