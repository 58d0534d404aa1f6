/*
 * Copyright (c) 2026, the gpu.kubernetes authors
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Multi-instance GPU: the partitions of a GPU, and the state that processes share.
 */
#ifndef FAKE_NVML_MIG_H
#define FAKE_NVML_MIG_H

#include "model.h"

enum { COMPUTE_PROFILES = 9, NOWHERE = MAX_SLICES };

/* -- partitions.c: slice arithmetic; no state, no handles */

const struct mig_profile *find_profile_by_id(unsigned id);
const struct mig_profile *find_profile_by_index(unsigned index);
unsigned max_mig_devices(void);
/* How many more GPU instances of this profile the GPU can have. */
unsigned gpu_instance_capacity(const struct device *gpu, const struct mig_profile *profile);
/* Creates the instance at this memory slice, or at the best one for NOWHERE; NULL if it does not fit. */
struct gpu_instance *place_gpu_instance(struct device *gpu, const struct mig_profile *profile, unsigned start);
void remove_gpu_instance(struct gpu_instance *instance);
struct gpu_instance *find_gpu_instance(struct device *gpu, unsigned id);

/* Slices of compute profile 0..8 if a GPU instance with that many slices offers it, else 0. */
unsigned compute_profile_slices(unsigned profile, unsigned gpu_slices);
/* Number of the profile with that many slices. */
unsigned compute_profile_of(unsigned slices);
/* Bit N of the result: an instance of so many slices may begin at compute slice N. */
unsigned compute_starts(unsigned slices, unsigned gpu_slices);
unsigned compute_instance_capacity(const struct gpu_instance *instance, unsigned slices);
/* `id` ANY_INSTANCE: the lowest that is free. `start` NOWHERE: the first that is free. NULL if it does not fit. */
struct device *place_compute_instance(struct gpu_instance *instance, unsigned id, unsigned slices, unsigned start);
void remove_compute_instance(struct device *mig);
/* The compute instance with the id, or the first at all for ANY_INSTANCE; NULL if there is none. */
struct device *find_compute_instance(struct gpu_instance *instance, unsigned id);
/* `MIG 1c.3g.20gb`, or `MIG 3g.20gb` if the compute instance fills its GPU instance. */
void mig_name(const struct mig_profile *profile, unsigned compute_slices, char *name, size_t size);
/* Removes all instances of the GPU. */
void clear_partitions(struct device *gpu);
/* Numbers the MIG devices of a GPU by the ids of their instances. */
void number_mig_devices(struct device *gpu);

/* -- state.c: what survives a process, and what survives a boot */

/* After the profile was read: the partitions that it names. Returns false if they do not fit. */
bool state_reset(void);
/* Reads what other processes have changed since. */
void state_refresh(void);
/* Keeps all others from changing the state, and refreshes it. Each success needs one state_unlock. */
nvmlReturn_t state_lock(int *lock);
/* Writes the state if `rc` is NVML_SUCCESS, else drops the change. Returns `rc`, or why nothing was written. */
nvmlReturn_t state_unlock(int lock, nvmlReturn_t rc);
/* Brings the files of capabilities below `proc`, which takes the place of /proc, in line with the state. */
nvmlReturn_t state_publish(const char *proc);

/* -- capabilities.c */

/* Writes what /proc/driver shows of the partitions below `root`; call it with the lock only. */
nvmlReturn_t write_capabilities(const char *root);

#endif
