# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Are the pages those of the catalogues? ``python -m gates.codes``, with ``--write`` to write them: docs/codes.md, troubleshooting, and versions.

The codes of problems, checks, rules and refusals are rows of the collection's catalogues; those of exit statuses are here.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from . import _support, _symptoms
from ._common import ROOT, finish

PAGE = ROOT / "docs" / "codes.md"
UTILS = "ansible_collections.gpu.kubernetes.plugins.module_utils"
HEAD = """<!--
Copyright (c) 2026, the gpu.kubernetes authors
SPDX-License-Identifier: GPL-3.0-or-later
-->
# Codes

`python -m gates.codes --write` writes this page from the catalogues in the code. A code keeps its meaning; new codes may be added in any release.
"""
# Program or field, status, meaning.
STATUSES = (
    ("ansible-playbook", "0", "The run succeeded. The field `ok` of the report states whether the GPUs are well."),
    ("ansible-playbook", "1", "Ansible could not begin: options, or an inventory that cannot be read."),
    (
        "ansible-playbook",
        "2",
        "A task failed on a host: a refusal, a fault, or a problem in the report with `gpu_verify_fail`.",
    ),
    ("ansible-playbook", "4", "A host was unreachable, also one that `gpu_nodes_max_unreachable` accepts."),
    ("ansible-playbook", "250", "Ansible itself failed."),
    ("`exit_code` of the doctor's report", "0", "No fault was found."),
    ("`exit_code` of the doctor's report", "1", "There are warnings, and `gpu_doctor_fail_on` is `warn`."),
    ("`exit_code` of the doctor's report", "2", "A fault was found."),
    ("`exit_code` of the doctor's report", "3", "No check failed, and a host could not be examined."),
    ("linter, as a command", "0", "No finding is as grave as `--fail-on`."),
    ("linter, as a command", "1", "A finding is as grave as `--fail-on`."),
    ("linter, as a command", "2", "The input cannot be read."),
)


def load(name: str) -> Any:
    """A module of module_utils of this checkout."""
    path = str(ROOT / ".ansible" / "collections")
    if path not in sys.path:
        sys.path.insert(0, path)
    return importlib.import_module(f"{UTILS}.{name}")


def list_problems() -> list[tuple[str, ...]]:
    """Code and title of each problem of the report, the worst first."""
    texts = load("_report.texts").TEXTS
    return [(f"`{code}`", texts[f"code_{code}"][0]) for code in load("_report.page").SEVERITY]


def list_checks() -> list[tuple[str, ...]]:
    """Id, layer, title and remedy of each check of the doctor."""
    return [(f"`{row.id}`", row.layer, row.title, row.remedy) for row in load("_checks.registry").CHECKS]


def list_rules() -> list[tuple[str, ...]]:
    """Number, severity and title of each rule of the linter."""
    return [(f"`{row.number}`", row.severity, row.title) for row in load("_lint.catalogue").RULES]


def read_topic(docstring: str) -> str:
    """The first sentence of a docstring, without its verb: ``Yield why …`` is ``Why …``."""
    text = re.split(r"\.\s", " ".join(docstring.split()) + " ")[0].removeprefix("Yield ")
    return text[:1].upper() + text[1:]


def list_refusals() -> list[tuple[str, ...]]:
    """Subject of the refusals of roles, and what they are about."""
    rows = load("_refusals").CHECKS.items()
    return [(f"`{name}`", read_topic(check.__doc__)) for name, check in rows]


def render_table(title: str, intro: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A section with a table in Markdown."""
    lines = [
        f"## {title}",
        "",
        *([intro, ""] if intro else []),
        f"| {' | '.join(columns)} |",
        f"| {' | '.join('---' for _ in columns)} |",
    ]
    lines += [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def render() -> str:
    """The page."""
    sections = (
        (
            "Problems of the report",
            "`problems[].code`. `verify_gpu_cluster` reports them, each with cause and remedy. Codes with a dot are checks of the doctor.",
            ("Code", "Meaning"),
            list_problems(),
        ),
        (
            "Checks of the doctor",
            "`causes[].id`, `checks[].id`. The guide on diagnosis has cause and messages of each.",
            ("Code", "Layer", "Check", "Remedy"),
            list_checks(),
        ),
        ("Rules of the linter", "`findings[].rule`.", ("Code", "Severity", "Rule"), list_rules()),
        (
            "Refusals",
            "Subjects of the checks before any change. A refusal is a sentence with host, cause and remedy, and the run changes nothing.",
            ("Subject", "What it checks"),
            list_refusals(),
        ),
        ("Exit statuses", "", ("Program", "Status", "Meaning"), STATUSES),
    )
    return HEAD + "\n" + "\n".join(render_table(*section) for section in sections)


def render_pages() -> dict[Path, str]:
    """The text of each page that is generated here, by its path."""
    return {
        PAGE: render(),
        _symptoms.PAGE: _symptoms.render(load("_checks.registry").CHECKS),
        _support.PAGE: _support.render(load),
    }


def main(arguments: list[str]) -> int:
    """Compare the pages with the catalogues, or write them."""
    pages = render_pages()
    if "--write" in arguments:
        for path, text in pages.items():
            path.write_text(text, encoding="utf-8")
    found = [
        f"{path.relative_to(ROOT)} differs from the code: run `python -m gates.codes --write`"
        for path, text in pages.items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    found += _symptoms.find_misplaced(check.id for check in load("_checks.registry").CHECKS)
    return finish(
        "codes", found, f"{sum(line.startswith('| `') for line in pages[PAGE].splitlines())} codes, {len(pages)} pages"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
