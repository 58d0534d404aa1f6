# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one runner of all gates: ``python -m gates test|test-all [GATE ...]``, ``quick``, ``list``, ``selection``, ``pythons`` or ``GATE [ARGUMENTS]``."""

from __future__ import annotations

import os
import signal
import sys

from . import _report, machine, selection, table, versions
from ._common import NOT_RUN, REPORTS
from .runner import LIMITS, Runner


def tier(name: str, gates: list[str]) -> int:
    """Run all gates of a tier, or the named ones and those of the named parts."""
    gates = [gate for word in gates for gate in table.PARTS.get(word, [word])]
    if unknown := [gate for gate in gates if gate not in table.GATES]:
        print(f"There is no gate or part {', '.join(unknown)}; `make gates` lists them.", file=sys.stderr)
        return 2
    os.environ["GATES_TIER"] = {"test": "merge", "test-all": "all"}[name]
    every = [gate.name for gate in table.GATES.values() if name in gate.tiers]
    names = gates or every
    REPORTS.mkdir(parents=True, exist_ok=True)
    # The other gates' results stay, for a tier that is run in parts.
    old = [path for each in names for path in _report.files_of(each, REPORTS)] + [REPORTS / NOT_RUN]
    for path in old if gates else REPORTS.iterdir():
        path.unlink(missing_ok=True)
    if machine.main():
        print("\n0 passed, 1 failed, 0 skipped")
        return 1
    print(selection.report(selection.select()) if name == "test" else "everything is selected", flush=True)
    main = [each for each in table.MAIN if each in names]
    return Runner(name, main, [each for each in names if each not in main], LIMITS[name], every=every).run()


def main(words: list[str]) -> int:
    """Run what the command line names; exit status."""
    name, arguments = (words[0], words[1:]) if words else ("list", [])
    if name in table.TIERS:
        return tier(name, arguments)
    if name == "list":
        for gate in table.GATES.values():
            print(f"  {gate.name:<26} {gate.run.__doc__.splitlines()[0] if gate.run.__doc__ else ''}")
        print("\nParts of `make test-all`, such as ARGS=code:")
        for part, gates in table.PARTS.items():
            print(f"  {part:<26} {' '.join(gates)}")
        return 0
    if name == "selection":
        print(selection.report(selection.select()))
        return 0
    if name == "pythons":
        return versions.install_pythons()
    if name == "quick":
        return table.quick()
    if name not in table.GATES:
        print(f"There is no gate {name}; `make gates` lists them.", file=sys.stderr)
        return 2
    os.environ.setdefault("GATES_NAME", name)
    signal.signal(signal.SIGTERM, lambda *_received: sys.exit(143))  # so that a gate that is terminated removes its lab
    return table.GATES[name].run(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
