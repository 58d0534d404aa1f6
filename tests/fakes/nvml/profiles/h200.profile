# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Eight H200 on one board, four to a socket, MIG off.

driver_version = 570.124.06
nvml_version = 12.570.124.06
cuda_version = 12.8
mig_profile = 1g.18gb, 0, 19, 1, 7, 16, 17920, 1/1/0/1/0, {0,1,2,3,4,5,6}:1
mig_profile = 1g.18gb+me, 7, 20, 1, 1, 16, 17920, 1/1/0/1/1, {0,1,2,3,4,5,6}:1
mig_profile = 1g.35gb, 9, 15, 1, 4, 26, 35968, 1/1/0/1/0, {0,2,4,6}:2
mig_profile = 2g.35gb, 1, 14, 2, 3, 32, 35968, 2/2/0/2/0, {0,2,4}:2
mig_profile = 3g.71gb, 2, 9, 3, 2, 60, 71424, 3/3/0/3/0, {0,4}:4
mig_profile = 4g.71gb, 3, 5, 4, 1, 64, 71424, 4/4/0/4/0, {0}:4
mig_profile = 7g.141gb, 4, 0, 7, 1, 132, 143104, 8/7/0/7/1, {0}:8

[gpu]
pci_addresses = 0000:1b:00.0, 0000:43:00.0, 0000:52:00.0, 0000:61:00.0, 0000:9d:00.0, 0000:c3:00.0, 0000:d1:00.0, 0000:df:00.0
name = NVIDIA H200
architecture = hopper
brand = nvidia
compute_capability = 9.0
pci_device_id = 0x233510DE
pci_subsystem_id = 0x18BE10DE
memory_mib = 143771
memory_reserved_mib = 551
temperature = 33
power_mw = 71530
power_limit_mw = 700000
clock_graphics = 1980
clock_memory = 3201
persistence = true
ecc = true
vbios = 96.00.74.00.01
nvlinks = 18
fabric = true
mig = disabled
