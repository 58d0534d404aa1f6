/*
 * Copyright (c) 2026, the gpu.kubernetes authors
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Start and stop, versions, lookups of devices, and the checks that every call shares.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "mig.h"

static atomic_flag guard = ATOMIC_FLAG_INIT;
static atomic_uint users;

void model_hang(void)
{
    const struct timespec hour = {3600, 0};
    for (;;)
        nanosleep(&hour, NULL);
}

static void apply_fault(unsigned fault)
{
    if (fault == FAULT_HANG)
        model_hang();
    if (fault == FAULT_ABORT)
        abort();
}

nvmlReturn_t require_init(const void *result)
{
    if (atomic_load(&users) == 0)
        return NVML_ERROR_UNINITIALIZED;
    return result == NULL ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
}

static bool is_gpu(const struct device *handle)
{
    for (unsigned i = 0; i < node.gpu_count; i++)
        if (handle == &node.gpus[i])
            return true;
    return false;
}

static bool is_mig(const struct device *handle)
{
    const struct device *first = &node.migs[0][0];
    return handle >= first && handle < first + MAX_GPUS * MAX_SLICES && handle->instance != NULL;
}

nvmlReturn_t resolve(nvmlDevice_t handle, enum need need, const void *result, struct device **found)
{
    nvmlReturn_t rc = require_init(result);
    if (rc != NVML_SUCCESS)
        return rc;
    state_refresh();
    bool mig = is_mig(handle);
    if (!mig && !is_gpu(handle))
        return NVML_ERROR_INVALID_ARGUMENT;
    *found = handle;
    if (need == ANY_DEVICE_EVEN_LOST || (need == WHOLE_GPU_EVEN_LOST && !mig))
        return NVML_SUCCESS;
    apply_fault(handle->gpu.fault);
    if (handle->gpu.fault == FAULT_LOST || handle->gpu.fault == FAULT_LOST_HANDLE)
        return NVML_ERROR_GPU_IS_LOST;
    if (need == MIG_DEVICE)
        return mig ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
    return mig && need != ANY_DEVICE ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

nvmlReturn_t put_text(char *target, unsigned length, const char *text)
{
    if (strlen(text) >= length)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(target, text, strlen(text) + 1);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned flags)
{
    nvmlReturn_t rc = NVML_SUCCESS;
    (void)flags;
    while (atomic_flag_test_and_set(&guard))
        ;
    if (atomic_load(&users) == 0) {
        rc = model_load();
        if (rc == NVML_SUCCESS)
            rc = node.init_result;
        if (rc == NVML_SUCCESS && *node.proc != '\0')
            state_publish(node.proc);
    }
    if (rc == NVML_SUCCESS)
        atomic_fetch_add(&users, 1);
    unsigned fault = node.init_fault;
    atomic_flag_clear(&guard);
    apply_fault(fault);
    return rc;
}

EXPORT nvmlReturn_t nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
EXPORT nvmlReturn_t nvmlInit(void) { return nvmlInitWithFlags(0); }

EXPORT nvmlReturn_t nvmlShutdown(void)
{
    nvmlReturn_t rc = NVML_ERROR_UNINITIALIZED;
    while (atomic_flag_test_and_set(&guard))
        ;
    if (atomic_load(&users) > 0) {
        atomic_fetch_sub(&users, 1);
        rc = NVML_SUCCESS;
    }
    atomic_flag_clear(&guard);
    return rc;
}

static const struct { nvmlReturn_t code; const char *text; } sentences[] = {
    {NVML_SUCCESS, "Success"},
    {NVML_ERROR_UNINITIALIZED, "Uninitialized"},
    {NVML_ERROR_INVALID_ARGUMENT, "Invalid Argument"},
    {NVML_ERROR_NOT_SUPPORTED, "Not Supported"},
    {NVML_ERROR_NO_PERMISSION, "Insufficient Permissions"},
    {NVML_ERROR_NOT_FOUND, "Not Found"},
    {NVML_ERROR_INSUFFICIENT_SIZE, "Insufficient Size"},
    {NVML_ERROR_DRIVER_NOT_LOADED, "Driver Not Loaded"},
    {NVML_ERROR_TIMEOUT, "Timeout"},
    {NVML_ERROR_LIBRARY_NOT_FOUND, "NVML Shared Library Not Found"},
    {NVML_ERROR_FUNCTION_NOT_FOUND, "Function Not Found"},
    {NVML_ERROR_GPU_IS_LOST, "GPU is lost"},
    {NVML_ERROR_RESET_REQUIRED, "GPU requires reset"},
    {NVML_ERROR_OPERATING_SYSTEM, "GPU access blocked by the operating system"},
    {NVML_ERROR_IN_USE, "In use by another client"},
    {NVML_ERROR_INSUFFICIENT_RESOURCES, "Insufficient Resources"},
    {NVML_ERROR_LIB_RM_VERSION_MISMATCH, "Driver/library version mismatch"},
    {NVML_ERROR_ARGUMENT_VERSION_MISMATCH, "Argument version mismatch"},
};

EXPORT const char *nvmlErrorString(nvmlReturn_t code)
{
    for (size_t i = 0; i < sizeof(sentences) / sizeof(*sentences); i++)
        if (sentences[i].code == code)
            return sentences[i].text;
    return "Unknown Error";
}

EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length)
{
    nvmlReturn_t rc = require_init(version);
    return rc != NVML_SUCCESS ? rc : put_text(version, length, node.driver_version);
}

/* Answers before initialisation too: it is the library's version, not the driver's. */
EXPORT nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned length)
{
    if (version == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    return put_text(version, length, node.nvml_version);
}

EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    nvmlReturn_t rc = require_init(version);
    if (rc == NVML_SUCCESS)
        *version = (int)node.cuda_version;
    return rc;
}

EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version) { return nvmlSystemGetCudaDriverVersion_v2(version); }

EXPORT nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char *name, unsigned length)
{
    nvmlReturn_t rc = require_init(name);
    char path[64];
    snprintf(path, sizeof(path), "/proc/%u/comm", pid);
    FILE *file = rc == NVML_SUCCESS ? fopen(path, "r") : NULL;
    if (rc != NVML_SUCCESS || file == NULL)
        return rc != NVML_SUCCESS ? rc : NVML_ERROR_NOT_FOUND;
    if (fgets(name, (int)length, file) == NULL)
        rc = NVML_ERROR_UNKNOWN;
    fclose(file);
    return rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count)
{
    nvmlReturn_t rc = require_init(count);
    if (rc == NVML_SUCCESS)
        *count = node.gpu_count;
    return rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetCount(unsigned *count) { return nvmlDeviceGetCount_v2(count); }

static nvmlReturn_t hand_out(struct device *found, nvmlDevice_t *device)
{
    if (found == NULL)
        return NVML_ERROR_NOT_FOUND;
    *device = found;
    return found->gpu.fault == FAULT_LOST_HANDLE ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device)
{
    nvmlReturn_t rc = require_init(device);
    if (rc == NVML_SUCCESS && index >= node.gpu_count)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    return rc != NVML_SUCCESS ? rc : hand_out(&node.gpus[index], device);
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    nvmlReturn_t rc = require_init(device);
    if (rc != NVML_SUCCESS || uuid == NULL)
        return rc != NVML_SUCCESS ? rc : NVML_ERROR_INVALID_ARGUMENT;
    state_refresh();
    for (unsigned i = 0; i < node.gpu_count; i++) {
        if (strcasecmp(node.gpus[i].uuid, uuid) == 0)
            return hand_out(&node.gpus[i], device);
        for (unsigned j = 0; j < MAX_SLICES; j++)
            if (node.migs[i][j].instance != NULL && strcasecmp(node.migs[i][j].uuid, uuid) == 0)
                return hand_out(&node.migs[i][j], device);
    }
    return NVML_ERROR_NOT_FOUND;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const struct uuid_v1 *uuid, nvmlDevice_t *device)
{
    if (uuid == NULL || uuid->kind != 1)
        return NVML_ERROR_INVALID_ARGUMENT; /* 1 is text */
    return nvmlDeviceGetHandleByUUID((const char *)uuid->value, device);
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device)
{
    nvmlReturn_t rc = require_init(device);
    if (rc != NVML_SUCCESS || serial == NULL)
        return rc != NVML_SUCCESS ? rc : NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned i = 0; i < node.gpu_count; i++)
        if (strcmp(node.gpus[i].serial, serial) == 0)
            return hand_out(&node.gpus[i], device);
    return NVML_ERROR_NOT_FOUND;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *address, nvmlDevice_t *device)
{
    unsigned domain = 0, bus = 0, slot = 0;
    nvmlReturn_t rc = require_init(device);
    if (rc != NVML_SUCCESS || address == NULL)
        return rc != NVML_SUCCESS ? rc : NVML_ERROR_INVALID_ARGUMENT;
    if (sscanf(address, "%x:%x:%x", &domain, &bus, &slot) != 3) {
        domain = 0;
        if (sscanf(address, "%x:%x", &bus, &slot) != 2)
            return NVML_ERROR_INVALID_ARGUMENT;
    }
    for (unsigned i = 0; i < node.gpu_count; i++)
        if (node.gpus[i].domain == domain && node.gpus[i].bus == bus && node.gpus[i].slot == slot)
            return hand_out(&node.gpus[i], device);
    return NVML_ERROR_NOT_FOUND;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *address, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByPciBusId_v2(address, device);
}
