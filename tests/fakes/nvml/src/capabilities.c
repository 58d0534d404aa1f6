/*
 * Copyright (c) 2026, the gpu.kubernetes authors
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What /proc/driver shows of partitions: a file for each, and the number of its device /dev/nvidia-caps/nvidia-capN.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "handles.h"

enum { CONFIG = 1, MONITOR = 2, FIRST = 3, GPU_INSTANCES = 15, COMPUTE_INSTANCES = 8, PATH = 2 * TEXT };

/* The driver numbers all instances that GPUs could have; ANY_INSTANCE stands for the GPU instance itself. */
static unsigned minor_of(unsigned gpu, unsigned instance, unsigned compute)
{
    unsigned each = 1 + COMPUTE_INSTANCES;
    return FIRST + (gpu * GPU_INSTANCES + instance) * each + (compute == ANY_INSTANCE ? 0 : 1 + compute);
}

static bool make_folders_of(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        bool made = mkdir(path, 0755) == 0 || errno == EEXIST;
        *slash = '/';
        if (!made)
            return false;
    }
    return true;
}

static bool write_text(char *path, const char *text)
{
    size_t size;
    char *former = read_file(path, &size);
    bool same = former != NULL && strcmp(former, text) == 0;
    free(former);
    if (same)
        return true;
    FILE *file = make_folders_of(path) ? fopen(path, "w") : NULL;
    if (file == NULL)
        return false;
    bool written = fputs(text, file) >= 0;
    return fclose(file) == 0 && written;
}

/* The file of a capability, or none if `exists` is false; `folder` is what its removal leaves empty. */
static bool write_access(const char *root, const char *folder, const char *name, unsigned minor, bool exists)
{
    char path[PATH], text[96];
    int length = snprintf(path, sizeof(path), "%s/driver/nvidia/capabilities/%s/%s", root, folder, name);
    snprintf(text, sizeof(text), "DeviceFileMinor: %u\nDeviceFileMode: 256\nDeviceFileModify: 1\n", minor);
    if (exists)
        return write_text(path, text);
    unlink(path);
    path[length - strlen(name) - 1] = '\0';
    rmdir(path);
    return true;
}

/* Compute instances first: their folders are within the GPU instance's. */
static bool write_gpu_instance(const char *root, struct device *gpu, unsigned id)
{
    char folder[64];
    struct gpu_instance *instance = find_gpu_instance(gpu, id);
    unsigned number = gpu->gpu.minor;
    bool fine = true;
    for (unsigned compute = 0; compute < COMPUTE_INSTANCES; compute++) {
        bool exists = instance != NULL && find_compute_instance(instance, compute) != NULL;
        snprintf(folder, sizeof(folder), "gpu%u/mig/gi%u/ci%u", number, id, compute);
        fine = write_access(root, folder, "access", minor_of(number, id, compute), exists) && fine;
    }
    snprintf(folder, sizeof(folder), "gpu%u/mig/gi%u", number, id);
    return write_access(root, folder, "access", minor_of(number, id, ANY_INSTANCE), instance != NULL) && fine;
}

static void add_minors(FILE *text, unsigned gpu)
{
    for (unsigned id = 0; id < GPU_INSTANCES; id++) {
        fprintf(text, "gpu%u/gi%u/access %u\n", gpu, id, minor_of(gpu, id, ANY_INSTANCE));
        for (unsigned compute = 0; compute < COMPUTE_INSTANCES; compute++)
            fprintf(text, "gpu%u/gi%u/ci%u/access %u\n", gpu, id, compute, minor_of(gpu, id, compute));
    }
}

static bool write_minors(const char *root)
{
    char path[PATH], *lines = NULL;
    size_t size = 0;
    FILE *text = open_memstream(&lines, &size);
    if (text == NULL)
        return false;
    fprintf(text, "config %d\nmonitor %d\n", CONFIG, MONITOR);
    for (unsigned i = 0; i < node.gpu_count; i++)
        if (node.gpus[i].gpu.mig != MIG_UNSUPPORTED)
            add_minors(text, node.gpus[i].gpu.minor);
    bool complete = fclose(text) == 0;
    snprintf(path, sizeof(path), "%s/driver/nvidia-caps/mig-minors", root);
    bool written = complete && write_text(path, lines);
    free(lines);
    return written;
}

nvmlReturn_t write_capabilities(const char *root)
{
    bool fine = write_minors(root) && write_access(root, "mig", "config", CONFIG, true)
        && write_access(root, "mig", "monitor", MONITOR, true);
    for (unsigned i = 0; i < node.gpu_count; i++)
        for (unsigned id = 0; node.gpus[i].gpu.mig != MIG_UNSUPPORTED && id < GPU_INSTANCES; id++)
            fine = write_gpu_instance(root, &node.gpus[i], id) && fine;
    return fine ? NVML_SUCCESS : NVML_ERROR_NO_PERMISSION;
}

/* Not of NVML: for a tree that no `proc` of the profile names. */
EXPORT nvmlReturn_t fakeNvmlWriteCapabilities(const char *root)
{
    nvmlReturn_t rc = require_init(root);
    return rc != NVML_SUCCESS ? rc : state_publish(root);
}
