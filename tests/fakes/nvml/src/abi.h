/*
 * Copyright (c) 2026, the gpu.kubernetes authors
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The part of NVML's binary interface of this simulation: return codes, handle types and
 * structure layouts. Written from the published interface; only what callers can observe is kept.
 */
#ifndef FAKE_NVML_ABI_H
#define FAKE_NVML_ABI_H

#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

typedef int nvmlReturn_t;
typedef struct device *nvmlDevice_t;
typedef struct gpu_instance *nvmlGpuInstance_t;
typedef struct device *nvmlComputeInstance_t; /* a compute instance is a MIG device, so one object serves */
typedef struct event_set *nvmlEventSet_t;

enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_UNINITIALIZED = 1,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NO_PERMISSION = 4,
    NVML_ERROR_ALREADY_INITIALIZED = 5,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_INSUFFICIENT_POWER = 8,
    NVML_ERROR_DRIVER_NOT_LOADED = 9,
    NVML_ERROR_TIMEOUT = 10,
    NVML_ERROR_IRQ_ISSUE = 11,
    NVML_ERROR_LIBRARY_NOT_FOUND = 12,
    NVML_ERROR_FUNCTION_NOT_FOUND = 13,
    NVML_ERROR_CORRUPTED_INFOROM = 14,
    NVML_ERROR_GPU_IS_LOST = 15,
    NVML_ERROR_RESET_REQUIRED = 16,
    NVML_ERROR_OPERATING_SYSTEM = 17,
    NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18,
    NVML_ERROR_IN_USE = 19,
    NVML_ERROR_MEMORY = 20,
    NVML_ERROR_NO_DATA = 21,
    NVML_ERROR_INSUFFICIENT_RESOURCES = 23,
    NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
    NVML_ERROR_UNKNOWN = 999,
};

#define ANY_INSTANCE 0xFFFFFFFFu
/* A versioned structure carries its size in the low 24 bits and its revision in the high 8. */
#define STRUCT_VERSION(type, revision) ((uint32_t)sizeof(type) | ((uint32_t)(revision) << 24))

struct pci_info { /* revision 3; revisions 1 and 2 are prefixes of it */
    char bus_id_legacy[16];
    uint32_t domain, bus, slot, device_id, subsystem_id;
    char bus_id[32];
};

struct pci_info_ext {
    uint32_t version, domain, bus, slot, device_id, subsystem_id, base_class, sub_class;
    char bus_id[32];
};

struct memory_v1 { uint64_t total, free, used; };
struct memory_v2 { uint32_t version; uint64_t total, reserved, free, used; };
struct bar1_memory { uint64_t total, free, used; };
struct utilization { uint32_t gpu, memory; };
struct temperature_v1 { uint32_t version, sensor; int32_t degrees; };
struct uuid_v1 { uint32_t version, kind; unsigned char value[41]; };

struct process_v1 { uint32_t pid; uint64_t used_bytes; };
struct process_v2 { uint32_t pid; uint64_t used_bytes; uint32_t gpu_instance, compute_instance; };

struct attributes {
    uint32_t multiprocessors, copy_engines, decoders, encoders, jpegs, ofas, gpu_slices, compute_slices;
    uint64_t memory_mib;
};

struct placement { uint32_t start, size; };

struct gpu_profile {
    uint32_t id, p2p, slices, instances, multiprocessors, copy_engines, decoders, encoders, jpegs, ofas;
    uint64_t memory_mib;
};
struct gpu_profile_v2 {
    uint32_t version, id, p2p, slices, instances, multiprocessors, copy_engines, decoders, encoders, jpegs, ofas;
    uint64_t memory_mib;
    char name[96];
};
struct gpu_profile_v3 {
    uint32_t version, id, slices, instances, multiprocessors, copy_engines, decoders, encoders, jpegs, ofas;
    uint64_t memory_mib;
    char name[96];
    uint32_t capabilities;
};

struct compute_profile {
    uint32_t id, slices, instances, multiprocessors, copy_engines, decoders, encoders, jpegs, ofas;
};

struct compute_profile_v3 { /* revision 2 ends before the capabilities */
    uint32_t version, id, slices, instances, multiprocessors, copy_engines, decoders, encoders, jpegs, ofas;
    char name[96];
    uint32_t capabilities;
};

struct gpu_instance_info { nvmlDevice_t device; uint32_t id, profile_id; struct placement placement; };

struct compute_instance_info {
    nvmlDevice_t device;
    nvmlGpuInstance_t gpu_instance;
    uint32_t id, profile_id;
    struct placement placement; /* revision 2 only */
};

struct fabric_v1 {
    unsigned char cluster[16];
    uint32_t status, clique;
    unsigned char state;
};
struct fabric_v2 { /* revision 3 adds one more word */
    uint32_t version;
    unsigned char cluster[16];
    uint32_t status, clique;
    unsigned char state;
    uint32_t health;
};

struct license_expiry {
    uint32_t year;
    uint16_t month, day, hour, minute, second;
    unsigned char status;
};
struct license_feature {
    int32_t code;
    uint32_t licensed;
    char deprecated[128], product[128];
    uint32_t enabled;
    struct license_expiry expiry;
};
struct license_features {
    int32_t supported;
    uint32_t count;
    struct license_feature features[3];
};

struct field_value {
    uint32_t id, scope;
    int64_t timestamp, latency_us;
    uint32_t type;
    nvmlReturn_t rc;
    unsigned char value[8];
};

_Static_assert(sizeof(struct pci_info) == 68, "nvmlPciInfo_t");
_Static_assert(sizeof(struct pci_info_ext) == 64, "nvmlPciInfoExt_v1_t");
_Static_assert(sizeof(struct memory_v1) == 24, "nvmlMemory_t");
_Static_assert(sizeof(struct memory_v2) == 40, "nvmlMemory_v2_t");
_Static_assert(sizeof(struct uuid_v1) == 52, "nvmlUUID_v1_t");
_Static_assert(sizeof(struct process_v1) == 16, "nvmlProcessInfo_v1_t");
_Static_assert(sizeof(struct process_v2) == 24, "nvmlProcessInfo_v2_t");
_Static_assert(sizeof(struct attributes) == 40, "nvmlDeviceAttributes_t");
_Static_assert(sizeof(struct gpu_profile) == 48, "nvmlGpuInstanceProfileInfo_t");
_Static_assert(sizeof(struct gpu_profile_v2) == 152, "nvmlGpuInstanceProfileInfo_v2_t");
_Static_assert(sizeof(struct gpu_profile_v3) == 152, "nvmlGpuInstanceProfileInfo_v3_t");
_Static_assert(sizeof(struct compute_profile) == 36, "nvmlComputeInstanceProfileInfo_t");
_Static_assert(sizeof(struct compute_profile_v3) == 140, "nvmlComputeInstanceProfileInfo_v3_t");
_Static_assert(sizeof(struct gpu_instance_info) == 24, "nvmlGpuInstanceInfo_t");
_Static_assert(sizeof(struct compute_instance_info) == 32, "nvmlComputeInstanceInfo_t");
_Static_assert(sizeof(struct fabric_v1) == 28, "nvmlGpuFabricInfo_t");
_Static_assert(sizeof(struct fabric_v2) == 36, "nvmlGpuFabricInfo_v2_t");
_Static_assert(sizeof(struct license_features) == 860, "nvmlGridLicensableFeatures_t");
_Static_assert(sizeof(struct field_value) == 40, "nvmlFieldValue_t");

#endif
