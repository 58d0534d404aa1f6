/*
 * Copyright (c) 2026, the gpu.kubernetes authors
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Properties of a device.
 */
#include <stdio.h>
#include <string.h>

#include "model.h"

static const uint64_t mib = 1024 * 1024;

/* Most queries put one number of the model into one output. */
#define GETTER(function, type, need, expression)                    \
    EXPORT nvmlReturn_t function(nvmlDevice_t handle, type *value)  \
    {                                                               \
        struct device *d;                                           \
        nvmlReturn_t rc = resolve(handle, need, value, &d);         \
        if (rc == NVML_SUCCESS)                                     \
            *value = (type)(expression);                            \
        return rc;                                                  \
    }
#define TEXT_GETTER(function, need, expression)                                     \
    EXPORT nvmlReturn_t function(nvmlDevice_t handle, char *text, unsigned length)  \
    {                                                                               \
        struct device *d;                                                           \
        nvmlReturn_t rc = resolve(handle, need, text, &d);                          \
        return rc != NVML_SUCCESS ? rc : put_text(text, length, expression);        \
    }
/* The same, keyed by an enumeration that makes no difference here. */
#define KEYED_GETTER(function, expression)                                      \
    EXPORT nvmlReturn_t function(nvmlDevice_t handle, int key, unsigned *value) \
    {                                                                           \
        struct device *d;                                                       \
        nvmlReturn_t rc = resolve(handle, WHOLE_GPU, value, &d);                \
        if (rc == NVML_SUCCESS)                                                 \
            *value = (expression);                                              \
        (void)key;                                                              \
        return rc;                                                              \
    }

static unsigned pcie_generation(const struct device *d)
{
    return d->gpu.architecture >= 9 ? 5 : d->gpu.architecture >= 7 ? 4 : 3;
}

TEXT_GETTER(nvmlDeviceGetName, ANY_DEVICE, d->name)
TEXT_GETTER(nvmlDeviceGetUUID, ANY_DEVICE, d->uuid)
TEXT_GETTER(nvmlDeviceGetSerial, WHOLE_GPU, d->serial)
TEXT_GETTER(nvmlDeviceGetVbiosVersion, WHOLE_GPU, d->gpu.vbios)
TEXT_GETTER(nvmlDeviceGetBoardPartNumber, WHOLE_GPU, "900-00000-0000-000")

GETTER(nvmlDeviceGetIndex, unsigned, ANY_DEVICE_EVEN_LOST, d->index)
GETTER(nvmlDeviceGetMinorNumber, unsigned, WHOLE_GPU_EVEN_LOST, d->gpu.minor)
GETTER(nvmlDeviceGetModuleId, unsigned, WHOLE_GPU, d->index + 1)
GETTER(nvmlDeviceGetBoardId, unsigned, WHOLE_GPU, d->bus << 8)
GETTER(nvmlDeviceGetMultiGpuBoard, unsigned, WHOLE_GPU, 0)
GETTER(nvmlDeviceGetBrand, unsigned, ANY_DEVICE, d->gpu.brand)
GETTER(nvmlDeviceGetArchitecture, unsigned, ANY_DEVICE, d->gpu.architecture)
GETTER(nvmlDeviceGetNumaNodeId, unsigned, WHOLE_GPU, d->gpu.numa_node)
GETTER(nvmlDeviceGetPersistenceMode, unsigned, WHOLE_GPU, d->gpu.persistence)
GETTER(nvmlDeviceGetComputeMode, unsigned, ANY_DEVICE, d->compute_mode)
GETTER(nvmlDeviceGetPowerUsage, unsigned, WHOLE_GPU, d->gpu.power_mw)
GETTER(nvmlDeviceGetPowerManagementMode, unsigned, WHOLE_GPU, 1)
GETTER(nvmlDeviceGetPowerManagementLimit, unsigned, WHOLE_GPU, d->gpu.power_limit_mw)
GETTER(nvmlDeviceGetPowerManagementDefaultLimit, unsigned, WHOLE_GPU, d->gpu.power_limit_mw)
GETTER(nvmlDeviceGetEnforcedPowerLimit, unsigned, WHOLE_GPU, d->gpu.power_limit_mw)
GETTER(nvmlDeviceGetTotalEnergyConsumption, unsigned long long, WHOLE_GPU, d->gpu.power_mw * 1000ull)
GETTER(nvmlDeviceGetPerformanceState, unsigned, WHOLE_GPU, 0)
GETTER(nvmlDeviceGetPowerState, unsigned, WHOLE_GPU, 0)
GETTER(nvmlDeviceGetDisplayMode, unsigned, WHOLE_GPU, 0)
GETTER(nvmlDeviceGetDisplayActive, unsigned, WHOLE_GPU, 0)
GETTER(nvmlDeviceGetMaxPcieLinkGeneration, unsigned, WHOLE_GPU, pcie_generation(d))
GETTER(nvmlDeviceGetCurrPcieLinkGeneration, unsigned, WHOLE_GPU, pcie_generation(d))
GETTER(nvmlDeviceGetMaxPcieLinkWidth, unsigned, WHOLE_GPU, 16)
GETTER(nvmlDeviceGetCurrPcieLinkWidth, unsigned, WHOLE_GPU, 16)
GETTER(nvmlDeviceGetPcieReplayCounter, unsigned, WHOLE_GPU, 0)
GETTER(nvmlDeviceGetCurrentClocksThrottleReasons, unsigned long long, WHOLE_GPU, 1) /* idle */
GETTER(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, WHOLE_GPU, 1)
GETTER(nvmlDeviceGetRetiredPagesPendingStatus, unsigned, WHOLE_GPU, 0)
GETTER(nvmlDeviceGetVirtualizationMode, unsigned, WHOLE_GPU, d->gpu.virtualization)

KEYED_GETTER(nvmlDeviceGetTemperature, d->gpu.temperature)
KEYED_GETTER(nvmlDeviceGetTemperatureThreshold, 90)
KEYED_GETTER(nvmlDeviceGetClockInfo, key == 2 ? d->gpu.clock_memory : d->gpu.clock_graphics)
KEYED_GETTER(nvmlDeviceGetMaxClockInfo, key == 2 ? d->gpu.clock_memory : d->gpu.clock_graphics)
KEYED_GETTER(nvmlDeviceGetApplicationsClock, key == 2 ? d->gpu.clock_memory : d->gpu.clock_graphics)
KEYED_GETTER(nvmlDeviceGetPcieThroughput, 0)

EXPORT nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t handle, struct temperature_v1 *value)
{
    struct device *d;
    nvmlReturn_t rc = resolve(handle, WHOLE_GPU, value, &d);
    if (rc == NVML_SUCCESS && value->version != STRUCT_VERSION(*value, 1))
        rc = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (rc == NVML_SUCCESS)
        value->degrees = (int32_t)d->gpu.temperature;
    return rc;
}

static void fill_pci(const struct device *d, struct pci_info *pci)
{
    snprintf(pci->bus_id_legacy, sizeof(pci->bus_id_legacy), "%04X:%02X:%02X.0", d->domain & 0xFFFF, d->bus & 0xFF,
             d->slot & 0x1F);
    snprintf(pci->bus_id, sizeof(pci->bus_id), "%08X:%02X:%02X.0", d->domain, d->bus & 0xFF, d->slot & 0x1F);
    pci->domain = d->domain;
    pci->bus = d->bus;
    pci->slot = d->slot;
    pci->device_id = d->gpu.pci_device_id;
    pci->subsystem_id = d->gpu.pci_subsystem_id;
}

static nvmlReturn_t copy_pci(nvmlDevice_t handle, void *target, size_t size)
{
    struct device *d;
    struct pci_info pci;
    nvmlReturn_t rc = resolve(handle, WHOLE_GPU_EVEN_LOST, target, &d);
    if (rc == NVML_SUCCESS) {
        memset(&pci, 0, sizeof(pci));
        fill_pci(d, &pci);
        memcpy(target, &pci, size);
    }
    return rc;
}

#define PCI_INFO(function, size) \
    EXPORT nvmlReturn_t function(nvmlDevice_t handle, void *pci) { return copy_pci(handle, pci, size); }

PCI_INFO(nvmlDeviceGetPciInfo_v3, sizeof(struct pci_info))
PCI_INFO(nvmlDeviceGetPciInfo_v2, offsetof(struct pci_info, bus_id))
PCI_INFO(nvmlDeviceGetPciInfo, offsetof(struct pci_info, subsystem_id))

EXPORT nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t handle, struct pci_info_ext *ext)
{
    struct pci_info pci;
    nvmlReturn_t rc = ext == NULL ? NVML_ERROR_INVALID_ARGUMENT : copy_pci(handle, &pci, sizeof(pci));
    if (rc == NVML_SUCCESS && ext->version != STRUCT_VERSION(*ext, 1))
        rc = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (rc != NVML_SUCCESS)
        return rc;
    memcpy(&ext->domain, &pci.domain, 5 * sizeof(uint32_t));
    memcpy(ext->bus_id, pci.bus_id, sizeof(ext->bus_id));
    ext->base_class = 3;
    ext->sub_class = 2;
    return NVML_SUCCESS;
}

static struct memory_v2 memory_of(const struct device *d)
{
    struct memory_v2 memory = {0};
    memory.total = (d->parent != NULL ? d->instance->profile->memory_mib : d->gpu.memory_mib) * mib;
    memory.reserved = (d->parent != NULL ? 0 : d->gpu.memory_reserved_mib) * mib;
    memory.used = (d->parent != NULL ? 0 : d->gpu.memory_used_mib) * mib;
    memory.free = memory.total - memory.reserved - memory.used;
    return memory;
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t handle, struct memory_v1 *memory)
{
    struct device *d;
    nvmlReturn_t rc = resolve(handle, ANY_DEVICE, memory, &d);
    if (rc == NVML_SUCCESS) {
        struct memory_v2 full = memory_of(d);
        *memory = (struct memory_v1){full.total, full.free, full.total - full.free};
    }
    return rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t handle, struct memory_v2 *memory)
{
    struct device *d;
    nvmlReturn_t rc = resolve(handle, ANY_DEVICE, memory, &d);
    if (rc == NVML_SUCCESS && memory->version != STRUCT_VERSION(*memory, 2))
        rc = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (rc == NVML_SUCCESS) {
        uint32_t version = memory->version;
        *memory = memory_of(d);
        memory->version = version;
    }
    return rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t handle, struct bar1_memory *memory)
{
    struct device *d;
    nvmlReturn_t rc = resolve(handle, WHOLE_GPU, memory, &d);
    if (rc == NVML_SUCCESS)
        *memory = (struct bar1_memory){d->gpu.memory_mib * mib, d->gpu.memory_mib * mib - mib, mib};
    return rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t handle, int *major, int *minor)
{
    struct device *d;
    nvmlReturn_t rc = resolve(handle, ANY_DEVICE, minor == NULL ? NULL : major, &d);
    if (rc == NVML_SUCCESS) {
        *major = (int)d->gpu.capability_major;
        *minor = (int)d->gpu.capability_minor;
    }
    return rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t handle, struct utilization *rates)
{
    struct device *d;
    nvmlReturn_t rc = resolve(handle, WHOLE_GPU, rates, &d);
    if (rc == NVML_SUCCESS && d->mig_mode)
        rc = NVML_ERROR_NOT_SUPPORTED; /* a partitioned GPU has no single figure */
    if (rc == NVML_SUCCESS)
        *rates = (struct utilization){d->gpu.utilization_gpu, d->gpu.utilization_memory};
    return rc;
}

static nvmlReturn_t idle_engine(nvmlDevice_t handle, unsigned *percent, unsigned *period_us)
{
    struct device *d;
    nvmlReturn_t rc = resolve(handle, WHOLE_GPU, period_us == NULL ? NULL : percent, &d);
    if (rc == NVML_SUCCESS) {
        *percent = 0;
        *period_us = 167000;
    }
    return rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t handle, unsigned *percent, unsigned *period_us)
{
    return idle_engine(handle, percent, period_us);
}

EXPORT nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t handle, unsigned *percent, unsigned *period_us)
{
    return idle_engine(handle, percent, period_us);
}

EXPORT nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t handle, unsigned *current, unsigned *pending)
{
    struct device *d;
    nvmlReturn_t rc = resolve(handle, WHOLE_GPU, pending == NULL ? NULL : current, &d);
    if (rc == NVML_SUCCESS)
        *current = *pending = d->gpu.ecc;
    return rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t handle, int error, int counter, unsigned long long *count)
{
    struct device *d;
    nvmlReturn_t rc = resolve(handle, WHOLE_GPU, count, &d);
    (void)error;
    (void)counter;
    if (rc == NVML_SUCCESS)
        *count = 0;
    return rc == NVML_SUCCESS && !d->gpu.ecc ? NVML_ERROR_NOT_SUPPORTED : rc;
}

/* A vGPU has one feature; a whole GPU has another one before it, which is not enabled. */
EXPORT nvmlReturn_t nvmlDeviceGetGridLicensableFeatures_v4(nvmlDevice_t handle, struct license_features *features)
{
    static const struct license_feature other = {.code = 2, .product = "NVIDIA RTX Virtual Workstation"};
    static const struct license_feature own = {
        .code = 4, .licensed = 1, .product = "NVIDIA Virtual Compute Server", .enabled = 1, .expiry = {2026, 11, 28, 10, 16, 57, 2}};
    struct device *d;
    nvmlReturn_t rc = resolve(handle, WHOLE_GPU, features, &d);
    if (rc != NVML_SUCCESS)
        return rc;
    memset(features, 0, sizeof(*features));
    if (d->gpu.license == LICENSE_NONE)
        return NVML_SUCCESS;
    features->supported = 1;
    if (d->gpu.virtualization != 2)
        features->features[features->count++] = other;
    features->features[features->count] = own;
    features->features[features->count++].licensed = d->gpu.license == LICENSE_OBTAINED;
    return NVML_SUCCESS;
}

/* One simulated process holds what the profile calls used, if it names a process. */
static nvmlReturn_t processes(nvmlDevice_t handle, unsigned *count, void *list, bool with_instances)
{
    struct device *d;
    nvmlReturn_t rc = resolve(handle, ANY_DEVICE, count, &d);
    if (rc != NVML_SUCCESS)
        return rc;
    unsigned capacity = *count;
    *count = d->parent == NULL && d->gpu.process_pid != 0;
    if (*count == 0)
        return NVML_SUCCESS;
    if (capacity == 0 || list == NULL)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    uint64_t used = d->gpu.memory_used_mib * mib;
    if (with_instances)
        *(struct process_v2 *)list = (struct process_v2){d->gpu.process_pid, used, ANY_INSTANCE, ANY_INSTANCE};
    else
        *(struct process_v1 *)list = (struct process_v1){d->gpu.process_pid, used};
    return NVML_SUCCESS;
}

static nvmlReturn_t no_processes(nvmlDevice_t handle, unsigned *count)
{
    struct device *d;
    nvmlReturn_t rc = resolve(handle, ANY_DEVICE, count, &d);
    if (rc == NVML_SUCCESS)
        *count = 0;
    return rc;
}

#define PROCESSES(function, answer)                                                       \
    EXPORT nvmlReturn_t function(nvmlDevice_t handle, unsigned *count, void *list)        \
    {                                                                                     \
        (void)list;                                                                       \
        return answer;                                                                    \
    }

PROCESSES(nvmlDeviceGetComputeRunningProcesses, processes(handle, count, list, false))
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v2, processes(handle, count, list, true))
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3, processes(handle, count, list, true))
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses, no_processes(handle, count))
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2, no_processes(handle, count))
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, no_processes(handle, count))
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses, no_processes(handle, count))
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2, no_processes(handle, count))
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3, no_processes(handle, count))
