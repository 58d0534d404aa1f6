/* Copyright (c) 2026, the gpu.kubernetes authors
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The part of the vectoradd fake that loads NVML: prints the GPUs whose device node /dev/nvidiaN this container has,
 * and compares them with NVIDIA_VISIBLE_DEVICES where that names UUIDs.
 * Exit status: 0 = agrees, or NVML is not in this container (it says so); 1 = does not agree or does not answer.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../internal/nvml/binding.h"

#define PREFIX "NVML: "

static int has_node(int minor)
{
    char path[64];
    snprintf(path, sizeof path, "/dev/nvidia%d", minor);
    return access(path, F_OK) == 0;
}

/* Is the UUID among the comma-separated items of the list? */
static int is_listed(const char *list, const char *uuid)
{
    size_t length = strlen(uuid);
    for (const char *item = list; item; item = strchr(item, ',')) {
        item += *item == ',';
        if (strncmp(item, uuid, length) == 0 && (item[length] == ',' || !item[length]))
            return 1;
    }
    return 0;
}

/* 0 = the GPU is where the container's environment says. */
static int check_gpu(const struct fake_gpu *gpu, const char *visible)
{
    int present = gpu->minor >= 0 && has_node(gpu->minor);
    if (present)
        printf(PREFIX "%s %s /dev/nvidia%d\n", gpu->uuid, gpu->name, gpu->minor);
    if (present && gpu->fault)
        printf(PREFIX "%s does not answer: %s\n", gpu->uuid, fake_error(gpu->fault));
    if (!visible || strncmp(visible, "GPU-", 4) != 0 || !gpu->uuid[0])
        return present && gpu->fault;
    if (present && !is_listed(visible, gpu->uuid))
        printf(PREFIX "%s is in this container and not in NVIDIA_VISIBLE_DEVICES\n", gpu->uuid);
    if (!present && is_listed(visible, gpu->uuid))
        printf(PREFIX "%s is in NVIDIA_VISIBLE_DEVICES and not in this container\n", gpu->uuid);
    return present != is_listed(visible, gpu->uuid) || (present && gpu->fault);
}

int main(void)
{
    char text[512], version[FAKE_TEXT];
    const char *visible = getenv("NVIDIA_VISIBLE_DEVICES");
    unsigned count = 0;
    int wrong = 0;

    if (fake_open("libnvidia-ml.so.1", text, sizeof text) != 0) {
        printf(PREFIX "not in this container (%s)\n", text);
        return 0;
    }
    int code = fake_init();
    if (code == 0)
        code = fake_driver_version(version, sizeof version);
    if (code == 0)
        code = fake_count(&count);
    if (code != 0) {
        printf(PREFIX "does not answer: %s\n", fake_error(code));
        return 1;
    }
    printf(PREFIX "driver %s\n", version);
    for (unsigned index = 0; index < count; index++) {
        struct fake_gpu gpu;
        fake_read(index, &gpu);
        wrong |= check_gpu(&gpu, visible);
    }
    fake_shutdown();
    return wrong;
}
