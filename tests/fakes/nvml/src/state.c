/*
 * Copyright (c) 2026, the gpu.kubernetes authors
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What a driver and the GPUs remember. Two files, replaced by renaming under one lock:
 *
 * - /run/nvml-fake-state: modes and partitions until the next boot;
 * - /var/lib/nvml-fake/inforom: the MIG mode for which each Ampere GPU is set, which survives a boot.
 *
 * NVML_STATE and NVML_INFOROM name others, else the keys `state` and `inforom` of the profile.
 * With neither, GPUs are as the profile describes them. With only the second, the node has booted since.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mig.h"

enum { HOPPER = 9 };

/* Both texts as they were last read, NULL for a file that does not exist. */
struct texts { char *state, *inforom; };

static struct texts known;
static bool read_before;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static const char *path_of(const char *variable, const char *key, const char *usual)
{
    const char *chosen = getenv(variable);
    return chosen != NULL && *chosen != '\0' ? chosen : *key != '\0' ? key : usual;
}

static const char *state_path(void)
{
    return path_of("NVML_STATE", node.state, "/run/nvml-fake-state");
}

static const char *inforom_path(void)
{
    return path_of("NVML_INFOROM", node.inforom, "/var/lib/nvml-fake/inforom");
}

/* -- reading */

static bool place_item(void *context, char *name)
{
    struct device *gpu = context;
    bool bare = name[0] == '-';
    for (unsigned i = 0; i < node.mig_profile_count; i++) {
        const struct mig_profile *profile = &node.mig_profiles[i];
        if (strcmp(profile->name, name + bare) != 0)
            continue;
        struct gpu_instance *instance = place_gpu_instance(gpu, profile, NOWHERE);
        return instance != NULL
            && (bare || place_compute_instance(instance, ANY_INSTANCE, profile->slices, NOWHERE) != NULL);
    }
    return false;
}

static bool as_profile(struct device *gpu)
{
    clear_partitions(gpu);
    gpu->mig_mode = gpu->mig_pending = gpu->gpu.mig == MIG_ENABLED;
    gpu->compute_mode = 0;
    return !gpu->mig_mode || for_each_item(gpu->gpu.mig_devices, place_item, gpu);
}

static struct device *find_gpu(const char *address)
{
    for (unsigned i = 0; i < node.gpu_count; i++)
        if (strcmp(node.gpus[i].address, address) == 0)
            return &node.gpus[i];
    return NULL;
}

/* A line of the state. Lines of GPUs that the node no longer has are skipped. */
static void state_line(const char *line, bool unused)
{
    char address[16];
    unsigned a = 0, b = 0, c = 0, d = 0, e = 0;
    int at = 0;
    (void)unused;
    if (sscanf(line, "%*s %15s%n", address, &at) != 1)
        return;
    struct device *gpu = find_gpu(address);
    int numbers = sscanf(line + at, "%u %u %u %u %u", &a, &b, &c, &d, &e);
    if (gpu == NULL)
        return;
    if (strncmp(line, "gpu ", 4) == 0 && numbers == 3) {
        clear_partitions(gpu);
        gpu->mig_mode = a;
        gpu->mig_pending = b;
        gpu->compute_mode = c;
    } else if (strncmp(line, "gi ", 3) == 0 && numbers == 2 && find_profile_by_id(a) != NULL) {
        place_gpu_instance(gpu, find_profile_by_id(a), b);
    } else if (strncmp(line, "ci ", 3) == 0 && numbers == 5 && find_gpu_instance(gpu, a) != NULL) {
        struct device *mig = place_compute_instance(find_gpu_instance(gpu, a), b, c, d);
        if (mig != NULL)
            mig->compute_mode = e;
    } else {
        fprintf(stderr, "nvml state %s: not understood: %s\n", state_path(), line);
    }
}

/* A line of the InfoROM. `booted`: there is no state, the modes are those with which a GPU starts. */
static void inforom_line(const char *line, bool booted)
{
    char address[16];
    unsigned mode = 0;
    struct device *gpu = sscanf(line, "%15s %u", address, &mode) == 2 ? find_gpu(address) : NULL;
    if (gpu == NULL)
        return;
    if (booted || gpu->gpu.architecture < HOPPER)
        gpu->mig_pending = mode;
    if (booted) {
        clear_partitions(gpu);
        gpu->mig_mode = mode;
    }
}

static void for_each_line(const char *text, void (*act)(const char *, bool), bool flag)
{
    char line[128];
    for (size_t length; text != NULL && *text != '\0'; text += length + (text[length] != '\0')) {
        length = strcspn(text, "\n");
        snprintf(line, sizeof(line), "%.*s", (int)length, text);
        act(line, flag);
    }
}

static bool apply(struct texts texts)
{
    bool fine = true;
    for (unsigned i = 0; i < node.gpu_count; i++)
        fine = as_profile(&node.gpus[i]) && fine;
    for_each_line(texts.state, state_line, false);
    for_each_line(texts.inforom, inforom_line, texts.state == NULL);
    return fine;
}

static bool is_same(const char *one, const char *other)
{
    return one == other || (one != NULL && other != NULL && strcmp(one, other) == 0);
}

/* The second file first: one that is found without the first must not be younger than its absence. */
static bool reload(void)
{
    size_t size;
    bool fine = true;
    struct texts now;
    now.inforom = read_file(inforom_path(), &size);
    now.state = read_file(state_path(), &size);
    if (!read_before || !is_same(now.state, known.state) || !is_same(now.inforom, known.inforom))
        fine = apply(now);
    free(known.state);
    free(known.inforom);
    known = now;
    read_before = true;
    return fine;
}

bool state_reset(void)
{
    pthread_mutex_lock(&mutex);
    read_before = false;
    bool fine = reload();
    pthread_mutex_unlock(&mutex);
    return fine;
}

void state_refresh(void)
{
    pthread_mutex_lock(&mutex);
    reload();
    pthread_mutex_unlock(&mutex);
}

/* -- writing */

static nvmlReturn_t because_of_errno(void)
{
    return errno == EACCES || errno == EPERM || errno == EROFS ? NVML_ERROR_NO_PERMISSION : NVML_ERROR_UNKNOWN;
}

static void make_folder_of(const char *path)
{
    char folder[TEXT];
    snprintf(folder, sizeof(folder), "%s", path);
    char *end = strrchr(folder, '/');
    if (end != NULL && end != folder) {
        *end = '\0';
        mkdir(folder, 0755);
    }
}

static nvmlReturn_t replace_file(const char *path, const char *text)
{
    char new[TEXT + 8];
    make_folder_of(path);
    snprintf(new, sizeof(new), "%s.new", path);
    FILE *file = fopen(new, "w");
    if (file == NULL)
        return because_of_errno();
    bool written = fputs(text, file) >= 0;
    written = fclose(file) == 0 && written;
    return written && rename(new, path) == 0 ? NVML_SUCCESS : because_of_errno();
}

nvmlReturn_t state_lock(int *lock)
{
    char path[TEXT + 8];
    make_folder_of(state_path());
    snprintf(path, sizeof(path), "%s.lock", state_path());
    *lock = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0644);
    if (*lock < 0)
        return because_of_errno();
    while (flock(*lock, LOCK_EX) != 0 && errno == EINTR)
        ;
    pthread_mutex_lock(&mutex);
    reload();
    return NVML_SUCCESS;
}

static void add(char **text, const char *format, ...)
{
    char line[128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    size_t length = *text == NULL ? 0 : strlen(*text);
    char *longer = realloc(*text, length + strlen(line) + 1);
    if (longer != NULL)
        *text = strcpy(longer + length, line) - length;
}

static void add_gpu(struct texts *texts, const struct device *gpu)
{
    if (gpu->gpu.mig != MIG_UNSUPPORTED)
        add(&texts->inforom, "%s %u\n", gpu->address, gpu->gpu.architecture < HOPPER && gpu->mig_pending);
    add(&texts->state, "gpu %s %u %u %u\n", gpu->address, gpu->mig_mode, gpu->mig_pending, gpu->compute_mode);
    for (unsigned i = 0; i < MAX_SLICES; i++) {
        const struct gpu_instance *instance = &node.instances[gpu->index][i];
        if (instance->gpu != NULL)
            add(&texts->state, "gi %s %u %u\n", gpu->address, instance->profile->id, instance->start);
    }
    for (unsigned i = 0; i < MAX_SLICES; i++) {
        const struct device *mig = &node.migs[gpu->index][i];
        if (mig->instance != NULL)
            add(&texts->state, "ci %s %u %u %u %u %u\n", gpu->address, mig->instance->id, mig->compute_id,
                mig->compute_slices, mig->compute_start, mig->compute_mode);
    }
}

/* The state comes first: it alone says what an interrupted change has reached. */
static nvmlReturn_t store(void)
{
    struct texts texts = {NULL, NULL};
    nvmlReturn_t rc = NVML_SUCCESS;
    for (unsigned i = 0; i < node.gpu_count; i++)
        add_gpu(&texts, &node.gpus[i]);
    if (texts.state != NULL && !is_same(texts.state, known.state))
        rc = replace_file(state_path(), texts.state);
    if (rc == NVML_SUCCESS && texts.inforom != NULL && !is_same(texts.inforom, known.inforom))
        rc = replace_file(inforom_path(), texts.inforom);
    free(texts.state);
    free(texts.inforom);
    return rc;
}

static void release(int lock)
{
    pthread_mutex_unlock(&mutex);
    close(lock);
}

nvmlReturn_t state_unlock(int lock, nvmlReturn_t rc)
{
    if (rc == NVML_SUCCESS)
        rc = store();
    read_before = false; /* what was not written is dropped */
    reload();
    if (*node.proc != '\0')
        write_capabilities(node.proc);
    release(lock);
    return rc;
}

nvmlReturn_t state_publish(const char *proc)
{
    int lock;
    nvmlReturn_t rc = state_lock(&lock);
    if (rc != NVML_SUCCESS)
        return rc;
    rc = write_capabilities(proc);
    release(lock);
    return rc;
}
