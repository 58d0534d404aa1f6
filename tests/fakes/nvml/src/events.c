/*
 * Copyright (c) 2026, the gpu.kubernetes authors
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Events: a waiter sleeps until its time is over, or until the Xid error comes that the profile promises.
 */
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "model.h"

enum { MAX_SETS = 32, EVENT_XID = 8, EVENTS_SUPPORTED = 1 | 2 | 8 };

struct event_set {
    atomic_flag taken;
    int64_t created_ms;
    uint64_t wanted[MAX_GPUS];
    bool delivered[MAX_GPUS];
};

static struct event_set sets[MAX_SETS];

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void sleep_ms(int64_t milliseconds)
{
    struct timespec left = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    while (milliseconds > 0 && nanosleep(&left, &left) != 0)
        ;
}

static bool is_set(const struct event_set *set)
{
    return set >= sets && set < sets + MAX_SETS;
}

EXPORT nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
    nvmlReturn_t rc = require_init(set);
    for (unsigned i = 0; rc == NVML_SUCCESS && i < MAX_SETS; i++)
        if (!atomic_flag_test_and_set(&sets[i].taken)) {
            sets[i].created_ms = now_ms() + 1; /* rounded up, so that no event comes before its time */
            memset(sets[i].wanted, 0, sizeof(sets[i].wanted));
            memset(sets[i].delivered, 0, sizeof(sets[i].delivered));
            *set = &sets[i];
            return NVML_SUCCESS;
        }
    return rc == NVML_SUCCESS ? NVML_ERROR_INSUFFICIENT_RESOURCES : rc;
}

EXPORT nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
    nvmlReturn_t rc = require_init(set);
    if (rc == NVML_SUCCESS && !is_set(set))
        rc = NVML_ERROR_INVALID_ARGUMENT;
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
    if (rc == NVML_SUCCESS && !is_set(set))
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS && (types & ~(unsigned long long)EVENTS_SUPPORTED) != 0)
        rc = NVML_ERROR_NOT_SUPPORTED;
    if (rc == NVML_SUCCESS)
        set->wanted[d->index] |= types;
    return rc;
}

/* The next Xid that this set will see, or NULL; `when` is in milliseconds of the monotonic clock. */
static struct device *next_xid(const struct event_set *set, int64_t *when)
{
    struct device *next = NULL;
    for (unsigned i = 0; i < node.gpu_count; i++) {
        struct device *d = &node.gpus[i];
        int64_t due = set->created_ms + d->gpu.xid_after_ms;
        if (d->gpu.xid == 0 || set->delivered[i] || (set->wanted[i] & EVENT_XID) == 0)
            continue;
        if (next == NULL || due < *when) {
            next = d;
            *when = due;
        }
    }
    return next;
}

static nvmlReturn_t wait_for(nvmlEventSet_t set, struct event_data *data, unsigned timeout_ms, size_t size)
{
    nvmlReturn_t rc = require_init(data);
    if (rc != NVML_SUCCESS || !is_set(set))
        return rc != NVML_SUCCESS ? rc : NVML_ERROR_INVALID_ARGUMENT;
    int64_t start = now_ms(), end = start + timeout_ms, due = 0;
    struct device *device = next_xid(set, &due);
    if (device == NULL || due > end) {
        sleep_ms(timeout_ms);
        return NVML_ERROR_TIMEOUT;
    }
    sleep_ms(due - start);
    set->delivered[device->index] = true;
    struct event_data event = {device, EVENT_XID, device->gpu.xid, ANY_INSTANCE, ANY_INSTANCE};
    memcpy(data, &event, size);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, struct event_data *data, unsigned timeout_ms)
{
    return wait_for(set, data, timeout_ms, sizeof(*data));
}

EXPORT nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, struct event_data *data, unsigned timeout_ms)
{
    return wait_for(set, data, timeout_ms, offsetof(struct event_data, gpu_instance));
}
