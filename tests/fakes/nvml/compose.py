#!/usr/bin/env python3
# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Appends a profile to the simulated NVML library, so that one file describes the GPUs of a node."""

from __future__ import annotations

import argparse
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from fakes.nvml import nvml_profile


def compose(library: bytes, profile: str) -> bytes:
    """The library with ``profile`` in place of a former one."""
    at = library.rfind(nvml_profile.MARKER)
    bare = library if at < 0 else library[:at]
    return bare + nvml_profile.MARKER + profile.encode()


def write(out: pathlib.Path, data: bytes) -> None:
    """Writes by renaming, because a process may have the file mapped."""
    temporary = out.with_name(f".{out.name}.new")
    temporary.write_bytes(data)
    temporary.chmod(0o755)
    os.replace(temporary, out)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", type=pathlib.Path, help="the compiled libnvidia-ml.so.1")
    parser.add_argument("profile", help="a name in profiles/ or a path")
    parser.add_argument("out", type=pathlib.Path, help="the file to write")
    parser.add_argument("--seed", help="a text, such as the host name, on which UUIDs and serial numbers depend")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="another node-wide key")
    options = parser.parse_args(arguments)
    settings = dict(item.split("=", 1) for item in options.set)
    if options.seed:
        settings["uuid_seed"] = options.seed
    text = nvml_profile.profile_path(options.profile).read_text(encoding="utf-8")
    write(options.out, compose(options.library.read_bytes(), nvml_profile.with_settings(text, settings)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
