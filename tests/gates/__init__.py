# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The project's own checks: what no linter knows about this collection. Each module runs alone: ``python -m gates.NAME``."""
