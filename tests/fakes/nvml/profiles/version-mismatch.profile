# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The library was upgraded, the loaded kernel module was not.

driver_version = 570.124.06
nvml_version = 12.570.124.06
cuda_version = 12.8
init_result = version_mismatch

[gpu]
pci_addresses = 0000:07:00.0, 0000:0f:00.0
name = NVIDIA A100-SXM4-40GB
architecture = ampere
brand = nvidia
compute_capability = 8.0
pci_device_id = 0x20B010DE
pci_subsystem_id = 0x134F10DE
memory_mib = 40960
memory_reserved_mib = 578
temperature = 31
power_mw = 54210
power_limit_mw = 400000
clock_graphics = 1410
clock_memory = 1215
persistence = true
ecc = true
vbios = 92.00.45.00.03
nvlinks = 12
mig = disabled
