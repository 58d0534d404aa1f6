# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random changes of real files for the code that edits them, and what has to hold for each.

    make bench-fuzz ARGS="--inputs 5000 --seed 7 toml json"
    make bench-fuzz ARGS="--seed 7 --number 1234 toml"

It prints for each target, and for all, the inputs, those refused with the documented error, tracebacks, lost comments, undo differences, other
violations and seconds, and a line for each violation with its seed and number. ``--number`` runs that input alone and prints it. The exit status is 1
after a violation. Answers of an API server are in the property tests of ``test_untrusted.py``.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
import tomllib
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from pprint import pprint
from random import Random

from gates.table import open_memory_folder

from ansible_collections.gpu.kubernetes.plugins.module_utils._config import apply, controller, record, tree
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.files import FilesError
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.containerd.schema import CRI_V2, CRI_V3
from ansible_collections.gpu.kubernetes.plugins.module_utils._scheduler import configuration, manifest, plan
from ansible_collections.gpu.kubernetes.plugins.module_utils._scheduler.node_state import NodeState, Unread
from ansible_collections.gpu.kubernetes.plugins.module_utils._scheduler.record import Record
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._config import test_apply
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes import docker_files
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.node import DockerNode, Node
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._scheduler import control_plane as plane

from .fuzz_inputs import (
    CONFIGS,
    MANIFEST,
    Case,
    LostComment,
    UndoDifference,
    Violation,
    make_json,
    make_scheduler_files,
    make_toml,
)
from .fuzz_nodes import fuzz_annotations
from .runtime_configs import read_comments

#: Raises Violation if more than a request changed between two texts; the last argument is whether nothing was managed before.
Check = Callable[[bytes, bytes, tree.Tree, bool], None]


def undo_runtimes(case: Case, machine: Node, known: Sequence[tree.Tree], check: Check) -> bool:
    """Carry out one or two of the known requests, check each, and undo all; whether the first was refused. Raises Violation."""
    names = case.random.choices(("nvidia", "nvidia", "nvidia-cdi"), k=case.random.choice((1, 1, 2)))
    requests = case.show([{**case.random.choice(known), "runtime_name": name} for name in names])
    original = machine.config.read_bytes()
    for number, request in enumerate(requests):
        before = machine.config.read_bytes()
        try:
            done = machine.present(**request)
        except (ConfigError, FilesError):
            if machine.config.read_bytes() != before:
                raise Violation("a refused run changed the file") from None
            if number == 0:
                return True
            continue
        check(before, machine.config.read_bytes(), request, number == 0)
        apply.build_result([(machine.daemon(request), done)], True)
        if machine.present(**request).changed:
            raise Violation("the same run again changes the file again")
    for name in dict.fromkeys(names):
        machine.absent(runtime_name=name)
    if machine.config.read_bytes() != original:
        raise UndoDifference(f"the undo restores other bytes: {machine.config.read_bytes()!r}")
    return False


def check_meaning(before: tree.Tree, after: tree.Tree, allowed: Sequence[tree.Path], is_first: bool) -> None:
    """Raise Violation for a setting that differs and is in none of *allowed*. The first run removes none."""
    old, new = tree.leaves(before), tree.leaves(after)
    for path in {**old, **new}:
        extended = old.get(path) == {} and any(each[: len(path)] == path for each in new)
        if extended or (path in old and path in new and repr(old[path]) == repr(new[path])):
            continue
        if not any(path[: len(each)] == each for each in allowed) or (is_first and path not in new):
            raise Violation(f"{tree.format_path(path)} was {old.get(path)!r:.60} and is {new.get(path)!r:.60}")


def list_requested(request: tree.Tree, default: tree.Path, cdi: tree.Path) -> Iterator[tree.Path]:
    """The settings that each daemon has, as far as they are requested."""
    yield from tree.leaves(request.get("settings", {}))
    yield from [default] if request.get("set_default") is not None else []
    yield from [cdi] if request.get("enable_cdi") is not None else []


def check_toml(before: bytes, after: bytes, request: tree.Tree, is_first: bool) -> None:
    """Raise Violation unless only requested settings differ, and each comment line is there."""
    old, new = (data.decode("utf-8-sig", "replace") for data in (before, after))
    trees = tomllib.loads(old), tomllib.loads(new)
    lost = Counter(read_comments([old])) - Counter(read_comments([new]))
    if lost and "'''" not in old and '"""' not in old:  # a line of a text can look like a comment
        raise LostComment(f"comments are gone: {list(lost)!r:.200}")
    allowed: list[tree.Path] = [("version",)] if "version" not in trees[0] else []
    allowed += [("disabled_plugins",), ("required_plugins",)]
    for cri in (CRI_V2, CRI_V3):
        section = ("plugins", cri, "containerd")
        runtimes = tree.get(trees[1], (*section, "runtimes"))
        allowed += list_requested(request, (*section, "default_runtime_name"), ("plugins", cri, "enable_cdi"))
        allowed.append((*section, "runtimes", request["runtime_name"]))
        # containerd 1 has no runc of its own in a file with other runtimes.
        if tree.get(trees[0], (*section, "runtimes", "runc")) is tree.MISSING:
            allowed.append((*section, "runtimes", "runc"))
        if request.get("systemd_cgroup") is not None and runtimes is not tree.MISSING:
            allowed += [(*section, "runtimes", name, "options", "SystemdCgroup") for name in runtimes]
    check_meaning(*trees, allowed, is_first)


def check_json(before: bytes, after: bytes, request: tree.Tree, is_first: bool) -> None:
    """Raise Violation unless only requested settings differ, and the order of keys and the line ends are as before."""
    old, new = (json.loads(data) if data.decode().strip() else {} for data in (before, after))
    allowed = list(list_requested(request, ("default-runtime",), ("features", "cdi")))
    check_meaning(old, new, [*allowed, ("runtimes", request["runtime_name"], "path")], is_first)
    first, second = tree.leaves(old), tree.leaves(new)
    if [path for path in first if path in second] != [path for path in second if path in first]:
        raise Violation("the order of keys differs")
    ends = [{*re.findall(rb"\r?\n", data.lstrip())} for data in (before, after)]
    if old and len(ends[0]) == 1 and ends[0] != ends[1]:
        raise Violation(f"the line ends were {ends[0]} and are {ends[1]}")


def fuzz_toml(case: Case) -> bool:
    """containerd's config.toml: only what is requested changes, comments stay, and the undo is exact to the byte."""
    return undo_runtimes(case, Node(case.folder, *make_toml(case)), test_apply.REQUESTED, check_toml)


def fuzz_json(case: Case) -> bool:
    """Docker's daemon.json: only what is requested changes, and the undo is exact to the byte."""
    return undo_runtimes(case, DockerNode(case.folder, make_json(case)), docker_files.REQUESTED, check_json)


@dataclass
class ControlPlane:
    """A control plane in memory: files by path (None is no file), and the record of changes."""

    files: dict[str, bytes | None]
    record: Record | None = None

    def carry_out(self, decide: Callable[..., controller.Plan], params: plan.Params) -> controller.Plan:
        """Carry out a plan, and return it. Raises ConfigError, and Unread for a file that is none of CONFIGS."""
        done = decide(params, NodeState(MANIFEST, self.files[MANIFEST], self.files), self.record, plane.RT)
        controller.build_result(done, [], plane.RT, True)
        self.files = {**self.files, **{step.path: step.after for step in done.steps}}
        if not done.keep_record:
            data = record.dump(MANIFEST, done.record.encode()) if done.record else None
            self.record = Record.decode(data, MANIFEST)
        return done

    def is_accepted(self, known: Record) -> bool:
        """Whether kube-scheduler starts with the files as they are, which are on record: only these are restored."""
        found = manifest.pod(plane.RT.read(self.files[MANIFEST] or b"", MANIFEST), MANIFEST)
        path = str(manifest.host_path(found, found.config) if found.config else known.config_path)
        data = self.files[path]
        if manifest.refused_flags(found):
            return False
        if data is None or configuration.is_blank(plane.RT, data, path):
            return found.config is None
        return configuration.is_restorable(plane.RT, data, known.minor, known.extenders, path)


def undo_extenders(control_plane: ControlPlane, params: plan.Params, is_first: bool) -> None:
    """Set and undo the extenders; once more if the undo may leave other files than there were. Raises ConfigError, and Violation."""
    before = ControlPlane(control_plane.files)
    control_plane.carry_out(plan.present, params)
    known = control_plane.record
    if control_plane.carry_out(plan.present, params).steps:
        raise Violation("the same run again changes a file again")
    control_plane.carry_out(plan.absent, params)
    if control_plane.record:
        raise UndoDifference("a record is left after the undo")
    differing = [path for path, data in control_plane.files.items() if data != before.files[path]]
    if differing and known and (not is_first or before.is_accepted(known)):
        raise UndoDifference(f"the undo restores other bytes of {differing}: {control_plane.files[differing[0]]!r}")
    if differing:
        undo_extenders(control_plane, params, is_first=False)


def fuzz_scheduler(case: Case) -> bool:
    """Files of kube-scheduler: the undo is exact to the byte, unless kube-scheduler does not start with the original."""
    control_plane = ControlPlane(make_scheduler_files(case))
    extenders = [plane.GPUSHARE, plane.OTHER][: case.random.choice((1, 1, 2))]
    path, version = case.random.choice((None, None, CONFIGS[1])), case.random.choice((None, "1.34"))
    try:
        undo_extenders(control_plane, case.show(plan.Params(extenders, path, version)), is_first=True)
    except (ConfigError, Unread):
        if control_plane.record is None:
            return True
        raise
    return False


#: Each makes an input, and returns whether that was refused; an exception is a violation.
TARGETS = {"toml": fuzz_toml, "json": fuzz_json, "scheduler": fuzz_scheduler, "annotations": fuzz_annotations}
#: Kinds of violations, as they are counted. Every other exception is a traceback.
KINDS: dict[type[Exception], str] = {
    LostComment: "lost comments",
    UndoDifference: "undo differences",
    Violation: "other violations",
}
FAULTS = ("tracebacks", *KINDS.values())


def describe(error: Exception) -> str:
    """An exception with the line that raised it."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text:.300} ({Path(frame.filename).name}:{frame.lineno})"


def run_target(name: str, seed: int, numbers: Sequence[int]) -> Counter[str]:
    """Run a target on inputs, and print its line and one for each violation; returns the counts."""
    counts, found, begin = Counter(inputs=len(numbers)), [], time.perf_counter()
    for number in numbers:
        with open_memory_folder() as folder:
            case = Case(Random(f"{seed} {number}"), Path(folder))  # noqa: S311 - not for secrets
            try:
                counts["refused"] += TARGETS[name](case)
            except Exception as error:
                counts[KINDS.get(type(error), "tracebacks")] += 1
                found.append(f"  seed {seed}, number {number}: {describe(error)}")
        if len(numbers) == 1:
            pprint(case.shown)
    counts["seconds"] = round(time.perf_counter() - begin)
    print(format_counts(name, counts), *found, sep="\n", flush=True)
    return counts


def format_counts(name: str, counts: Counter[str]) -> str:
    """One line for a target, or for all."""
    return f"{name}: " + ", ".join(f"{counts[kind]} {kind}" for kind in ("inputs", "refused", *FAULTS, "seconds"))


def main() -> int:
    """Fuzz, and print; returns the exit status."""
    parser = argparse.ArgumentParser(prog="bench.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=1000, help="inputs of each target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--number", type=int, help="run this input alone, and print it")
    parser.add_argument("targets", nargs="*", choices=[[], *TARGETS], help="all by default")
    arguments = parser.parse_args()
    numbers = range(arguments.inputs) if arguments.number is None else [arguments.number]
    counts = sum((run_target(name, arguments.seed, numbers) for name in arguments.targets or TARGETS), Counter[str]())
    print(format_counts("all", counts))
    return 1 if any(counts[kind] for kind in FAULTS) else 0


if __name__ == "__main__":
    sys.exit(main())
