# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The linter as a command: ``python -m ansible_collections.gpu.kubernetes.plugins.module_utils._lint.command PATH ...``.

It needs no Ansible, except for --live and --kubeconfig, which use its API client. It exits with 0 without a finding as grave as --fail-on, with 1 with
one, with 2 for input that cannot be read, also if that is a file of a folder whose other files are checked, and with 3 for a cluster that cannot be read.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Sequence

from .._kube_error import ApiError
from .lint import Result, build_context, lint, read_baseline
from .live import read_facts, read_workloads
from .manifests import ReadError, read_path, read_text
from .model import SEVERITIES, Document
from .writers import FORMATS

if TYPE_CHECKING:
    from .._kube_api import Cluster


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options; ends the program with 2 for wrong ones."""
    parser = argparse.ArgumentParser(
        prog="gpu.kubernetes lint", description="Find mistakes in workloads that request GPUs."
    )
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help="file or folder with manifests as YAML or JSON, - for standard input"
    )
    parser.add_argument("--live", action="store_true", help="check the workloads of the cluster")
    parser.add_argument(
        "--namespace", action="append", default=[], metavar="NAME", help="only the workloads of this namespace"
    )
    parser.add_argument(
        "--kubeconfig",
        metavar="FILE",
        help="compare with the nodes, pods and classes of this cluster, as --live does with the one of KUBECONFIG",
    )
    parser.add_argument("--kube-context", metavar="NAME", help="the context in the kubeconfig")
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
    options = parser.parse_args(arguments)
    if not options.paths and not options.live:
        parser.error("name a PATH, or set --live")
    return options


def read_paths(paths: Sequence[str], unreadable: list[str] | None = None) -> list[Document]:
    """Return the objects of files, folders and standard input; see `read_path`. Raises ReadError."""
    found: list[Document] = []
    for path in paths:
        found += read_text(sys.stdin.read(), path) if path == "-" else read_path(path, unreadable)
    return found


def connect(options: argparse.Namespace) -> Cluster | None:
    """Return the cluster of the options; None if they name none. Raises ApiError, and ImportError if the API client is not installed."""
    if not (options.live or options.kubeconfig or options.kube_context):
        return None
    # It imports Ansible, which is not needed without a cluster.
    from .._kube_api import IMPORT_ERROR, open_cluster  # noqa: PLC0415

    if IMPORT_ERROR:
        raise ImportError("the Python package kubernetes and the collection kubernetes.core")
    named = {"kubeconfig": options.kubeconfig, "context": options.kube_context}
    return open_cluster({name: value for name, value in named.items() if value})


def run(options: argparse.Namespace, unreadable: list[str]) -> Result:
    """Return the result; *unreadable* gets what `read_path` adds. Raises ReadError, ApiError, ImportError, OSError and ValueError."""
    known = set()
    if options.baseline:
        with open(options.baseline, encoding="utf-8") as file:
            known = read_baseline(json.load(file))
    documents, saved = read_paths(options.paths, unreadable), read_paths(options.context)
    cluster = connect(options)
    documents += read_workloads(cluster, options.namespace) if cluster and options.live else []
    context = build_context(
        saved,
        default_runtime=options.default_runtime,
        admission_plugins=tuple(options.admission_plugin),
        device_ownership=None if options.device_ownership is None else options.device_ownership == "yes",
        **(read_facts(cluster) if cluster else {}),
    )
    return lint(documents, context, known)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the findings; returns an exit status."""
    options = parse_arguments(arguments)
    unreadable: list[str] = []
    try:
        result = run(options, unreadable)
    except ApiError as error:
        sys.stderr.write(f"error: {error}\n")
        return 3
    except ImportError as error:
        sys.stderr.write(f"error: A cluster is read with ansible-core and kubernetes.core ({error}); install them.\n")
        return 2
    except (ReadError, OSError, ValueError, AttributeError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    sys.stdout.write(FORMATS[options.format](result))
    if unreadable:
        sys.stderr.write("".join(f"error: {each}\n" for each in unreadable))
        return 2
    return int(result.count_grave(options.fail_on) > 0)


if __name__ == "__main__":
    sys.exit(main())  # pylint: disable=ansible-bad-function  # a command and no module
