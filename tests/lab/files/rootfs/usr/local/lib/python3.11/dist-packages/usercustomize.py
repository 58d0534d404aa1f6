# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's machines run the same modules again and again: Python keeps what it compiles of the archives in which Ansible sends them.

That is a third of what a module takes.
"""

import marshal
import os
import zipimport
from _imp import source_hash

KEPT = "/run/gpu-kubernetes-lab-python"
compile_anew = zipimport._compile_source  # type: ignore[attr-defined]


def compile_once(place, source):
    kept = f"{KEPT}/{source_hash(0, source).hex()}"
    try:
        with open(kept, "rb") as file:
            return marshal.load(file)  # noqa: S302 - nobody but root writes there
    except FileNotFoundError:
        code = compile_anew(place, source)
    fresh = f"{kept}.{os.getpid()}"
    with open(fresh, "wb") as file:  # a process that was killed may have left one
        marshal.dump(code, file)
    os.rename(fresh, kept)
    return code


if os.geteuid() == 0:
    os.makedirs(KEPT, mode=0o700, exist_ok=True)
    zipimport._compile_source = compile_once  # type: ignore[attr-defined]
