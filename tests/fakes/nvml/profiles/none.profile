# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The driver answers, and there is no GPU.

driver_version = 570.124.06
nvml_version = 12.570.124.06
cuda_version = 12.8
