/* Copyright (c) 2026, the gpu.kubernetes authors
 * SPDX-License-Identifier: GPL-3.0-or-later
 */
#include "binding.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef void *device;

struct memory {
    unsigned long long total, available, used;
};

static void *library_handle;

static struct {
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error_string)(int);
    int (*driver_version)(char *, unsigned);
    int (*count)(unsigned *);
    int (*by_index)(unsigned, device *);
    int (*uuid)(device, char *, unsigned);
    int (*name)(device, char *, unsigned);
    int (*minor)(device, unsigned *);
    int (*memory)(device, struct memory *);
} call;

static const struct {
    const char *symbol;
    void *slot;
} functions[] = {
    {"nvmlInit_v2", &call.init},
    {"nvmlShutdown", &call.shutdown},
    {"nvmlErrorString", &call.error_string},
    {"nvmlSystemGetDriverVersion", &call.driver_version},
    {"nvmlDeviceGetCount_v2", &call.count},
    {"nvmlDeviceGetHandleByIndex_v2", &call.by_index},
    {"nvmlDeviceGetUUID", &call.uuid},
    {"nvmlDeviceGetName", &call.name},
    {"nvmlDeviceGetMinorNumber", &call.minor},
    {"nvmlDeviceGetMemoryInfo", &call.memory},
};

int fake_open(const char *library, char *error, size_t size)
{
    if (library_handle)
        return 0;
    void *handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
    if (!handle) {
        snprintf(error, size, "%s", dlerror());
        return -1;
    }
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *address = dlsym(handle, functions[i].symbol);
        if (!address) {
            snprintf(error, size, "%s has no function %s", library, functions[i].symbol);
            dlclose(handle);
            return -1;
        }
        memcpy(functions[i].slot, &address, sizeof address); /* ISO C has no cast from object to function pointer */
    }
    library_handle = handle;
    return 0;
}

int fake_init(void) { return call.init(); }

int fake_shutdown(void) { return call.shutdown(); }

int fake_driver_version(char *version, unsigned size) { return call.driver_version(version, size); }

int fake_count(unsigned *count) { return call.count(count); }

const char *fake_error(int code) { return call.error_string(code); }

static void record_fault(struct fake_gpu *gpu, int code)
{
    if (gpu->fault == 0)
        gpu->fault = code;
}

int fake_read(unsigned index, struct fake_gpu *gpu)
{
    device handle = NULL;
    unsigned minor = 0;
    struct memory memory;

    memset(gpu, 0, sizeof *gpu);
    gpu->minor = -1;
    int code = call.by_index(index, &handle);
    if (code != 0) {
        record_fault(gpu, code);
        return code;
    }
    record_fault(gpu, call.uuid(handle, gpu->uuid, sizeof gpu->uuid));
    record_fault(gpu, call.name(handle, gpu->name, sizeof gpu->name));
    code = call.minor(handle, &minor);
    record_fault(gpu, code);
    if (code == 0)
        gpu->minor = (int)minor;
    code = call.memory(handle, &memory); /* asks the device itself: a lost GPU cannot answer */
    record_fault(gpu, code);
    if (code == 0)
        gpu->memory = memory.total;
    return 0;
}
