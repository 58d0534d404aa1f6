# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Are a role's argument specs its defaults? ``python -m gates.argument_specs``.

meta/argument_specs.yml is the contract, defaults/main.yml is what Ansible uses. For every role the names, the values and the types must
agree, including suboptions and elements; every option must have a description, and be read by the role. Entry points beside ``main`` may
have some of its options, with the same specification. Each entry point that a playbook or another role uses has a spec.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from ._common import FQCN, ROOT, finish, roles

# Options of the whole collection, which each role that reads them documents; they have no default of their own in a role.
SHARED = (
    "container_runtime",
    "gpu_edge_tolerations",
    "gpu_exporter_target",
    "gpu_image_registry",
    "gpu_devices_root",
    "gpu_kubeconfig",
    "gpu_kube_context",
    "gpu_node_name",
    "gpu_proxy_environment",
    "gpu_take_over",
    "gpu_vendors",
)
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
TEXTS = ("str", "path", "raw")
MISSING = object()
RUN = ("tasks", "handlers", "templates", "vars", "defaults")
COMMENT = re.compile(r"^\s*#.*$", re.MULTILINE)
KEY = re.compile(r"^\s*(?:- )?(\w+):", re.MULTILINE)
#: The role and the entry point of a task that uses one of another role, and is not a template.
USE = re.compile(rf"name: {re.escape(FQCN)}\.(\w+),?\s+tasks_from: (\w+)")
REGISTER = re.compile(r"^\s*register: (\w+)", re.MULTILINE)


def load(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file; empty for a file that is not there or has none."""
    return (yaml.safe_load(path.read_text(encoding="utf-8")) or {}) if path.is_file() else {}


def is_template(value: object) -> bool:
    """Whether *value* is a template, so that the file does not show its type."""
    return isinstance(value, str) and "{{" in value


def is_of_type(value: object, kind: str) -> bool:
    """Whether a YAML value is of an argument spec's type, without conversion."""
    if is_template(value) or value is None:
        return True
    if isinstance(value, bool):
        return kind in {"bool", "raw"}
    return isinstance(value, PYTHON_TYPES.get(kind, ()))


def is_same(one: object, other: object) -> bool:
    """Whether two YAML values are equal, types included; in Python 1, 1.0 and True are equal."""
    if MISSING in (one, other):
        return one is other
    return json.dumps(one, sort_keys=True, default=str) == json.dumps(other, sort_keys=True, default=str)


def problems_of_form(name: str, option: Mapping[str, Any]) -> Iterator[str]:
    """Problems of the specification of one option and of its suboptions."""
    kind, elements = option.get("type"), option.get("elements")
    if not option.get("description"):
        yield f"{name}: no description"
    if kind not in PYTHON_TYPES:
        yield f"{name}: type is {kind!r}, not one of {', '.join(PYTHON_TYPES)}"
    if kind == "list" and elements not in PYTHON_TYPES:
        yield f"{name}: a list without elements" if elements is None else f"{name}: no type of elements: {elements!r}"
    if "options" in option and "dict" not in {kind, elements}:
        yield f"{name}: has suboptions and is not a dict"
    for sub, suboption in option.get("options", {}).items():
        yield from problems_of_form(f"{name}.{sub}", suboption)


def problems_of_value(name: str, option: Mapping[str, Any], value: object) -> Iterator[str]:
    """Problems of a value: its type, its choices, its elements, its suboptions."""
    if is_template(value) or value is None:
        return
    if not is_of_type(value, str(option.get("type"))):
        yield f"{name}: default {value!r} is not of type {option.get('type')}"
        return
    entries = value if isinstance(value, list) else [value]
    for entry in entries:
        if "choices" in option and not is_template(entry) and entry not in option["choices"]:
            yield f"{name}: default {entry!r} is not one of its choices"
        if isinstance(value, list) and not is_of_type(entry, str(option.get("elements"))):
            yield f"{name}: default element {entry!r} is not of type {option.get('elements')}"
        if "options" in option and isinstance(entry, dict):
            yield from problems_of_suboptions(name, option["options"], entry)


def problems_of_suboptions(name: str, options: Mapping[str, Any], value: Mapping[str, Any]) -> Iterator[str]:
    """Problems of the suboptions of a dict."""
    yield from (f"{name}.{key}: in the default, not documented" for key in value.keys() - options.keys())
    for sub, option in options.items():
        if sub in value:
            yield from problems_of_value(f"{name}.{sub}", option, value[sub])
        elif option.get("required"):
            yield f"{name}.{sub}: required, and missing from the default"


def problems_of_option(name: str, option: Mapping[str, Any], default: object) -> Iterator[str]:
    """Problems of one documented option and of its value in defaults/main.yml (MISSING if it has none)."""
    yield from problems_of_form(name, option)
    documented = option.get("default", MISSING)
    if is_template(default) and option.get("type") not in TEXTS:
        # The documentation's tools take a default for a value of its type.
        if documented is not MISSING:
            yield f"{name}: its default is computed and not text; leave it out, and describe it"
    elif not is_same(documented, default):
        yield f"{name}: documented default {format_value(documented)}, defaults/main.yml {format_value(default)}"
    if default is not MISSING:
        if option.get("required"):
            yield f"{name}: is required and has a default"
        yield from problems_of_value(name, option, default)


def format_value(value: object) -> str:
    """A value for a message."""
    return "absent" if value is MISSING else repr(value)


def names_of(role: Path) -> tuple[set[str], set[str]]:
    """The words that the files of *role* read, which include all variables, and the names that they assign."""
    read: set[str] = set()
    assigned: set[str] = set()
    for path in (path for folder in RUN for path in (role / folder).rglob("*") if path.is_file()):
        # The name of a module may begin like variables of the role.
        text = COMMENT.sub("", path.read_text(encoding="utf-8")).replace(f"{FQCN}.", f"{FQCN}.the_plugin_")
        assigned.update(KEY.findall(text), REGISTER.findall(text))
        read.update(re.findall(r"\w+", KEY.sub("", text)))
    return read, assigned


def find_words_of_included_roles(role: Path, words: set[str]) -> set[str]:
    """Words that roles read which *role* includes: all of internal roles, whose names begin with an underscore; of others, those in SHARED."""
    used = (each for each in role.parent.iterdir() if each != role and {each.name, f"the_plugin_{each.name}"} & words)
    return {word for each in used for word in names_of(each)[0] if each.name.startswith("_") or word in SHARED}


def problems_of_entry_point(name: str, spec: Mapping[str, Any], main: Mapping[str, Any]) -> Iterator[str]:
    """Problems of an entry point; its options have to equal those of ``main``."""
    for key in ("short_description", "description", "author", "version_added"):
        if not spec.get(key):
            yield f"entry point {name}: no {key}"
    for option, words in spec.get("options", {}).items():
        if not is_same(words, main.get("options", {}).get(option, MISSING)):
            yield f"entry point {name}: {option} is not what it is in main"


def problems_of_role(role: Path) -> tuple[int, list[str]]:
    """Number of options of *role*, and their problems."""
    specs = load(role / "meta" / "argument_specs.yml").get("argument_specs", {})
    main = specs.get("main")
    if not main:
        return 0, [f"{role.name}: meta/argument_specs.yml has no entry point main"]
    options: dict[str, Any] = main.get("options", {})
    defaults, (read, assigned) = load(role / "defaults" / "main.yml"), names_of(role)
    read_elsewhere = find_words_of_included_roles(role, read)
    # An internal role may have variables that users set; these begin without the underscore.
    prefixes = (f"{role.name}_", f"{role.name.lstrip('_')}_")
    # A name that begins with the longer name of another role belongs to that role.
    others = tuple(f"{other.name}_" for other in role.parent.iterdir() if other.name.startswith(f"{role.name}_"))
    found = [
        f"{name}: the role reads it, and it is neither documented nor set"
        for name in read - assigned - options.keys()
        if name.startswith(prefixes) and not name.startswith(others or "/")
    ]
    found += [f"{name}: in defaults/main.yml, not documented" for name in defaults.keys() - options.keys()]
    for name, option in options.items():
        if not name.startswith(prefixes) and name not in SHARED:
            found.append(f"{name}: public names start with {role.name}_")
        if name not in read | read_elsewhere:
            found.append(f"{name}: nothing in the role reads it")
        found += problems_of_option(name, option, defaults.get(name, MISSING))
    for name, spec in specs.items():
        found += problems_of_entry_point(name, spec, main)
    return len(options), [f"{role.name}: {problem}" for problem in sorted(found)]


def problems_of_uses() -> Iterator[str]:
    """Entry points without a spec that playbooks and other roles use."""
    specs = {role.name: load(role / "meta" / "argument_specs.yml").get("argument_specs", {}) for role in roles()}
    for path in (path for folder in ("playbooks", "roles") for path in sorted((ROOT / folder).rglob("*.yml"))):
        for role, entry_point in USE.findall(path.read_text(encoding="utf-8")):
            if entry_point not in specs[role] and not path.is_relative_to(ROOT / "roles" / role):
                yield f"{path.relative_to(ROOT)}: entry point {entry_point} of {role} has no spec"


def main() -> int:
    """Compare every role; prints the numbers."""
    checked = {role.name: problems_of_role(role) for role in roles()}
    found = [problem for _count, problems in checked.values() for problem in problems]
    found += problems_of_uses()
    total = sum(count for count, _problems in checked.values())
    return finish("argument specs = defaults", found, f"{total} options of {len(checked)} roles")


if __name__ == "__main__":
    sys.exit(main())
