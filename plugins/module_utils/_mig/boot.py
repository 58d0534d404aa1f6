# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the unit starts at each boot, before the kubelet: applies the layout in a file. It never resets a GPU, and what fails is one line each.

The instances of MIG do not survive a reboot, nor does the mode from Hopper on.
"""

from __future__ import annotations

import sys
from typing import Any, Mapping, Sequence

from .. import _commands
from .._config import files
from .._nvml.mig import Mig, MigError
from . import apply, cdi, record
from .layout import LayoutError

#: The errors of a run, of which each is one clause.
ERRORS: tuple[type[Exception], ...] = (LayoutError, apply.ApplyError, MigError, cdi.CdiError, files.FilesError)


def restore(config: Mapping[str, Any], root: str = "/") -> list[str]:
    """Apply the layout, and return the problems. A GPU that cannot be changed without a reset is left, and does not stop the others."""
    mig = Mig(config["library"])
    gpus = mig.read()
    desired = record.select(config["states"], gpus)
    problems = [
        f"GPU {uuid} of the layout is missing or has no MIG; run the role mig again, or look into the kernel log"
        for uuid in sorted(set(config["states"]) - {gpu.uuid for gpu in gpus if gpu.index in desired})
    ]
    for gpu, plan in apply.plan_node(gpus, desired):
        if plan.needs_reset:
            problems.append(
                f"GPU {gpu.index} needs a reset or a reboot for its MIG mode, which no boot does; run the role mig again"
            )
            del desired[gpu.index]
    node = apply.Node(mig, config["nvidia_smi"], _commands.run, root)
    apply.bring(node, gpus, desired, apply.Permissions())
    cdi.refresh(config["cdi_specs"], config["cdi_command"], _commands.run)
    return problems


def main(arguments: Sequence[str]) -> int:
    """Apply the file that the arguments name; print the problems, and return 1 if there are any."""
    (path,) = arguments
    try:
        with files.lock(path):
            config = record.read(path)
            problems = [f"{path} does not exist"] if config is None else restore(config)
    except ERRORS as error:
        problems = [str(error).rstrip(".")]
    for problem in problems:
        sys.stderr.write(f"gpu-kubernetes-mig: {problem}.\n")
    return 1 if problems else 0
