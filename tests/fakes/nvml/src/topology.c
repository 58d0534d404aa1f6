/*
 * Copyright (c) 2026, the gpu.kubernetes authors
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * How devices are wired to each other: topology, NVLink, fabric, processors.
 */
#include <stdio.h>
#include <string.h>

#include "model.h"

enum { SAME_BOARD = 0, SAME_SOCKET = 40, OTHER_SOCKET = 50, REMOTE_IS_SWITCH = 2 };

EXPORT nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t one, nvmlDevice_t two, unsigned *level)
{
    struct device *a, *b;
    nvmlReturn_t rc = resolve(one, WHOLE_GPU, level, &a);
    if (rc == NVML_SUCCESS)
        rc = resolve(two, WHOLE_GPU, level, &b);
    if (rc == NVML_SUCCESS)
        *level = a == b ? SAME_BOARD : a->gpu.numa_node == b->gpu.numa_node ? SAME_SOCKET : OTHER_SOCKET;
    return rc;
}

EXPORT nvmlReturn_t nvmlDeviceOnSameBoard(nvmlDevice_t one, nvmlDevice_t two, int *same)
{
    struct device *a, *b;
    nvmlReturn_t rc = resolve(one, WHOLE_GPU, same, &a);
    if (rc == NVML_SUCCESS)
        rc = resolve(two, WHOLE_GPU, same, &b);
    if (rc == NVML_SUCCESS)
        *same = a == b;
    return rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t one, nvmlDevice_t two, int capability, unsigned *status)
{
    struct device *a, *b;
    nvmlReturn_t rc = resolve(one, WHOLE_GPU, status, &a);
    (void)capability;
    if (rc == NVML_SUCCESS)
        rc = resolve(two, WHOLE_GPU, status, &b);
    if (rc == NVML_SUCCESS)
        *status = a->gpu.nvlinks > 0 && b->gpu.nvlinks > 0 ? 0 : 5;
    return rc;
}

/* Links beyond those that the profile gives do not exist, as on a board without a bridge. */
static nvmlReturn_t linked(nvmlDevice_t handle, unsigned link, const void *result, struct device **d)
{
    nvmlReturn_t rc = resolve(handle, WHOLE_GPU, result, d);
    if (rc == NVML_SUCCESS && (*d)->gpu.nvlinks == 0)
        return NVML_ERROR_NOT_SUPPORTED;
    return rc == NVML_SUCCESS && link >= (*d)->gpu.nvlinks ? NVML_ERROR_INVALID_ARGUMENT : rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t handle, unsigned link, unsigned *active)
{
    struct device *d;
    nvmlReturn_t rc = linked(handle, link, active, &d);
    if (rc == NVML_SUCCESS)
        *active = 1;
    return rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t handle, unsigned link, unsigned *version)
{
    struct device *d;
    nvmlReturn_t rc = linked(handle, link, version, &d);
    if (rc == NVML_SUCCESS)
        *version = d->gpu.architecture >= 9 ? 6 : 4; /* as nvml.h numbers 4.0 and 3.0 */
    return rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t handle, unsigned link, int capability, unsigned *value)
{
    struct device *d;
    nvmlReturn_t rc = linked(handle, link, value, &d);
    (void)capability;
    if (rc == NVML_SUCCESS)
        *value = 1;
    return rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t handle, unsigned link, unsigned *type)
{
    struct device *d;
    nvmlReturn_t rc = linked(handle, link, type, &d);
    if (rc == NVML_SUCCESS)
        *type = REMOTE_IS_SWITCH;
    return rc;
}

/* Every link ends at a switch, which is not a device of this library. */
EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t handle, unsigned link, struct pci_info *pci)
{
    struct device *d;
    nvmlReturn_t rc = linked(handle, link, pci, &d);
    if (rc != NVML_SUCCESS)
        return rc;
    memset(pci, 0, sizeof(*pci));
    pci->bus = 0xC4 + link % 6;
    snprintf(pci->bus_id, sizeof(pci->bus_id), "00000000:%02X:00.0", pci->bus & 0xFF);
    snprintf(pci->bus_id_legacy, sizeof(pci->bus_id_legacy), "0000:%02X:00.0", pci->bus & 0xFF);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice_t handle, unsigned link, void *pci)
{
    struct pci_info full;
    nvmlReturn_t rc = pci == NULL ? NVML_ERROR_INVALID_ARGUMENT : nvmlDeviceGetNvLinkRemotePciInfo_v2(handle, link, &full);
    if (rc == NVML_SUCCESS)
        memcpy(pci, &full, offsetof(struct pci_info, subsystem_id));
    return rc;
}

static nvmlReturn_t require_fabric(nvmlDevice_t handle, const void *result)
{
    struct device *d;
    nvmlReturn_t rc = resolve(handle, WHOLE_GPU, result, &d);
    return rc == NVML_SUCCESS && !d->gpu.fabric ? NVML_ERROR_NOT_SUPPORTED : rc;
}

/* A single board: registered with its fabric manager, in no cluster. */
EXPORT nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t handle, struct fabric_v1 *info)
{
    nvmlReturn_t rc = require_fabric(handle, info);
    if (rc == NVML_SUCCESS)
        *info = (struct fabric_v1){.state = 3};
    return rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t handle, struct fabric_v2 *info)
{
    nvmlReturn_t rc = require_fabric(handle, info);
    if (rc != NVML_SUCCESS)
        return rc;
    uint32_t version = info->version, size = version & 0xFFFFFF;
    if (size < sizeof(*info) || size > sizeof(*info) + 4 || version >> 24 < 2)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    memset(info, 0, size);
    info->version = version;
    info->state = 3;
    return NVML_SUCCESS;
}

static nvmlReturn_t first_words(nvmlDevice_t handle, unsigned size, unsigned long *set, bool numa)
{
    struct device *d;
    nvmlReturn_t rc = resolve(handle, WHOLE_GPU, size == 0 ? NULL : set, &d);
    if (rc != NVML_SUCCESS)
        return rc;
    memset(set, 0, size * sizeof(*set));
    set[0] = numa ? 1ul << d->gpu.numa_node : 3ul; /* two processors serve every device */
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t handle, unsigned size, unsigned long *set)
{
    return first_words(handle, size, set, false);
}

EXPORT nvmlReturn_t nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_t handle, unsigned size, unsigned long *set, unsigned scope)
{
    (void)scope;
    return first_words(handle, size, set, false);
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t handle, unsigned size, unsigned long *set, unsigned scope)
{
    (void)scope;
    return first_words(handle, size, set, true);
}

EXPORT nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t handle, int count, struct field_value *values)
{
    struct device *d;
    nvmlReturn_t rc = resolve(handle, WHOLE_GPU, values, &d);
    for (int i = 0; rc == NVML_SUCCESS && i < count; i++)
        values[i].rc = NVML_ERROR_NOT_SUPPORTED;
    return rc;
}
