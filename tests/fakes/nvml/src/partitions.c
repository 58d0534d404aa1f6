/*
 * Copyright (c) 2026, the gpu.kubernetes authors
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Slice arithmetic of MIG: what fits beside what, and where.
 */
#include <stdio.h>
#include <string.h>

#include "mig.h"

/* What the instances of a GPU leave to others. */
struct room {
    unsigned taken; /* bit N: memory slice N */
    unsigned engines[ENGINES];
};

static unsigned mask(unsigned start, unsigned size)
{
    return ((1u << size) - 1) << start;
}

const struct mig_profile *find_profile_by_id(unsigned id)
{
    for (unsigned i = 0; i < node.mig_profile_count; i++)
        if (node.mig_profiles[i].id == id)
            return &node.mig_profiles[i];
    return NULL;
}

const struct mig_profile *find_profile_by_index(unsigned index)
{
    for (unsigned i = 0; i < node.mig_profile_count; i++)
        if (node.mig_profiles[i].index == index)
            return &node.mig_profiles[i];
    return NULL;
}

/* The profile of the whole GPU. */
static const struct mig_profile *largest_profile(void)
{
    const struct mig_profile *found = NULL;
    for (unsigned i = 0; i < node.mig_profile_count; i++)
        if (found == NULL || node.mig_profiles[i].slices > found->slices)
            found = &node.mig_profiles[i];
    return found;
}

unsigned max_mig_devices(void)
{
    return node.mig_profile_count == 0 ? 0 : largest_profile()->slices;
}

static void take(struct room *room, const struct mig_profile *profile, unsigned start)
{
    room->taken |= mask(start, profile->size);
    for (unsigned i = 0; i < ENGINES; i++)
        room->engines[i] += profile->engines[i];
}

static struct room room_of(const struct device *gpu)
{
    struct room room = {0};
    for (unsigned i = 0; i < MAX_SLICES; i++) {
        const struct gpu_instance *instance = &node.instances[gpu->index][i];
        if (instance->gpu != NULL)
            take(&room, instance->profile, instance->start);
    }
    return room;
}

/* Whether the placement is one of the profile's, and free. */
static bool is_free(const struct room *room, const struct mig_profile *profile, unsigned start)
{
    return (profile->starts & 1u << start) != 0 && (room->taken & mask(start, profile->size)) == 0;
}

/* Engines are limited too: one `+me` has all JPEG and OFA engines of an A100. */
static bool is_left(const struct room *room, const struct mig_profile *profile)
{
    for (unsigned i = 0; i < ENGINES; i++)
        if (profile->engines[i] > 0 && room->engines[i] + profile->engines[i] > largest_profile()->engines[i])
            return false;
    return true;
}

/* How many free placements of all profiles this one would take. */
static unsigned cost(const struct room *room, const struct mig_profile *profile, unsigned start)
{
    unsigned lost = 0;
    for (unsigned i = 0; i < node.mig_profile_count; i++)
        for (unsigned other = 0; other < MAX_SLICES; other++)
            lost += is_free(room, &node.mig_profiles[i], other)
                && (mask(start, profile->size) & mask(other, node.mig_profiles[i].size)) != 0;
    return lost;
}

/* As the driver does, the placement that leaves most to others: 1g.5gb goes to slices 6, 4, 5, 0, 1, 2, 3. */
static unsigned best_start(const struct room *room, const struct mig_profile *profile)
{
    unsigned best = NOWHERE;
    for (unsigned start = 0; is_left(room, profile) && start < MAX_SLICES; start++)
        if (is_free(room, profile, start)
            && (best == NOWHERE || cost(room, profile, start) < cost(room, profile, best)))
            best = start;
    return best;
}

unsigned gpu_instance_capacity(const struct device *gpu, const struct mig_profile *profile)
{
    struct room room = room_of(gpu);
    unsigned count = 0, start;
    while ((start = best_start(&room, profile)) != NOWHERE) {
        take(&room, profile, start);
        count++;
    }
    return count;
}

/* As the driver numbers them: 0 is the whole GPU, 1 and 2 its halves, 3 to 6 its quarters, 7 to 14 its eighths. */
static unsigned instance_id(const struct mig_profile *profile, unsigned start)
{
    return largest_profile()->size / profile->size - 1 + start / profile->size;
}

struct gpu_instance *place_gpu_instance(struct device *gpu, const struct mig_profile *profile, unsigned start)
{
    struct room room = room_of(gpu);
    if (start == NOWHERE)
        start = best_start(&room, profile);
    if (start >= MAX_SLICES || !is_left(&room, profile) || !is_free(&room, profile, start))
        return NULL;
    struct gpu_instance *instance = &node.instances[gpu->index][start];
    *instance = (struct gpu_instance){gpu, profile, instance_id(profile, start), start};
    return instance;
}

void remove_gpu_instance(struct gpu_instance *instance)
{
    struct device *mig;
    while ((mig = find_compute_instance(instance, ANY_INSTANCE)) != NULL)
        remove_compute_instance(mig);
    instance->gpu = NULL;
}

struct gpu_instance *find_gpu_instance(struct device *gpu, unsigned id)
{
    for (unsigned i = 0; i < MAX_SLICES; i++) {
        struct gpu_instance *instance = &node.instances[gpu->index][i];
        if (instance->gpu != NULL && instance->id == id)
            return instance;
    }
    return NULL;
}

/* Profile 7 (rev1) and 8 (for several GPUs) are offered by no GPU that is simulated. */
unsigned compute_profile_slices(unsigned profile, unsigned gpu_slices)
{
    static const unsigned slices[COMPUTE_PROFILES] = {1, 2, 3, 4, 7, 8, 6, 0, 0};
    return profile < COMPUTE_PROFILES && compute_starts(slices[profile], gpu_slices) != 0 ? slices[profile] : 0;
}

unsigned compute_profile_of(unsigned slices)
{
    return slices == 7 ? 4 : slices == 8 ? 5 : slices - 1;
}

unsigned compute_starts(unsigned slices, unsigned gpu_slices)
{
    unsigned starts = 0, step = slices == 3 ? 4 : slices;
    bool whole = slices == gpu_slices;
    if (slices == 0 || (!whole && (slices > 4 || (slices == 3 && gpu_slices == 4))))
        return 0;
    for (unsigned start = 0; start + slices <= gpu_slices; start += step)
        starts |= 1u << start;
    return starts;
}

static struct device *compute_slot(const struct gpu_instance *instance, unsigned start)
{
    return &node.migs[instance->gpu->index][instance->start + start];
}

static unsigned compute_taken(const struct gpu_instance *instance)
{
    unsigned taken = 0;
    for (unsigned i = 0; i < instance->profile->size; i++) {
        const struct device *mig = compute_slot(instance, i);
        taken |= mig->instance == instance ? mask(mig->compute_start, mig->compute_slices) : 0;
    }
    return taken;
}

static unsigned next_compute_start(unsigned taken, unsigned slices, unsigned gpu_slices)
{
    unsigned starts = compute_starts(slices, gpu_slices);
    for (unsigned start = 0; start < MAX_SLICES; start++)
        if ((starts & 1u << start) != 0 && (taken & mask(start, slices)) == 0)
            return start;
    return NOWHERE;
}

unsigned compute_instance_capacity(const struct gpu_instance *instance, unsigned slices)
{
    unsigned taken = compute_taken(instance), count = 0, start;
    while ((start = next_compute_start(taken, slices, instance->profile->slices)) != NOWHERE) {
        taken |= mask(start, slices);
        count++;
    }
    return count;
}

struct device *place_compute_instance(struct gpu_instance *instance, unsigned id, unsigned slices, unsigned start)
{
    unsigned taken = compute_taken(instance);
    char what[64];
    if (start == NOWHERE)
        start = next_compute_start(taken, slices, instance->profile->slices);
    if (start >= MAX_SLICES || (compute_starts(slices, instance->profile->slices) & 1u << start) == 0
        || (taken & mask(start, slices)) != 0)
        return NULL;
    if (id == ANY_INSTANCE)
        for (id = 0; find_compute_instance(instance, id) != NULL; id++)
            ;
    struct device *mig = compute_slot(instance, start);
    *mig = *instance->gpu;
    mig->parent = instance->gpu;
    mig->instance = instance;
    mig->compute_id = id;
    mig->compute_start = start;
    mig->compute_slices = slices;
    mig->compute_mode = 0;
    mig_name(instance->profile, slices, what, sizeof(what));
    snprintf(mig->name, sizeof(mig->name), "%.60s %.32s", instance->gpu->name, what);
    snprintf(what, sizeof(what), "%s/%u/%u", instance->gpu->address, instance->id, id);
    model_identify(mig, "MIG", what);
    number_mig_devices(instance->gpu);
    return mig;
}

void remove_compute_instance(struct device *mig)
{
    struct device *gpu = mig->parent;
    mig->instance = NULL;
    number_mig_devices(gpu);
}

struct device *find_compute_instance(struct gpu_instance *instance, unsigned id)
{
    for (unsigned i = 0; i < instance->profile->size; i++) {
        struct device *mig = compute_slot(instance, i);
        if (mig->instance == instance && (id == ANY_INSTANCE || mig->compute_id == id))
            return mig;
    }
    return NULL;
}

void mig_name(const struct mig_profile *profile, unsigned compute_slices, char *name, size_t size)
{
    if (compute_slices == profile->slices)
        snprintf(name, size, "MIG %s", profile->name);
    else
        snprintf(name, size, "MIG %uc.%s", compute_slices, profile->name);
}

void clear_partitions(struct device *gpu)
{
    for (unsigned i = 0; i < MAX_SLICES; i++) {
        node.instances[gpu->index][i].gpu = NULL;
        node.migs[gpu->index][i].instance = NULL;
    }
}

static bool comes_before(const struct device *one, const struct device *other)
{
    return one->instance->id != other->instance->id ? one->instance->id < other->instance->id
                                                    : one->compute_id < other->compute_id;
}

void number_mig_devices(struct device *gpu)
{
    struct device *migs = node.migs[gpu->index];
    for (unsigned i = 0; i < MAX_SLICES; i++) {
        migs[i].index = 0;
        for (unsigned j = 0; migs[i].instance != NULL && j < MAX_SLICES; j++)
            migs[i].index += migs[j].instance != NULL && comes_before(&migs[j], &migs[i]);
    }
}
