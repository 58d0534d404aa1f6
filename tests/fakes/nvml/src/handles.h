/*
 * Copyright (c) 2026, the gpu.kubernetes authors
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The checks that calls of MIG share.
 */
#ifndef FAKE_NVML_HANDLES_H
#define FAKE_NVML_HANDLES_H

#include "mig.h"

/* A GPU that can have MIG; one that has it on. */
nvmlReturn_t resolve_capable(nvmlDevice_t handle, const void *result, struct device **gpu);
nvmlReturn_t resolve_enabled(nvmlDevice_t handle, const void *result, struct device **gpu);
bool is_instance(const struct gpu_instance *handle);
nvmlReturn_t resolve_instance(nvmlGpuInstance_t handle, const void *result);
/* Of a profile of compute instances, given by its id, the number of compute slices. */
nvmlReturn_t resolve_compute_profile(nvmlGpuInstance_t handle, unsigned id, const void *result, unsigned *slices);
unsigned multiprocessors_of(const struct mig_profile *profile, unsigned compute_slices);

#endif
