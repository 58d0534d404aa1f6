# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Are a role's argument specs its defaults? ``python -m gates.argument_specs``.

meta/argument_specs.yml is the contract, defaults/main.yml what Ansible uses. For the entry point ``main`` of every role the names, the
values and the types must agree, and every option must say what it is.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from ._common import finish, roles

# Options of the whole collection, which each role that reads them documents; they have no default of their own in a role.
SHARED = ("gpu_kubeconfig", "gpu_kube_context", "gpu_node_name")
PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "path": (str,),
    "raw": (object,),
    "bool": (bool,),
    "int": (int,),
    "float": (float, int),
    "list": (list,),
    "dict": (dict,),
}
MISSING = object()


def load(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file; empty for a file that is not there or has none."""
    return (yaml.safe_load(path.read_text(encoding="utf-8")) or {}) if path.is_file() else {}


def is_template(value: object) -> bool:
    """Whether Ansible computes *value* when the role runs, so that its type cannot be known from the file."""
    return isinstance(value, str) and "{{" in value


def fits(value: object, kind: str) -> bool:
    """Whether a YAML value is of an argument spec's type, by nature and not by conversion."""
    if is_template(value) or value is None:
        return True
    if isinstance(value, bool):
        return kind in {"bool", "raw"}
    return isinstance(value, PYTHON_TYPES.get(kind, ()))


def problems_of_option(name: str, option: Mapping[str, Any], default: object) -> Iterator[str]:
    """What is wrong with one documented option, given its value in defaults/main.yml (MISSING if it has none)."""
    kind = option.get("type")
    if not option.get("description"):
        yield f"{name}: no description"
    if kind not in PYTHON_TYPES:
        yield f"{name}: type is {kind!r}, one of {', '.join(PYTHON_TYPES)} is wanted"
        return
    if kind == "list" and "elements" not in option:
        yield f"{name}: a list without elements"
    documented = option.get("default", MISSING)
    if documented != default or type(documented) is not type(default):
        yield f"{name}: documented default {told(documented)}, defaults/main.yml {told(default)}"
    if default is not MISSING:
        if option.get("required"):
            yield f"{name}: required, and yet it has a default"
        if not fits(default, kind):
            yield f"{name}: default {default!r} is no {kind}"
        if "choices" in option and not is_template(default) and default not in option["choices"]:
            yield f"{name}: default {default!r} is none of its choices"


def told(value: object) -> str:
    """A value for a message."""
    return "absent" if value is MISSING else repr(value)


def problems_of_role(role: Path) -> tuple[int, list[str]]:
    """Number of options of *role*, and what is wrong with them."""
    spec = load(role / "meta" / "argument_specs.yml").get("argument_specs", {}).get("main")
    if not spec:
        return 0, [f"{role.name}: meta/argument_specs.yml has no entry point main"]
    options: dict[str, Any] = spec.get("options", {})
    defaults = load(role / "defaults" / "main.yml")
    found = [f"{name}: in defaults/main.yml, not documented" for name in defaults.keys() - options.keys()]
    for name, option in options.items():
        if not name.startswith((f"{role.name}_", *SHARED)):
            found.append(f"{name}: public names start with {role.name}_")
        found += problems_of_option(name, option, defaults.get(name, MISSING))
    found += [
        f"no {key}" for key in ("short_description", "description", "author", "version_added") if not spec.get(key)
    ]
    return len(options), [f"{role.name}: {problem}" for problem in sorted(found)]


def main() -> int:
    """Compare every role; prints the numbers."""
    checked = {role.name: problems_of_role(role) for role in roles()}
    found = [problem for _count, problems in checked.values() for problem in problems]
    total = sum(count for count, _problems in checked.values())
    return finish("argument specs = defaults", found, f"{total} options of {len(checked)} roles")


if __name__ == "__main__":
    sys.exit(main())
