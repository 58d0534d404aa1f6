/*
 * Copyright (c) 2026, the gpu.kubernetes authors
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Multi-instance GPU: what can be read of modes, MIG devices and instances.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handles.h"

nvmlReturn_t resolve_capable(nvmlDevice_t handle, const void *result, struct device **gpu)
{
    nvmlReturn_t rc = resolve(handle, WHOLE_GPU, result, gpu);
    return rc == NVML_SUCCESS && (*gpu)->gpu.mig == MIG_UNSUPPORTED ? NVML_ERROR_NOT_SUPPORTED : rc;
}

nvmlReturn_t resolve_enabled(nvmlDevice_t handle, const void *result, struct device **gpu)
{
    nvmlReturn_t rc = resolve_capable(handle, result, gpu);
    return rc == NVML_SUCCESS && !(*gpu)->mig_mode ? NVML_ERROR_NOT_SUPPORTED : rc;
}

bool is_instance(const struct gpu_instance *handle)
{
    const struct gpu_instance *first = &node.instances[0][0];
    return handle >= first && handle < first + MAX_GPUS * MAX_SLICES && handle->gpu != NULL;
}

nvmlReturn_t resolve_instance(nvmlGpuInstance_t handle, const void *result)
{
    nvmlReturn_t rc = require_init(result);
    struct device *gpu;
    if (rc != NVML_SUCCESS)
        return rc;
    state_refresh();
    return is_instance(handle) ? resolve(handle->gpu, WHOLE_GPU, result, &gpu) : NVML_ERROR_INVALID_ARGUMENT;
}

EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t handle, unsigned *current, unsigned *pending)
{
    struct device *gpu;
    nvmlReturn_t rc = resolve_capable(handle, pending == NULL ? NULL : current, &gpu);
    if (rc == NVML_SUCCESS) {
        *current = gpu->mig_mode;
        *pending = gpu->mig_pending;
    }
    return rc;
}

/* -- MIG devices */

EXPORT nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t handle, unsigned *count)
{
    struct device *gpu;
    nvmlReturn_t rc = resolve(handle, WHOLE_GPU, count, &gpu);
    if (rc == NVML_SUCCESS)
        *count = gpu->mig_mode ? max_mig_devices() : 0;
    return rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t handle, unsigned index, nvmlDevice_t *device)
{
    struct device *gpu;
    nvmlReturn_t rc = resolve_capable(handle, device, &gpu);
    if (rc == NVML_SUCCESS && index >= max_mig_devices())
        rc = NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned i = 0; rc == NVML_SUCCESS && i < MAX_SLICES; i++) {
        struct device *mig = &node.migs[gpu->index][i];
        if (mig->instance != NULL && mig->index == index) {
            *device = mig;
            return NVML_SUCCESS;
        }
    }
    return rc == NVML_SUCCESS ? NVML_ERROR_NOT_FOUND : rc;
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
        *id = mig->instance->id;
    return rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t handle, unsigned *id)
{
    struct device *mig;
    nvmlReturn_t rc = resolve(handle, MIG_DEVICE, id, &mig);
    if (rc == NVML_SUCCESS)
        *id = mig->compute_id;
    return rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t handle, struct attributes *attributes)
{
    struct device *mig;
    nvmlReturn_t rc = resolve(handle, MIG_DEVICE, attributes, &mig);
    if (rc != NVML_SUCCESS)
        return rc;
    const struct mig_profile *profile = mig->instance->profile;
    *attributes = (struct attributes){.multiprocessors = multiprocessors_of(profile, mig->compute_slices),
                                      .copy_engines = profile->engines[COPY_ENGINE],
                                      .decoders = profile->engines[DECODER],
                                      .encoders = profile->engines[ENCODER],
                                      .jpegs = profile->engines[JPEG],
                                      .ofas = profile->engines[OFA],
                                      .gpu_slices = profile->slices,
                                      .compute_slices = mig->compute_slices,
                                      .memory_mib = profile->memory_mib};
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t handle, struct attributes *attributes)
{
    return nvmlDeviceGetAttributes_v2(handle, attributes);
}

/* -- GPU instances */

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_t handle, unsigned profile_id, nvmlGpuInstance_t *instances, unsigned *count)
{
    struct device *gpu;
    nvmlReturn_t rc = resolve_enabled(handle, count == NULL ? NULL : (void *)instances, &gpu);
    if (rc == NVML_SUCCESS && find_profile_by_id(profile_id) == NULL)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc != NVML_SUCCESS)
        return rc;
    *count = 0;
    for (unsigned i = 0; i < MAX_SLICES; i++) {
        struct gpu_instance *instance = &node.instances[gpu->index][i];
        if (instance->gpu != NULL && instance->profile->id == profile_id)
            instances[(*count)++] = instance;
    }
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t handle, unsigned id, nvmlGpuInstance_t *instance)
{
    struct device *gpu;
    nvmlReturn_t rc = resolve_enabled(handle, instance, &gpu);
    if (rc == NVML_SUCCESS && (*instance = find_gpu_instance(gpu, id)) == NULL)
        rc = NVML_ERROR_NOT_FOUND;
    return rc;
}

EXPORT nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t instance, struct gpu_instance_info *info)
{
    nvmlReturn_t rc = resolve_instance(instance, info);
    if (rc == NVML_SUCCESS)
        *info = (struct gpu_instance_info){instance->gpu, instance->id, instance->profile->id,
                                           {instance->start, instance->profile->size}};
    return rc;
}

/* -- compute instances */

EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstances(nvmlGpuInstance_t instance, unsigned profile_id,
                                                       nvmlComputeInstance_t *instances, unsigned *count)
{
    unsigned slices;
    nvmlReturn_t rc = resolve_compute_profile(instance, profile_id, count == NULL ? NULL : (void *)instances, &slices);
    if (rc != NVML_SUCCESS)
        return rc;
    *count = 0;
    for (unsigned id = 0; id < MAX_SLICES; id++) {
        struct device *mig = find_compute_instance(instance, id);
        if (mig != NULL && mig->compute_slices == slices)
            instances[(*count)++] = mig;
    }
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_t instance, unsigned id, nvmlComputeInstance_t *compute)
{
    nvmlReturn_t rc = resolve_instance(instance, compute);
    if (rc != NVML_SUCCESS)
        return rc;
    struct device *mig = id == ANY_INSTANCE ? NULL : find_compute_instance(instance, id);
    if (mig != NULL)
        *compute = mig;
    return mig == NULL ? NVML_ERROR_NOT_FOUND : NVML_SUCCESS;
}

static nvmlReturn_t copy_compute(nvmlComputeInstance_t compute, void *target, size_t size)
{
    struct device *mig;
    nvmlReturn_t rc = resolve(compute, MIG_DEVICE, target, &mig);
    if (rc == NVML_SUCCESS) {
        struct compute_instance_info info = {mig->parent, (nvmlGpuInstance_t)mig->instance, mig->compute_id,
                                             compute_profile_of(mig->compute_slices),
                                             {mig->compute_start, mig->compute_slices}};
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
