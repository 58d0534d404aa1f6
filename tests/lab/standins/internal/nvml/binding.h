/* Copyright (c) 2026, the gpu.kubernetes authors
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The few calls of NVML that the stand-ins need, found by name at run time: nothing is linked against the library.
 */
#ifndef STANDIN_NVML_BINDING_H
#define STANDIN_NVML_BINDING_H

#include <stddef.h>

enum { STANDIN_TEXT = 96 };

/* One GPU as the library shows it. Texts that could not be read are empty. */
struct standin_gpu {
    int fault;                       /* first NVML return code that was not success, 0 = every query answered */
    int minor;                       /* N of /dev/nvidiaN, -1 = unknown */
    unsigned long long memory;       /* total in bytes, 0 = unknown */
    char uuid[STANDIN_TEXT];
    char name[STANDIN_TEXT];
};

/* Loads `library` and looks the functions up. Returns 0, or -1 with a sentence in `error`. A second call is a no-op. */
int standin_open(const char *library, char *error, size_t size);

/* The calls below return NVML's own return codes (0 = success); standin_open has to have succeeded. */
int standin_init(void);
int standin_shutdown(void);
int standin_driver_version(char *version, unsigned size);
int standin_count(unsigned *count);
int standin_read(unsigned index, struct standin_gpu *gpu);
const char *standin_error(int code);

#endif
