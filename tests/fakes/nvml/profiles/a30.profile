# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Two A30 24 GB, MIG off: four slices, where the larger GPUs have eight.

driver_version = 570.124.06
nvml_version = 12.570.124.06
cuda_version = 12.8
mig_profile = 1g.6gb, 0, 14, 1, 4, 14, 5836, 1/0/0/0/0, {0,1,2,3}:1
mig_profile = 1g.6gb+me, 7, 21, 1, 1, 14, 5836, 1/1/0/1/1, {0,1,2,3}:1
mig_profile = 2g.12gb, 1, 5, 2, 2, 28, 11672, 2/2/0/0/0, {0,2}:2
mig_profile = 2g.12gb+me, 8, 6, 2, 1, 28, 11672, 2/2/0/1/1, {0,2}:2
mig_profile = 4g.24gb, 3, 0, 4, 1, 56, 23344, 4/4/0/1/1, {0}:4

[gpu]
pci_addresses = 0000:17:00.0, 0000:65:00.0
name = NVIDIA A30
architecture = ampere
brand = nvidia
compute_capability = 8.0
pci_device_id = 0x20B710DE
pci_subsystem_id = 0x153210DE
memory_mib = 24576
memory_reserved_mib = 312
temperature = 31
power_mw = 29180
power_limit_mw = 165000
clock_graphics = 1440
clock_memory = 1215
persistence = true
ecc = true
vbios = 92.00.45.00.03
mig = disabled
