# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The library is installed, the kernel module is not loaded.

driver_version = 570.124.06
nvml_version = 12.570.124.06
cuda_version = 12.8
init_result = driver_not_loaded

[gpu]
pci_addresses = 0000:00:1e.0
name = Tesla T4
architecture = turing
brand = nvidia
compute_capability = 7.5
pci_device_id = 0x1EB810DE
pci_subsystem_id = 0x12A210DE
memory_mib = 15360
memory_reserved_mib = 449
temperature = 36
power_mw = 13870
power_limit_mw = 70000
clock_graphics = 1590
clock_memory = 5001
persistence = true
ecc = true
vbios = 90.04.96.00.02
