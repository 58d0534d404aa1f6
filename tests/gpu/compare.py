# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What nvml_facts gathers beside what nvidia-smi tells: ``check.sh [FILE OF nvidia-smi -q -x]``.

Prints every field of every GPU that is told otherwise, what could not be compared, and counts. Of a file no more is known than its log.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, Callable, Iterable, NamedTuple, Sequence
from xml.etree import ElementTree

from gpu import smi_log, smi_query

ROOT = Path(__file__).resolve().parents[2]
#: How often both are asked at most. What differs each time is a difference: clocks and their reasons move between two questions.
TRIES = 5


class Verdict(NamedTuple):
    """Of what, what is told otherwise (``NAME: THIS here, THAT there``), what is told alike, and of what nvidia-smi tells nothing."""

    about: str
    different: list[str]
    same: list[str]
    untold: list[str]


def gathered(facts: dict[str, Any], field: smi_log.Field) -> Any:
    """The fact, or None."""
    value: Any = facts
    for name in field.fact.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value if value is None or field.here is None else field.here(value)


def agree(one: Any, other: Any, tolerance: float) -> bool:
    """Whether two values are the same, or near enough if they are numbers."""
    if isinstance(one, (int, float)) and isinstance(other, (int, float)) and not isinstance(one, bool):
        return abs(one - other) <= tolerance
    return bool(one == other)


def compare(facts: dict[str, Any], log: ElementTree.Element) -> Verdict:
    """Both sides of a node; what nvidia-smi alone knows is a difference."""
    verdict = Verdict(f"{len(facts['gpus'])} GPUs, source {facts['source']}", [], [], [])
    gpus = {smi_log.address(gpu.get("id", "")): gpu for gpu in log.iterfind("gpu")}
    _known_to_one("GPU", (gpu["pci_address"] for gpu in facts["gpus"]), gpus, verdict)
    _compare_fields("", facts, log, smi_log.NODE, verdict)
    for gpu in facts["gpus"]:
        if gpu["pci_address"] in gpus:
            _compare_gpu(f"GPU {gpu['index']} ", gpu, gpus[gpu["pci_address"]], verdict)
    return verdict


def _compare_gpu(label: str, gpu: dict[str, Any], element: ElementTree.Element, verdict: Verdict) -> None:
    _compare_fields(label, gpu, element, smi_log.FIELDS, verdict)
    for parts in smi_log.PARTS:
        place, name = parts.place.split("/")
        whole = element.find(place)
        words = "" if whole is None else smi_log.lower(whole.text or "")
        if whole is None or (words and words in smi_log.NO_VALUES):
            verdict.untold.append(f"{label}{parts.fact}")
            continue
        here = _by_key(parts, gpu[parts.fact] or (), dict.get)
        told = (each for item in whole.iterfind(name) for each in parts.split(item))
        there = _by_key(parts, told, ElementTree.Element.findtext)
        _known_to_one(f"{label}{name}", here, there, verdict)
        for key in sorted(here.keys() & there.keys()):
            _compare_fields(f"{label}{name} {key} ", here[key], there[key], parts.fields, verdict)


def _by_key(parts: smi_log.Parts, items: Iterable[Any], value: Callable[[Any, str], Any]) -> dict[str, Any]:
    """The items by what tells them apart, and from the second of a kind on by their number."""

    def order(item: Any) -> list[int]:
        texts = (str(value(item, name)) for name in parts.order)
        return [int(text) if text.isdigit() else -1 for text in texts]

    found: dict[str, Any] = {}
    times: Counter[str] = Counter()
    for item in sorted(items, key=order):
        key = " ".join(str(value(item, name)) for name in parts.keys)
        times[key] += 1
        found[key if times[key] == 1 else f"{key} ({times[key]})"] = item
    return found


def _compare_fields(
    label: str, facts: dict[str, Any], element: ElementTree.Element, fields: Iterable[smi_log.Field], verdict: Verdict
) -> None:
    for field in fields:
        name, here, there = f"{label}{field.fact}", gathered(facts, field), field.there(element)
        if there is smi_log.UNTOLD:
            verdict.untold.append(name)
        elif agree(here, there, field.tolerance) or (here is None and there == field.nothing):
            verdict.same.append(name)
        else:
            verdict.different.append(f"{name}: {'nothing' if here is None else here} here, {there} there")


def _known_to_one(what: str, here: Iterable[Any], there: Iterable[Any], verdict: Verdict) -> None:
    verdict.different.extend(f"{what} {key} is known to one side alone" for key in sorted(set(here) ^ set(there)))


def collection() -> Any:
    """The module's own code, importable under the collection's name from wherever the checkout lies."""
    folder = Path(tempfile.mkdtemp())
    place = folder / "ansible_collections" / "gpu"
    place.mkdir(parents=True)
    (folder / "ansible_collections" / "__init__.py").touch()
    os.symlink(ROOT, place / "kubernetes")
    sys.path.insert(0, str(folder))
    from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml import collect

    return collect


def ask(arguments: Sequence[str]) -> str:
    """What nvidia-smi says; nothing of a question that it does not know, or that is of no use on this machine."""
    done = subprocess.run(["nvidia-smi", *arguments], check=False, stdout=subprocess.PIPE, text=True)
    return done.stdout if done.returncode == 0 else ""


def live() -> ElementTree.Element:
    """All that nvidia-smi tells now."""
    text = subprocess.run(["nvidia-smi", "-q", "-x"], check=True, stdout=subprocess.PIPE, text=True).stdout
    log = ElementTree.fromstring(text)  # noqa: S314 - nvidia-smi's own
    smi_query.complete(log, ask)
    return log


def settled(look: Callable[[], Verdict]) -> Verdict:
    """The last of some looks, with what every one of them found different; what was alike once is alike."""
    verdict = look()
    for _try in range(1, TRIES):
        if not verdict.different:
            break
        before, verdict = {_name(line) for line in verdict.different}, look()
        moved = [line for line in verdict.different if _name(line) not in before]
        stays = [line for line in verdict.different if line not in moved]
        verdict = verdict._replace(different=stays, same=verdict.same + [_name(line) for line in moved])
    return verdict


def _name(difference: str) -> str:
    return difference.split(": ", maxsplit=1)[0]


def main(arguments: list[str]) -> int:
    """0 if all that both know is the same."""
    collect = collection()
    options = collect.Options(subset=collect.SUBSETS, timeout=60.0)
    if arguments:
        log = ElementTree.parse(arguments[0]).getroot()  # noqa: S314 - nvidia-smi's own
        verdict = compare(collect.gather_facts(options).as_dict(), log)
    else:
        verdict = settled(lambda: compare(collect.gather_facts(options).as_dict(), live()))
    for line in verdict.different:
        print(line)
    for name, times in Counter(re.sub(r"\d+ ", "", name) for name in verdict.untold).items():
        print(f"not compared: {name} ({times} times nvidia-smi tells nothing of it)")
    for what, reasons in (("GPU ", smi_log.NOT_COMPARED), ("", smi_log.NODE_NOT_COMPARED)):
        for name, reason in reasons.items():
            print(f"not compared: {what}{name} ({reason})")
    different, same, untold = (len(names) for names in verdict[1:])
    print(f"{verdict.about}: {same} fields agree, {different} differ, {untold} are not known to nvidia-smi")
    return int(bool(verdict.different) or not verdict.same)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
