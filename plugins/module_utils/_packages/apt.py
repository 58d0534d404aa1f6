# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is special to apt: the distribution's sources with the options of their entries, and preferences for one installation.

apt lists its index targets and their entries, but not the options of the entries (sources.list(5)). All entries of one repository need the same
options: apt reads no source at all if one repository has two entries with different keys.

apt installs dependencies in the version that it prefers (apt_preferences(5)), and fails if the packages need them in the requested version.
"""

from __future__ import annotations

import os
import re
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Iterator

from .._config import files as _files
from .request import PackageError, Request

HOST_PREFERENCES = "/etc/apt/preferences"
MANAGED_PREFIX = "/gpu-kubernetes-"
LOCATION_FIELDS = {"types", "uris", "suites", "components", "enabled"}
# The names of options in one-line entries.
FIELDS = {"arch": "Architectures", "lang": "Languages", "target": "Targets"}


def parse_stanzas(text: str) -> list[dict[str, str]]:
    """The paragraphs of a deb822 text; continuation lines are part of a value."""
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


def read_entry_options(path: str, text: str, number: int) -> dict[str, str]:
    """The options of an entry by their names in deb822. *number* counts lines, or stanzas in a ``.sources`` file, from 1."""
    if path.endswith(".sources"):
        return {
            name: value
            for name, value in parse_stanzas(text)[number - 1].items()
            if name.lower() not in LOCATION_FIELDS
        }
    options = re.match(r"\s*deb(?:-src)?\s+\[([^\]]*)\]", text.splitlines()[number - 1])
    found = {}
    for name, sign, value in re.findall(r"([^\s=+-][^\s=+]*?)\s*([+-]?)=\s*(\S+)", options[1] if options else ""):
        field = FIELDS.get(name.lower(), name.title().replace("Pdiffs", "PDiffs"))
        found[field + {"+": "-Add", "-": "-Remove"}.get(sign, "")] = value.replace(",", " ")
    return found


def find_repositories(targets: str, files: dict[str, str], origin: str, suites: list[str]) -> list[dict[str, object]]:
    """``{url, suite, options}`` of each repository of the distribution among the targets, in their order.

    ``targets`` is the output of ``apt-get indextargets``, ``files`` the content of the files in its ``Sourcesentry`` fields. Repositories
    with another ``origin`` are left out; apt knows it after the first download.
    """
    found: dict[tuple[str, str], dict[str, object]] = {}
    for target in parse_stanzas(targets):
        url, suite = target["Repo-URI"], target["Release"]
        path, _colon, number = target["Sourcesentry"].rpartition(":")
        if (
            (suite in suites or target.get("Codename") in suites)
            and MANAGED_PREFIX not in path
            and target.get("Origin", origin) == origin
            and (url, suite) not in found
        ):
            found[url, suite] = {
                "url": url,
                "suite": suite,
                "options": read_entry_options(path, files[path], int(number)),
            }
    return list(found.values())


@contextmanager
def prefer_version(request: Request, host_preferences: str = HOST_PREFERENCES) -> Iterator[Request]:
    """Yield the request with preferences for its version, for all packages, before the ones in the host's file.

    Raises PackageError if they cannot be written.
    """
    version = request.version or ""
    # Preferences for * would have a lower priority than those of other files for package names.
    pin = version if "-" in version else f"{version}-*"
    text = f"Package: /./\nPin: version {pin}\nPin-Priority: 1002\n\n".encode("ascii")
    with ExitStack() as stack:
        try:
            path = os.path.join(
                stack.enter_context(tempfile.TemporaryDirectory(prefix="gpu-kubernetes-")), "preferences"
            )
            _files.write_atomic(path, text + (_files.read_bytes(host_preferences) or b""), mode=0o644)
        except (OSError, _files.FilesError) as error:
            raise PackageError(
                f"Cannot write apt preferences for {version} ({str(error).rstrip('.')}): correct that, and run again"
            ) from error
        yield replace(request, preferences=path)
