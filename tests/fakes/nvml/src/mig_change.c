/*
 * Copyright (c) 2026, the gpu.kubernetes authors
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What changes GPUs: MIG mode, GPU instances, compute instances, compute mode, reset. Each call resolves its
 * handles, takes the lock, and then checks again what another process may have changed until then.
 */
#include <string.h>

#include "handles.h"

enum { HOPPER = 9, COMPUTE_MODES = 4 };

static bool is_held(const struct device *gpu)
{
    return gpu->gpu.process_pid != 0 || gpu->gpu.mig_fault == MIG_FAULT_IN_USE;
}

static bool has_partitions(const struct device *gpu)
{
    for (unsigned i = 0; i < MAX_SLICES; i++)
        if (node.instances[gpu->index][i].gpu != NULL)
            return true;
    return false;
}

/* Ampere changes the mode when it is reset, later GPUs at once. Either waits for a GPU that is in use. */
static nvmlReturn_t activate(struct device *gpu)
{
    if (gpu->mig_mode == gpu->mig_pending)
        return NVML_SUCCESS;
    if (is_held(gpu) || has_partitions(gpu))
        return NVML_ERROR_IN_USE;
    if (gpu->gpu.architecture < HOPPER && !gpu->gpu.mig_at_once)
        return NVML_ERROR_RESET_REQUIRED;
    gpu->mig_mode = gpu->mig_pending;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceSetMigMode(nvmlDevice_t handle, unsigned mode, nvmlReturn_t *activation)
{
    struct device *gpu;
    int lock;
    nvmlReturn_t rc = resolve_capable(handle, activation, &gpu);
    if (rc == NVML_SUCCESS && mode > 1)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS)
        rc = state_lock(&lock);
    if (rc != NVML_SUCCESS)
        return rc;
    gpu->mig_pending = mode;
    *activation = activate(gpu);
    return state_unlock(lock, NVML_SUCCESS);
}

static nvmlReturn_t create_gpu_instance(nvmlDevice_t handle, unsigned profile_id, unsigned start, nvmlGpuInstance_t *created)
{
    struct device *gpu;
    int lock;
    const struct mig_profile *profile = find_profile_by_id(profile_id);
    nvmlReturn_t rc = resolve_enabled(handle, created, &gpu);
    if (rc == NVML_SUCCESS && profile == NULL)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS)
        rc = state_lock(&lock);
    if (rc != NVML_SUCCESS)
        return rc;
    struct gpu_instance *instance = gpu->mig_mode ? place_gpu_instance(gpu, profile, start) : NULL;
    if (instance != NULL)
        *created = instance;
    else
        rc = gpu->mig_mode ? NVML_ERROR_INSUFFICIENT_RESOURCES : NVML_ERROR_NOT_SUPPORTED;
    return state_unlock(lock, rc);
}

EXPORT nvmlReturn_t nvmlDeviceCreateGpuInstance(nvmlDevice_t handle, unsigned profile_id, nvmlGpuInstance_t *created)
{
    return create_gpu_instance(handle, profile_id, NOWHERE, created);
}

EXPORT nvmlReturn_t nvmlDeviceCreateGpuInstanceWithPlacement(nvmlDevice_t handle, unsigned profile_id,
                                                             const struct placement *placement, nvmlGpuInstance_t *created)
{
    const struct mig_profile *profile = find_profile_by_id(profile_id);
    nvmlReturn_t rc = require_init(placement);
    if (rc == NVML_SUCCESS && profile != NULL
        && (placement->start >= MAX_SLICES || placement->size != profile->size
            || (profile->starts & 1u << placement->start) == 0))
        rc = NVML_ERROR_INVALID_ARGUMENT;
    return rc != NVML_SUCCESS ? rc : create_gpu_instance(handle, profile_id, placement->start, created);
}

EXPORT nvmlReturn_t nvmlGpuInstanceDestroy(nvmlGpuInstance_t instance)
{
    int lock;
    nvmlReturn_t rc = resolve_instance(instance, instance);
    if (rc == NVML_SUCCESS)
        rc = state_lock(&lock);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!is_instance(instance))
        rc = NVML_ERROR_INVALID_ARGUMENT;
    else if (is_held(instance->gpu) || find_compute_instance(instance, ANY_INSTANCE) != NULL)
        rc = NVML_ERROR_IN_USE;
    else
        remove_gpu_instance(instance);
    return state_unlock(lock, rc);
}

static nvmlReturn_t create_compute_instance(nvmlGpuInstance_t instance, unsigned profile_id, unsigned start,
                                            nvmlComputeInstance_t *created)
{
    unsigned slices = 0;
    int lock;
    nvmlReturn_t rc = resolve_compute_profile(instance, profile_id, created, &slices);
    if (rc == NVML_SUCCESS)
        rc = state_lock(&lock);
    if (rc != NVML_SUCCESS)
        return rc;
    bool exists = is_instance(instance);
    struct device *mig = exists ? place_compute_instance(instance, ANY_INSTANCE, slices, start) : NULL;
    if (mig != NULL)
        *created = mig;
    else
        rc = exists ? NVML_ERROR_INSUFFICIENT_RESOURCES : NVML_ERROR_INVALID_ARGUMENT;
    return state_unlock(lock, rc);
}

EXPORT nvmlReturn_t nvmlGpuInstanceCreateComputeInstance(nvmlGpuInstance_t instance, unsigned profile_id,
                                                         nvmlComputeInstance_t *created)
{
    return create_compute_instance(instance, profile_id, NOWHERE, created);
}

EXPORT nvmlReturn_t nvmlGpuInstanceCreateComputeInstanceWithPlacement(nvmlGpuInstance_t instance, unsigned profile_id,
                                                                      const struct placement *placement,
                                                                      nvmlComputeInstance_t *created)
{
    unsigned slices = 0;
    nvmlReturn_t rc = resolve_compute_profile(instance, profile_id, placement, &slices);
    if (rc == NVML_SUCCESS
        && (placement->start >= MAX_SLICES || placement->size != slices
            || (compute_starts(slices, instance->profile->slices) & 1u << placement->start) == 0))
        rc = NVML_ERROR_INVALID_ARGUMENT;
    return rc != NVML_SUCCESS ? rc : create_compute_instance(instance, profile_id, placement->start, created);
}

EXPORT nvmlReturn_t nvmlComputeInstanceDestroy(nvmlComputeInstance_t compute)
{
    struct device *mig;
    int lock;
    nvmlReturn_t rc = resolve(compute, MIG_DEVICE, compute, &mig);
    if (rc == NVML_SUCCESS)
        rc = state_lock(&lock);
    if (rc != NVML_SUCCESS)
        return rc;
    if (mig->instance == NULL)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    else if (is_held(mig))
        rc = NVML_ERROR_IN_USE;
    else
        remove_compute_instance(mig);
    return state_unlock(lock, rc);
}

/* With MIG on, the mode belongs to each MIG device. */
EXPORT nvmlReturn_t nvmlDeviceSetComputeMode(nvmlDevice_t handle, unsigned mode)
{
    struct device *device;
    int lock;
    nvmlReturn_t rc = resolve(handle, ANY_DEVICE, handle, &device);
    if (rc == NVML_SUCCESS && mode >= COMPUTE_MODES)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS && device->parent == NULL && device->mig_mode)
        rc = NVML_ERROR_NOT_SUPPORTED;
    if (rc == NVML_SUCCESS)
        rc = state_lock(&lock);
    if (rc != NVML_SUCCESS)
        return rc;
    device->compute_mode = mode;
    return state_unlock(lock, NVML_SUCCESS);
}

/* Not of NVML: what `nvidia-smi --gpu-reset` does. */
EXPORT nvmlReturn_t fakeNvmlResetGpu(nvmlDevice_t handle)
{
    struct device *gpu;
    int lock;
    nvmlReturn_t rc = resolve(handle, WHOLE_GPU_EVEN_LOST, handle, &gpu);
    if (rc == NVML_SUCCESS)
        rc = is_held(gpu) ? NVML_ERROR_IN_USE : state_lock(&lock);
    if (rc != NVML_SUCCESS)
        return rc;
    clear_partitions(gpu);
    gpu->mig_mode = gpu->mig_pending;
    gpu->compute_mode = 0;
    return state_unlock(lock, NVML_SUCCESS);
}
