# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fakes of images that cannot be pulled, built from source; see README.md."""
