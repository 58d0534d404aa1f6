# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The linter as a command, which needs no Ansible: ``python -m ansible_collections.gpu.kubernetes.plugins.module_utils._lint.command PATH ...``.

It exits with 0 without a finding as grave as --fail-on, with 1 with one, and with 2 for input that cannot be read.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Sequence

from .lint import build_context, lint, read_baseline
from .manifests import ReadError, find_files, read_file, read_text
from .model import SEVERITIES, Document
from .writers import FORMATS


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options; ends the program with 2 for wrong ones."""
    parser = argparse.ArgumentParser(
        prog="gpu.kubernetes lint", description="Find mistakes in workloads that request GPUs."
    )
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="file or folder with manifests as YAML or JSON, - for standard input"
    )
    parser.add_argument(
        "--context",
        action="append",
        default=[],
        metavar="FILE",
        help="nodes, RuntimeClasses, DeviceClasses and pods of the cluster, as kubectl get -o json saves them",
    )
    parser.add_argument(
        "--default-runtime",
        default="",
        metavar="NAME",
        help="the container runtime of pods without a RuntimeClass, such as runc or nvidia",
    )
    parser.add_argument(
        "--admission-plugin",
        action="append",
        default=[],
        metavar="NAME",
        help="a plugin of the API server that is enabled, such as ExtendedResourceToleration",
    )
    parser.add_argument(
        "--device-ownership",
        choices=["yes", "no"],
        help="whether containerd gives devices to the user of a container",
    )
    parser.add_argument("--baseline", metavar="FILE", help="a former result as JSON; its findings are left out")
    parser.add_argument("--format", choices=sorted(FORMATS), default="text")
    parser.add_argument("--fail-on", choices=[*SEVERITIES, "never"], default="error")
    return parser.parse_args(arguments)


def read_paths(paths: Sequence[str]) -> list[Document]:
    """Return the objects of files, folders and standard input. Raises ReadError."""
    found: list[Document] = []
    for path in paths:
        if path == "-":
            found += read_text(sys.stdin.read(), path)
        else:
            for name in find_files(path):
                found += read_file(name)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the findings; returns an exit status."""
    options = parse_arguments(arguments)
    try:
        context = build_context(
            read_paths(options.context),
            default_runtime=options.default_runtime,
            admission_plugins=tuple(options.admission_plugin),
            device_ownership=None if options.device_ownership is None else options.device_ownership == "yes",
        )
        known = set()
        if options.baseline:
            with open(options.baseline, encoding="utf-8") as file:
                known = read_baseline(json.load(file))
        result = lint(read_paths(options.paths), context, known)
    except (ReadError, OSError, ValueError, AttributeError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    sys.stdout.write(FORMATS[options.format](result))
    return int(result.count_grave(options.fail_on) > 0)


if __name__ == "__main__":
    sys.exit(main())  # pylint: disable=ansible-bad-function  # a command and no module
