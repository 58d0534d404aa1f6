# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Does CHANGELOG.md have the notes of the next release? ``python -m gates.changelog``, with ``--write`` to write it.

A checkout before the first release has no other notes. From then on, antsibull-changelog writes the file for each release (``gates.release``).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from ._common import ROOT, finish

FRAGMENTS = ROOT / "changelogs" / "fragments"
CHANGELOG = ROOT / "CHANGELOG.md"
RELEASES = ROOT / "changelogs" / "changelog.yaml"
SUMMARY = "release_summary"


def render(fragments: Iterable[Mapping[str, Any]], config: Mapping[str, Any], version: str) -> str:
    """The text of CHANGELOG.md for fragments in their order; a note is a line."""
    merged: dict[str, list[str]] = {}
    for fragment in fragments:
        for section, notes in fragment.items():
            merged.setdefault(section, []).extend([notes] if isinstance(notes, str) else notes)
    lines = [f"# {config['title']} Release Notes", "", f"## v{version} (not released yet)", ""]
    lines += [" ".join(text.split()) for text in merged.get(SUMMARY, [])]
    for section, title in config["sections"]:
        if section in merged:
            lines += [
                "",
                f"### {title}",
                "",
                *(f"- {' '.join(note.split()).replace('``', '`')}" for note in merged[section]),
            ]
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Compare CHANGELOG.md with the fragments, or write it. After the first release, a release writes it."""
    paths = sorted([*FRAGMENTS.glob("*.yml"), *FRAGMENTS.glob("*.yaml")])
    if RELEASES.exists():
        return finish("changelog", [], f"{len(paths)} fragments for the next release")
    config = yaml.safe_load((ROOT / "changelogs" / "config.yaml").read_text(encoding="utf-8"))
    version = yaml.safe_load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))["version"]
    text = render((yaml.safe_load(path.read_text(encoding="utf-8")) for path in paths), config, version)
    if "--write" in arguments:
        CHANGELOG.write_text(text, encoding="utf-8")
    same = CHANGELOG.read_text(encoding="utf-8") == text
    found = [] if same else ["CHANGELOG.md differs from changelogs/fragments: run `python -m gates.changelog --write`"]
    return finish("changelog", found, f"{len(paths)} fragments")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
