/* Copyright (c) 2026, the gpu.kubernetes authors
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A fake of the vectoradd sample of CUDA where its image cannot be pulled: instead of running a kernel it checks
 * that this container has exactly its GPUs.
 *
 *     vectorAdd [--expect N]      N GPUs exactly (0 = none); left out: the count that NVIDIA_VISIBLE_DEVICES names,
 *                                 else at least one
 *
 * It is static and reads device nodes and the environment. It cannot load NVML: nvml-check beside it does,
 * whose output and verdict it uses.
 */
#define _GNU_SOURCE /* versionsort */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NVIDIA_MAJOR = 195, ANY = -1, MOST = 256 };

#define CHECKER "nvml-check"

static int fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("Test FAILED: ", stdout);
    vprintf(format, arguments);
    putchar('\n');
    va_end(arguments);
    return 1;
}

/* nvidia0, nvidia12: a GPU; nvidiactl, nvidia-uvm: not. */
static int is_gpu(const struct dirent *entry)
{
    const char *number = entry->d_name + strlen("nvidia");
    if (strncmp(entry->d_name, "nvidia", strlen("nvidia")) != 0 || !*number)
        return 0;
    while (isdigit((unsigned char)*number))
        number++;
    return !*number;
}

/* 0 = a device node of a GPU that this container may open. */
static int check_node(const char *name)
{
    char path[512];
    struct stat found;
    snprintf(path, sizeof path, "/dev/%s", name);
    if (stat(path, &found) != 0)
        return fail("%s cannot be read: %s", path, strerror(errno));
    if (!S_ISCHR(found.st_mode))
        return fail("%s is not a character device", path);
    printf("device node %s (%u:%u)\n", path, major(found.st_rdev), minor(found.st_rdev));
    if (major(found.st_rdev) != NVIDIA_MAJOR)
        return fail("%s has major number %u and not %d", path, major(found.st_rdev), NVIDIA_MAJOR);
    int descriptor = open(path, O_RDWR | O_CLOEXEC);
    if (descriptor >= 0)
        close(descriptor);
    else if (errno == EPERM || errno == EACCES)
        return fail("%s may not be opened: %s", path, strerror(errno));
    /* Any other error is the driver's, and a simulated GPU has none. */
    return 0;
}

/* How many GPUs NVIDIA_VISIBLE_DEVICES names, ANY where it names none of its own (all, void, none, empty, unset). */
static int count_named(const char *visible)
{
    static const char *const words[] = {"", "all", "none", "void"};
    int count = 1;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (!visible || strcmp(visible, words[i]) == 0)
            return ANY;
    for (; *visible; visible++)
        count += *visible == ',';
    return count;
}

/* Runs the program `folder`/nvml-check with the device nodes' names; 0 = agrees, or the program is missing. */
static int check_nvml(const char *self)
{
    char path[4096];
    const char *slash = strrchr(self, '/');
    snprintf(path, sizeof path, "%.*s" CHECKER, slash ? (int)(slash - self + 1) : 0, self);
    if (!slash || access(path, X_OK) != 0) {
        puts("NVML was not checked: there is no " CHECKER " beside this program");
        return 0;
    }
    fflush(stdout);
    pid_t child = fork();
    if (child < 0)
        return fail("no process can be started: %s", strerror(errno));
    if (child == 0) {
        execl(path, path, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) == 127)
        return fail(CHECKER " could not be run (status %d)", status);
    return WEXITSTATUS(status) ? fail("NVML does not agree, see above") : 0;
}

static int parse(int count, char **arguments, int *expected)
{
    char *end = NULL;
    if (count == 1)
        return 0;
    if (count != 3 || strcmp(arguments[1], "--expect") != 0)
        return 1;
    *expected = (int)strtol(arguments[2], &end, 10);
    return *end || end == arguments[2] || *expected < 0 || *expected > MOST;
}

int main(int count, char **arguments)
{
    struct dirent **nodes = NULL;
    const char *visible = getenv("NVIDIA_VISIBLE_DEVICES");
    int expected = count_named(visible);

    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("FAKE cuda-sample vectoradd: no CUDA kernel was run on this machine");
    if (parse(count, arguments, &expected))
        return fail("usage: vectorAdd [--expect N]");
    printf("NVIDIA_VISIBLE_DEVICES=%s\n", visible ? visible : "(unset)");

    int found = scandir("/dev", &nodes, is_gpu, versionsort);
    if (found < 0)
        return fail("/dev cannot be listed: %s", strerror(errno));
    for (int i = 0; i < found; i++)
        if (check_node(nodes[i]->d_name))
            return 1;
    printf("%d GPU device nodes\n", found);
    if (expected == ANY && found == 0)
        return fail("no GPU device node /dev/nvidiaN in this container");
    if (expected != ANY && found != expected)
        return fail("%d GPU device nodes where %d were expected", found, expected);
    if (found > 0 && check_nvml(arguments[0]))
        return 1;
    puts("Test PASSED");
    return 0;
}
