# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where apt has the distribution from, with the options of those entries (sources.list(5)).

apt tells its index targets, and the entry each one comes from, but not the entry's options. They have to be the same wherever one
repository is named: apt reads nothing at all where it is named twice with different keys.
"""

from __future__ import annotations

import re

OURS = "/gpu-kubernetes-"
PLACE = {"types", "uris", "suites", "components", "enabled"}
# One-line entries have names of their own for these.
FIELDS = {"arch": "Architectures", "lang": "Languages", "target": "Targets"}


def stanzas(text: str) -> list[dict[str, str]]:
    """The paragraphs of a deb822 text; a value keeps its further lines as they are."""
    found: list[dict[str, str]] = [{}]
    name = ""
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        if not line.strip():
            if found[-1]:
                found.append({})
        elif line[0] in " \t":
            found[-1][name] += f"\n{line}"
        else:
            name, _colon, value = line.partition(":")
            found[-1][name] = value.strip()
    return [stanza for stanza in found if stanza]


def entry_options(path: str, text: str, number: int) -> dict[str, str]:
    """Options of an entry as deb822 has them: of the line of that number, in a file of stanzas of the stanza of that number, from 1."""
    if path.endswith(".sources"):
        return {name: value for name, value in stanzas(text)[number - 1].items() if name.lower() not in PLACE}
    options = re.match(r"\s*deb(?:-src)?\s+\[([^\]]*)\]", text.splitlines()[number - 1])
    found = {}
    for name, sign, value in re.findall(r"([^\s=+-][^\s=+]*?)\s*([+-]?)=\s*(\S+)", options[1] if options else ""):
        field = FIELDS.get(name.lower(), name.title().replace("Pdiffs", "PDiffs"))
        found[field + {"+": "-Add", "-": "-Remove"}.get(sign, "")] = value.replace(",", " ")
    return found


def places(targets: str, files: dict[str, str], origin: str, suites: list[str]) -> list[dict[str, object]]:
    """``{url, suite, options}`` of each repository of the distribution among the targets, in their order.

    ``targets`` is what ``apt-get indextargets`` tells, ``files`` the content of the files that their ``Sourcesentry`` names. Others who
    call their releases alike are left out by their ``origin``, which apt knows of repositories that it has fetched from.
    """
    found: dict[tuple[str, str], dict[str, object]] = {}
    for target in stanzas(targets):
        url, suite = target["Repo-URI"], target["Release"]
        path, _colon, number = target["Sourcesentry"].rpartition(":")
        if (
            (suite in suites or target.get("Codename") in suites)
            and OURS not in path
            and target.get("Origin", origin) == origin
            and (url, suite) not in found
        ):
            found[url, suite] = {"url": url, "suite": suite, "options": entry_options(path, files[path], int(number))}
    return list(found.values())
