# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of Prometheus for GPUs, and what Prometheus reads: normalised series, alerts, targets, its configuration. Rows of data and pure functions."""
