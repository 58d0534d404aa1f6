/* Copyright (c) 2026, the gpu.kubernetes authors
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The few calls of NVML that the fakes need, found by name at run time: nothing is linked against the library.
 */
#ifndef FAKE_NVML_BINDING_H
#define FAKE_NVML_BINDING_H

#include <stddef.h>

enum { FAKE_TEXT = 96 };
/* NVML's return codes that have a meaning here. */
enum { FAKE_INVALID_ARGUMENT = 2, FAKE_NOT_SUPPORTED = 3, FAKE_NOT_FOUND = 6, FAKE_FUNCTION_NOT_FOUND = 13 };

/* One GPU as the library shows it. Texts that could not be read are empty. */
struct fake_gpu {
    int fault;                       /* first NVML return code that was not success, 0 = every query answered */
    int minor;                       /* N of /dev/nvidiaN, -1 = unknown */
    int major_capability, minor_capability; /* of CUDA, 0.0 = unknown */
    unsigned mig_enabled;            /* MIG mode as it is now, not the pending one */
    unsigned mig_count;              /* indices of MIG devices to read, not all of them exist */
    unsigned long long memory;       /* total in bytes, 0 = unknown */
    char uuid[FAKE_TEXT];
    char name[FAKE_TEXT];
};

/* One MIG device. */
struct fake_mig {
    unsigned gpu_instance, compute_instance;
    int profile;                     /* NVML's index of the profile of the GPU instance, -1 = unknown */
    unsigned counts[8];              /* multiprocessors, copy engines, decoders, encoders, JPEG, OFA, GPU slices, compute slices */
    unsigned long long memory_mib;
    char uuid[FAKE_TEXT];
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
/* FAKE_NOT_FOUND or FAKE_INVALID_ARGUMENT for an index without a MIG device. */
int fake_read_mig(unsigned gpu, unsigned index, struct fake_mig *mig);
/* FAKE_FUNCTION_NOT_FOUND if the library lacks it. */
int fake_set_compute_mode(unsigned gpu, unsigned mode);

#endif
