/* Copyright (c) 2026, the gpu.kubernetes authors
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Holds the namespaces of a pod: waits, reaps orphans where the pod shares its process namespace, and ends on SIGTERM
 * or SIGINT. A fake of the pause image of Kubernetes.
 */
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/wait.h>

int main(void)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGCHLD);
    if (sigprocmask(SIG_BLOCK, &signals, NULL) != 0) {
        perror("FAKE pause: sigprocmask");
        return 1;
    }
    /* A first process gets no signal that it leaves at the default action, therefore each is waited for. */
    for (;;) {
        int received = 0;
        if (sigwait(&signals, &received) != 0)
            return 1;
        if (received != SIGCHLD)
            return 0;
        while (waitpid(-1, NULL, WNOHANG) > 0) {
        }
    }
}
