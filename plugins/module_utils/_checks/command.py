# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The doctor as a command, which needs no Ansible: ``python3 -m ansible_collections.gpu.kubernetes.plugins.module_utils._checks.command``.

It observes this host, or judges support bundles. It exits with the report's ``exit_code``: 0 without a fault, 1 with warnings if --fail-on is warn, 2 with
a fault, and 3 if something could not be examined, wrong options and files that cannot be read included.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any, NoReturn, Sequence

from .._text import make_printable
from . import judge, render, symptoms
from .bundle import BundleError, read_bundle
from .gather import gather
from .registry import UnknownCheckError, select_checks
from .sources import Options


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """End the program; its own status for wrong options would be that of a fault."""
        self.print_usage(sys.stderr)
        self.exit(judge.NOT_EXAMINED, f"error: {message}\n")


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options; ends the program with 3 for wrong ones."""
    parser = _Parser(prog="gpu.kubernetes doctor", description="Find the causes why GPUs do not work.")
    parser.add_argument(
        "bundles", nargs="*", metavar="BUNDLE", help="support bundle of the doctor; without one, this host is observed"
    )
    parser.add_argument("--check", action="append", default=[], metavar="NAME", help="only this check or layer")
    parser.add_argument("--skip", action="append", default=[], metavar="NAME", help="not this check or layer")
    parser.add_argument("--symptom", metavar="TEXT", help="find the causes of a message, and observe nothing")
    parser.add_argument("--format", choices=sorted(render.FORMATS), default="text")
    parser.add_argument("--fail-on", choices=["fail", "warn"], default="fail")
    parser.add_argument("--timeout", type=float, default=30.0, metavar="SECONDS", help="for each part of this host")
    return parser.parse_args(arguments)


def read_observations(options: argparse.Namespace) -> tuple[list[Any], Any]:
    """Return the observations of hosts, and that of the cluster or None: those of the bundles, or of this host. Raises BundleError."""
    if not options.bundles:
        name = os.uname().nodename
        return [{**gather(Options(timeout=options.timeout)), "host": name, "node": name.lower()}], None
    found = [read_bundle(path) for path in options.bundles]
    return [host for hosts, _cluster in found for host in hosts], next((each for _hosts, each in found if each), None)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the report, or the causes of a symptom; returns an exit status."""
    options = parse_arguments(arguments)
    if options.symptom:
        lines = render.render_symptoms(symptoms.find_causes(options.symptom))
        sys.stdout.write("".join(f"{make_printable(text)}\n" for text, _tone in lines))
        return judge.OK
    try:
        checks = select_checks(options.check, options.skip)
        observations, cluster = read_observations(options)
        report = judge.judge(observations, cluster, checks, fail_on=options.fail_on)
    except (UnknownCheckError, BundleError) as error:
        sys.stderr.write(f"error: {error}\n")
        return judge.NOT_EXAMINED
    except (AttributeError, KeyError, TypeError) as error:
        sys.stderr.write(f"error: an observation cannot be read ({error!r}); use a bundle of this version.\n")
        return judge.NOT_EXAMINED
    sys.stdout.write(render.FORMATS[options.format](report))
    return int(report["exit_code"])


if __name__ == "__main__":
    sys.exit(main())  # pylint: disable=ansible-bad-function  # a command and no module
