# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The surveys of the job templates, from the argument specs: ``PYTHONPATH=tests:.ansible/collections python -m gates.awx --write``.

They are in the role awx_objects and, as a table, in the guide. A unit test compares both with the argument specs.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from ._common import ROOT, AnsibleLoader, finish

OBJECTS = ROOT / "roles" / "awx_objects" / "vars" / "controller.yml"
DEFAULTS = ROOT / "roles" / "awx_objects" / "defaults" / "main.yml"
QUESTIONS = ROOT / "tests" / "gates" / "awx_questions.yml"
PAGE = ROOT / "docs" / "docsite" / "rst" / "guide_awx.rst"
#: What is below these lines is generated.
MARK = "# Generated from the argument specs of the roles.\n"
PAGE_MARK = ".. Generated from the argument specs of the roles.\n"
#: Types of AWX whose answers are texts.
TEXTS = ("text", "textarea", "password", "multiplechoice", "multiselect")
TYPES = {"str": "text", "path": "text", "int": "integer", "float": "float", "bool": "multiplechoice"}
PYTHON_TYPES: dict[str, type] = {"str": str, "path": str, "bool": bool, "int": int, "float": float}
REQUIRED_KEYS = {"question_name", "type", "variable", "required"}
TEXT_LENGTH = 1024
MARKUP = re.compile(r"\b[VOCMPIB]\(([^()]*)\)")
Json = dict[str, Any]


class Dumper(yaml.SafeDumper):
    """Indents lists as yamllint requires, and writes texts of several lines in one."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent, also for a list in a mapping."""
        super().increase_indent(flow, False)


Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, '"' if "\n" in text else None),
)


def describe(option: Mapping[str, Any]) -> str:
    """The first sentence of an option's description, without markup."""
    text = option["description"]
    first = " ".join((text if isinstance(text, str) else text[0]).split())
    plain = MARKUP.sub(lambda match: match[1].strip('"').partition("#")[0].rpartition(":")[2] or match[1], first)
    return plain.partition(". ")[0].rstrip(".") + "."


def make_question(variable: str, label: str, option: Mapping[str, Any], preset: bool = False) -> Json:
    """The question of a survey for an option, in the form that AWX returns. Raises ValueError for an option that no answer can set."""
    kind, choices = option["type"], [each for each in option.get("choices", []) if each != ""]
    if kind == "list" and option.get("elements") == "str" and choices:
        kind = "multiselect"
    elif kind not in TYPES:
        raise ValueError(f"{variable}: a survey has no question of the type {kind}")
    else:
        kind = "multiplechoice" if choices else TYPES[kind]
    if option["type"] == "bool":
        choices = ["true", "false"]
    question: Json = {
        "question_name": label,
        "question_description": describe(option),
        "required": bool(option.get("required", False)),
        "type": kind,
        "variable": variable,
    }
    if kind == "text":
        question |= {"min": 0, "max": TEXT_LENGTH}
    if choices:
        question["choices"] = "\n".join(map(str, choices))
    default = option.get("default")
    if preset:
        if default in (None, "") or "{{" in str(default):
            raise ValueError(f"{variable}: its role has no default that a survey can pass")
        question["default"] = "\n".join(default) if kind == "multiselect" else format_answer(default, kind)
    return question


def format_answer(value: object, kind: str) -> object:
    """A default value as the answer of a question."""
    return (str(value).lower() if isinstance(value, bool) else str(value)) if kind in TEXTS else value


def problems_of_question(question: Mapping[str, Any], option: Mapping[str, Any]) -> Iterator[str]:
    """What AWX refuses of a question, and answers that ansible-core reads with another type than the option has."""
    name = question.get("variable", "?")
    if missing := REQUIRED_KEYS - question.keys():
        yield f"{name}: no {', '.join(sorted(missing))}"
        return
    kind, default = question["type"], question.get("default", None)
    choices = question.get("choices", "").splitlines()
    if kind in {"multiplechoice", "multiselect"} and not choices:
        yield f"{name}: no choices"
    if "default" in question and default in (None, ""):
        yield f"{name}: an empty default is passed as an answer"
    for limit in ("min", "max"):
        if not isinstance(question.get(limit, 0), int):
            yield f"{name}: {limit} is not a number"
    presets = default.splitlines() if isinstance(default, str) else [] if default is None else [default]
    if choices and not set(presets) <= set(choices):
        yield f"{name}: the default is not among the choices"
    expected = PYTHON_TYPES[option.get("elements", option["type"])]
    for answer in {*choices, *presets}:
        if type(read_answer(answer)) is not expected:
            yield f"{name}: ansible-core reads the answer {answer!r} as {type(read_answer(answer)).__name__}"


def read_answer(answer: object) -> object:
    """What a playbook gets for an answer: AWX writes a text as an unsafe scalar, whose content ansible-core 2.19 and newer read again."""
    return yaml.safe_load(answer) if isinstance(answer, str) else answer


def problems_of_survey(survey: Mapping[str, Any], options: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Problems of a survey whose questions set these options."""
    variables = [question["variable"] for question in survey["spec"]]
    if len(set(variables)) != len(variables):
        yield f"{', '.join(variables)}: a variable has two questions"
    if not 3 <= len(variables) <= 8:
        yield f"{', '.join(variables)}: not 3 to 8 questions"
    for question in survey["spec"]:
        yield from problems_of_question(question, options[question["variable"]])


def read_options() -> dict[str, Mapping[str, Any]]:
    """The options of all roles and of the questions that belong to no role."""
    found: dict[str, Mapping[str, Any]] = {}
    for path in sorted((ROOT / "roles").glob("*/meta/argument_specs.yml")):
        main = yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"].get("main", {})
        found = {**main.get("options", {}), **found}
    for questions in read_questions().values():
        found |= {name: row["option"] for name, row in questions.items() if "option" in row}
    return found


def read_objects() -> dict[str, Any]:
    """The objects that the role declares, with the default prefix in their names."""
    prefix = yaml.safe_load(DEFAULTS.read_text(encoding="utf-8"))["awx_objects_prefix"]
    text = OBJECTS.read_text(encoding="utf-8").replace("{{ awx_objects_prefix }}", prefix)
    content: dict[str, Any] = yaml.load(text, AnsibleLoader)  # noqa: S506 - a subclass of SafeLoader
    return content


def read_questions() -> dict[str, dict[str, Json]]:
    """The chosen questions by survey and variable."""
    content: dict[str, dict[str, Json]] = yaml.safe_load(QUESTIONS.read_text(encoding="utf-8"))
    return content


def make_surveys() -> dict[str, Json]:
    """All surveys by their names."""
    options = read_options()
    return {
        name: {
            "name": "",
            "description": "",
            "spec": [
                make_question(variable, row["label"], options[variable], row.get("preset", False))
                for variable, row in questions.items()
            ],
        }
        for name, questions in read_questions().items()
    }


def render_objects(text: str, surveys: Mapping[str, Json]) -> str:
    """The role's file with these surveys."""
    content = yaml.dump({"awx_objects_surveys": surveys}, Dumper=Dumper, sort_keys=False, width=150)
    return text.partition(MARK)[0] + MARK + content


def render_table(surveys: Mapping[str, Json], objects: Mapping[str, Any]) -> str:
    """The questions of all job templates as a table."""
    lines = [".. list-table::", "    :header-rows: 1", "    :widths: 18 32 50", ""]
    rows = [("Job template", "Variable", "Question")]
    for template in objects["controller_templates"]:
        survey = template["survey_spec"].rpartition(".")[2].rstrip(" }")
        for number, question in enumerate(surveys[survey]["spec"]):
            mark = " (required)" if question["required"] else ""
            text = f"{question['question_name']}{mark}: {question['question_description']}"
            rows.append(("" if number else template["name"], f"``{question['variable']}``", text))
    for row in rows:
        lines += [f"    {'  ' if number else '* '}- {cell}".rstrip() for number, cell in enumerate(row)]
    return "\n".join(lines) + "\n"


def render_all() -> dict[Path, str]:
    """The generated files with their content."""
    surveys = make_surveys()
    text = OBJECTS.read_text(encoding="utf-8")
    head, mark, rest = PAGE.read_text(encoding="utf-8").partition(PAGE_MARK)
    table = render_table(surveys, read_objects())
    # The table ends at the first line that is not indented.
    after = re.split(r"^(?=\w)", rest, maxsplit=1, flags=re.MULTILINE)[1:]
    return {OBJECTS: render_objects(text, surveys), PAGE: "\n".join([f"{head}{mark}", table, *after])}


def find_problems() -> list[str]:
    """Invalid questions, and files that are not up to date."""
    options = read_options()
    found = [problem for survey in make_surveys().values() for problem in problems_of_survey(survey, options)]
    old = [path for path, text in render_all().items() if path.read_text(encoding="utf-8") != text]
    return found + [f"{path.relative_to(ROOT)} is not up to date: python -m gates.awx --write" for path in old]


def main() -> int:
    """Compare the files, or with ``--write`` write them."""
    if "--write" in sys.argv:
        for path, text in render_all().items():
            path.write_text(text, encoding="utf-8")
    return finish("surveys", find_problems(), f"{len(make_surveys())} surveys")


if __name__ == "__main__":
    sys.exit(main())
