# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab: a real kubeadm cluster in podman nodes, with GPUs simulated below NVML."""
