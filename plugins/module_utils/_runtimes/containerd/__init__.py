# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""containerd's configuration. `schema` knows the versions and `shims` the runtimes; `plan` decides, `imports` reads what files import.

`daemon` describes config.toml to `_config`, `drop_in` a file beside it, on which `drop_in_plan` decides. `undo` and `validate` serve both.
"""
