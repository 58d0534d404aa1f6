/*
 * Copyright (c) 2026, the gpu.kubernetes authors
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Multi-instance GPU: partitions as the profile lays them out. They cannot be changed from here.
 */
#include <stdio.h>
#include <string.h>

#include "model.h"

static struct device *instance_of(struct device *gpu, unsigned id)
{
    for (unsigned i = 0; i < gpu->mig_count; i++)
        if (node.migs[gpu->index][i].gpu_instance == id)
            return &node.migs[gpu->index][i];
    return NULL;
}

static nvmlReturn_t capable(nvmlDevice_t handle, const void *result, struct device **gpu)
{
    nvmlReturn_t rc = resolve(handle, WHOLE_GPU, result, gpu);
    return rc == NVML_SUCCESS && (*gpu)->gpu.mig == MIG_UNSUPPORTED ? NVML_ERROR_NOT_SUPPORTED : rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t handle, unsigned *current, unsigned *pending)
{
    struct device *gpu;
    nvmlReturn_t rc = capable(handle, pending == NULL ? NULL : current, &gpu);
    if (rc == NVML_SUCCESS)
        *current = *pending = gpu->gpu.mig == MIG_ENABLED;
    return rc;
}

EXPORT nvmlReturn_t nvmlDeviceSetMigMode(nvmlDevice_t handle, unsigned mode, nvmlReturn_t *activation)
{
    struct device *gpu;
    nvmlReturn_t rc = capable(handle, activation, &gpu);
    (void)mode;
    return rc == NVML_SUCCESS ? NVML_ERROR_NO_PERMISSION : rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t handle, unsigned *count)
{
    struct device *gpu;
    nvmlReturn_t rc = resolve(handle, WHOLE_GPU, count, &gpu);
    if (rc == NVML_SUCCESS)
        *count = gpu->gpu.mig == MIG_UNSUPPORTED ? 0 : MAX_MIG_DEVICES;
    return rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t handle, unsigned index, nvmlDevice_t *device)
{
    struct device *gpu;
    nvmlReturn_t rc = capable(handle, device, &gpu);
    if (rc == NVML_SUCCESS && index >= gpu->mig_count)
        rc = index < MAX_MIG_DEVICES ? NVML_ERROR_NOT_FOUND : NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS && node.migs[gpu->index][index].empty)
        rc = NVML_ERROR_NOT_FOUND;
    if (rc == NVML_SUCCESS)
        *device = &node.migs[gpu->index][index];
    return rc;
}

EXPORT nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t handle, unsigned *is_mig)
{
    struct device *device;
    nvmlReturn_t rc = resolve(handle, ANY_DEVICE, is_mig, &device);
    if (rc == NVML_SUCCESS)
        *is_mig = device->parent != NULL;
    return rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t handle, nvmlDevice_t *parent)
{
    struct device *mig;
    nvmlReturn_t rc = resolve(handle, MIG_DEVICE, parent, &mig);
    if (rc == NVML_SUCCESS)
        *parent = mig->parent;
    return rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t handle, unsigned *id)
{
    struct device *mig;
    nvmlReturn_t rc = resolve(handle, MIG_DEVICE, id, &mig);
    if (rc == NVML_SUCCESS)
        *id = mig->gpu_instance;
    return rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t handle, unsigned *id)
{
    struct device *mig;
    nvmlReturn_t rc = resolve(handle, MIG_DEVICE, id, &mig);
    if (rc == NVML_SUCCESS)
        *id = 0;
    return rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t handle, struct attributes *attributes)
{
    struct device *mig;
    nvmlReturn_t rc = resolve(handle, MIG_DEVICE, attributes, &mig);
    if (rc == NVML_SUCCESS)
        *attributes = (struct attributes){.multiprocessors = mig->mig_profile->multiprocessors,
                                          .copy_engines = mig->mig_profile->slices,
                                          .decoders = mig->mig_profile->slices,
                                          .gpu_slices = mig->mig_profile->slices,
                                          .compute_slices = mig->mig_profile->slices,
                                          .memory_mib = mig->mig_profile->memory_mib};
    return rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t handle, struct attributes *attributes)
{
    return nvmlDeviceGetAttributes_v2(handle, attributes);
}

static nvmlReturn_t find_profile(nvmlDevice_t handle, unsigned index, const void *result, const struct mig_profile **found)
{
    struct device *gpu;
    nvmlReturn_t rc = capable(handle, result, &gpu);
    for (unsigned i = 0; rc == NVML_SUCCESS && i < node.mig_profile_count; i++)
        if (node.mig_profiles[i].index == index) {
            *found = &node.mig_profiles[i];
            return NVML_SUCCESS;
        }
    if (rc != NVML_SUCCESS)
        return rc;
    return index < MAX_MIG_PROFILES ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_INVALID_ARGUMENT;
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t handle, unsigned index, struct gpu_profile *info)
{
    const struct mig_profile *profile;
    nvmlReturn_t rc = find_profile(handle, index, info, &profile);
    if (rc == NVML_SUCCESS)
        *info = (struct gpu_profile){.id = profile->id, .slices = profile->slices, .instances = profile->instances,
                                     .multiprocessors = profile->multiprocessors, .copy_engines = profile->slices,
                                     .decoders = profile->slices, .memory_mib = profile->memory_mib};
    return rc;
}

static void fill_v2(const struct mig_profile *profile, struct gpu_profile_v2 *info)
{
    *info = (struct gpu_profile_v2){.version = STRUCT_VERSION(*info, 2), .id = profile->id, .slices = profile->slices,
                                    .instances = profile->instances, .multiprocessors = profile->multiprocessors,
                                    .copy_engines = profile->slices, .decoders = profile->slices,
                                    .memory_mib = profile->memory_mib};
    snprintf(info->name, sizeof(info->name), "MIG %s", profile->name);
}

static void fill_v3(const struct mig_profile *profile, struct gpu_profile_v3 *info)
{
    *info = (struct gpu_profile_v3){.version = STRUCT_VERSION(*info, 3), .id = profile->id, .slices = profile->slices,
                                    .instances = profile->instances, .multiprocessors = profile->multiprocessors,
                                    .copy_engines = profile->slices, .decoders = profile->slices,
                                    .memory_mib = profile->memory_mib};
    snprintf(info->name, sizeof(info->name), "MIG %s", profile->name);
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t handle, unsigned index, void *info)
{
    const struct mig_profile *profile;
    nvmlReturn_t rc = find_profile(handle, index, info, &profile);
    if (rc != NVML_SUCCESS)
        return rc;
    uint32_t version = *(uint32_t *)info;
    if (version == STRUCT_VERSION(struct gpu_profile_v2, 2))
        fill_v2(profile, info);
    else if (version == STRUCT_VERSION(struct gpu_profile_v3, 3))
        fill_v3(profile, info);
    else
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_t handle, unsigned profile_id, unsigned *count)
{
    struct device *gpu;
    nvmlReturn_t rc = capable(handle, count, &gpu);
    (void)profile_id;
    if (rc == NVML_SUCCESS)
        *count = 0;
    return rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_t handle, unsigned profile_id, nvmlGpuInstance_t *instances, unsigned *count)
{
    struct device *gpu;
    nvmlReturn_t rc = capable(handle, count == NULL ? NULL : (void *)instances, &gpu);
    if (rc != NVML_SUCCESS)
        return rc;
    *count = 0;
    for (unsigned i = 0; i < gpu->mig_count; i++)
        if (node.migs[gpu->index][i].mig_profile->id == profile_id)
            instances[(*count)++] = &node.migs[gpu->index][i];
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t handle, unsigned id, nvmlGpuInstance_t *instance)
{
    struct device *gpu;
    nvmlReturn_t rc = capable(handle, instance, &gpu);
    if (rc == NVML_SUCCESS && (*instance = instance_of(gpu, id)) == NULL)
        rc = NVML_ERROR_NOT_FOUND;
    return rc;
}

EXPORT nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t instance, struct gpu_instance_info *info)
{
    struct device *mig;
    nvmlReturn_t rc = resolve(instance, MIG_DEVICE, info, &mig);
    if (rc == NVML_SUCCESS)
        *info = (struct gpu_instance_info){mig->parent, mig->gpu_instance, mig->mig_profile->id,
                                           {mig->placement, mig->mig_profile->slices}};
    return rc;
}

/* Compute profiles 0..4 have 1, 2, 3, 4 and 7 slices; the one that fills the GPU instance is the one in use. */
static unsigned compute_profile_of(unsigned slices)
{
    return slices == 7 ? 4 : slices - 1;
}

EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfo(nvmlGpuInstance_t instance, unsigned profile, unsigned engine,
                                                                 struct compute_profile *info)
{
    struct device *mig;
    nvmlReturn_t rc = resolve(instance, MIG_DEVICE, info, &mig);
    (void)engine;
    if (rc == NVML_SUCCESS && profile != compute_profile_of(mig->mig_profile->slices))
        rc = NVML_ERROR_NOT_SUPPORTED;
    if (rc == NVML_SUCCESS)
        *info = (struct compute_profile){.id = profile, .slices = mig->mig_profile->slices, .instances = 1,
                                         .multiprocessors = mig->mig_profile->multiprocessors};
    return rc;
}

EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstances(nvmlGpuInstance_t instance, unsigned profile_id,
                                                       nvmlComputeInstance_t *instances, unsigned *count)
{
    struct device *mig;
    nvmlReturn_t rc = resolve(instance, MIG_DEVICE, count == NULL ? NULL : (void *)instances, &mig);
    if (rc == NVML_SUCCESS) {
        *count = !mig->empty && profile_id == compute_profile_of(mig->mig_profile->slices);
        instances[0] = mig;
    }
    return rc;
}

EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_t instance, unsigned id, nvmlComputeInstance_t *compute)
{
    struct device *mig;
    nvmlReturn_t rc = resolve(instance, MIG_DEVICE, compute, &mig);
    if (rc == NVML_SUCCESS && (id != 0 || mig->empty))
        rc = NVML_ERROR_NOT_FOUND;
    if (rc == NVML_SUCCESS)
        *compute = mig;
    return rc;
}

static nvmlReturn_t copy_compute(nvmlComputeInstance_t compute, void *target, size_t size)
{
    struct device *mig;
    nvmlReturn_t rc = resolve(compute, MIG_DEVICE, target, &mig);
    if (rc == NVML_SUCCESS) {
        struct compute_instance_info info = {mig->parent, mig, 0, compute_profile_of(mig->mig_profile->slices),
                                             {0, mig->mig_profile->slices}};
        memcpy(target, &info, size);
    }
    return rc;
}

EXPORT nvmlReturn_t nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t compute, void *info)
{
    return copy_compute(compute, info, sizeof(struct compute_instance_info));
}

EXPORT nvmlReturn_t nvmlComputeInstanceGetInfo(nvmlComputeInstance_t compute, void *info)
{
    return copy_compute(compute, info, offsetof(struct compute_instance_info, placement));
}
