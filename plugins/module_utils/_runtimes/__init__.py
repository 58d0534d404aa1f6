# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration of container runtimes: what `_config` has to know of each daemon, as pure functions over plain data.

`runtime` has what the daemons have in common, `owners` knows whose files are not edited. Docker is described in `docker`, CRI-O in
`crio`, containerd in the package of its name.
"""
