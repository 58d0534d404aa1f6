/*
 * Copyright (c) 2026, the gpu.kubernetes authors
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Multi-instance GPU: profiles, their placements, and how many instances of them are left.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handles.h"

enum { LISTS_PROFILES_WITHOUT_MIG = 550, ENGINE_PROFILES = 1 };

unsigned multiprocessors_of(const struct mig_profile *profile, unsigned compute_slices)
{
    return profile->multiprocessors * compute_slices / profile->slices;
}

/* Older drivers list profiles only while MIG is on. */
static nvmlReturn_t resolve_profile(nvmlDevice_t handle, const struct mig_profile *profile, nvmlReturn_t without,
                                    const void *result, struct device **gpu)
{
    nvmlReturn_t rc = resolve_capable(handle, result, gpu);
    if (rc == NVML_SUCCESS && !(*gpu)->mig_mode && atoi(node.driver_version) < LISTS_PROFILES_WITHOUT_MIG)
        rc = NVML_ERROR_NOT_SUPPORTED;
    return rc == NVML_SUCCESS && profile == NULL ? without : rc;
}

static nvmlReturn_t resolve_index(nvmlDevice_t handle, unsigned index, const void *result)
{
    struct device *gpu;
    nvmlReturn_t without = index < MAX_MIG_PROFILES ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_INVALID_ARGUMENT;
    return resolve_profile(handle, find_profile_by_index(index), without, result, &gpu);
}

#define ENGINES_OF(profile)                                                                             \
    .copy_engines = (profile)->engines[COPY_ENGINE], .decoders = (profile)->engines[DECODER],           \
    .encoders = (profile)->engines[ENCODER], .jpegs = (profile)->engines[JPEG], .ofas = (profile)->engines[OFA]
#define GPU_PROFILE(profile)                                                                            \
    .id = (profile)->id, .slices = (profile)->slices, .instances = (profile)->instances,                \
    .multiprocessors = (profile)->multiprocessors, .memory_mib = (profile)->memory_mib, ENGINES_OF(profile)

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t handle, unsigned index, struct gpu_profile *info)
{
    nvmlReturn_t rc = resolve_index(handle, index, info);
    const struct mig_profile *profile = find_profile_by_index(index);
    if (rc == NVML_SUCCESS)
        *info = (struct gpu_profile){GPU_PROFILE(profile)};
    return rc;
}

static nvmlReturn_t fill_versioned(const struct mig_profile *profile, void *info)
{
    struct gpu_profile_v2 two = {.version = STRUCT_VERSION(two, 2), GPU_PROFILE(profile)};
    struct gpu_profile_v3 three = {.version = STRUCT_VERSION(three, 3), GPU_PROFILE(profile)};
    uint32_t version = *(uint32_t *)info;
    mig_name(profile, profile->slices, two.name, sizeof(two.name));
    mig_name(profile, profile->slices, three.name, sizeof(three.name));
    if (version == two.version)
        memcpy(info, &two, sizeof(two));
    else if (version == three.version)
        memcpy(info, &three, sizeof(three));
    else
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t handle, unsigned index, void *info)
{
    nvmlReturn_t rc = resolve_index(handle, index, info);
    return rc != NVML_SUCCESS ? rc : fill_versioned(find_profile_by_index(index), info);
}

static nvmlReturn_t resolve_id(nvmlDevice_t handle, unsigned id, const void *result, struct device **gpu)
{
    return resolve_profile(handle, find_profile_by_id(id), NVML_ERROR_INVALID_ARGUMENT, result, gpu);
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoByIdV(nvmlDevice_t handle, unsigned id, void *info)
{
    struct device *gpu;
    nvmlReturn_t rc = resolve_id(handle, id, info, &gpu);
    return rc != NVML_SUCCESS ? rc : fill_versioned(find_profile_by_id(id), info);
}

/* Writes an item of `size` for each bit of `starts`; without a list it only counts. */
static void list_placements(unsigned starts, unsigned size, struct placement *placements, unsigned *count)
{
    *count = 0;
    for (unsigned start = 0; start < MAX_SLICES; start++)
        if ((starts & 1u << start) != 0) {
            if (placements != NULL)
                placements[*count] = (struct placement){start, size};
            ++*count;
        }
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements_v2(nvmlDevice_t handle, unsigned id,
                                                                  struct placement *placements, unsigned *count)
{
    struct device *gpu;
    nvmlReturn_t rc = resolve_id(handle, id, count, &gpu);
    const struct mig_profile *profile = find_profile_by_id(id);
    if (rc == NVML_SUCCESS)
        list_placements(profile->starts, profile->size, placements, count);
    return rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_t handle, unsigned id, unsigned *count)
{
    struct device *gpu;
    nvmlReturn_t rc = resolve_enabled(handle, count, &gpu);
    if (rc == NVML_SUCCESS && find_profile_by_id(id) == NULL)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS)
        *count = gpu_instance_capacity(gpu, find_profile_by_id(id));
    return rc;
}

/* -- profiles of compute instances: their ids are their numbers */

nvmlReturn_t resolve_compute_profile(nvmlGpuInstance_t handle, unsigned id, const void *result, unsigned *slices)
{
    nvmlReturn_t rc = resolve_instance(handle, result);
    if (rc != NVML_SUCCESS)
        return rc;
    *slices = compute_profile_slices(id, handle->profile->slices);
    if (*slices > 0)
        return NVML_SUCCESS;
    return id < COMPUTE_PROFILES ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_INVALID_ARGUMENT;
}

static nvmlReturn_t fill_compute(nvmlGpuInstance_t instance, unsigned id, unsigned engine, const void *result,
                                 struct compute_profile_v3 *info)
{
    unsigned slices = 0, count = 0;
    nvmlReturn_t rc = resolve_compute_profile(instance, id, result, &slices);
    if (rc == NVML_SUCCESS && engine >= ENGINE_PROFILES)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc != NVML_SUCCESS)
        return rc;
    const struct mig_profile *profile = instance->profile;
    list_placements(compute_starts(slices, profile->slices), slices, NULL, &count);
    *info = (struct compute_profile_v3){.id = id, .slices = slices, .instances = count, ENGINES_OF(profile),
                                        .multiprocessors = multiprocessors_of(profile, slices)};
    mig_name(profile, slices, info->name, sizeof(info->name));
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfo(nvmlGpuInstance_t instance, unsigned profile, unsigned engine,
                                                                 struct compute_profile *info)
{
    struct compute_profile_v3 full;
    nvmlReturn_t rc = fill_compute(instance, profile, engine, info, &full);
    if (rc == NVML_SUCCESS)
        memcpy(info, &full.id, sizeof(*info));
    return rc;
}

EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfoV(nvmlGpuInstance_t instance, unsigned profile, unsigned engine,
                                                                  void *info)
{
    struct compute_profile_v3 full;
    nvmlReturn_t rc = fill_compute(instance, profile, engine, info, &full);
    if (rc != NVML_SUCCESS)
        return rc;
    uint32_t version = *(uint32_t *)info, revision = version >> 24;
    size_t size = revision == 2 ? offsetof(struct compute_profile_v3, capabilities) : sizeof(full);
    if ((revision != 2 && revision != 3) || (version & 0xFFFFFF) != size)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    full.version = version;
    memcpy(info, &full, size);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstancePossiblePlacements(nvmlGpuInstance_t instance, unsigned id,
                                                                        struct placement *placements, unsigned *count)
{
    unsigned slices = 0;
    nvmlReturn_t rc = resolve_compute_profile(instance, id, count, &slices);
    if (rc == NVML_SUCCESS)
        list_placements(compute_starts(slices, instance->profile->slices), slices, placements, count);
    return rc;
}

EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceRemainingCapacity(nvmlGpuInstance_t instance, unsigned id, unsigned *count)
{
    unsigned slices = 0;
    nvmlReturn_t rc = resolve_compute_profile(instance, id, count, &slices);
    if (rc == NVML_SUCCESS)
        *count = compute_instance_capacity(instance, slices);
    return rc;
}
