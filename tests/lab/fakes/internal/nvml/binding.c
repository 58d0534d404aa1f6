/* Copyright (c) 2026, the gpu.kubernetes authors
 * SPDX-License-Identifier: GPL-3.0-or-later
 */
#include "binding.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef void *device;

struct memory {
    unsigned long long total, available, used;
};

/* nvmlDeviceAttributes_t, nvmlGpuInstanceInfo_t and nvmlGpuInstanceProfileInfo_t */
struct attributes {
    unsigned counts[8];
    unsigned long long memory_mib;
};
struct instance_info {
    device parent;
    unsigned id, profile_id, start, size;
};
struct profile_info {
    unsigned id, others[9];
    unsigned long long memory_mib;
};

enum { PROFILES = 18 };

static void *library_handle;

static struct {
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error_string)(int);
    int (*driver_version)(char *, unsigned);
    int (*count)(unsigned *);
    int (*by_index)(unsigned, device *);
    int (*uuid)(device, char *, unsigned);
    int (*name)(device, char *, unsigned);
    int (*minor)(device, unsigned *);
    int (*memory)(device, struct memory *);
    int (*capability)(device, int *, int *);
    int (*mig_mode)(device, unsigned *, unsigned *);
    int (*mig_count)(device, unsigned *);
    int (*mig_by_index)(device, unsigned, device *);
    int (*attributes)(device, struct attributes *);
    int (*gpu_instance)(device, unsigned *);
    int (*compute_instance)(device, unsigned *);
    int (*instance_by_id)(device, unsigned, device *);
    int (*instance_info)(device, struct instance_info *);
    int (*profile_info)(device, unsigned, struct profile_info *);
    int (*set_compute_mode)(device, unsigned);
} call;

static const struct {
    const char *symbol;
    void *slot;
    int optional;
} functions[] = {
    {"nvmlInit_v2", &call.init, 0},
    {"nvmlShutdown", &call.shutdown, 0},
    {"nvmlErrorString", &call.error_string, 0},
    {"nvmlSystemGetDriverVersion", &call.driver_version, 0},
    {"nvmlDeviceGetCount_v2", &call.count, 0},
    {"nvmlDeviceGetHandleByIndex_v2", &call.by_index, 0},
    {"nvmlDeviceGetUUID", &call.uuid, 0},
    {"nvmlDeviceGetName", &call.name, 0},
    {"nvmlDeviceGetMinorNumber", &call.minor, 0},
    {"nvmlDeviceGetMemoryInfo", &call.memory, 0},
    {"nvmlDeviceGetCudaComputeCapability", &call.capability, 1},
    {"nvmlDeviceGetMigMode", &call.mig_mode, 1},
    {"nvmlDeviceGetMaxMigDeviceCount", &call.mig_count, 1},
    {"nvmlDeviceGetMigDeviceHandleByIndex", &call.mig_by_index, 1},
    {"nvmlDeviceGetAttributes_v2", &call.attributes, 1},
    {"nvmlDeviceGetGpuInstanceId", &call.gpu_instance, 1},
    {"nvmlDeviceGetComputeInstanceId", &call.compute_instance, 1},
    {"nvmlDeviceGetGpuInstanceById", &call.instance_by_id, 1},
    {"nvmlGpuInstanceGetInfo", &call.instance_info, 1},
    {"nvmlDeviceGetGpuInstanceProfileInfo", &call.profile_info, 1},
    {"nvmlDeviceSetComputeMode", &call.set_compute_mode, 1},
};

int fake_open(const char *library, char *error, size_t size)
{
    if (library_handle)
        return 0;
    void *handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
    if (!handle) {
        snprintf(error, size, "%s", dlerror());
        return -1;
    }
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *address = dlsym(handle, functions[i].symbol);
        if (!address && !functions[i].optional) {
            snprintf(error, size, "%s has no function %s", library, functions[i].symbol);
            dlclose(handle);
            return -1;
        }
        memcpy(functions[i].slot, &address, sizeof address); /* ISO C has no cast from object to function pointer */
    }
    library_handle = handle;
    return 0;
}

int fake_init(void) { return call.init(); }

int fake_shutdown(void) { return call.shutdown(); }

int fake_driver_version(char *version, unsigned size) { return call.driver_version(version, size); }

int fake_count(unsigned *count) { return call.count(count); }

const char *fake_error(int code) { return call.error_string(code); }

static void record_fault(struct fake_gpu *gpu, int code)
{
    if (gpu->fault == 0)
        gpu->fault = code;
}

/* A GPU that cannot have MIG answers NOT_SUPPORTED, which is not a fault. */
static void read_mig_mode(device handle, struct fake_gpu *gpu)
{
    unsigned pending;
    if (!call.mig_mode || !call.mig_count || !call.mig_by_index)
        return;
    int code = call.mig_mode(handle, &gpu->mig_enabled, &pending);
    if (code == FAKE_NOT_SUPPORTED)
        return;
    record_fault(gpu, code);
    if (code == 0 && gpu->mig_enabled)
        record_fault(gpu, call.mig_count(handle, &gpu->mig_count));
}

int fake_read(unsigned index, struct fake_gpu *gpu)
{
    device handle = NULL;
    unsigned minor = 0;
    struct memory memory;

    memset(gpu, 0, sizeof *gpu);
    gpu->minor = -1;
    int code = call.by_index(index, &handle);
    if (code != 0) {
        record_fault(gpu, code);
        return code;
    }
    record_fault(gpu, call.uuid(handle, gpu->uuid, sizeof gpu->uuid));
    record_fault(gpu, call.name(handle, gpu->name, sizeof gpu->name));
    code = call.minor(handle, &minor);
    record_fault(gpu, code);
    if (code == 0)
        gpu->minor = (int)minor;
    code = call.memory(handle, &memory); /* asks the device itself: a lost GPU cannot answer */
    record_fault(gpu, code);
    if (code == 0)
        gpu->memory = memory.total;
    if (call.capability)
        record_fault(gpu, call.capability(handle, &gpu->major_capability, &gpu->minor_capability));
    read_mig_mode(handle, gpu);
    return 0;
}

/* NVML's index of the profile that the GPU instance of a MIG device was made of, or -1. */
static int find_profile(device gpu, unsigned instance)
{
    device handle = NULL;
    struct instance_info info;
    if (call.instance_by_id(gpu, instance, &handle) != 0 || call.instance_info(handle, &info) != 0)
        return -1;
    for (unsigned index = 0; index < PROFILES; index++) {
        struct profile_info profile;
        if (call.profile_info(gpu, index, &profile) == 0 && profile.id == info.profile_id)
            return (int)index;
    }
    return -1;
}

int fake_read_mig(unsigned gpu, unsigned index, struct fake_mig *mig)
{
    device parent = NULL, handle = NULL;
    struct attributes attributes;

    memset(mig, 0, sizeof *mig);
    if (!call.attributes || !call.gpu_instance || !call.compute_instance || !call.instance_by_id || !call.instance_info || !call.profile_info)
        return FAKE_FUNCTION_NOT_FOUND;
    int code = call.by_index(gpu, &parent);
    if (code == 0)
        code = call.mig_by_index(parent, index, &handle);
    if (code == 0)
        code = call.uuid(handle, mig->uuid, sizeof mig->uuid);
    if (code == 0)
        code = call.gpu_instance(handle, &mig->gpu_instance);
    if (code == 0)
        code = call.compute_instance(handle, &mig->compute_instance);
    if (code == 0)
        code = call.attributes(handle, &attributes);
    if (code != 0)
        return code;
    memcpy(mig->counts, attributes.counts, sizeof mig->counts);
    mig->memory_mib = attributes.memory_mib;
    mig->profile = find_profile(parent, mig->gpu_instance);
    return 0;
}

int fake_set_compute_mode(unsigned gpu, unsigned mode)
{
    device handle = NULL;
    int code = call.by_index(gpu, &handle);
    if (code == 0)
        code = call.set_compute_mode ? call.set_compute_mode(handle, mode) : FAKE_FUNCTION_NOT_FOUND;
    return code;
}
