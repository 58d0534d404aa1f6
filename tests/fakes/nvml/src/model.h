/*
 * Copyright (c) 2026, the gpu.kubernetes authors
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The simulated node: what a profile file describes, held in memory.
 */
#ifndef FAKE_NVML_MODEL_H
#define FAKE_NVML_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"

enum { MAX_GPUS = 16, MAX_MIG_DEVICES = 7, MAX_MIG_PROFILES = 18, TEXT = 512 };
enum fault { FAULT_NONE, FAULT_LOST, FAULT_LOST_HANDLE, FAULT_HANG, FAULT_ABORT };
enum mig_mode { MIG_UNSUPPORTED, MIG_DISABLED, MIG_ENABLED };

/* One line `mig_profile = NAME, NVML INDEX, ID, SLICES, INSTANCES, MULTIPROCESSORS, MIB`. */
struct mig_profile {
    char name[32];
    unsigned index, id, slices, instances, multiprocessors, memory_mib;
};

/* One [gpu] section; it stands for as many GPUs as it lists PCI addresses. */
struct gpu {
    char name[TEXT], pci_addresses[TEXT], mig_devices[TEXT], vbios[TEXT];
    unsigned memory_mib, memory_used_mib, memory_reserved_mib;
    unsigned pci_device_id, pci_subsystem_id, numa_node;
    unsigned minor, brand, architecture, capability_major, capability_minor;
    unsigned temperature, power_mw, power_limit_mw, utilization_gpu, utilization_memory;
    unsigned clock_graphics, clock_memory, nvlinks, persistence, ecc, fabric;
    unsigned process_pid, mig, fault;
};

struct device {
    struct gpu gpu; /* of the parent, for a MIG device */
    struct device *parent; /* NULL for a whole GPU */
    const struct mig_profile *mig_profile;
    unsigned index, domain, bus, slot, gpu_instance, placement;
    char address[16], uuid[64], serial[32], name[96];
    unsigned mig_count;
    bool empty; /* a GPU instance without a compute instance */
};

struct model {
    char driver_version[TEXT], nvml_version[TEXT], uuid_seed[TEXT];
    unsigned cuda_version; /* 12080 for 12.8 */
    nvmlReturn_t init_result;
    unsigned init_fault;
    unsigned gpu_count, mig_profile_count;
    struct mig_profile mig_profiles[MAX_MIG_PROFILES];
    struct device gpus[MAX_GPUS];
    struct device migs[MAX_GPUS][MAX_MIG_DEVICES];
};

extern struct model node;

/* Reads the profile into `node`. Returns NVML_SUCCESS, or why there is none; a broken line is named on standard error. */
nvmlReturn_t model_load(void);

/* Sleeps for ever: what a driver does whose firmware no longer answers. */
void model_hang(void) __attribute__((noreturn));

/* Everything a call must check first. `need` says which devices the call can serve. */
enum need { ANY_DEVICE, ANY_DEVICE_EVEN_LOST, WHOLE_GPU, WHOLE_GPU_EVEN_LOST, MIG_DEVICE };
nvmlReturn_t resolve(nvmlDevice_t handle, enum need need, const void *result, struct device **found);
nvmlReturn_t require_init(const void *result);
nvmlReturn_t put_text(char *target, unsigned length, const char *text);

#endif
