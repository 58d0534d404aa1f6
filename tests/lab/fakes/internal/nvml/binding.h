/* Copyright (c) 2026, the gpu.kubernetes authors
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The few calls of NVML that the fakes need, found by name at run time: nothing is linked against the library.
 */
#ifndef FAKE_NVML_BINDING_H
#define FAKE_NVML_BINDING_H

#include <stddef.h>

enum { FAKE_TEXT = 96 };

/* One GPU as the library shows it. Texts that could not be read are empty. */
struct fake_gpu {
    int fault;                       /* first NVML return code that was not success, 0 = every query answered */
    int minor;                       /* N of /dev/nvidiaN, -1 = unknown */
    unsigned long long memory;       /* total in bytes, 0 = unknown */
    char uuid[FAKE_TEXT];
    char name[FAKE_TEXT];
};

/* Loads `library` and looks the functions up. Returns 0, or -1 with a sentence in `error`. A second call is a no-op. */
int fake_open(const char *library, char *error, size_t size);

/* The calls below return NVML's own return codes (0 = success); fake_open has to have succeeded. */
int fake_init(void);
int fake_shutdown(void);
int fake_driver_version(char *version, unsigned size);
int fake_count(unsigned *count);
int fake_read(unsigned index, struct fake_gpu *gpu);
const char *fake_error(int code);

#endif
