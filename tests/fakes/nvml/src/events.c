/*
 * Copyright (c) 2026, the gpu.kubernetes authors
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Events, for which NVIDIA's device plugin waits; none is sent.
 */
#include <stdatomic.h>
#include <time.h>

#include "model.h"

enum { MAX_SETS = 32, EVENTS_SUPPORTED = 1 | 2 | 8 };

struct event_set {
    atomic_flag taken;
};

static struct event_set sets[MAX_SETS];

static nvmlReturn_t require_set(nvmlEventSet_t set)
{
    nvmlReturn_t rc = require_init(set);
    if (rc == NVML_SUCCESS && !(set >= sets && set < sets + MAX_SETS))
        rc = NVML_ERROR_INVALID_ARGUMENT;
    return rc;
}

EXPORT nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
    nvmlReturn_t rc = require_init(set);
    for (unsigned i = 0; rc == NVML_SUCCESS && i < MAX_SETS; i++)
        if (!atomic_flag_test_and_set(&sets[i].taken)) {
            *set = &sets[i];
            return NVML_SUCCESS;
        }
    return rc == NVML_SUCCESS ? NVML_ERROR_INSUFFICIENT_RESOURCES : rc;
}

EXPORT nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
    nvmlReturn_t rc = require_set(set);
    if (rc == NVML_SUCCESS)
        atomic_flag_clear(&set->taken);
    return rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t handle, unsigned long long *types)
{
    struct device *d;
    nvmlReturn_t rc = resolve(handle, WHOLE_GPU, types, &d);
    if (rc == NVML_SUCCESS)
        *types = EVENTS_SUPPORTED;
    return rc;
}

EXPORT nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t handle, unsigned long long types, nvmlEventSet_t set)
{
    struct device *d;
    nvmlReturn_t rc = resolve(handle, WHOLE_GPU, set, &d);
    if (rc == NVML_SUCCESS)
        rc = require_set(set);
    if (rc == NVML_SUCCESS && (types & ~(unsigned long long)EVENTS_SUPPORTED) != 0)
        rc = NVML_ERROR_NOT_SUPPORTED;
    return rc;
}

EXPORT nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, void *data, unsigned timeout_ms)
{
    struct timespec left = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
    nvmlReturn_t rc = require_set(set);
    if (rc != NVML_SUCCESS || data == NULL)
        return rc != NVML_SUCCESS ? rc : NVML_ERROR_INVALID_ARGUMENT;
    while (nanosleep(&left, &left) != 0)
        ;
    return NVML_ERROR_TIMEOUT;
}

EXPORT nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, void *data, unsigned timeout_ms)
{
    return nvmlEventSetWait_v2(set, data, timeout_ms);
}
