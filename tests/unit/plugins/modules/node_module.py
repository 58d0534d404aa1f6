# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a module as on a node: in its own process, with arguments and result as JSON."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

PLUGINS = Path(__file__).resolve().parents[4] / "plugins"
PREFIX = "ansible_collections.gpu.kubernetes.plugins.modules."


def run(
    name: str, arguments: dict[str, Any], *, check: bool = False, folder: str = "", root: str = "", first: str = ""
) -> dict[str, Any]:
    """Run the module and return its result.

    Programs in ``folder`` precede those of the machine. ``root`` replaces the ROOT of the module. ``first`` is code that runs before the
    import of the module.
    """
    places = [place for place in sys.path if place]
    at = f"m.ROOT = {root!r}; " if root else ""
    code = f"{first}\nimport sys; sys.path[:0] = {places!r}; import {PREFIX}{name} as m; {at}m.main()"
    given = {**arguments, "_ansible_check_mode": check, "_ansible_diff": True}
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": given}),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}" if folder else os.environ["PATH"]},
    )
    assert done.stdout.strip(), done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _fragment(name: str) -> dict[str, Any]:
    """Return a fragment of documentation, as gpu.kubernetes.attributes.node names it."""
    _namespace, _collection, file, *part = name.split(".")
    variable = part[0].upper() if part else "DOCUMENTATION"
    # Read, not imported: on the Pythons of nodes, ansible-test provides only modules and module_utils.
    tree = ast.parse((PLUGINS / "doc_fragments" / f"{file}.py").read_text(encoding="utf-8"))
    [fragment] = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    texts = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in fragment.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    return yaml.safe_load(texts[variable])  # type: ignore[no-any-return]


def documented_arguments(documentation: str) -> dict[str, Any]:
    """Return the options of DOCUMENTATION in the form of an argument spec."""
    own = yaml.safe_load(documentation)
    options: dict[str, Any] = {}
    for name in own["extends_documentation_fragment"]:
        options.update(_fragment(name)["options"])
    return _as_arguments({**options, **own["options"]})


def _as_arguments(options: dict[str, Any]) -> dict[str, Any]:
    keys = ("type", "default", "choices", "elements", "required")
    found: dict[str, Any] = {}
    for name, option in options.items():
        found[name] = {key: list(option[key]) if key == "choices" else option[key] for key in keys if key in option}
        if "suboptions" in option:
            found[name]["options"] = _as_arguments(option["suboptions"])
    return found
