# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Two H100 80 GB: the first is split by MIG into four instances, the second is whole.

driver_version = 570.124.06
nvml_version = 12.570.124.06
cuda_version = 12.8
mig_profile = 1g.10gb, 0, 19, 1, 7, 16, 9984, 1/1/0/1/0, {0,1,2,3,4,5,6}:1
mig_profile = 1g.10gb+me, 7, 20, 1, 1, 16, 9984, 1/1/0/1/1, {0,1,2,3,4,5,6}:1
mig_profile = 1g.20gb, 9, 15, 1, 4, 26, 20096, 1/1/0/1/0, {0,2,4,6}:2
mig_profile = 2g.20gb, 1, 14, 2, 3, 32, 20096, 2/2/0/2/0, {0,2,4}:2
mig_profile = 3g.40gb, 2, 9, 3, 2, 60, 40448, 3/3/0/3/0, {0,4}:4
mig_profile = 4g.40gb, 3, 5, 4, 1, 64, 40448, 4/4/0/4/0, {0}:4
mig_profile = 7g.80gb, 4, 0, 7, 1, 132, 81152, 8/7/0/7/1, {0}:8

[gpu]
pci_addresses = 0000:1b:00.0
name = NVIDIA H100 80GB HBM3
architecture = hopper
brand = nvidia
compute_capability = 9.0
pci_device_id = 0x233010DE
pci_subsystem_id = 0x16C110DE
memory_mib = 81559
memory_reserved_mib = 551
temperature = 33
power_mw = 71530
power_limit_mw = 700000
clock_graphics = 1980
clock_memory = 2619
persistence = true
ecc = true
vbios = 96.00.74.00.01
nvlinks = 18
fabric = true
mig = enabled
mig_devices = 3g.40gb, 2g.20gb, 1g.10gb, 1g.10gb

[gpu]
pci_addresses = 0000:43:00.0
minor = 1
name = NVIDIA H100 80GB HBM3
architecture = hopper
brand = nvidia
compute_capability = 9.0
pci_device_id = 0x233010DE
pci_subsystem_id = 0x16C110DE
memory_mib = 81559
memory_reserved_mib = 551
temperature = 33
power_mw = 71530
power_limit_mw = 700000
clock_graphics = 1980
clock_memory = 2619
persistence = true
ecc = true
vbios = 96.00.74.00.01
nvlinks = 18
fabric = true
mig = disabled
