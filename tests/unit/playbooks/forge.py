# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``ansible-playbook`` many times: a process that has imported Ansible forks one for each run, which takes a third of the time.

It reads one request a line, as JSON: {"arguments": [...], "environment": {...}, "output": PATH}. It answers with the exit status.
"""

from __future__ import annotations

import json
import os
import sys
import traceback

# What a run imports sooner or later.
import ansible.cli.playbook
import ansible.executor.playbook_executor
import ansible.executor.task_queue_manager
import ansible.plugins.loader
import ansible.plugins.strategy
import ansible.template


def play(request):
    """Be ``ansible-playbook`` from here on; does not return."""
    output = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, handle in ((0, nothing), (1, output), (2, output)):
        os.dup2(handle, number)
    os.environ.update(request["environment"])
    status = 1
    try:
        ansible.cli.playbook.PlaybookCLI.cli_executor(["ansible-playbook", *request["arguments"]])
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def main():
    """Serve until there are no more requests."""
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            play(json.loads(line))
        _child, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
