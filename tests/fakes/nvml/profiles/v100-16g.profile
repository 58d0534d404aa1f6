# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
#
# One Tesla V100 with 16 GiB: the card of the guides' sharing by memory.

driver_version = 570.124.06
nvml_version = 12.570.124.06
cuda_version = 12.8

[gpu]
pci_addresses = 0000:00:1e.0
name = Tesla V100-SXM2-16GB
architecture = volta
brand = tesla
compute_capability = 7.0
pci_device_id = 0x1DB110DE
pci_subsystem_id = 0x121210DE
memory_mib = 16384
memory_reserved_mib = 224
temperature = 38
power_mw = 42100
power_limit_mw = 300000
clock_graphics = 1530
clock_memory = 877
persistence = true
ecc = true
vbios = 88.00.4F.00.09
