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

enum { MAX_GPUS = 16, MAX_SLICES = 8, MAX_MIG_PROFILES = 18, ENGINES = 5, TEXT = 512 };
enum fault { FAULT_NONE, FAULT_LOST, FAULT_LOST_HANDLE, FAULT_HANG, FAULT_ABORT };
enum mig_fault { MIG_FAULT_NONE, MIG_FAULT_IN_USE };
enum license { LICENSE_NONE, LICENSE_MISSING, LICENSE_OBTAINED };
enum mig_mode { MIG_UNSUPPORTED, MIG_DISABLED, MIG_ENABLED };
enum engine { COPY_ENGINE, DECODER, ENCODER, JPEG, OFA };

/* One line `mig_profile`. Placements: bit N of `starts` stands for memory slice N, the first of `size`. */
struct mig_profile {
    char name[32];
    unsigned index, id, slices, instances, multiprocessors, memory_mib;
    unsigned engines[ENGINES], starts, size;
};

/* One [gpu] section; it stands for as many GPUs as it lists PCI addresses. */
struct gpu {
    char name[TEXT], pci_addresses[TEXT], mig_devices[TEXT], vbios[TEXT];
    unsigned memory_mib, memory_used_mib, memory_reserved_mib;
    unsigned pci_device_id, pci_subsystem_id, numa_node;
    unsigned minor, brand, architecture, capability_major, capability_minor;
    unsigned temperature, power_mw, power_limit_mw, utilization_gpu, utilization_memory;
    unsigned clock_graphics, clock_memory, nvlinks, persistence, ecc, fabric, virtualization, license;
    unsigned process_pid, mig, mig_at_once, mig_fault, fault;
};

struct device {
    struct gpu gpu; /* of the parent, for a MIG device */
    struct device *parent; /* NULL for a whole GPU */
    unsigned index, domain, bus, slot;
    char address[16], uuid[64], serial[32], name[96];
    unsigned compute_mode;
    unsigned mig_mode, mig_pending; /* of a whole GPU: 0 or 1 */
    const struct gpu_instance *instance; /* of a MIG device; NULL in a slot that holds none */
    unsigned compute_id, compute_start, compute_slices; /* of a MIG device, within its GPU instance */
};

struct gpu_instance {
    struct device *gpu; /* NULL in a slot that holds none */
    const struct mig_profile *profile;
    unsigned id, start;
};

struct model {
    char driver_version[TEXT], nvml_version[TEXT], uuid_seed[TEXT];
    char state[TEXT], inforom[TEXT], proc[TEXT]; /* paths */
    unsigned cuda_version; /* 12080 for 12.8 */
    nvmlReturn_t init_result;
    unsigned init_fault;
    unsigned gpu_count, mig_profile_count;
    struct mig_profile mig_profiles[MAX_MIG_PROFILES];
    struct device gpus[MAX_GPUS];
    struct gpu_instance instances[MAX_GPUS][MAX_SLICES]; /* by its first memory slice */
    struct device migs[MAX_GPUS][MAX_SLICES]; /* by the sum of its first compute slice and that memory slice */
};

extern struct model node;

/* Reads the profile into `node`. Returns NVML_SUCCESS, or why there is none; names a broken line on standard error. */
nvmlReturn_t model_load(void);

/* UUID and serial number: the same seed and text give the same identity in every process and on every run. */
void model_identify(struct device *device, const char *kind, const char *what);

/* Calls `act` with each item of a comma-separated list, until it returns false; returns whether it never did. */
bool for_each_item(const char *list, bool (*act)(void *, char *), void *context);

/* The whole file as text with a final zero; NULL when it cannot be read. The caller frees it. */
char *read_file(const char *path, size_t *size);

/* Sleeps for ever: what a driver does whose firmware no longer answers. */
void model_hang(void) __attribute__((noreturn));

/* Everything a call must check first. `need` says which devices the call can serve. */
enum need { ANY_DEVICE, ANY_DEVICE_EVEN_LOST, WHOLE_GPU, WHOLE_GPU_EVEN_LOST, MIG_DEVICE };
nvmlReturn_t resolve(nvmlDevice_t handle, enum need need, const void *result, struct device **found);
nvmlReturn_t require_init(const void *result);
nvmlReturn_t put_text(char *target, unsigned length, const char *text);

#endif
