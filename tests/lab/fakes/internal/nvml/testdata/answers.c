/* Copyright (c) 2026, the gpu.kubernetes authors
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The smallest library that the binding can load: three GPUs, of which the second is lost and the third cannot even be
 * opened. NVML_TEST_INIT is the code that initialisation returns.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, DRIVER_NOT_LOADED = 9, GPU_IS_LOST = 15 };

static int initialised;

int nvmlInit_v2(void)
{
    const char *code = getenv("NVML_TEST_INIT");
    if (code && atoi(code))
        return atoi(code);
    initialised++;
    return SUCCESS;
}

int nvmlShutdown(void)
{
    initialised--;
    return SUCCESS;
}

const char *nvmlErrorString(int code)
{
    return code == GPU_IS_LOST ? "GPU is lost" : code == DRIVER_NOT_LOADED ? "Driver Not Loaded" : "Other";
}

int nvmlSystemGetDriverVersion(char *version, unsigned size)
{
    snprintf(version, size, "1.2.3");
    return initialised == 1 ? SUCCESS : 1;
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = 3;
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    *device = (void *)(size_t)(index + 1);
    return index == 2 ? GPU_IS_LOST : SUCCESS;
}

int nvmlDeviceGetUUID(void *device, char *uuid, unsigned size)
{
    snprintf(uuid, size, "GPU-%zu", (size_t)device);
    return SUCCESS;
}

int nvmlDeviceGetName(void *device, char *name, unsigned size)
{
    snprintf(name, size, "NVIDIA %zu", (size_t)device);
    return SUCCESS;
}

int nvmlDeviceGetMinorNumber(void *device, unsigned *minor)
{
    *minor = (unsigned)(size_t)device + 4;
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo(void *device, unsigned long long *memory)
{
    memset(memory, 0, 3 * sizeof *memory);
    memory[0] = 16ULL << 30;
    return (size_t)device == 2 ? GPU_IS_LOST : SUCCESS;
}
