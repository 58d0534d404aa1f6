/*
 * Copyright (c) 2026, the gpu.kubernetes authors
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Finds and reads the profile: the file named by NVML_PROFILE, else the text appended to this library's own
 * file, so that one file carries hardware and description wherever it is mounted.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mig.h"

struct model node;

/* The newline before the marker is not part of this literal: the library must not find itself. */
static const char marker[] = "#--nvml-profile--\n";

enum kind { STRING, NUMBER, WORD };
struct word { const char *name; unsigned value; };
struct key { const char *name; enum kind kind; size_t offset; const struct word *words; };

static const struct word booleans[] = {{"false", 0}, {"true", 1}, {NULL, 0}};
static const struct word faults[] = {
    {"none", FAULT_NONE}, {"lost", FAULT_LOST}, {"lost_handle", FAULT_LOST_HANDLE},
    {"hang", FAULT_HANG}, {"abort", FAULT_ABORT}, {NULL, 0}};
static const struct word mig_modes[] = {
    {"unsupported", MIG_UNSUPPORTED}, {"disabled", MIG_DISABLED}, {"enabled", MIG_ENABLED}, {NULL, 0}};
static const struct word architectures[] = {
    {"pascal", 4}, {"volta", 5}, {"turing", 6}, {"ampere", 7}, {"ada", 8}, {"hopper", 9}, {"blackwell", 10}, {NULL, 0}};
static const struct word brands[] = {{"quadro", 1}, {"tesla", 2}, {"geforce", 5}, {"rtx", 13}, {"nvidia", 14}, {NULL, 0}};
static const struct word init_results[] = {
    {"success", NVML_SUCCESS}, {"driver_not_loaded", NVML_ERROR_DRIVER_NOT_LOADED},
    {"no_permission", NVML_ERROR_NO_PERMISSION}, {"version_mismatch", NVML_ERROR_LIB_RM_VERSION_MISMATCH},
    {"unknown", NVML_ERROR_UNKNOWN}, {NULL, 0}};

static const struct word mig_faults[] = {{"none", MIG_FAULT_NONE}, {"in_use", MIG_FAULT_IN_USE}, {NULL, 0}};

static const struct word virtualizations[] = {{"none", 0}, {"passthrough", 1}, {"vgpu", 2}, {NULL, 0}};
static const struct word licenses[] = {
    {"none", LICENSE_NONE}, {"missing", LICENSE_MISSING}, {"obtained", LICENSE_OBTAINED}, {NULL, 0}};

#define GPU_KEY(field, kind, words) {#field, kind, offsetof(struct gpu, field), words}
static const struct key gpu_keys[] = {
    GPU_KEY(name, STRING, NULL), GPU_KEY(pci_addresses, STRING, NULL), GPU_KEY(mig_devices, STRING, NULL),
    GPU_KEY(vbios, STRING, NULL), GPU_KEY(memory_mib, NUMBER, NULL), GPU_KEY(memory_used_mib, NUMBER, NULL),
    GPU_KEY(memory_reserved_mib, NUMBER, NULL), GPU_KEY(pci_device_id, NUMBER, NULL),
    GPU_KEY(pci_subsystem_id, NUMBER, NULL), GPU_KEY(numa_node, NUMBER, NULL), GPU_KEY(minor, NUMBER, NULL),
    GPU_KEY(brand, WORD, brands), GPU_KEY(architecture, WORD, architectures), GPU_KEY(temperature, NUMBER, NULL),
    GPU_KEY(power_mw, NUMBER, NULL), GPU_KEY(power_limit_mw, NUMBER, NULL), GPU_KEY(utilization_gpu, NUMBER, NULL),
    GPU_KEY(utilization_memory, NUMBER, NULL), GPU_KEY(clock_graphics, NUMBER, NULL),
    GPU_KEY(clock_memory, NUMBER, NULL), GPU_KEY(nvlinks, NUMBER, NULL), GPU_KEY(persistence, WORD, booleans),
    GPU_KEY(ecc, WORD, booleans), GPU_KEY(fabric, WORD, booleans), GPU_KEY(process_pid, NUMBER, NULL),
    GPU_KEY(mig, WORD, mig_modes), GPU_KEY(mig_at_once, WORD, booleans),
    GPU_KEY(virtualization, WORD, virtualizations), GPU_KEY(license, WORD, licenses),
    GPU_KEY(mig_fault, WORD, mig_faults), GPU_KEY(fault, WORD, faults), {NULL, STRING, 0, NULL}};

#define NODE_KEY(field, kind, words) {#field, kind, offsetof(struct model, field), words}
static const struct key node_keys[] = {
    NODE_KEY(driver_version, STRING, NULL), NODE_KEY(nvml_version, STRING, NULL), NODE_KEY(uuid_seed, STRING, NULL),
    NODE_KEY(state, STRING, NULL), NODE_KEY(inforom, STRING, NULL), NODE_KEY(proc, STRING, NULL),
    NODE_KEY(init_result, WORD, init_results), NODE_KEY(init_fault, WORD, faults), {NULL, STRING, 0, NULL}};

static char *trim(char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    char *end = text + strlen(text);
    while (end > text && isspace((unsigned char)end[-1]))
        *--end = '\0';
    return text;
}

static bool read_number(const char *text, unsigned *value)
{
    char *end = NULL;
    unsigned long number = strtoul(text, &end, 0);
    *value = (unsigned)number;
    return *text != '\0' && *end == '\0' && number <= 0xFFFFFFFFul;
}

static bool read_word(const char *text, const struct word *words, unsigned *value)
{
    for (; words->name != NULL; words++)
        if (strcmp(words->name, text) == 0) {
            *value = words->value;
            return true;
        }
    return read_number(text, value);
}

static bool assign(void *object, const struct key *keys, const char *name, const char *value)
{
    for (; keys->name != NULL; keys++) {
        if (strcmp(keys->name, name) != 0)
            continue;
        void *field = (char *)object + keys->offset;
        if (keys->kind == STRING)
            return snprintf(field, TEXT, "%s", value) < TEXT;
        return keys->kind == NUMBER ? read_number(value, field) : read_word(value, keys->words, field);
    }
    return false;
}

static uint64_t mix(uint64_t state, const char *text)
{
    for (; *text != '\0'; text++)
        state = (state ^ (unsigned char)*text) * 0x100000001B3ull;
    state ^= state >> 29;
    return state * 0xBF58476D1CE4E5B9ull;
}

void model_identify(struct device *device, const char *kind, const char *what)
{
    uint64_t high = mix(mix(0xCBF29CE484222325ull, node.uuid_seed), what);
    uint64_t low = mix(mix(high, kind), what);
    snprintf(device->uuid, sizeof(device->uuid), "%s-%08x-%04x-5%03x-%04x-%012llx", kind, (unsigned)(high >> 32),
             (unsigned)(high >> 16) & 0xFFFF, (unsigned)high & 0xFFF, ((unsigned)(low >> 48) & 0x3FFF) | 0x8000,
             (unsigned long long)(low & 0xFFFFFFFFFFFFull));
    snprintf(device->serial, sizeof(device->serial), "1%012llu", (unsigned long long)(low % 1000000000000ull));
}

bool for_each_item(const char *list, bool (*act)(void *, char *), void *context)
{
    char copy[TEXT], *rest = NULL;
    snprintf(copy, sizeof(copy), "%s", list);
    for (char *item = strtok_r(copy, ",", &rest); item != NULL; item = strtok_r(NULL, ",", &rest))
        if (!act(context, trim(item)))
            return false;
    return true;
}

static bool gpu_item(void *section, char *address)
{
    if (node.gpu_count == MAX_GPUS)
        return false;
    struct gpu *gpu = section;
    struct device *device = &node.gpus[node.gpu_count];
    device->gpu = *gpu;
    device->index = node.gpu_count;
    if (sscanf(address, "%x:%x:%x.0", &device->domain, &device->bus, &device->slot) != 3)
        return false;
    snprintf(device->address, sizeof(device->address), "%04x:%02x:%02x.0", device->domain & 0xFFFF,
             device->bus & 0xFF, device->slot & 0x1F);
    snprintf(device->name, sizeof(device->name), "%.95s", gpu->name);
    model_identify(device, "GPU", device->address);
    node.gpu_count++;
    gpu->minor++;
    gpu->numa_node += (node.gpu_count % 4 == 0); /* four GPUs on a socket, as in the usual eight-GPU boards */
    return true;
}

static bool close_section(struct gpu *section)
{
    bool fine = section == NULL || for_each_item(section->pci_addresses, gpu_item, section);
    if (section != NULL)
        memset(section, 0, sizeof(*section));
    return fine;
}

static bool gpu_line(struct gpu *gpu, const char *name, const char *value)
{
    if (strcmp(name, "compute_capability") == 0)
        return sscanf(value, "%u.%u", &gpu->capability_major, &gpu->capability_minor) == 2;
    return assign(gpu, gpu_keys, name, value);
}

static bool start_item(void *line, char *item)
{
    struct mig_profile *profile = line;
    unsigned start = 0;
    bool fine = read_number(item, &start) && start + profile->size <= MAX_SLICES && start % profile->size == 0;
    profile->starts |= fine ? 1u << start : 0;
    return fine;
}

/* `NAME, INDEX, ID, SLICES, INSTANCES, MULTIPROCESSORS, MIB, CE/DEC/ENC/JPEG/OFA, {STARTS}:SIZE`. */
static bool mig_profile_line(struct mig_profile *new, const char *value)
{
    char starts[32];
    unsigned *engines = new->engines;
    return sscanf(value, " %31[^,], %u, %u, %u, %u, %u, %u, %u/%u/%u/%u/%u, {%31[^}]}:%u", new->name, &new->index,
                  &new->id, &new->slices, &new->instances, &new->multiprocessors, &new->memory_mib,
                  &engines[COPY_ENGINE], &engines[DECODER], &engines[ENCODER], &engines[JPEG], &engines[OFA], starts,
                  &new->size) == 14
        && new->size > 0 && new->size <= MAX_SLICES && for_each_item(starts, start_item, new);
}

static bool node_line(const char *name, const char *value)
{
    unsigned major = 0, minor = 0;
    if (strcmp(name, "cuda_version") == 0) {
        bool fine = sscanf(value, "%u.%u", &major, &minor) == 2;
        node.cuda_version = major * 1000 + minor * 10;
        return fine;
    }
    if (strcmp(name, "mig_profile") == 0)
        return node.mig_profile_count < MAX_MIG_PROFILES
            && mig_profile_line(&node.mig_profiles[node.mig_profile_count++], value);
    return assign(&node, node_keys, name, value);
}

static bool read_line(char *line, struct gpu *section, bool *in_gpu)
{
    line = trim(line);
    if (*line == '\0' || *line == '#')
        return true;
    if (strcmp(line, "[gpu]") == 0) {
        bool fine = close_section(*in_gpu ? section : NULL);
        section->minor = node.gpu_count;
        *in_gpu = true;
        return fine;
    }
    char *value = strchr(line, '=');
    if (value == NULL)
        return false;
    *value++ = '\0';
    return *in_gpu ? gpu_line(section, trim(line), trim(value)) : node_line(trim(line), trim(value));
}

static nvmlReturn_t parse(char *text, const char *origin)
{
    static struct gpu section;
    bool in_gpu = false;
    unsigned number = 1;
    memset(&node, 0, sizeof(node));
    memset(&section, 0, sizeof(section));
    for (char *next = text; next != NULL; number++) {
        char *line = next, copy[80];
        next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        snprintf(copy, sizeof(copy), "%s", line);
        if (!read_line(line, &section, &in_gpu)) {
            fprintf(stderr, "nvml profile %s: line %u is not understood: %s\n", origin, number, copy);
            return NVML_ERROR_UNKNOWN;
        }
    }
    return close_section(in_gpu ? &section : NULL) && state_reset() ? NVML_SUCCESS : NVML_ERROR_UNKNOWN;
}

char *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    char *data = NULL;
    if (file == NULL)
        return NULL;
    if (fseek(file, 0, SEEK_END) == 0 && (long)(*size = (size_t)ftell(file)) >= 0) {
        rewind(file);
        data = malloc(*size + 1);
        if (data != NULL)
            data[*size = fread(data, 1, *size, file)] = '\0';
    }
    fclose(file);
    return data;
}

static int match_own_object(struct dl_phdr_info *info, size_t size, void *path)
{
    uintptr_t here = (uintptr_t)&node;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        if (info->dlpi_phdr[i].p_type == PT_LOAD && here >= start && here - start < info->dlpi_phdr[i].p_memsz) {
            snprintf(path, TEXT, "%s", info->dlpi_name);
            return 1;
        }
    }
    return 0;
}

/* The kernel marks a file that was replaced while it was in use; its successor carries the profile to read. */
static void drop_deleted(char *path)
{
    static const char mark[] = " (deleted)";
    size_t length = strlen(path), tail = sizeof(mark) - 1;
    if (length > tail && strcmp(path + length - tail, mark) == 0)
        path[length - tail] = '\0';
}

/* The kernel knows the absolute path; the loader's own record serves where /proc is not mounted. */
static void own_path(char *path)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[2 * TEXT];
    path[0] = '\0';
    while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
        unsigned long start = 0, end = 0;
        char *slash = strchr(line, '/');
        if (sscanf(line, "%lx-%lx", &start, &end) == 2 && slash != NULL && (uintptr_t)marker >= start
            && (uintptr_t)marker < end)
            snprintf(path, TEXT, "%s", trim(slash));
    }
    if (maps != NULL)
        fclose(maps);
    drop_deleted(path);
    if (path[0] == '\0')
        dl_iterate_phdr(match_own_object, path);
}

static char *appended_profile(char *data, size_t size)
{
    const size_t length = sizeof(marker) - 1;
    for (size_t at = size; data != NULL && at > length; at--)
        if (data[at - 1 - length] == '\n' && memcmp(data + at - length, marker, length) == 0)
            return data + at;
    return NULL;
}

nvmlReturn_t model_load(void)
{
    const char *chosen = getenv("NVML_PROFILE");
    char path[TEXT];
    size_t size = 0;
    bool named = chosen != NULL && *chosen != '\0';
    if (named)
        snprintf(path, sizeof(path), "%s", chosen);
    else
        own_path(path);
    char *data = read_file(path, &size);
    char *text = named ? data : appended_profile(data, size);
    nvmlReturn_t result = text == NULL ? NVML_ERROR_DRIVER_NOT_LOADED : parse(text, path);
    free(data);
    return result;
}
