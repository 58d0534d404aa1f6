# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The project's own checks, which no linter has. Each module runs alone: ``python -m gates.NAME``."""
