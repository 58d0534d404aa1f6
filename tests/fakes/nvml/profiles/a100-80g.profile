# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Two A100 80 GB, MIG off.

driver_version = 570.124.06
nvml_version = 12.570.124.06
cuda_version = 12.8
mig_profile = 1g.10gb, 0, 19, 1, 7, 14, 9856, 1/0/0/0/0, {0,1,2,3,4,5,6}:1
mig_profile = 1g.10gb+me, 7, 20, 1, 1, 14, 9856, 1/1/0/1/1, {0,1,2,3,4,5,6}:1
mig_profile = 1g.20gb, 9, 15, 1, 4, 14, 19968, 1/1/0/0/0, {0,2,4,6}:2
mig_profile = 2g.20gb, 1, 14, 2, 3, 28, 19968, 2/1/0/0/0, {0,2,4}:2
mig_profile = 3g.40gb, 2, 9, 3, 2, 42, 40192, 3/2/0/0/0, {0,4}:4
mig_profile = 4g.40gb, 3, 5, 4, 1, 56, 40192, 4/2/0/0/0, {0}:4
mig_profile = 7g.80gb, 4, 0, 7, 1, 98, 80384, 7/5/0/1/1, {0}:8

[gpu]
pci_addresses = 0000:07:00.0, 0000:0f:00.0
name = NVIDIA A100-SXM4-80GB
architecture = ampere
brand = nvidia
compute_capability = 8.0
pci_device_id = 0x20B210DE
pci_subsystem_id = 0x147F10DE
memory_mib = 81920
memory_reserved_mib = 630
temperature = 31
power_mw = 54210
power_limit_mw = 400000
clock_graphics = 1410
clock_memory = 1593
persistence = true
ecc = true
vbios = 92.00.45.00.03
nvlinks = 12
mig = disabled
